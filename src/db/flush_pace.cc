#include "db/flush_pace.h"

#include <algorithm>

namespace basalt::db {
namespace {

/// Of a memtable, in percent: what is free, and what the records' progress adds to it.
constexpr uint64_t kFreePercent = 50;
constexpr uint64_t kPacedPercent = 45;

}  // namespace

void FlushPace::Advance(uint64_t done, uint64_t total) noexcept {
  uint64_t allowed = allowed_.load(std::memory_order_relaxed);
  if (allowed == UINT64_MAX || total == 0) return;
  const uint64_t percent = kFreePercent + kPacedPercent * std::min(done, total) / total;
  const uint64_t grown = memtable_bytes_.load(std::memory_order_relaxed) / 100 * percent;
  // Not if the flush has ended meanwhile.
  allowed_.compare_exchange_strong(allowed, std::max(allowed, grown), std::memory_order_relaxed);
}

}  // namespace basalt::db
