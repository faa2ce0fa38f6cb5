#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

// A number below 2^40 that processes share in a mapped file, in one 8-byte word that is stored and
// loaded at once: the low 40 bits are the number, the others a check of it, so that a damaged word
// is an error instead of another number.

namespace basalt::shared_map {

inline constexpr uint64_t kGuardedMax = (uint64_t{1} << 40) - 1;

constexpr uint64_t GuardOf(uint64_t number) noexcept {
  uint64_t mixed = (number + 1) * 0x9E37'79B9'7F4A'7C15;
  mixed = (mixed ^ (mixed >> 32)) * 0xD6E8'FEB8'6659'FD93;
  return mixed >> 40;
}

/// `number` is at most kGuardedMax.
constexpr uint64_t Guarded(uint64_t number) noexcept { return number | (GuardOf(number) << 40); }

/// Nothing when the word is damaged.
constexpr std::optional<uint64_t> Unguarded(uint64_t word) noexcept {
  const uint64_t number = word & kGuardedMax;
  if (word >> 40 != GuardOf(number)) return std::nullopt;
  return number;
}

/// A word of a mapped file, which another process may store to at any moment. The mapping may be
/// one for reading only.
inline uint64_t LoadShared(const char* at) noexcept {
  auto* const word = reinterpret_cast<uint64_t*>(const_cast<char*>(at));
  return std::atomic_ref<uint64_t>(*word).load(std::memory_order_acquire);
}
inline void StoreShared(char* at, uint64_t value) noexcept {
  std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(at))
      .store(value, std::memory_order_release);
}

}  // namespace basalt::shared_map
