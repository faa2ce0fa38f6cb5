#include "io/expiry_clock.h"

#include <algorithm>

namespace basalt::io {
namespace {

constexpr uint64_t kSecondMs = 1000;

}  // namespace

uint64_t ExpiryClock::NowMs() noexcept {
  uint64_t now = clock_->WallMillis();
  const uint64_t latest = latest_ms_.load(std::memory_order_relaxed);
  if (now == latest) return now;
  if (now < latest) {
    const auto lead = static_cast<uint64_t>(lead_us_.load(std::memory_order_relaxed));
    const auto us = static_cast<int64_t>(clock_->MonotonicMicros() + lead);
    now = std::max(latest, static_cast<uint64_t>(std::max<int64_t>(us, 0)) / 1000);
  }
  Raise(now);
  return std::max(now, latest_ms_.load(std::memory_order_relaxed));
}

// The lead is measured when a second begins, and when time has jumped by so much: it is then right
// for all of that second too. The monotonic clock is read after the time that it is compared with:
// so the lead is rather too small, and time that goes on by it not before the wall clock's.
void ExpiryClock::Raise(uint64_t ms) noexcept {
  uint64_t latest = latest_ms_.load(std::memory_order_relaxed);
  do {
    if (latest >= ms) return;
  } while (!latest_ms_.compare_exchange_weak(latest, ms, std::memory_order_relaxed));
  if (latest / kSecondMs == ms / kSecondMs) return;
  const auto lead = static_cast<int64_t>(ms * 1000 - clock_->MonotonicMicros());
  int64_t present = lead_us_.load(std::memory_order_relaxed);
  while (present < lead &&
         !lead_us_.compare_exchange_weak(present, lead, std::memory_order_relaxed)) {
  }
}

bool ExpiryClock::IsAhead() noexcept { return NowMs() > clock_->WallMillis() + kSecondMs; }

}  // namespace basalt::io
