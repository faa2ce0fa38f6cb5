#include "memtable/sorted_run.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/arena.h"
#include "base/coding.h"

namespace basalt::memtable {
namespace {

base::Tag TagOf(const Record& record) noexcept {
  return record.tag.load(std::memory_order_relaxed);
}

constexpr size_t kEntriesInLine = 64 / sizeof(SortEntry);

struct Source {
  const SortEntry* at;
  const SortEntry* end;
  PrefixShift shift;

  size_t left() const noexcept { return static_cast<size_t>(end - at); }
};

SortEntry* CopyShifted(const SortEntry* begin, const SortEntry* end, PrefixShift shift,
                       SortEntry* out) noexcept {
  if (shift.is_none()) return std::copy(begin, end, out);
  return std::transform(begin, end, out, [shift](const SortEntry& entry) {
    return SortEntry{entry.record, shift(entry.prefix)};
  });
}

SortEntry* CopyRest(const Source& source, SortEntry* out) noexcept {
  return CopyShifted(source.at, source.end, source.shift, out);
}

// For runs of similar size: which of them is next cannot be guessed, so nothing branches on it.
void MergeAlike(Source a, Source b, SortEntry* out) noexcept {
  while (true) {
    // So many steps exhaust neither.
    size_t steps = std::min(a.left(), b.left());
    if (steps == 0) break;
    for (; steps != 0; --steps) {
      const uint64_t prefix_a = a.shift(a.at->prefix);
      const uint64_t prefix_b = b.shift(b.at->prefix);
      bool is_b = prefix_b < prefix_a;
      if (prefix_a == prefix_b) [[unlikely]] {
        is_b = CompareRecords(*b.at->record, *a.at->record) < 0;
      }
      const uint64_t mask = uint64_t{0} - static_cast<uint64_t>(is_b);
      const auto record_a = reinterpret_cast<uintptr_t>(a.at->record);
      const auto record_b = reinterpret_cast<uintptr_t>(b.at->record);
      out->record = reinterpret_cast<const Record*>(record_a ^ ((record_a ^ record_b) & mask));
      out->prefix = prefix_a ^ ((prefix_a ^ prefix_b) & mask);
      ++out;
      a.at += !is_b;
      b.at += is_b;
    }
  }
  CopyRest(b, CopyRest(a, out));
}

// The first entry of `source` that is not less than (record, prefix), looked for in growing steps
// from where it stands, since it is likely to be near.
const SortEntry* Gallop(const Source& source, const Record& record, uint64_t prefix) noexcept {
  const auto is_less = [&](const SortEntry& entry) {
    const uint64_t shifted = source.shift(entry.prefix);
    return shifted != prefix ? shifted < prefix : CompareRecords(*entry.record, record) < 0;
  };
  const SortEntry* begin = source.at;
  size_t step = 1;
  while (step < static_cast<size_t>(source.end - begin) && is_less(begin[step - 1])) {
    begin += step;
    step *= 2;
  }
  const SortEntry* const end = begin + std::min(step, static_cast<size_t>(source.end - begin));
  return std::partition_point(begin, end, is_less);
}

void MergeFew(Source many, Source few, SortEntry* out) noexcept {
  for (; few.at != few.end; ++few.at) {
    const uint64_t prefix = few.shift(few.at->prefix);
    const SortEntry* const next = Gallop(many, *few.at->record, prefix);
    out = CopyShifted(many.at, next, many.shift, out);
    *out++ = {few.at->record, prefix};
    many.at = next;
  }
  CopyRest(many, out);
}

uint64_t PrefixOf(uint64_t sample) noexcept { return sample; }
uint64_t PrefixOf(const SortEntry& entry) noexcept { return entry.prefix; }

// How many of the first ones have a smaller prefix. Which half is next cannot be guessed, so
// nothing branches on it.
template <class Entry>
size_t CountBelow(std::span<const Entry> entries, uint64_t prefix) noexcept {
  if (entries.empty()) return 0;
  const Entry* at = entries.data();
  for (size_t count = entries.size(); count > 1;) {
    const size_t half = count / 2;
    count -= half;
    const bool is_below = PrefixOf(at[half - 1]) < prefix;
    at += half & (size_t{0} - static_cast<size_t>(is_below));
  }
  return static_cast<size_t>(at - entries.data()) + static_cast<size_t>(PrefixOf(*at) < prefix);
}

}  // namespace

int CompareRecords(const Record& a, const Record& b) noexcept {
  return base::CompareInternal(a.key(), TagOf(a), b.key(), TagOf(b));
}

PrefixShift::PrefixShift(const RunView& run, size_t shared) noexcept {
  const size_t moved = run.shared - shared;
  if (moved == 0) return;
  coming_ = base::KeyPrefix(run.first().key().substr(0, run.shared), shared);
  if (moved >= sizeof(uint64_t)) {
    kept_ = 0;
  } else {
    bits_ = 8 * moved;
  }
}

size_t SharedByRuns(const RunView& a, const RunView& b) noexcept {
  const size_t shared = std::min(a.shared, b.shared);
  return shared == 0 ? 0 : std::min(shared, base::SharedBytes(a.first().key(), b.first().key()));
}

void SortedRun::FreeEntries::operator()(SortEntry* entries) const noexcept {
  if (pool_bytes == 0) {
    ::operator delete(entries);
  } else {
    base::ChunkPool::Process()->Give(reinterpret_cast<char*>(entries), pool_bytes);
  }
}

SortedRun::Entries SortedRun::Allocate(size_t size) {
  constexpr size_t kSlabBytes = base::ChunkPool::kSlabBytes;
  const size_t bytes = size * sizeof(SortEntry);
  if (bytes <= kSlabBytes) {
    return Entries(static_cast<SortEntry*>(::operator new(bytes)), FreeEntries{0});
  }
  const size_t pool_bytes = base::RoundUp(bytes, kSlabBytes);
  char* const block = base::ChunkPool::Process()->Take(pool_bytes);
  if (block == nullptr) throw std::bad_alloc();
  return Entries(reinterpret_cast<SortEntry*>(block), FreeEntries{pool_bytes});
}

SortedRun::SortedRun(size_t size, size_t shared, uint64_t tails)
    : entries_(Allocate(size)), size_(size), shared_(shared), tails_(tails) {
  if (const size_t count = sample_count(); count != 0) {
    samples_ = std::make_unique_for_overwrite<uint64_t[]>(count);
  }
}

SortedRun::SortedRun(const RunView& view)
    : SortedRun(view.entries.size(), view.shared, view.tails) {
  std::copy(view.entries.begin(), view.entries.end(), entries_.get());
  TakeSamples();
}

void SortedRun::TakeSamples() noexcept {
  for (size_t i = 0; i < sample_count(); ++i) samples_[i] = entries_[i * kSampleEvery].prefix;
}

SortedRun SortedRun::Sort(std::vector<SortEntry> entries, Sorter sorter) {
  const size_t shared = SortEntries(entries, sorter);
  return entries.empty() ? SortedRun() : SortedRun(RunView{entries, shared});
}

SortedRun SortedRun::Merge(RunView a, RunView b) {
  // From here on a search in the larger run, and copies in bulk, are quicker than a comparison of
  // every entry.
  constexpr size_t kFewRatio = 16;
  if (a.entries.size() < b.entries.size()) std::swap(a, b);
  if (b.entries.empty()) return SortedRun(a);

  const size_t shared = SharedByRuns(a, b);
  SortedRun merged(a.entries.size() + b.entries.size(), shared, a.tails + b.tails);
  const auto source = [shared](const RunView& run) {
    const SortEntry* const begin = run.entries.data();
    return Source{begin, begin + run.entries.size(), PrefixShift(run, shared)};
  };
  if (a.entries.size() / kFewRatio >= b.entries.size()) {
    MergeFew(source(a), source(b), merged.entries_.get());
  } else {
    MergeAlike(source(a), source(b), merged.entries_.get());
  }
  merged.TakeSamples();
  return merged;
}

SortedRun::Place SortedRun::Near(std::string_view key) const noexcept {
  if (size_ == 0) return {0, 0};
  if (shared_ != 0) {
    const std::string_view shared = entries_[0].record->key().substr(0, shared_);
    if (const int order = key.substr(0, shared_).compare(shared); order != 0) {
      return order < 0 ? Place{0, 0} : Place{size_, size_};
    }
  }
  if (samples_ == nullptr) return {0, size_};
  const uint64_t prefix = base::KeyPrefix(key, shared_);
  const size_t below =
      CountBelow(std::span<const uint64_t>(samples_.get(), sample_count()), prefix);
  if (below == 0) return {0, 1};
  const Place near{(below - 1) * kSampleEvery, std::min(below * kSampleEvery, size_)};
  for (size_t i = near.begin; i < near.end; i += kEntriesInLine) __builtin_prefetch(&entries_[i]);
  return near;
}

size_t SortedRun::Find(Place near, std::string_view key, base::Tag tag,
                       bool after_equal) const noexcept {
  const uint64_t prefix = base::KeyPrefix(key, shared_);
  const auto is_before = [&](const SortEntry& entry) {
    if (entry.prefix != prefix) return entry.prefix < prefix;
    const Record& record = *entry.record;
    const int order = base::CompareInternal(record.key(), TagOf(record), key, tag);
    return after_equal ? order <= 0 : order < 0;
  };
  if (near.begin == near.end) return near.begin;
  // Few entries have the same prefix, as a rule, but all may: growing steps again.
  const SortEntry* const end = entries_.get() + size_;
  const SortEntry* begin = entries_.get() + near.begin;
  begin += CountBelow(std::span(begin, near.end - near.begin), prefix);
  size_t step = 1;
  while (step <= static_cast<size_t>(end - begin) && is_before(begin[step - 1])) {
    begin += step;
    step *= 2;
  }
  const SortEntry* const limit = begin + std::min(step - 1, static_cast<size_t>(end - begin));
  return static_cast<size_t>(std::partition_point(begin, limit, is_before) - entries_.get());
}

}  // namespace basalt::memtable
