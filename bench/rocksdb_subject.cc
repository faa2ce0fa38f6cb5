#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/version.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "bench/subject.h"
#include "bench/text.h"

namespace basalt::bench {
namespace {

rocksdb::Slice ToSlice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

void Check(const rocksdb::Status& status, std::string_view what) {
  if (!status.ok()) Fail(what, status.ToString());
}

bool HasLz4() {
  const auto codecs = rocksdb::GetSupportedCompressions();
  return std::find(codecs.begin(), codecs.end(), rocksdb::kLZ4Compression) != codecs.end();
}

class RocksDbSubject final : public Subject {
 public:
  explicit RocksDbSubject(Memory memory) : memory_(memory) {}

  std::string name() const override { return "rocksdb"; }
  std::string description() const override {
    return Format("%d.%d.%d, write buffer %zu MiB, cache %zu MiB, Bloom filter %d bits, %s",
                  ROCKSDB_MAJOR, ROCKSDB_MINOR, ROCKSDB_PATCH, memory_.WriteBuffer() >> 20,
                  memory_.Cache() >> 20, kFilterBitsPerKey, has_lz4_ ? "LZ4" : "Snappy");
  }
  bool is_lsm_peer() const override { return true; }

  void Open(const std::string& directory, Level level) override {
    rocksdb::BlockBasedTableOptions table;
    table.block_cache = rocksdb::NewLRUCache(memory_.Cache());
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(kFilterBitsPerKey));
    rocksdb::Options options;
    options.create_if_missing = true;
    options.write_buffer_size = memory_.WriteBuffer();
    options.compression = has_lz4_ ? rocksdb::kLZ4Compression : rocksdb::kSnappyCompression;
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    write_.sync = level == Level::kPower;
    rocksdb::DB* db = nullptr;
    Check(rocksdb::DB::Open(options, directory, &db), "open rocksdb");
    db_.reset(db);
  }
  void Close() override {
    value_.Reset();  // it may pin a block of this store's cache
    values_.clear();
    Check(db_->Close(), "close rocksdb");
    db_.reset();
  }

  void Put(std::string_view key, std::string_view value) override {
    Check(db_->Put(write_, ToSlice(key), ToSlice(value)), "put in rocksdb");
  }
  void PutBatch(std::span<const Record> records) override {
    batch_.Clear();
    for (const Record& record : records) {
      Check(batch_.Put(ToSlice(record.key), ToSlice(record.value)), "fill a rocksdb batch");
    }
    Check(db_->Write(write_, &batch_), "write to rocksdb");
  }
  void Delete(std::string_view key) override {
    Check(db_->Delete(write_, ToSlice(key)), "delete in rocksdb");
  }
  bool Get(std::string_view key) override {
    value_.Reset();
    const rocksdb::Status status =
        db_->Get(read_, db_->DefaultColumnFamily(), ToSlice(key), &value_);
    if (status.IsNotFound()) return false;
    Check(status, "get from rocksdb");
    Touch(value_.ToStringView());
    return true;
  }
  uint64_t MultiGet(std::span<const std::string_view> keys) override {
    slices_.resize(keys.size());
    std::ranges::transform(keys, slices_.begin(), ToSlice);
    for (rocksdb::PinnableSlice& value : values_) value.Reset();
    values_.resize(keys.size());
    statuses_.resize(keys.size());
    db_->MultiGet(read_, db_->DefaultColumnFamily(), keys.size(), slices_.data(), values_.data(),
                  statuses_.data());
    uint64_t present = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (statuses_[i].IsNotFound()) continue;
      Check(statuses_[i], "get many keys from rocksdb");
      Touch(values_[i].ToStringView());
      ++present;
    }
    return present;
  }
  uint64_t ScanAll() override {
    const std::unique_ptr<rocksdb::Iterator> iterator(db_->NewIterator(read_));
    uint64_t records = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++records) {
      Touch(iterator->value().ToStringView());
    }
    Check(iterator->status(), "scan rocksdb");
    return records;
  }
  uint64_t SeekAndNext(std::string_view key, int nexts) override {
    const std::unique_ptr<rocksdb::Iterator> iterator(db_->NewIterator(read_));
    uint64_t records = 0;
    for (iterator->Seek(ToSlice(key)); iterator->Valid(); iterator->Next()) {
      Touch(iterator->value().ToStringView());
      ++records;
      if (nexts-- == 0) break;
    }
    Check(iterator->status(), "seek in rocksdb");
    return records;
  }
  void Flush() override { Check(db_->Flush({}), "flush rocksdb"); }
  void CompactAll() override {
    rocksdb::CompactRangeOptions options;
    options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
    Check(db_->CompactRange(options, nullptr, nullptr), "compact rocksdb");
  }
  std::optional<uint64_t> CompactionDebt() const override {
    uint64_t bytes = 0;
    if (!db_->GetIntProperty(rocksdb::DB::Properties::kEstimatePendingCompactionBytes, &bytes)) {
      Fail("read rocksdb's compaction debt", "it has no such property");
    }
    return bytes;
  }

 private:
  const Memory memory_;
  const bool has_lz4_ = HasLz4();
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::WriteOptions write_;
  rocksdb::ReadOptions read_;
  rocksdb::WriteBatch batch_;
  rocksdb::PinnableSlice value_;
  std::vector<rocksdb::Slice> slices_;  // these three of the last MultiGet
  std::vector<rocksdb::PinnableSlice> values_;
  std::vector<rocksdb::Status> statuses_;
};

}  // namespace

std::unique_ptr<Subject> MakeRocksDb(Memory memory) {
  return std::make_unique<RocksDbSubject>(memory);
}

}  // namespace basalt::bench
