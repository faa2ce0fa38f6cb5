#include <lmdb.h>

#include "bench/subject.h"
#include "bench/text.h"

namespace basalt::bench {
namespace {

constexpr size_t kMapBytes = size_t{4} << 30;

void Check(int error, std::string_view what) {
  if (error != 0) Fail(what, mdb_strerror(error));
}

MDB_val ToVal(std::string_view bytes) {
  return {bytes.size(),
          const_cast<char*>(bytes.data())};  // LMDB does not write through its inputs.
}
std::string_view ToView(const MDB_val& val) {
  return {static_cast<const char*>(val.mv_data), val.mv_size};
}

/// One write transaction a put or batch; reads renew one transaction each, so that they see the
/// newest state as the others' reads do. kProcess is MDB_NOSYNC without MDB_WRITEMAP: pages reach
/// the kernel by write() at each commit, which is what the others' unsynced logs do.
class LmdbSubject final : public Subject {
 public:
  std::string name() const override { return "lmdb"; }
  std::string description() const override {
    return Format("%d.%d.%d, map %zu GiB, no compression; kProcess is MDB_NOSYNC",
                  MDB_VERSION_MAJOR, MDB_VERSION_MINOR, MDB_VERSION_PATCH, kMapBytes >> 30);
  }
  bool is_lsm_peer() const override { return false; }

  void Open(const std::string& directory, Level level) override {
    Check(mdb_env_create(&environment_), "create an lmdb environment");
    Check(mdb_env_set_mapsize(environment_, kMapBytes), "set lmdb's map size");
    const unsigned flags = level == Level::kPower ? 0U : unsigned{MDB_NOSYNC};
    Check(mdb_env_open(environment_, directory.c_str(), flags, 0644), "open lmdb");
    MDB_txn* transaction = nullptr;
    Check(mdb_txn_begin(environment_, nullptr, 0, &transaction), "begin in lmdb");
    Check(mdb_dbi_open(transaction, nullptr, 0, &table_), "open lmdb's table");
    Check(mdb_txn_commit(transaction), "commit to lmdb");
    Check(mdb_txn_begin(environment_, nullptr, MDB_RDONLY, &reader_), "begin a read in lmdb");
    Check(mdb_cursor_open(reader_, table_, &cursor_), "open an lmdb cursor");
    mdb_txn_reset(reader_);
  }
  void Close() override {
    mdb_cursor_close(cursor_);
    mdb_txn_abort(reader_);
    mdb_env_close(environment_);
  }

  void Put(std::string_view key, std::string_view value) override {
    const Record record{key, value};
    PutBatch({&record, 1});
  }
  void PutBatch(std::span<const Record> records) override {
    MDB_txn* transaction = nullptr;
    Check(mdb_txn_begin(environment_, nullptr, 0, &transaction), "begin in lmdb");
    for (const Record& record : records) {
      MDB_val key = ToVal(record.key);
      MDB_val value = ToVal(record.value);
      Check(mdb_put(transaction, table_, &key, &value, 0), "put in lmdb");
    }
    Check(mdb_txn_commit(transaction), "commit to lmdb");
  }
  void Delete(std::string_view key) override {
    MDB_txn* transaction = nullptr;
    Check(mdb_txn_begin(environment_, nullptr, 0, &transaction), "begin in lmdb");
    MDB_val wanted = ToVal(key);
    Check(mdb_del(transaction, table_, &wanted, nullptr), "delete in lmdb");
    Check(mdb_txn_commit(transaction), "commit to lmdb");
  }
  bool Get(std::string_view key) override {
    Check(mdb_txn_renew(reader_), "renew a read in lmdb");
    MDB_val wanted = ToVal(key);
    MDB_val value;
    const int error = mdb_get(reader_, table_, &wanted, &value);
    if (error == 0) {
      Touch(ToView(value));
    } else if (error != MDB_NOTFOUND) {
      Check(error, "get from lmdb");
    }
    mdb_txn_reset(reader_);
    return error == 0;
  }
  uint64_t ScanAll() override { return Walk({}, MDB_FIRST, UINT64_MAX); }
  uint64_t SeekAndNext(std::string_view key, int nexts) override {
    return Walk(key, MDB_SET_RANGE, static_cast<uint64_t>(nexts) + 1);
  }
  void Flush() override {}
  void CompactAll() override {}

 private:
  uint64_t Walk(std::string_view start, MDB_cursor_op first, uint64_t limit) {
    Check(mdb_txn_renew(reader_), "renew a read in lmdb");
    Check(mdb_cursor_renew(reader_, cursor_), "renew an lmdb cursor");
    MDB_val key = ToVal(start);
    MDB_val value;
    uint64_t records = 0;
    int error = mdb_cursor_get(cursor_, &key, &value, first);
    while (error == 0) {
      Touch(ToView(value));
      if (++records == limit) break;
      error = mdb_cursor_get(cursor_, &key, &value, MDB_NEXT);
    }
    if (error != 0 && error != MDB_NOTFOUND) Check(error, "walk lmdb");
    mdb_txn_reset(reader_);
    return records;
  }

  MDB_env* environment_ = nullptr;
  MDB_dbi table_ = 0;
  MDB_txn* reader_ = nullptr;
  MDB_cursor* cursor_ = nullptr;
};

}  // namespace

// The kernel's page cache is its memory.
std::unique_ptr<Subject> MakeLmdb(Memory /*memory*/) { return std::make_unique<LmdbSubject>(); }

}  // namespace basalt::bench
