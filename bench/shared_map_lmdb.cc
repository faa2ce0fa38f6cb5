#include <lmdb.h>

#include <array>

#include "bench/shared_map_subject.h"

namespace basalt::bench {
namespace {

void Check(int error, std::string_view what) {
  if (error != 0) Fail(what, mdb_strerror(error));
}

MDB_val ToVal(std::string_view bytes) {
  return {bytes.size(),
          const_cast<char*>(bytes.data())};  // LMDB does not write through its inputs.
}

/// Built in the order of keys by appending, synced once at the end. One read transaction serves all
/// reads, which LMDB is fastest with: it would not see changes.
class LmdbMap final : public SharedMapSubject {
 public:
  ~LmdbMap() override {
    if (environment_ == nullptr) return;
    mdb_txn_abort(transaction_);
    mdb_env_close(environment_);
  }

  void Build(const SharedMapRecords& records, const std::string& directory) override {
    constexpr size_t kRecordsPerCommit = 100'000;
    OpenEnvironment(directory, MDB_NOSYNC, 3 * records.raw_bytes() + (size_t{64} << 20));
    std::array<char, kSharedMapValueBytes> bytes;
    size_t done = 0;
    Begin(0);
    for (const uint32_t number : records.InKeyOrder()) {
      const RecordKey text = RecordKey::Of(number);
      records.FillValue(number, 'v', bytes.data());
      MDB_val key = ToVal(text.view());
      MDB_val value{bytes.size(), bytes.data()};
      Check(mdb_put(transaction_, table_, &key, &value, MDB_APPEND), "append to lmdb");
      if (++done % kRecordsPerCommit != 0) continue;
      Check(mdb_txn_commit(transaction_), "commit to lmdb");
      Begin(0);
    }
    Check(mdb_txn_commit(transaction_), "commit to lmdb");
    Check(mdb_env_sync(environment_, 1), "sync lmdb");
    mdb_env_close(environment_);
    environment_ = nullptr;
  }
  void Open(const std::string& directory) override {
    OpenEnvironment(directory, MDB_RDONLY, 0);
    Begin(MDB_RDONLY);
  }

  Seen Get(std::string_view key) override {
    MDB_val wanted = ToVal(key);
    MDB_val value;
    const int error = mdb_get(transaction_, table_, &wanted, &value);
    if (error == MDB_NOTFOUND) return {0, Seen::kNothing};
    Check(error, "get from lmdb");
    return LookAt({static_cast<const char*>(value.mv_data), value.mv_size});
  }
  void GetMany(std::span<const std::string_view> keys, char* values) override {
    for (const std::string_view key : keys) {
      MDB_val wanted = ToVal(key);
      MDB_val value;
      Check(mdb_get(transaction_, table_, &wanted, &value), "get from lmdb");
      CopyValue({static_cast<const char*>(value.mv_data), value.mv_size}, values);
      values += kSharedMapValueBytes;
    }
  }

 private:
  void OpenEnvironment(const std::string& directory, unsigned flags, size_t map_bytes) {
    Check(mdb_env_create(&environment_), "create an lmdb environment");
    if (map_bytes != 0) Check(mdb_env_set_mapsize(environment_, map_bytes), "set lmdb's map size");
    Check(mdb_env_open(environment_, directory.c_str(), flags, 0644), "open lmdb");
  }
  void Begin(unsigned flags) {
    Check(mdb_txn_begin(environment_, nullptr, flags, &transaction_), "begin in lmdb");
    Check(mdb_dbi_open(transaction_, nullptr, 0, &table_), "open lmdb's table");
  }

  MDB_env* environment_ = nullptr;
  MDB_txn* transaction_ = nullptr;
  MDB_dbi table_ = 0;
};

}  // namespace

std::unique_ptr<SharedMapSubject> MakeLmdbMap() { return std::make_unique<LmdbMap>(); }

}  // namespace basalt::bench
