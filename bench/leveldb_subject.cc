#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

#include "bench/subject.h"
#include "bench/text.h"

namespace basalt::bench {
namespace {

leveldb::Slice ToSlice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }
std::string_view ToView(const leveldb::Slice& slice) { return {slice.data(), slice.size()}; }

void Check(const leveldb::Status& status, std::string_view what) {
  if (!status.ok()) Fail(what, status.ToString());
}

class LevelDbSubject final : public Subject {
 public:
  explicit LevelDbSubject(Memory memory) : memory_(memory) {}

  std::string name() const override { return "leveldb"; }
  std::string description() const override {
    return Format("%d.%d, write buffer %zu MiB, cache %zu MiB, Bloom filter %d bits, Snappy",
                  leveldb::kMajorVersion, leveldb::kMinorVersion, memory_.WriteBuffer() >> 20,
                  memory_.Cache() >> 20, kFilterBitsPerKey);
  }
  bool is_lsm_peer() const override { return true; }

  void Open(const std::string& directory, Level level) override {
    cache_.reset(leveldb::NewLRUCache(memory_.Cache()));
    filter_.reset(leveldb::NewBloomFilterPolicy(kFilterBitsPerKey));
    leveldb::Options options;
    options.create_if_missing = true;
    options.write_buffer_size = memory_.WriteBuffer();
    options.block_cache = cache_.get();
    options.filter_policy = filter_.get();
    options.compression = leveldb::kSnappyCompression;
    write_.sync = level == Level::kPower;
    leveldb::DB* db = nullptr;
    Check(leveldb::DB::Open(options, directory, &db), "open leveldb");
    db_.reset(db);
  }
  void Close() override {
    db_.reset();
    filter_.reset();
    cache_.reset();
  }

  void Put(std::string_view key, std::string_view value) override {
    Check(db_->Put(write_, ToSlice(key), ToSlice(value)), "put in leveldb");
  }
  void PutBatch(std::span<const Record> records) override {
    batch_.Clear();
    for (const Record& record : records) batch_.Put(ToSlice(record.key), ToSlice(record.value));
    Check(db_->Write(write_, &batch_), "write to leveldb");
  }
  void Delete(std::string_view key) override {
    Check(db_->Delete(write_, ToSlice(key)), "delete in leveldb");
  }
  bool Get(std::string_view key) override {
    const leveldb::Status status = db_->Get({}, ToSlice(key), &value_);
    if (status.IsNotFound()) return false;
    Check(status, "get from leveldb");
    Touch(value_);
    return true;
  }
  uint64_t ScanAll() override {
    const std::unique_ptr<leveldb::Iterator> iterator(db_->NewIterator({}));
    uint64_t records = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++records) {
      Touch(ToView(iterator->value()));
    }
    Check(iterator->status(), "scan leveldb");
    return records;
  }
  uint64_t SeekAndNext(std::string_view key, int nexts) override {
    const std::unique_ptr<leveldb::Iterator> iterator(db_->NewIterator({}));
    uint64_t records = 0;
    for (iterator->Seek(ToSlice(key)); iterator->Valid(); iterator->Next()) {
      Touch(ToView(iterator->value()));
      ++records;
      if (nexts-- == 0) break;
    }
    Check(iterator->status(), "seek in leveldb");
    return records;
  }
  void Flush() override {
    const leveldb::Slice behind_all_keys("\xff");
    db_->CompactRange(&behind_all_keys, &behind_all_keys);  // It flushes first; nothing to merge.
  }
  void CompactAll() override { db_->CompactRange(nullptr, nullptr); }

 private:
  const Memory memory_;
  std::unique_ptr<leveldb::Cache> cache_;
  std::unique_ptr<const leveldb::FilterPolicy> filter_;
  std::unique_ptr<leveldb::DB> db_;
  leveldb::WriteOptions write_;
  leveldb::WriteBatch batch_;
  std::string value_;
};

}  // namespace

std::unique_ptr<Subject> MakeLevelDb(Memory memory) {
  return std::make_unique<LevelDbSubject>(memory);
}

}  // namespace basalt::bench
