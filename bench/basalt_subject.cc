#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "bench/subject.h"
#include "bench/text.h"

namespace basalt::bench {
namespace {

void Check(const Status& status, std::string_view what) {
  if (!status.ok()) Fail(what, status.ToString());
}

class BasaltSubject final : public Subject {
 public:
  explicit BasaltSubject(Memory memory) : memory_(memory) {}

  std::string name() const override { return "basalt"; }
  std::string description() const override {
    return Format("memory_budget %zu MiB, LZ4, filters on", memory_.total >> 20);
  }
  bool is_lsm_peer() const override { return false; }

  void Open(const std::string& directory, Level level) override {
    DBOptions options;
    options.memory_budget = memory_.total;
    options.durability = level == Level::kPower ? Durability::kPower : Durability::kProcess;
    auto db = DB::Open(directory, options);
    Check(db.status(), "open basalt");
    db_ = std::move(*db);
  }
  void Close() override {
    values_.clear();
    Check(db_->Close(), "close basalt");
    db_.reset();
  }

  void Put(std::string_view key, std::string_view value) override {
    Check(db_->Put(key, value), "put in basalt");
  }
  void PutBatch(std::span<const Record> records) override {
    batch_.Clear();
    for (const Record& record : records) batch_.Put(record.key, record.value);
    Check(db_->Write(batch_), "write to basalt");
  }
  void Delete(std::string_view key) override { Check(db_->Delete(key), "delete in basalt"); }
  bool Get(std::string_view key) override {
    const auto value = db_->Get(key);
    if (!value) Fail("get from basalt", value.error().ToString());
    if (!*value) return false;
    Touch((*value)->view());
    return true;
  }
  uint64_t MultiGet(std::span<const std::string_view> keys) override {
    values_.resize(keys.size());
    Check(db_->MultiGet(keys, values_), "get many keys from basalt");
    uint64_t present = 0;
    for (const Result<MaybeValue>& value : values_) {
      if (!value) Fail("get many keys from basalt", value.error().ToString());
      if (!*value) continue;
      Touch((*value)->view());
      ++present;
    }
    return present;
  }
  uint64_t ScanAll() override {
    const auto iterator = db_->NewIterator();
    uint64_t records = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++records) {
      Touch(iterator->value());
    }
    Check(iterator->status(), "scan basalt");
    return records;
  }
  uint64_t SeekAndNext(std::string_view key, int nexts) override {
    const auto iterator = db_->NewIterator();
    uint64_t records = 0;
    for (iterator->Seek(key); iterator->Valid(); iterator->Next()) {
      Touch(iterator->value());
      ++records;
      if (nexts-- == 0) break;
    }
    Check(iterator->status(), "seek in basalt");
    return records;
  }
  void Flush() override { Check(db_->Flush(), "flush basalt"); }
  void CompactAll() override { Check(db_->CompactRange(), "compact basalt"); }

  std::optional<uint64_t> CompactionDebt() const override {
    return db_->GetStats().compaction_debt;
  }
  std::optional<uint64_t> BytesWritten() const override {
    const DBStats stats = db_->GetStats();
    return stats.log_bytes_written + stats.flush_bytes + stats.compaction_bytes_written;
  }

 private:
  const Memory memory_;
  std::unique_ptr<DB> db_;
  WriteBatch batch_;
  std::vector<Result<MaybeValue>> values_;
};

}  // namespace

std::unique_ptr<Subject> MakeBasalt(Memory memory) {
  return std::make_unique<BasaltSubject>(memory);
}

}  // namespace basalt::bench
