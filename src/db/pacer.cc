#include "db/pacer.h"

#include <algorithm>
#include <cmath>

namespace basalt::db {
namespace {

constexpr double kNsPerByte = 10;
constexpr double kNsPerByteMax = 100'000;
constexpr double kFactor = 16;  // of the pace, for each round
constexpr uint64_t kKib = 1024;

}  // namespace

void Pacer::SetLag(double lag) noexcept {
  double ns_per_byte = 0;
  if (lag > kLagFree) ns_per_byte = kNsPerByte * (std::pow(kFactor, lag - kLagFree) - 1);
  ns_per_byte = std::min(ns_per_byte, kNsPerByteMax);
  ns_per_kib_.store(static_cast<uint64_t>(ns_per_byte * kKib), std::memory_order_relaxed);
}

uint64_t Pacer::Charge(uint64_t bytes, uint64_t now_ns) noexcept {
  const uint64_t ns_per_kib = ns_per_kib_.load(std::memory_order_relaxed);
  if (ns_per_kib == 0) return 0;
  // In this order: neither product is too large for 64 bits.
  const uint64_t kib = bytes / kKib;
  const uint64_t taken_ns = kib > kWaitMaxNs / ns_per_kib
                                ? kWaitMaxNs
                                : kib * ns_per_kib + bytes % kKib * ns_per_kib / kKib;
  uint64_t before = taken_until_ns_.load(std::memory_order_relaxed);
  uint64_t until = 0;
  do {
    until = std::min(std::max(before, now_ns) + taken_ns, now_ns + kWaitMaxNs);
  } while (!taken_until_ns_.compare_exchange_weak(before, until, std::memory_order_relaxed));
  const uint64_t wait_ns = until - now_ns;
  return wait_ns < kWaitMinNs ? 0 : wait_ns;
}

}  // namespace basalt::db
