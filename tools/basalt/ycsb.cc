#include "tools/basalt/ycsb.h"

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "tools/basalt/bench_worker.h"
#include "tools/workload/ycsb.h"
#include "tools/workload/zipf.h"

namespace basalt::tools {
namespace {

using workload::ScrambledZipf;

class RecordKey {
 public:
  explicit RecordKey(uint64_t record) noexcept {
    uint64_t hash = ScrambledZipf::Scramble(record);
    for (size_t i = text_.size(); i-- > kNameBytes; hash /= 10) {
      text_[i] = static_cast<char>('0' + hash % 10);
    }
  }
  std::string_view view() const noexcept { return {text_.data(), text_.size()}; }

 private:
  static constexpr size_t kNameBytes = 4;
  std::array<char, kNameBytes + 20> text_ = {'u', 's', 'e', 'r'};
};

/// One thread of a mix.
class YcsbWorker {
 public:
  YcsbWorker(BenchWorker& worker, const workload::YcsbMix& mix)
      : worker_(worker),
        requests_(mix, ScrambledZipf(worker.options().num), worker.options().num) {}

  Status Run() {
    return worker_.ForEachCall([this](uint64_t) { return DoOne(); });
  }

 private:
  Status DoOne() {
    using Kind = workload::YcsbRequest::Kind;
    const uint64_t present = worker_.run().ycsb_records.load(std::memory_order_relaxed);
    const workload::YcsbRequest request = requests_.Draw(worker_.random(), present);
    const RecordKey key(request.record);
    switch (request.kind) {
      case Kind::kRead:
        return worker_.Get(key.view());
      case Kind::kUpdate:
        return worker_.Put(key.view(), {});
      case Kind::kInsert:
        return Insert();
      case Kind::kScan:
        return Scan(key.view(), request.scan_records);
      case Kind::kReadModifyWrite:
        return Modify(key.view());
    }
    return {};
  }

  Status Insert() {
    const uint64_t record = worker_.run().ycsb_records.fetch_add(1, std::memory_order_relaxed);
    return worker_.Put(RecordKey(record).view(), {});
  }

  Status Scan(std::string_view first, uint32_t wanted) {
    const std::unique_ptr<Iterator> it = worker_.db().NewIterator();
    it->Seek(first);
    worker_.CountLookup(it->Valid() && it->key() == first);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < wanted && it->Valid(); ++i, it->Next()) {
      bytes += it->key().size() + it->value().size();
    }
    worker_.Count(bytes);
    return it->status();
  }

  Status Modify(std::string_view key) {
    bool found = false;
    const std::string_view value = worker_.NextValue();
    const Status updated = worker_.db().Update(key, [&](EntryUpdate& entry) {
      found = entry.exists();
      entry.Set(std::string(value));
      return Status();
    });
    worker_.Count(key.size() + value.size());
    worker_.CountLookup(found);
    return updated;
  }

  BenchWorker& worker_;
  workload::YcsbRequests<ScrambledZipf> requests_;
};

template <char kMix>
Status RunMix(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts) {
  BenchWorker worker(run, share, counts);
  return YcsbWorker(worker, workload::FindYcsbMix(kMix)).Run();
}

}  // namespace

Status RunYcsbLoad(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts) {
  BenchWorker worker(run, share, counts);
  return worker.ForEachCall(
      [&](uint64_t record) { return worker.Put(RecordKey(record).view(), {}); });
}

Status RunYcsbA(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts) {
  return RunMix<'a'>(run, share, counts);
}
Status RunYcsbB(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts) {
  return RunMix<'b'>(run, share, counts);
}
Status RunYcsbC(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts) {
  return RunMix<'c'>(run, share, counts);
}
Status RunYcsbD(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts) {
  return RunMix<'d'>(run, share, counts);
}
Status RunYcsbE(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts) {
  return RunMix<'e'>(run, share, counts);
}
Status RunYcsbF(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts) {
  return RunMix<'f'>(run, share, counts);
}

}  // namespace basalt::tools
