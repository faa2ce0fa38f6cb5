#include "db/range_delete_blocks.h"

#include <memory>
#include <optional>

#include "db/tree_key.h"
#include "table/zstd_block.h"

namespace basalt::db {
namespace {

constexpr size_t kEntryFixedBytes = 16;
/// A reader allocates at most so many times the bytes that are stored.
constexpr size_t kBlockRatioMax = 255;
/// Smaller entries are stored as they are.
constexpr size_t kCompressedBytesMin = 512;

}  // namespace

void AppendRangeDelete(uint32_t keyspace, base::SequenceNumber sequence, std::string_view begin,
                       std::string_view end, std::string* out) {
  base::Append(out, sequence);
  base::Append(out, keyspace);
  base::Append(out, static_cast<uint16_t>(begin.size()));
  base::Append(out, static_cast<uint16_t>(end.size()));
  out->append(begin);
  out->append(end);
}

bool ReadRangeDeleteEntries(base::Decoder* in, uint64_t count,
                            std::vector<ManifestRangeDelete>* out) {
  uint32_t previous = 0;
  for (uint64_t i = 0; i < count; ++i) {
    ManifestRangeDelete entry;
    entry.range.sequence = in->Read<uint64_t>();
    entry.keyspace = in->Read<uint32_t>();
    const auto begin_bytes = in->Read<uint16_t>();
    const auto end_bytes = in->Read<uint16_t>();
    entry.range.begin = in->ReadBytes(begin_bytes);
    entry.range.end = in->ReadBytes(end_bytes);
    if (!in->ok() || entry.range.begin >= entry.range.end ||
        entry.range.sequence > base::kMaxSequence || entry.keyspace < previous) {
      return false;
    }
    previous = entry.keyspace;
    out->push_back(std::move(entry));
  }
  return in->ok();
}

RangeDeleteBlocks::RangeDeleteBlocks(std::span<const RangeDelete> ranges, bool is_shared) {
  const size_t skipped = is_shared ? kKeyspaceBytes : 0;
  std::string entries;
  uint32_t of_block = 0;
  for (const RangeDelete& range : ranges) {
    const size_t bytes = kEntryFixedBytes + range.begin.size() + range.end.size() - 2 * skipped;
    if (entries.size() + bytes > table::kZstdRawBytesMax) {
      AppendBlock(of_block, entries);
      entries.clear();
      of_block = 0;
    }
    AppendRangeDelete(is_shared ? KeyspaceOf(range.begin) : 0, range.sequence,
                      std::string_view(range.begin).substr(skipped),
                      std::string_view(range.end).substr(skipped), &entries);
    ++of_block;
  }
  if (of_block != 0) AppendBlock(of_block, entries);
}

void RangeDeleteBlocks::AppendBlock(uint32_t ranges, std::string_view entries) {
  size_t stored = 0;
  std::unique_ptr<char[]> compressed;
  if (entries.size() >= kCompressedBytesMin) {
    const size_t most = entries.size() - entries.size() / 8;
    compressed = std::make_unique_for_overwrite<char[]>(most);
    stored = table::ZstdCompressor(std::string_view()).Compress(entries, compressed.get(), most);
  }
  const bool is_compressed = stored != 0 && entries.size() <= kBlockRatioMax * stored;
  const std::string_view payload =
      is_compressed ? std::string_view(compressed.get(), stored) : entries;
  base::Append(&bytes_, ranges);
  base::Append(&bytes_, static_cast<uint32_t>(entries.size()));
  base::Append(&bytes_, static_cast<uint32_t>(payload.size()));
  bytes_.append(payload);
  ++count_;
}

bool ReadRangeDeleteBlock(base::Decoder* in, std::vector<ManifestRangeDelete>* out) {
  const auto count = in->Read<uint32_t>();
  const auto entry_bytes = in->Read<uint32_t>();
  const auto stored_bytes = in->Read<uint32_t>();
  const std::string_view stored = in->ReadBytes(stored_bytes);
  if (!in->ok() || count == 0 || entry_bytes > table::kZstdRawBytesMax ||
      stored_bytes > entry_bytes || entry_bytes / kBlockRatioMax > stored_bytes) {
    return false;
  }
  std::string entries;
  if (stored_bytes < entry_bytes) {
    entries.resize(entry_bytes);
    if (!table::ZstdDictionary().Decompress(stored, entries)) return false;
  } else {
    entries = stored;
  }
  base::Decoder entries_in(entries);
  return ReadRangeDeleteEntries(&entries_in, count, out) && entries_in.AtEnd();
}

}  // namespace basalt::db
