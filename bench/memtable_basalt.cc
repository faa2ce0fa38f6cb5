#include <algorithm>
#include <array>
#include <utility>

#include "basalt/memtable.h"
#include "bench/cache_subject.h"
#include "bench/memtable_subject.h"

namespace basalt::bench {
namespace {

void Check(const Status& status, std::string_view what) {
  if (!status.ok()) Fail(what, status.ToString());
}

class BasaltMemTable final : public MemTableSubject {
 public:
  std::string name() const override { return "basalt"; }
  std::string description() const override {
    return "basalt::MemTable, default options but the budget: all fits one generation";
  }
  bool sorts_later() const override { return true; }

  void Open(const StorePlan& plan) override {
    MemTableOptions options;
    options.generation_bytes = 3 * plan.records * kLogicalBytes + kSmallest;
    options.memory_budget = 2 * options.generation_bytes;
    options.compaction = plan.compaction;
    // While a store lives, its memory stays with the process when its tables are gone.
    if (options.memory_budget > kept_bytes_) {
      Result<std::unique_ptr<MemTable>> keeper = MemTable::Create(options);
      Check(keeper.status(), "make a basalt memtable");
      keeper_ = std::move(keeper).value();
      kept_bytes_ = options.memory_budget;
    }
    Result<std::unique_ptr<MemTable>> table = MemTable::Create(options);
    Check(table.status(), "make a basalt memtable");
    table_ = std::move(table).value();
  }
  void Close() override { table_.reset(); }

  void Put(const CacheRequest& request) override {
    Check(table_->Put(request.key.padded(), ValueOf(request.number)), "put into basalt");
  }
  void PutBatch(std::span<const CacheRequest> requests) override {
    thread_local WriteBatch batch;
    batch.Clear();
    for (const CacheRequest& request : requests) {
      batch.Put(request.key.padded(), ValueOf(request.number));
    }
    Check(table_->Write(batch), "write a batch to basalt");
  }
  std::optional<uint8_t> Get(const CacheRequest& request) override {
    const Result<MaybeValue> value = table_->Get(request.key.padded());
    if (!value) Fail("get from basalt", value.error().ToString());
    if (!*value) return std::nullopt;
    return EndsOf((*value)->view());
  }
  uint64_t MultiGet(std::span<const CacheRequest> requests) override {
    std::array<std::string_view, kMultiGet> keys;
    std::array<Result<MaybeValue>, kMultiGet> values;
    const size_t count = requests.size();
    for (size_t i = 0; i < count; ++i) keys[i] = requests[i].key.padded();
    Check(table_->MultiGet(std::span(keys).first(count), std::span(values).first(count)),
          "look up many keys in basalt");
    uint64_t found = 0;
    for (size_t i = 0; i < count; ++i) {
      if (!values[i]) Fail("look up many keys in basalt", values[i].error().ToString());
      if (!*values[i]) continue;
      const uint8_t ends = EndsOf((*values[i])->view());
      asm volatile("" : : "r"(ends));
      ++found;
    }
    return found;
  }
  uint64_t Scan(const CacheRequest& from, uint64_t records) override {
    const auto iterator = table_->NewIterator();
    const uint64_t seen = ScanIterator(from, records, iterator.get());
    Check(iterator->status(), "scan basalt");
    return seen;
  }
  Walk WalkAll() override {
    Walk walk;
    const auto iterator = table_->NewIterator();
    WalkIterator(iterator.get(), &walk);
    Check(iterator->status(), "walk over basalt");
    return walk;
  }

  void Seal() override { Check(table_->Seal(), "seal a generation of basalt"); }
  void Drain() override { table_->WaitForBackgroundWork(); }
  double sorted_percent() const override {
    const MemTableStats stats = table_->GetStats();
    return 100 * static_cast<double>(stats.sorted_records) /
           static_cast<double>(std::max<uint64_t>(stats.records, 1));
  }
  uint64_t claimed_bytes() const override { return table_->GetStats().memory_bytes; }

 private:
  static constexpr uint64_t kSmallest = uint64_t{16} << 20;
  std::unique_ptr<MemTable> table_;
  std::unique_ptr<MemTable> keeper_;
  uint64_t kept_bytes_ = 0;
};

}  // namespace

std::unique_ptr<MemTableSubject> MakeBasaltMemTable() { return std::make_unique<BasaltMemTable>(); }

}  // namespace basalt::bench
