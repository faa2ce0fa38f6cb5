#include "tools/basalt/repeated_key.h"

#include <algorithm>
#include <functional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace basalt::tools {
namespace {

constexpr uint64_t kPassesMax = 64;

uint64_t HashOf(std::string_view key) { return std::hash<std::string_view>()(key); }

/// The hashes that two keys have, sorted, among those that are `pass` modulo `passes`.
Result<std::vector<uint64_t>> SharedHashes(const KeySource& keys, uint64_t pass, uint64_t passes) {
  std::vector<uint64_t> hashes;
  hashes.reserve(keys.size() / passes);
  const Status walked = keys.Walk([&](std::span<const std::string_view> some) {
    for (const std::string_view key : some) {
      if (const uint64_t hash = HashOf(key); hash % passes == pass) hashes.push_back(hash);
    }
  });
  if (!walked.ok()) return walked;
  std::sort(hashes.begin(), hashes.end());
  std::vector<uint64_t> shared;
  for (size_t i = 1; i < hashes.size(); ++i) {
    if (hashes[i] == hashes[i - 1]) shared.push_back(hashes[i]);
  }
  return shared;
}

}  // namespace

Result<std::optional<RepeatedKey>> FindRepeatedKey(const KeySource& keys, uint64_t memory_budget) {
  const uint64_t passes =
      memory_budget == 0 ? 1
                         : std::clamp<uint64_t>(8 * keys.size() / memory_budget + 1, 1, kPassesMax);
  for (uint64_t pass = 0; pass < passes; ++pass) {
    const Result<std::vector<uint64_t>> shared = SharedHashes(keys, pass, passes);
    if (!shared) return shared.error();
    if (shared->empty()) continue;

    std::unordered_map<std::string, uint64_t> places;
    std::optional<RepeatedKey> repeated;
    uint64_t next = 0;
    const Status walked = keys.Walk([&](std::span<const std::string_view> some) {
      for (const std::string_view key : some) {
        const uint64_t place = next++;
        if (repeated || !std::binary_search(shared->begin(), shared->end(), HashOf(key))) continue;
        const auto [found, is_new] = places.try_emplace(std::string(key), place);
        if (!is_new) repeated = {.key = found->first, .place = place, .first_place = found->second};
      }
    });
    if (!walked.ok()) return walked;
    if (repeated) return repeated;
  }
  return std::optional<RepeatedKey>();
}

}  // namespace basalt::tools
