#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "table/block.h"

namespace basalt::table {

/// Where a block lay in memory when a lookup last saw it, and how it is divided: enough to ask for
/// all cache lines of one record at once, together with those that lead to them by way of the
/// cache. Otherwise each step waits for the one before: the block's entry in the cache, its head,
/// the record's places in the columns, its value.
///
/// Nothing but a hint, never read through: the block may have gone since, and a prefetch of what is
/// not there does nothing. Two words, so that a lookup finds both in one line; they need not belong
/// together. Thread-safe.
class BlockHint {
 public:
  void Note(const Block& block) noexcept {
    const char* const raw = block.raw();
    if (raw_.load(std::memory_order_relaxed) == raw) return;
    outline_.store(OutlineOf(block), std::memory_order_relaxed);
    raw_.store(raw, std::memory_order_relaxed);
  }

  // Inlined by force: g++ takes functions that only prefetch for such without effects.

  /// Of one record: its key's and value's places, tag, key, value (as if all were equally long).
  [[gnu::always_inline]] void PrefetchRecord(uint32_t ordinal) const noexcept {
    const char* const raw = raw_.load(std::memory_order_relaxed);
    if (raw == nullptr) return;
    const uint64_t outline = outline_.load(std::memory_order_relaxed);
    const Columns columns(raw, outline);
    const uint64_t n = columns.count;
    const uint64_t value_bytes = outline >> kMeanShift;
    const uint64_t values_at = outline >> kValuesShift & kValuesMax;
    const char* const value = raw + values_at + value_bytes * ordinal;
    PrefetchHead(raw);
    Prefetch(columns.prefixes + ordinal * sizeof(uint64_t));
    Prefetch(columns.tags + ordinal * sizeof(uint64_t));
    if ((outline & kTimed) != 0) Prefetch(columns.tags + (n + ordinal) * sizeof(uint64_t));
    if ((outline & kRests) != 0) {
      Prefetch(columns.ends + ordinal * columns.end_bytes);
      // As if all rests were equally long, and the shared prefix part of them.
      const uint64_t rests_bytes = values_at - static_cast<uint64_t>(columns.shared() - raw);
      Prefetch(raw + values_at - rests_bytes * (n - ordinal) / n);
    }
    Prefetch(columns.ends + (n + ordinal) * columns.end_bytes);
    Prefetch(columns.prefix_bytes + ordinal);
    Prefetch(columns.shared());
    Prefetch(value);
    Prefetch(value + kLineBytes);
    if (value_bytes > kLineBytes) Prefetch(value + std::min(value_bytes, 3 * kLineBytes) - 1);
  }

  /// What a search looks at first: the head, what all keys share, and the column of key prefixes.
  [[gnu::always_inline]] void PrefetchSearch() const noexcept {
    const char* const raw = raw_.load(std::memory_order_relaxed);
    if (raw == nullptr) return;
    const Columns columns(raw, outline_.load(std::memory_order_relaxed));
    PrefetchHead(raw);
    Prefetch(columns.shared());
    const uint64_t n = columns.count;
    const uint64_t column_bytes = n * sizeof(uint64_t);
    if (column_bytes > Block::kSearchedLinesMax * kLineBytes) return;
    for (uint64_t at = 0; at < column_bytes; at += kLineBytes) Prefetch(raw + kLineBytes + at);
  }

 private:
  // The outline's bits: count 16 | wide 1 | timed 1 | rests 1 | where values begin 21 | the mean of
  // their sizes 24. Of a block that does not fit it, zero.
  static constexpr uint64_t kCountMax = (uint64_t{1} << 16) - 1;
  static constexpr uint64_t kWide = uint64_t{1} << 16;
  static constexpr uint64_t kTimed = uint64_t{1} << 17;
  static constexpr uint64_t kRests = uint64_t{1} << 18;
  static constexpr int kValuesShift = 19;
  static constexpr uint64_t kValuesMax = (uint64_t{1} << 21) - 1;
  static constexpr int kMeanShift = 40;
  static constexpr uint64_t kMeanMax = (uint64_t{1} << 24) - 1;
  static constexpr uint64_t kLineBytes = 64;

  /// Where they lie, by an outline.
  struct Columns {
    [[gnu::always_inline]] Columns(const char* raw, uint64_t outline) noexcept
        : count(outline & kCountMax),
          end_bytes((outline & kWide) != 0 ? 4 : 2),
          prefixes(raw + Block::kHeaderBytes),
          tags(prefixes + count * sizeof(uint64_t)),
          ends(tags + count * sizeof(uint64_t) * ((outline & kTimed) != 0 ? 2 : 1)),
          prefix_bytes(ends + 2 * count * end_bytes) {}
    const char* shared() const noexcept { return prefix_bytes + count; }

    uint64_t count;
    uint64_t end_bytes;
    const char* prefixes;
    const char* tags;
    const char* ends;
    const char* prefix_bytes;
  };

  static uint64_t OutlineOf(const Block& block) noexcept {
    const Block::Outline outline = block.outline();
    const uint64_t mean = (outline.size - outline.values_at) / outline.count;
    if (outline.count > kCountMax || outline.values_at > kValuesMax || mean > kMeanMax) return 0;
    return outline.count | (outline.wide ? kWide : 0) | (outline.timed ? kTimed : 0) |
           (outline.rests ? kRests : 0) | outline.values_at << kValuesShift | mean << kMeanShift;
  }

  // Into the second cache: on some processors bursts into the first one wait for one another.
  [[gnu::always_inline]] static void Prefetch(const char* at) noexcept {
    __builtin_prefetch(at, 0, 2);
  }
  /// The block's own head, and before it that of its entry in the cache with the key.
  [[gnu::always_inline]] static void PrefetchHead(const char* raw) noexcept {
    Prefetch(raw - kLineBytes);
    Prefetch(raw);
  }

  std::atomic<const char*> raw_{nullptr};
  std::atomic<uint64_t> outline_{0};
};

}  // namespace basalt::table
