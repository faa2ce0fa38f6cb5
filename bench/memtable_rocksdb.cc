#include <rocksdb/db.h>
#include <rocksdb/version.h>
#include <rocksdb/write_batch.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include "bench/cache_subject.h"
#include "bench/memtable_subject.h"
#include "bench/text.h"

namespace basalt::bench {
namespace {

rocksdb::Slice ToSlice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }
std::string_view ToView(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

void Check(const rocksdb::Status& status, std::string_view what) {
  if (!status.ok()) Fail(what, status.ToString());
}

/// A database of which only the memtable is used: nothing is logged or flushed.
class RocksDbSkipList final : public MemTableSubject {
 public:
  RocksDbSkipList() { write_.disableWAL = true; }
  std::string name() const override { return "rocksdb"; }
  std::string description() const override {
    return Format("rocksdb skiplist: a DB of RocksDB %d.%d, no log, write buffer above the data",
                  ROCKSDB_MAJOR, ROCKSDB_MINOR);
  }

  void Open(const StorePlan& plan) override {
    directory_ = (std::filesystem::temp_directory_path() / "memtable_bench.XXXXXX").string();
    if (mkdtemp(directory_.data()) == nullptr) Fail("make a directory", directory_);
    rocksdb::Options options;
    options.create_if_missing = true;
    options.write_buffer_size = 4 * plan.records * kLogicalBytes + (size_t{64} << 20);
    options.avoid_flush_during_shutdown = true;
    rocksdb::DB* db = nullptr;
    Check(rocksdb::DB::Open(options, directory_, &db), "open rocksdb");
    db_.reset(db);
  }
  void Close() override {
    Check(db_->Close(), "close rocksdb");
    db_.reset();
    std::filesystem::remove_all(directory_);
  }

  void Put(const CacheRequest& request) override {
    Check(db_->Put(write_, ToSlice(request.key.padded()), ToSlice(ValueOf(request.number))),
          "put into rocksdb");
  }
  void PutBatch(std::span<const CacheRequest> requests) override {
    thread_local rocksdb::WriteBatch batch;
    batch.Clear();
    for (const CacheRequest& request : requests) {
      Check(batch.Put(ToSlice(request.key.padded()), ToSlice(ValueOf(request.number))),
            "make a batch for rocksdb");
    }
    Check(db_->Write(write_, &batch), "write a batch to rocksdb");
  }
  std::optional<uint8_t> Get(const CacheRequest& request) override {
    thread_local rocksdb::PinnableSlice value;
    value.Reset();
    const rocksdb::Status status =
        db_->Get(read_, db_->DefaultColumnFamily(), ToSlice(request.key.padded()), &value);
    if (status.IsNotFound()) return std::nullopt;
    Check(status, "get from rocksdb");
    return EndsOf(ToView(value));
  }
  uint64_t MultiGet(std::span<const CacheRequest> requests) override {
    thread_local std::array<rocksdb::PinnableSlice, kMultiGet> values;
    std::array<rocksdb::Slice, kMultiGet> keys;
    std::array<rocksdb::Status, kMultiGet> statuses;
    const size_t count = requests.size();
    for (size_t i = 0; i < count; ++i) {
      keys[i] = ToSlice(requests[i].key.padded());
      values[i].Reset();
    }
    db_->MultiGet(read_, db_->DefaultColumnFamily(), count, keys.data(), values.data(),
                  statuses.data());
    uint64_t found = 0;
    for (size_t i = 0; i < count; ++i) {
      if (statuses[i].IsNotFound()) continue;
      Check(statuses[i], "look up many keys in rocksdb");
      const uint8_t ends = EndsOf(ToView(values[i]));
      asm volatile("" : : "r"(ends));
      ++found;
    }
    return found;
  }
  uint64_t Scan(const CacheRequest& from, uint64_t records) override {
    const std::unique_ptr<rocksdb::Iterator> iterator(db_->NewIterator(read_));
    const uint64_t seen = ScanIterator(from, records, iterator.get());
    Check(iterator->status(), "scan rocksdb");
    return seen;
  }
  Walk WalkAll() override {
    Walk walk;
    const std::unique_ptr<rocksdb::Iterator> iterator(db_->NewIterator(read_));
    WalkIterator(iterator.get(), &walk);
    Check(iterator->status(), "walk over rocksdb");
    return walk;
  }

  uint64_t claimed_bytes() const override {
    uint64_t bytes = 0;
    db_->GetIntProperty(rocksdb::DB::Properties::kCurSizeAllMemTables, &bytes);
    return bytes;
  }

 private:
  std::string directory_;
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::WriteOptions write_;
  const rocksdb::ReadOptions read_;
};

}  // namespace

std::unique_ptr<MemTableSubject> MakeRocksDbSkipList() {
  return std::make_unique<RocksDbSkipList>();
}

}  // namespace basalt::bench
