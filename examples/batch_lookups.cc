// Builds a map of 100,000 prices at once, then looks up 64 articles at a time, of which every other
// one has no price. Many lookups in one call wait for memory together instead of one by one:
//
//     ./batch_lookups

#include <array>
#include <charconv>
#include <cstdint>
#include <iostream>
#include <string>

#include "basalt/shared_map.h"

namespace {

constexpr uint64_t kArticles = 100'000;
constexpr size_t kAtOnce = 64;

std::string KeyOf(uint64_t article) { return "article:" + std::to_string(article); }

}  // namespace

int main() {
  auto builder = basalt::SharedMapBuilder::Create("prices.map", {.overwrite = true}).value();
  for (uint64_t article = 0; article < kArticles; ++article) {
    if (!builder->Add(KeyOf(2 * article), std::to_string(article % 1000)).ok()) return 1;
  }
  auto map = builder->Finish().value();

  auto reader = map->NewReader().value();
  std::array<std::string, kAtOnce> names;
  std::array<std::string_view, kAtOnce> keys;
  std::array<basalt::Result<basalt::SharedMap::MaybeView>, kAtOnce> results;
  uint64_t hits = 0;
  uint64_t sum = 0;
  for (uint64_t first = 0; first < 2 * kArticles; first += kAtOnce) {
    for (size_t i = 0; i < kAtOnce; ++i) {
      names[i] = KeyOf(first + i);
      keys[i] = names[i];
    }
    if (!reader.MultiGet(keys, results).ok()) return 1;
    for (const auto& price : results) {
      if (!price) return 1;   // An error of this one key.
      if (!*price) continue;  // It is absent.
      const std::string_view text = (*price)->view();
      uint64_t cents = 0;
      std::from_chars(text.data(), text.data() + text.size(), cents);
      ++hits;
      sum += cents;
    }
  }
  std::cout << hits << " of " << 2 * kArticles << " articles have a price, " << sum << " in all\n";
  if (!map->Close().ok() || !basalt::SharedMap::Destroy("prices.map").ok()) return 1;
  return hits == kArticles && sum == kArticles / 1000 * 499'500 ? 0 : 1;
}
