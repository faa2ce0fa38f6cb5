#include <rocksdb/db.h>
#include <rocksdb/memtablerep.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>

#include <array>

#include "bench/shared_map_subject.h"

namespace basalt::bench {
namespace {

void Check(const rocksdb::Status& status, std::string_view what) {
  if (!status.ok()) Fail(what, status.ToString());
}

rocksdb::Slice ToSlice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

/// A RocksDB database of PlainTable files, RocksDB's format for lookups in mapped files: the whole
/// key is the prefix that its hash index is over. Filled in number order through a memtable that is
/// a vector, without a log, then compacted into one level. (SstFileWriter's files of this format
/// cannot be ingested: that needs an iterator in order.)
class PlainTable final : public SharedMapSubject {
 public:
  void Build(const SharedMapRecords& records, const std::string& directory) override {
    rocksdb::Options options = OptionsOf();
    options.create_if_missing = true;
    options.memtable_factory = std::make_shared<rocksdb::VectorRepFactory>();
    options.allow_concurrent_memtable_write = false;  // which a vector does not support
    options.disable_auto_compactions = true;
    options.level0_slowdown_writes_trigger = 1 << 30;
    options.level0_stop_writes_trigger = 1 << 30;
    OpenDb(options, directory);
    rocksdb::WriteOptions write;
    write.disableWAL = true;
    std::array<char, kSharedMapValueBytes> value;
    for (uint64_t number = 0; number < records.count(); ++number) {
      records.FillValue(number, 'v', value.data());
      Check(db_->Put(write, ToSlice(RecordKey::Of(number).view()), {value.data(), value.size()}),
            "put in rocksdb");
    }
    Check(db_->Flush({}), "flush rocksdb");
    rocksdb::CompactRangeOptions compaction;
    compaction.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    Check(db_->CompactRange(compaction, nullptr, nullptr), "compact rocksdb");
    Check(db_->Close(), "close rocksdb");
    db_.reset();
  }
  void Open(const std::string& directory) override { OpenDb(OptionsOf(), directory); }

  Seen Get(std::string_view key) override {
    return Find(key) ? LookAt(value_.ToStringView()) : Seen{0, Seen::kNothing};
  }
  void GetMany(std::span<const std::string_view> keys, char* values) override {
    for (const std::string_view key : keys) {
      if (!Find(key)) Fail("get many from rocksdb", "a key is missing");
      CopyValue(value_.ToStringView(), values);
      values += kSharedMapValueBytes;
    }
  }

 private:
  static rocksdb::Options OptionsOf() {
    rocksdb::Options options;
    options.table_factory.reset(rocksdb::NewPlainTableFactory());
    options.prefix_extractor.reset(rocksdb::NewNoopTransform());
    options.compression = rocksdb::kNoCompression;
    options.allow_mmap_reads = true;
    options.max_open_files = -1;
    options.write_buffer_size = size_t{256} << 20;
    options.target_file_size_base = uint64_t{256} << 20;
    options.max_bytes_for_level_base = uint64_t{16} << 30;
    return options;
  }
  void OpenDb(const rocksdb::Options& options, const std::string& directory) {
    rocksdb::DB* db = nullptr;
    Check(rocksdb::DB::Open(options, directory, &db), "open rocksdb");
    db_.reset(db);
  }
  bool Find(std::string_view key) {
    value_.Reset();
    const rocksdb::Status status =
        db_->Get(read_, db_->DefaultColumnFamily(), ToSlice(key), &value_);
    if (status.IsNotFound()) return false;
    Check(status, "get from rocksdb");
    return true;
  }

  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::ReadOptions read_;
  rocksdb::PinnableSlice value_;
};

}  // namespace

std::unique_ptr<SharedMapSubject> MakePlainTable() { return std::make_unique<PlainTable>(); }

}  // namespace basalt::bench
