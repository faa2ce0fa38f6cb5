#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/internal_key.h"
#include "table/block.h"
#include "table/block_portion.h"

// Any bytes: either Parse refuses them as Corruption or Unsupported, or they are a block: its
// records are in order both ways, and a search for each of them finds it.

namespace {

using basalt::StatusCode;
using basalt::table::Block;
using basalt::table::BlockBuffer;
using basalt::table::BlockCursor;

void CheckRecords(const Block& block) {
  BlockCursor cursor;
  cursor.Reset(block);
  std::string last_key;
  basalt::base::Tag last_tag = 0;
  uint32_t count = 0;
  for (cursor.MoveTo(0); cursor.Valid(); cursor.Next(), ++count) {
    BASALT_CHECK(cursor.index() == count);
    BASALT_CHECK(cursor.key().size() == block.key_size(count));
    BASALT_CHECK(cursor.key().size() <= block.key_bytes_max());
    BASALT_CHECK(block.KeyEquals(count, cursor.key()));
    BASALT_CHECK(block.LowerBound(cursor.key(), cursor.tag()) == count);
    BASALT_CHECK(count == 0 ||
                 basalt::base::CompareInternal(last_key, last_tag, cursor.key(), cursor.tag()) < 0);
    last_key = cursor.key();
    last_tag = cursor.tag();
    const auto kind = basalt::base::TagKind(cursor.tag());
    BASALT_CHECK(cursor.time_ms() == block.time_ms(count));
    BASALT_CHECK(kind != basalt::RecordKind::kDelete || cursor.time_ms() == 0);
    // Touches every byte of the value, for the sanitizer to see.
    BASALT_CHECK(std::string(cursor.value()).size() == cursor.value().size());
  }
  BASALT_CHECK(count == block.count());
  BASALT_CHECK(block.LowerBound(last_key + '\xFF', 0) == count);
  for (cursor.MoveTo(count - 1); cursor.Valid(); cursor.Prev()) {
    BASALT_CHECK(block.KeyEquals(--count, cursor.key()));
  }
  BASALT_CHECK(count == 0);
}

// What is given at once is what a cursor shows.
void CheckPortions(const Block& block) {
  basalt::table::BlockPortion portion;
  BlockCursor cursor;
  cursor.Reset(block);
  for (uint32_t first = 1; first < block.count();) {
    const auto puts = portion.Take(block, first, basalt::table::BlockPortion::kRecordsMax,
                                   basalt::base::kNewestTag);
    for (const basalt::base::PlainPut& put : puts) {
      cursor.MoveTo(first++);
      BASALT_CHECK(put.key() == cursor.key() && put.value() == cursor.value());
      BASALT_CHECK(!block.KeyEquals(first - 2, put.key()));
    }
    if (puts.empty()) ++first;
  }
}

void CheckBytes(std::string_view bytes, Block::Content content) {
  BlockBuffer buffer = BlockBuffer::Allocate(bytes.size());
  if (!bytes.empty()) std::memcpy(buffer.bytes.get(), bytes.data(), bytes.size());
  const auto block = Block::Parse(std::move(buffer), content);
  if (block) {
    CheckRecords(**block);
    return CheckPortions(**block);
  }
  const StatusCode code = block.error().code();
  BASALT_CHECK(code == StatusCode::kCorruption || code == StatusCode::kUnsupported);
  BASALT_CHECK(!block.error().message().empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  CheckBytes(bytes, Block::Content::kData);
  CheckBytes(bytes, Block::Content::kIndex);
  return 0;
}
