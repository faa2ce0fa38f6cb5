#include "memtable/sorted_run.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/arena.h"
#include "base/branchless_search.h"
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

// Steps of a merge. Which source's entry is next cannot be guessed, so nothing branches on it.
// `shifts`: a source has a shift.

template <bool shifts>
SortEntry Shifted(const Source& source, const SortEntry& entry) noexcept {
  return {entry.record, shifts ? source.shift(entry.prefix) : entry.prefix};
}

SortEntry Choose(bool second, SortEntry a, SortEntry b) noexcept {
  const uint64_t mask = uint64_t{0} - static_cast<uint64_t>(second);
  const auto record_a = reinterpret_cast<uintptr_t>(a.record);
  const auto record_b = reinterpret_cast<uintptr_t>(b.record);
  return {reinterpret_cast<const Record*>(record_a ^ ((record_a ^ record_b) & mask)),
          a.prefix ^ ((a.prefix ^ b.prefix) & mask)};
}

// The lowest of both to *out.
template <bool shifts>
[[gnu::always_inline]] inline void TakeFirst(Source* a, Source* b, SortEntry** out) noexcept {
  const SortEntry first_a = Shifted<shifts>(*a, *a->at);
  const SortEntry first_b = Shifted<shifts>(*b, *b->at);
  bool is_b = first_b.prefix < first_a.prefix;
  if (first_a.prefix == first_b.prefix) [[unlikely]] {
    is_b = CompareRecords(*first_b.record, *first_a.record) < 0;
  }
  *(*out)++ = Choose(is_b, first_a, first_b);
  a->at += !is_b;
  b->at += is_b;
}

// The highest of both to before *out_end.
template <bool shifts>
[[gnu::always_inline]] inline void TakeLast(Source* a, Source* b, SortEntry** out_end) noexcept {
  const SortEntry last_a = Shifted<shifts>(*a, a->end[-1]);
  const SortEntry last_b = Shifted<shifts>(*b, b->end[-1]);
  bool is_b = last_a.prefix < last_b.prefix;
  if (last_a.prefix == last_b.prefix) [[unlikely]] {
    is_b = CompareRecords(*last_a.record, *last_b.record) < 0;
  }
  *--*out_end = Choose(is_b, last_a, last_b);
  a->end -= !is_b;
  b->end -= is_b;
}

// For runs of similar size. From both ends at once: a step waits for the one before it, and the
// processor can do two of them in the time of one.
template <bool shifts>
void MergeAlike(Source a, Source b, SortEntry* out) noexcept {
  SortEntry* out_end = out + a.left() + b.left();
  // A source that is used up before the last of so many steps has given entries to both ends. Where
  // its next one would stand is the one that it gave to the other end, which loses to all that is
  // left.
  while (size_t steps = std::min(a.left(), b.left())) {
    for (; steps != 0; --steps) {
      TakeFirst<shifts>(&a, &b, &out);
      TakeLast<shifts>(&a, &b, &out_end);
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
    const Source source_a = source(a);
    const Source source_b = source(b);
    const bool shifts = !source_a.shift.is_none() || !source_b.shift.is_none();
    (shifts ? MergeAlike<true> : MergeAlike<false>)(source_a, source_b, merged.entries_.get());
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
  const size_t below = base::FirstNotBelow(samples_.get(), sample_count(), prefix);
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
  begin += base::FirstNotBelow(begin, near.end - near.begin, prefix, &SortEntry::prefix);
  size_t step = 1;
  while (step <= static_cast<size_t>(end - begin) && is_before(begin[step - 1])) {
    begin += step;
    step *= 2;
  }
  const SortEntry* const limit = begin + std::min(step - 1, static_cast<size_t>(end - begin));
  return static_cast<size_t>(std::partition_point(begin, limit, is_before) - entries_.get());
}

}  // namespace basalt::memtable
