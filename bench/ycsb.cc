#include "bench/ycsb.h"

namespace basalt::bench {
namespace {

constexpr double kSkew = 0.99;
constexpr uint64_t kLongestScan = 100;
constexpr uint64_t kOrderSeed = 5;

}  // namespace

const std::vector<YcsbWorkload>& YcsbWorkloads() {
  static const std::vector<YcsbWorkload> workloads = {
      {.name = "ycsb_a", .update_percent = 50},
      {.name = "ycsb_b", .update_percent = 5},
      {.name = "ycsb_c"},
      {.name = "ycsb_f", .read_modify_write_percent = 50},
      {.name = "ycsb_d", .insert_percent = 5, .reads_latest = true},
      {.name = "ycsb_e", .insert_percent = 5, .scan_percent = 95, .requests_percent = 10},
  };
  return workloads;
}

YcsbRecords::YcsbRecords(uint32_t loaded)
    : order_(Permutation(loaded, kOrderSeed)), ranks_(loaded, kSkew), present_(loaded) {}

Key YcsbRecords::KeyOf(uint32_t record) const {
  const auto loaded = static_cast<uint32_t>(order_.size());
  return record < loaded ? PresentKey(order_[record]) : MissingKey(order_[record - loaded]);
}

std::vector<YcsbRequest> YcsbRecords::Requests(const YcsbWorkload& workload, uint64_t seed) {
  base::Random random(seed);
  const uint64_t count = order_.size() * workload.requests_percent / 100;
  std::vector<YcsbRequest> requests;
  requests.reserve(count);
  for (uint64_t i = 0; i < count; ++i) requests.push_back(Draw(workload, &random));
  return requests;
}

YcsbRequest YcsbRecords::Draw(const YcsbWorkload& workload, base::Random* random) {
  using Kind = YcsbRequest::Kind;
  auto point = static_cast<uint32_t>(random->Below(100));
  const auto falls_in = [&point](uint32_t percent) {
    const bool is_inside = point < percent;
    point -= is_inside ? 0 : percent;
    return is_inside;
  };
  if (falls_in(workload.insert_percent)) return {Kind::kInsert, 0, KeyOf(present_++)};
  const uint32_t rank = ranks_(random);
  const Key key = KeyOf(workload.reads_latest ? present_ - 1 - rank : rank);
  if (falls_in(workload.update_percent)) return {Kind::kUpdate, 0, key};
  if (falls_in(workload.read_modify_write_percent)) return {Kind::kReadModifyWrite, 0, key};
  if (falls_in(workload.scan_percent)) {
    return {Kind::kScan, static_cast<uint8_t>(random->Between(1, kLongestScan)), key};
  }
  return {Kind::kRead, 0, key};
}

}  // namespace basalt::bench
