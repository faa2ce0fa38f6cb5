#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "base/coding.h"
#include "base/hash.h"
#include "base/random.h"

// What processes that share a map tell one another about it, through memory of their own.
//
// Every write of a key has a number, counted from 1, which says whether it puts or erases and what
// it puts. The writer notes a number as begun before the write and as acknowledged after it. A
// reader that notes the acknowledged number before it looks and the begun one afterwards knows all
// that it may find: what a write between the two has left. 0 is a key that was never written.

namespace basalt {

struct Scoreboard {
  static constexpr uint64_t kReaders = 2;
  /// More than one index of the least size takes.
  static constexpr uint64_t kKeys = 1500;
  /// The last two keys are only ever written together, by one batch, with the same number.
  static constexpr uint64_t kTwin = kKeys - 2;
  static constexpr uint64_t kBatchMax = 8;

  struct Key {
    std::atomic<uint64_t> begun;
    std::atomic<uint64_t> acknowledged;
  };
  std::array<Key, kKeys> keys;
  /// The keys of the batch that is being written, plus 1; 0: no more of them.
  std::array<std::atomic<uint64_t>, kBatchMax> batch;
  /// How many writers have come to opening the map, and to writing.
  std::atomic<uint64_t> opening;
  std::atomic<uint64_t> writing;
  std::atomic<uint64_t> writes;
  std::atomic<uint64_t> version;
  std::array<std::atomic<uint64_t>, kReaders> reads;
  std::atomic<bool> stop;

  static std::string KeyOf(uint64_t key) { return "key:" + std::to_string(key); }
  static bool Erases(uint64_t key, uint64_t number) {
    return number == 0 || (key < kTwin && (key * 31 + number * 17) % 5 == 0);
  }

  /// The number, a checksum over key, number and what follows, and random bytes that follow.
  static std::string ValueOf(uint64_t key, uint64_t number) {
    static const std::string pool = RandomBytes(16 << 10);
    base::Random random(key * 1'000'003 + number);
    const uint64_t filler = random.OneIn(100) ? random.Below(9000) : random.Below(400);
    std::string value(16, '\0');
    value.append(pool, random.Below(pool.size() - filler), filler);
    std::memcpy(value.data(), &number, sizeof number);
    const uint64_t checksum = ChecksumOf(key, value);
    std::memcpy(value.data() + 8, &checksum, sizeof checksum);
    return value;
  }
  /// The number of a value of this key. Nothing: no write has left these bytes.
  static std::optional<uint64_t> NumberOf(uint64_t key, std::string_view value) {
    if (value.size() < 16) return std::nullopt;
    const auto number = base::Load<uint64_t>(value.data());
    if (base::Load<uint64_t>(value.data() + 8) != ChecksumOf(key, value)) return std::nullopt;
    return number;
  }

  uint64_t Acknowledged(uint64_t key) const {
    return keys[key].acknowledged.load(std::memory_order_acquire);
  }
  uint64_t Begun(uint64_t key) const { return keys[key].begun.load(std::memory_order_acquire); }

  /// What is wrong with an answer; empty: nothing is. `acknowledged` was noted before the question.
  std::string Judge(uint64_t key, uint64_t acknowledged,
                    const std::optional<std::string_view>& answer) const {
    const uint64_t begun = Begun(key);
    const std::string what = KeyOf(key) + ", acknowledged " + std::to_string(acknowledged) +
                             ", begun " + std::to_string(begun) + ": ";
    if (!answer) {
      // Every fifth write of a key erases: further ones need not be looked at.
      for (uint64_t number = acknowledged; number <= std::min(begun, acknowledged + 5); ++number) {
        if (Erases(key, number)) return "";
      }
      return what + "is absent, which no write has left it";
    }
    const std::optional<uint64_t> number = NumberOf(key, *answer);
    if (!number) return what + "a torn value, or that of another key";
    if (*number < acknowledged) return what + "a stale value, of write " + std::to_string(*number);
    if (*number > begun || Erases(key, *number)) {
      return what + "a value that was never written, of write " + std::to_string(*number);
    }
    return "";
  }

 private:
  static std::string RandomBytes(size_t size) {
    base::Random random(1);
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.Next());
    return bytes;
  }
  static uint64_t ChecksumOf(uint64_t key, std::string_view value) {
    const uint64_t seed = base::Load<uint64_t>(value.data()) ^ base::Hash(KeyOf(key));
    return base::Hash(value.substr(16), seed);
  }
};

}  // namespace basalt
