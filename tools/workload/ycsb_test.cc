#include "tools/workload/ycsb.h"

#include <gtest/gtest.h>

#include <array>

#include "tools/workload/compressible_values.h"

namespace basalt::workload {
namespace {

using Kind = YcsbRequest::Kind;

TEST(Ycsb, RequestsComeUpInTheProportionsOfTheirMix) {
  constexpr int kDraws = 20'000;
  for (const YcsbMix& mix : kYcsbMixes) {
    base::Random random(7);
    const YcsbRequests requests(mix, Zipf(1000, kYcsbSkew), 1000);
    std::array<int, 5> drawn{};
    for (int i = 0; i < kDraws; ++i) {
      const YcsbRequest request = requests.Draw(random, 1500);
      ++drawn[static_cast<size_t>(request.kind)];
      EXPECT_LT(request.record, mix.newest_first ? 1500u : 1000u);
      EXPECT_EQ(request.kind == Kind::kScan, request.scan_records > 0);
      EXPECT_LE(request.scan_records, 100u);
    }
    const auto expect = [&](Kind kind, uint32_t percent) {
      const int expected = kDraws / 100 * static_cast<int>(percent);
      EXPECT_NEAR(drawn[static_cast<size_t>(kind)], expected, 300)
          << mix.name << " " << static_cast<int>(kind);
    };
    expect(Kind::kUpdate, mix.updates);
    expect(Kind::kInsert, mix.inserts);
    expect(Kind::kScan, mix.scans);
    expect(Kind::kReadModifyWrite, mix.read_modify_writes);
    expect(Kind::kRead, 100 - mix.updates - mix.inserts - mix.scans - mix.read_modify_writes);
  }
}

TEST(Ycsb, TheNewestRecordsArePopularInD) {
  base::Random random(7);
  const YcsbRequests requests(FindYcsbMix('d'), ScrambledZipf(1000), 1000);
  int newest = 0;
  for (int i = 0; i < 1000; ++i) newest += requests.Draw(random, 1200).record == 1199 ? 1 : 0;
  EXPECT_GT(newest, 80);
}

TEST(CompressibleValues, HaveTheirSizeAndRepeatAfterAMebibyte) {
  const CompressibleValues values(1, 100);
  EXPECT_EQ(values.At(0).size(), 100u);
  EXPECT_EQ(values.At(0).substr(0, 50), values.At(0).substr(50));
  EXPECT_NE(values.At(0), values.At(1));
  EXPECT_EQ(values.At(0), values.At(10'486));
  EXPECT_EQ(CompressibleValues(1, 0).At(5), "");
  EXPECT_EQ(CompressibleValues(1, 3 << 20).At(5).size(), size_t{3} << 20);
}

}  // namespace
}  // namespace basalt::workload
