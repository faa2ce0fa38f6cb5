#include "memtable/sorted_run.h"

#include <algorithm>
#include <utility>

#include "base/coding.h"

namespace basalt::memtable {
namespace {

base::Tag TagOf(const Record& record) noexcept {
  return record.tag.load(std::memory_order_relaxed);
}

bool EntryLess(const SortEntry& a, const SortEntry& b) noexcept {
  if (a.prefix != b.prefix) return a.prefix < b.prefix;
  return CompareRecords(*a.record, *b.record) < 0;
}

// The first entry of [begin, end) that is not less than `target`, looked for in growing steps from
// `begin` on, where it is likely to be.
const SortEntry* Gallop(const SortEntry* begin, const SortEntry* end, const SortEntry& target) {
  size_t step = 1;
  while (step < static_cast<size_t>(end - begin) && EntryLess(begin[step - 1], target)) {
    begin += step;
    step *= 2;
  }
  const SortEntry* const limit = begin + std::min(step, static_cast<size_t>(end - begin));
  return std::lower_bound(begin, limit, target, EntryLess);
}

}  // namespace

int CompareRecords(const Record& a, const Record& b) noexcept {
  return base::CompareInternal(a.key(), TagOf(a), b.key(), TagOf(b));
}

SortedRun SortedRun::Sort(std::vector<SortEntry> entries) {
  SortedRun run;
  run.shared_ = SortEntries(entries);
  run.entries_ = std::move(entries);
  return run;
}

SortedRun SortedRun::Merge(const SortedRun& large, SortedRun small) {
  if (small.entries_.empty()) return large;
  if (large.entries_.empty()) return small;

  // All keys of a run lie between its first and its last, so they share what these share.
  const std::string_view first = large[0].key();
  size_t shared = std::min(large.shared_, small.shared_);
  shared = std::min(shared, SharedBytes(first, small[0].key()));
  shared = std::min(shared, SharedBytes(first, small[small.size() - 1].key()));

  SortedRun shortened;
  const SortedRun* source = &large;
  if (shared < large.shared_) {
    shortened = large;
    shortened.ShortenShared(shared);
    source = &shortened;
  }
  small.ShortenShared(shared);

  SortedRun merged;
  merged.shared_ = shared;
  merged.entries_.reserve(large.size() + small.size());
  const SortEntry* at = source->entries_.data();
  const SortEntry* const end = at + source->entries_.size();
  for (const SortEntry& entry : small.entries_) {
    const SortEntry* const next = Gallop(at, end, entry);
    merged.entries_.insert(merged.entries_.end(), at, next);
    merged.entries_.push_back(entry);
    at = next;
  }
  merged.entries_.insert(merged.entries_.end(), at, end);
  return merged;
}

// Moves the prefixes to the left: bytes that the keys share come in, and as many fall out.
void SortedRun::ShortenShared(size_t shared) noexcept {
  const size_t moved = shared_ - shared;
  if (moved == 0) return;
  const uint64_t coming =
      base::KeyPrefix(entries_.front().record->key().substr(0, shared_), shared);
  for (SortEntry& entry : entries_) {
    entry.prefix = moved >= 8 ? coming : coming | entry.prefix >> (8 * moved);
  }
  shared_ = shared;
}

size_t SortedRun::Search(std::string_view key, base::Tag tag, bool after_equal) const noexcept {
  if (entries_.empty()) return 0;
  const std::string_view shared = entries_.front().record->key().substr(0, shared_);
  if (const int order = key.substr(0, shared_).compare(shared); order != 0) {
    return order < 0 ? 0 : size();
  }
  const SortEntry target{nullptr, base::KeyPrefix(key, shared_)};
  const auto [begin, end] =
      std::equal_range(entries_.begin(), entries_.end(), target,
                       [](const SortEntry& a, const SortEntry& b) { return a.prefix < b.prefix; });
  const auto found = std::partition_point(begin, end, [&](const SortEntry& entry) {
    const Record& record = *entry.record;
    const int order = base::CompareInternal(record.key(), TagOf(record), key, tag);
    return after_equal ? order <= 0 : order < 0;
  });
  return static_cast<size_t>(found - entries_.begin());
}

}  // namespace basalt::memtable
