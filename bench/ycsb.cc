#include "bench/ycsb.h"

#include "base/random.h"

namespace basalt::bench {
namespace {

constexpr uint64_t kOrderSeed = 5;

}  // namespace

YcsbRecords::YcsbRecords(uint32_t loaded)
    : order_(Permutation(loaded, kOrderSeed)),
      popularity_(loaded, workload::kYcsbSkew),
      present_(loaded) {}

Key YcsbRecords::KeyOf(uint64_t record) const {
  const uint64_t loaded = order_.size();
  return record < loaded ? PresentKey(order_[record]) : MissingKey(order_[record - loaded]);
}

std::vector<YcsbKeyRequest> YcsbRecords::Requests(const workload::YcsbMix& mix, uint64_t seed) {
  const workload::YcsbRequests draws(mix, popularity_, order_.size());
  base::Random random(seed);
  const uint64_t count = order_.size() / (mix.scans > 0 ? 10 : 1);
  std::vector<YcsbKeyRequest> requests;
  requests.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    const workload::YcsbRequest draw = draws.Draw(random, present_);
    const bool inserts = draw.kind == workload::YcsbRequest::Kind::kInsert;
    requests.push_back({.kind = draw.kind,
                        .scan_records = static_cast<uint8_t>(draw.scan_records),
                        .key = KeyOf(inserts ? present_++ : draw.record)});
  }
  return requests;
}

}  // namespace basalt::bench
