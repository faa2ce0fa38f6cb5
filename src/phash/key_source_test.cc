#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "basalt/perfect_hash.h"
#include "phash/level_shape.h"
#include "phash/test_functions.h"

namespace basalt::phash {
namespace {

TEST(PerfectHashBuilder, ASourceOfOtherKeysAtEachWalkIsRefused) {
  constexpr uint64_t kKeys = 600'000;
  const std::vector<std::string> keys[] = {NumberedKeys(kKeys), NumberedKeys(kKeys, "other ")};
  const std::vector<std::string_view> views[] = {Views(keys[0]), Views(keys[1])};
  const OddSource source(kKeys, [&](uint64_t walk, const auto& visit) {
    visit(views[walk % 2]);
    return Status();
  });
  PerfectHashOptions options = {.threads = 1};
  options.memory_budget = LeastBudget(options, [&](const PerfectHashOptions& some) {
    return PerfectHashBuilder(some).Build(views[0]);
  });
  const auto function = PerfectHashBuilder(options).Build(source);
  ASSERT_FALSE(function);
  EXPECT_EQ(function.error().code(), StatusCode::kInvalidArgument) << function.error().ToString();
}

TEST(FingerprintSet, ASourceThatGivesOtherNumbersOfKeysForTheCellsIsRefused) {
  const std::vector<std::string> keys = NumberedKeys(1'000);
  const std::vector<std::string_view> views = Views(keys);
  for (const uint64_t size : {0, 10, 1'000}) {
    for (const uint64_t later : {0, 9, 11, 999, 1'000}) {
      if (later == size) continue;
      const OddSource source(size, [&](uint64_t walk, const auto& visit) {
        visit(std::span(views).first(walk == 0 ? size : later));
        return Status();
      });
      const auto set = FingerprintSet::Build(source, 16);
      ASSERT_FALSE(set) << size << " keys, later " << later;
      EXPECT_EQ(set.error().code(), StatusCode::kInvalidArgument) << set.error().ToString();
    }
  }
}

}  // namespace
}  // namespace basalt::phash
