#include "tools/basalt/ycsb.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "tools/basalt/bench_worker.h"
#include "tools/basalt/zipf.h"

namespace basalt::tools {
namespace {

/// Percent of each operation, 100 together.
struct Mix {
  uint32_t reads = 0;
  uint32_t updates = 0;
  uint32_t inserts = 0;
  uint32_t scans = 0;
  uint32_t modifications = 0;
  bool newest_first = false;
};

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
  YcsbWorker(BenchWorker& worker, const Mix& mix)
      : worker_(worker),
        mix_(mix),
        scrambled_(worker.options().num),
        ages_(worker.options().num, ScrambledZipf::kSkew) {}

  Status Run() {
    return worker_.ForEachCall([this](uint64_t) { return DoOne(); });
  }

 private:
  static constexpr uint64_t kScannedMax = 100;

  Status DoOne() {
    uint64_t draw = worker_.random().Below(100);
    if (draw < mix_.reads) return worker_.Get(RecordKey(Choose()).view());
    draw -= mix_.reads;
    if (draw < mix_.updates) return worker_.Put(RecordKey(Choose()).view(), {});
    draw -= mix_.updates;
    if (draw < mix_.inserts) return Insert();
    draw -= mix_.inserts;
    return draw < mix_.scans ? Scan() : Modify();
  }

  uint64_t Choose() {
    if (!mix_.newest_first) return scrambled_(worker_.random());
    const uint64_t newest = worker_.run().ycsb_records.load(std::memory_order_relaxed) - 1;
    return newest - std::min(newest, ages_(worker_.random()));
  }

  Status Insert() {
    const uint64_t record = worker_.run().ycsb_records.fetch_add(1, std::memory_order_relaxed);
    return worker_.Put(RecordKey(record).view(), {});
  }

  Status Scan() {
    const RecordKey first(Choose());
    const uint64_t wanted = worker_.random().Between(1, kScannedMax);
    const std::unique_ptr<Iterator> it = worker_.db().NewIterator();
    it->Seek(first.view());
    worker_.CountLookup(it->Valid() && it->key() == first.view());
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < wanted && it->Valid(); ++i, it->Next()) {
      bytes += it->key().size() + it->value().size();
    }
    worker_.Count(bytes);
    return it->status();
  }

  Status Modify() {
    const RecordKey key(Choose());
    bool found = false;
    const std::string_view value = worker_.NextValue();
    const Status updated = worker_.db().Update(key.view(), [&](EntryUpdate& entry) {
      found = entry.exists();
      entry.Set(std::string(value));
      return Status();
    });
    worker_.Count(key.view().size() + value.size());
    worker_.CountLookup(found);
    return updated;
  }

  BenchWorker& worker_;
  const Mix& mix_;
  ScrambledZipf scrambled_;
  Zipf ages_;
};

Status RunMix(const Mix& mix, WorkloadRun& run, const WorkloadShare& share,
              WorkloadCounts& counts) {
  BenchWorker worker(run, share, counts);
  return YcsbWorker(worker, mix).Run();
}

}  // namespace

Status RunYcsbLoad(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts) {
  BenchWorker worker(run, share, counts);
  return worker.ForEachCall(
      [&](uint64_t record) { return worker.Put(RecordKey(record).view(), {}); });
}

Status RunYcsbA(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts) {
  return RunMix({.reads = 50, .updates = 50}, run, share, counts);
}
Status RunYcsbB(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts) {
  return RunMix({.reads = 95, .updates = 5}, run, share, counts);
}
Status RunYcsbC(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts) {
  return RunMix({.reads = 100}, run, share, counts);
}
Status RunYcsbD(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts) {
  return RunMix({.reads = 95, .inserts = 5, .newest_first = true}, run, share, counts);
}
Status RunYcsbE(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts) {
  return RunMix({.inserts = 5, .scans = 95}, run, share, counts);
}
Status RunYcsbF(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts) {
  return RunMix({.reads = 50, .modifications = 50}, run, share, counts);
}

}  // namespace basalt::tools
