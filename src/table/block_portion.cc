#include "table/block_portion.h"

#include <algorithm>
#include <new>
#include <string_view>

#include "base/coding.h"

namespace basalt::table {

std::span<const base::PlainPut> BlockPortion::Take(const Block& block, uint32_t first, size_t most,
                                                   base::Tag newest) noexcept {
  if (first >= block.count_) return {};
  if (!room_) room_.reset(new (std::nothrow) Room);
  if (!room_) return {};
  const size_t key_room = block.key_bytes_max_ + Block::kKeySlackBytes;
  const size_t count =
      std::min<size_t>({most, kRecordsMax, kKeyRoomBytes / key_room, block.count_ - first});
  for (; with_shared_ < count; ++with_shared_) {
    std::copy_n(block.shared_, block.shared_bytes_, room_->keys + with_shared_ * key_room);
  }
  const size_t taken = block.wide_ ? Fill<uint32_t>(block, first, count, newest)
                                   : Fill<uint16_t>(block, first, count, newest);
  return {room_->puts, taken};
}

// All that is the same for each record is read before the first one: the compiler must take it
// that what is written to the keys may change it.
template <class End>
size_t BlockPortion::Fill(const Block& block, uint32_t first, size_t count,
                          base::Tag newest) noexcept {
  const base::Tag* const tags = block.tags_ + first;
  const uint64_t* const times = block.times_ == nullptr ? nullptr : block.times_ + first;
  const uint64_t* const prefixes = block.prefixes_ + first;
  const uint8_t* const prefix_bytes = block.prefix_bytes_ + first;
  const auto* const rest_ends = reinterpret_cast<const End*>(block.rest_ends_) + first;
  const auto* const value_ends = reinterpret_cast<const End*>(block.value_ends_) + first;
  const bool has_rests = block.rests_ != block.values_;
  const char* const rests = block.rests_;
  const char* const values = block.values_;
  const size_t shared_bytes = block.shared_bytes_;
  const size_t key_room = block.key_bytes_max_ + Block::kKeySlackBytes;
  base::PlainPut* const puts = room_->puts;
  char* key = room_->keys;
  size_t rest_begin = has_rests ? rest_ends[-1] : 0;
  size_t value_begin = value_ends[-1];
  uint64_t prefix_before = prefixes[-1];
  size_t i = 0;
  for (; i < count; ++i, key += key_room) {
    if (tags[i] > newest || base::TagKind(tags[i]) != RecordKind::kPut) break;
    if (times != nullptr && times[i] != 0) break;
    if (prefixes[i] == prefix_before && block.HasKeyOfPrevious(first + static_cast<uint32_t>(i))) {
      break;
    }
    prefix_before = prefixes[i];
    const size_t rest_end = has_rests ? rest_ends[i] : 0;
    const size_t value_end = value_ends[i];
    const size_t key_bytes = Block::PutKey(key, shared_bytes, prefixes[i], prefix_bytes[i],
                                           {rests + rest_begin, rest_end - rest_begin});
    puts[i] = {key, values + value_begin, static_cast<uint32_t>(key_bytes),
               static_cast<uint32_t>(value_end - value_begin)};
    __builtin_prefetch(values + value_begin);
    __builtin_prefetch(values + value_begin + kAheadBytes, 0, 2);
    rest_begin = rest_end;
    value_begin = value_end;
  }
  return i;
}

}  // namespace basalt::table
