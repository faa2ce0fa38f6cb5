#include "transaction/read_set.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "base/printable_key.h"
#include "base/second_hash.h"

namespace basalt::transaction {
namespace {

/// The key that comes directly behind this one.
std::string Behind(std::string_view key) {
  std::string behind(key);
  behind.push_back('\0');
  return behind;
}

/// Whether a range that ends at `end` ends at or behind `key`.
bool ReachesTo(const std::optional<std::string>& end, std::string_view key) noexcept {
  return !end || *end >= key;
}

/// Extends `range` so that it ends no earlier than `end`.
void ExtendTo(std::optional<std::string> end, ReadRange* range) {
  if (range->end && (!end || *end > *range->end)) range->end = std::move(end);
}

uint64_t BytesOfRange(const ReadRange& range) noexcept {
  return sizeof(ReadRange) + range.begin.size() + (range.end ? range.end->size() : 0);
}

}  // namespace

std::string NameOfKey(std::string_view key, uint32_t keyspace) {
  return "key " + base::PrintableKey(key) + " of keyspace " + std::to_string(keyspace);
}

void ReadSet::AddKey(uint32_t keyspace, std::string_view key) {
  const uint64_t hash = base::Hash(key);
  if (HasKey(keyspace, key, hash)) return;
  if (memory_bytes() + GrowthFor(key) > memory_limit_) {
    if (!keys_.empty()) CoarsenKeys();
    return AddRange(keyspace, key, Behind(key));
  }
  const Key added{.keyspace = keyspace,
                  .size = static_cast<uint32_t>(key.size()),
                  .offset = bytes_.size(),
                  .hash = hash};
  bytes_.append(key);
  keys_.push_back(added);
  if (keys_.size() <= kKeysWithoutTable) return;
  if (slots_.size() < 2 * keys_.size()) {
    GrowTable();
  } else {
    EnterIntoTable(static_cast<uint32_t>(keys_.size()));
  }
}

uint64_t ReadSet::GrowthFor(std::string_view key) const noexcept {
  uint64_t growth = 0;
  if (bytes_.size() + key.size() > bytes_.capacity()) {
    growth += std::max(bytes_.capacity(), key.size());
  }
  if (keys_.size() == keys_.capacity()) {
    growth += std::max<size_t>(keys_.capacity(), 1) * sizeof(Key);
  }
  const size_t keys = keys_.size() + 1;
  if (keys > kKeysWithoutTable && slots_.size() < 2 * keys) {
    growth += std::max<size_t>(4 * kKeysWithoutTable, slots_.size()) * sizeof(uint32_t);
  }
  return growth;
}

void ReadSet::AddRange(uint32_t keyspace, std::string_view begin,
                       std::optional<std::string_view> end) {
  if (end && *end <= begin) return;
  ReadRange added{.keyspace = keyspace, .begin = std::string(begin), .end = std::nullopt};
  if (end) added.end = std::string(*end);
  // Neighbouring lookups and scans that go on where the one before ended stay one range.
  if (!ranges_.empty() && ranges_.back().keyspace == keyspace && ranges_.back().begin <= begin &&
      ReachesTo(ranges_.back().end, begin)) {
    range_bytes_ -= BytesOfRange(ranges_.back());
    ExtendTo(std::move(added.end), &ranges_.back());
  } else {
    ranges_.push_back(std::move(added));
  }
  range_bytes_ += BytesOfRange(ranges_.back());
  is_normal_ = ranges_.size() == 1;
  if (memory_bytes() > memory_limit_) CoarsenRanges();
}

void ReadSet::Normalise() {
  if (is_normal_) return;
  std::ranges::sort(ranges_, [](const ReadRange& a, const ReadRange& b) {
    return std::tie(a.keyspace, a.begin) < std::tie(b.keyspace, b.begin);
  });
  size_t kept = 0;
  for (size_t i = 1; i < ranges_.size(); ++i) {
    ReadRange& last = ranges_[kept];
    if (last.keyspace == ranges_[i].keyspace && ReachesTo(last.end, ranges_[i].begin)) {
      ExtendTo(std::move(ranges_[i].end), &last);
    } else if (++kept != i) {
      ranges_[kept] = std::move(ranges_[i]);
    }
  }
  ranges_.resize(kept + 1);
  range_bytes_ = 0;
  for (const ReadRange& range : ranges_) range_bytes_ += BytesOfRange(range);
  is_normal_ = true;
}

bool ReadSet::Covers(uint32_t keyspace, std::string_view key, uint64_t hash) const noexcept {
  if (HasKey(keyspace, key, hash)) return true;
  const auto range = FirstEndingBehind(keyspace, key);
  return range != ranges_.end() && range->keyspace == keyspace && range->Contains(key);
}

bool ReadSet::CoversSomeOf(uint32_t keyspace, std::string_view begin,
                           std::string_view end) const noexcept {
  const auto range = FirstEndingBehind(keyspace, begin);
  if (range != ranges_.end() && range->keyspace == keyspace && range->begin < end) return true;
  return std::ranges::any_of(keys_, [&](const Key& key) {
    return key.keyspace == keyspace && BytesOf(key) >= begin && BytesOf(key) < end;
  });
}

bool ReadSet::HasKey(uint32_t keyspace, std::string_view key, uint64_t hash) const noexcept {
  const auto is_it = [&](const Key& other) {
    return other.hash == hash && other.keyspace == keyspace && BytesOf(other) == key;
  };
  if (slots_.empty()) return std::ranges::any_of(keys_, is_it);
  return slots_[Probe(key, hash, is_it)] != 0;
}

template <class IsIt>
size_t ReadSet::Probe(std::string_view key, uint64_t hash, const IsIt& is_it) const noexcept {
  const size_t mask = slots_.size() - 1;
  const auto ends_at = [&](size_t slot) {
    return slots_[slot] == 0 || is_it(keys_[slots_[slot] - 1]);
  };
  size_t slot = hash & mask;
  for (size_t probed = 0; probed < kProbeMax; ++probed) {
    if (ends_at(slot)) return slot;
    slot = (slot + 1) & mask;
  }
  const uint64_t second = base::SecondHash(key);
  // An odd step meets every slot. Steps of one would stay within a long run of taken slots.
  const size_t step = (second >> 32) | 1;
  slot = second & mask;
  while (!ends_at(slot)) slot = (slot + step) & mask;
  return slot;
}

void ReadSet::EnterIntoTable(uint32_t number) noexcept {
  const Key& key = keys_[number - 1];
  slots_[Probe(BytesOf(key), key.hash, [](const Key&) { return false; })] = number;
}

void ReadSet::GrowTable() {
  slots_.assign(std::max<size_t>(4 * kKeysWithoutTable, 2 * slots_.size()), 0);
  for (uint32_t number = 1; number <= keys_.size(); ++number) EnterIntoTable(number);
}

std::vector<ReadRange>::const_iterator ReadSet::FirstEndingBehind(
    uint32_t keyspace, std::string_view key) const noexcept {
  BASALT_CHECK(is_normal_);
  return std::ranges::partition_point(ranges_, [&](const ReadRange& range) {
    return range.keyspace < keyspace ||
           (range.keyspace == keyspace && range.end && *range.end <= key);
  });
}

void ReadSet::CoarsenKeys() {
  // From the least to the greatest key of each keyspace.
  std::map<uint32_t, std::pair<std::string_view, std::string_view>> extents;
  for (const Key& key : keys_) {
    const std::string_view bytes = BytesOf(key);
    auto [extent, is_new] = extents.try_emplace(key.keyspace, bytes, bytes);
    if (is_new) continue;
    extent->second.first = std::min(extent->second.first, bytes);
    extent->second.second = std::max(extent->second.second, bytes);
  }
  std::vector<ReadRange> made;
  for (const auto& [keyspace, extent] : extents) {
    made.push_back({keyspace, std::string(extent.first), Behind(extent.second)});
  }
  for (ReadRange& range : made) {
    range_bytes_ += BytesOfRange(range);
    ranges_.push_back(std::move(range));
  }
  is_normal_ = false;
  // Assigning {} would keep the memory.
  std::vector<Key>().swap(keys_);
  std::vector<uint32_t>().swap(slots_);
  std::string().swap(bytes_);
}

void ReadSet::CoarsenRanges() {
  Normalise();
  if (memory_bytes() <= memory_limit_) return;
  size_t kept = 0;
  for (size_t i = 1; i < ranges_.size(); ++i) {
    if (ranges_[kept].keyspace == ranges_[i].keyspace) {
      ExtendTo(std::move(ranges_[i].end), &ranges_[kept]);
    } else if (++kept != i) {
      ranges_[kept] = std::move(ranges_[i]);
    }
  }
  ranges_.resize(kept + 1);
  is_normal_ = false;
  Normalise();
}

}  // namespace basalt::transaction
