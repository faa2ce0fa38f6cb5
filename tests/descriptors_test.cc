// Databases of a process that may have few files open: everything goes on, and where nothing can,
// messages say why. Each test works in a child process, whose limit is its own.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "base/check.h"
#include "base/test_fork.h"
#include "db/environment.h"
#include "io/file_system.h"

namespace basalt {
namespace {

constexpr rlim_t kFew = 64;

std::string KeyOf(int i) { return "key" + std::to_string(1'000'000 + i); }
/// Of some 1,000 bytes.
std::string ValueOf(int i) {
  std::string value;
  while (value.size() < 1'000) value += std::to_string(i * 7 + static_cast<int>(value.size()));
  return value;
}
/// Every key once, in no order.
int Scattered(int i, int keys) { return static_cast<int>(int64_t{i} * 7'919 % keys); }

bool SetLimit(rlim_t soft, rlim_t hard) {
  const rlimit limit{soft, hard};
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

/// It looks at an object's type through a pipe, and takes the type for wrong where it gets none.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitizerNeedsDescriptors = true;
#else
constexpr bool kSanitizerNeedsDescriptors = false;
#endif

/// Takes all descriptors that are left.
void TakeAllDescriptors() {
  while (dup(0) >= 0) continue;
}

class Descriptors : public testing::Test {
 protected:
  Descriptors() {
    std::string pattern = (std::filesystem::temp_directory_path() / "basalt-few-XXXXXX").string();
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  ~Descriptors() override { std::filesystem::remove_all(directory_); }

  /// With small memtables and tables, so that there are many.
  std::unique_ptr<DB> Open(const std::string& name) const {
    auto environment = db::Environment::System(1).value();
    environment.memtable_bytes = 128 << 10;
    environment.table_bytes = 64 << 10;
    return db::OpenDatabase((directory_ / name).string(),
                            {.memory_budget = uint64_t{4} << 20, .compression = Compression::kNone},
                            environment)
        .value();
  }

  size_t Tables(const std::string& name) const {
    size_t tables = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory_ / name)) {
      if (entry.path().extension() == ".tbl") ++tables;
    }
    return tables;
  }

  std::filesystem::path directory_;
};

/// Puts keys [0, keys).
Status Fill(DB* db, int keys, KeyspaceId keyspace = KeyspaceId::kDefault) {
  for (int i = 0; i < keys; ++i) {
    const int key = Scattered(i, keys);
    BASALT_RETURN_IF_ERROR(db->Put(KeyOf(key), ValueOf(key), {.keyspace = keyspace}));
  }
  return {};
}

/// Whether exactly these keys are there, by gets and by a scan.
bool Holds(const DB& db, int keys, KeyspaceId keyspace = KeyspaceId::kDefault) {
  for (int i = 0; i < keys; ++i) {
    const int key = Scattered(i, keys);
    const auto value = db.Get(KeyOf(key), {.keyspace = keyspace});
    if (!value || !*value || (*value)->view() != ValueOf(key)) return false;
  }
  const auto iterator = db.NewIterator({.keyspace = keyspace});
  int seen = 0;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++seen) {
    if (iterator->key() != KeyOf(seen) || iterator->value() != ValueOf(seen)) return false;
  }
  return iterator->status().ok() && seen == keys;
}

/// Two databases of more tables each than the process may have files open.
TEST_F(Descriptors, FewAreEnoughForManyTables) {
  EXPECT_TRUE(base::TrueInChild([&] {
    constexpr int kKeys = 5'000;
    if (!SetLimit(kFew, kFew)) return false;
    const auto one = Open("one");
    const auto other = Open("other");
    if (!Fill(one.get(), kKeys).ok() || !Fill(other.get(), kKeys).ok()) return false;
    // What holds a state that is then compacted away keeps its tables.
    const auto old = one->NewIterator();
    const auto snapshot = one->GetSnapshot();
    if (!one->CompactRange().ok() || !other->CompactRange().ok()) return false;
    if (Tables("one") < kFew || Tables("other") < kFew) return false;
    if (!one->Put(KeyOf(1), "new").ok() || !one->Flush().ok()) return false;
    if (!Holds(*other, kKeys)) return false;
    int seen = 0;
    for (old->SeekToFirst(); old->Valid(); old->Next(), ++seen) {
      if (old->value() != ValueOf(seen)) return false;
    }
    const auto before = one->Get(KeyOf(1), {.snapshot = &*snapshot});
    return old->status().ok() && seen == kKeys && before && *before &&
           (*before)->view() == ValueOf(1) && one->Close().ok() && other->Close().ok() &&
           DB::Check((directory_ / "one").string()).value().ok();
  }));
}

TEST_F(Descriptors, ManyAreAskedFor) {
  EXPECT_TRUE(base::TrueInChild([&] {
    if (!SetLimit(32, 256)) return false;
    const auto db = Open("db");
    rlimit limit{};
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur == 256;
  }));
}

/// The program has taken all that there are: what frees space works, and so do puts.
TEST_F(Descriptors, AreKeptBackForFlushesAndDeletes) {
  if (kSanitizerNeedsDescriptors) GTEST_SKIP();
  EXPECT_TRUE(base::TrueInChild([&] {
    constexpr int kKeys = 2'000;
    if (!SetLimit(kFew, kFew)) return false;
    const auto db = Open("db");
    const auto keyspace = db->CreateKeyspace("dropped");
    if (!keyspace || !Fill(db.get(), kKeys, *keyspace).ok()) return false;
    TakeAllDescriptors();
    if (!Fill(db.get(), kKeys).ok() || !db->Flush().ok()) return false;
    if (!Holds(*db, kKeys) || !db->CreateKeyspace("made")) return false;
    if (!db->DropKeyspace(*keyspace).ok()) return false;
    if (!db->DeleteRange(KeyOf(0), KeyOf(kKeys)).ok() || !db->Flush().ok()) return false;
    if (!db->CompactRange().ok() || !db->Sync().ok() || !Holds(*db, 0)) return false;
    return db->Close().ok();
  }));
}

bool NamesTheLimit(const Status& status) {
  const std::string text = status.ToString();
  const bool names = status.code() == StatusCode::kResourceExhausted &&
                     text.find("raise the limit on open files (ulimit -n)") != std::string::npos &&
                     text.find("disk") == std::string::npos &&
                     text.find("space") == std::string::npos;
  if (!names) std::fprintf(stderr, "%s\n", text.c_str());
  return names;
}

bool Demand(bool holds, const char* what) {
  if (!holds) std::fprintf(stderr, "does not hold: %s\n", what);
  return holds;
}
bool Succeeds(const Status& status, const char* what) {
  if (!status.ok()) std::fprintf(stderr, "%s: %s\n", what, status.ToString().c_str());
  return status.ok();
}

/// The limit is below what the process has open already, so that nothing more can be opened.
TEST_F(Descriptors, AreNamedWhereNoneIsLeftAndWritingGoesOnWhenThereAreSome) {
  if (kSanitizerNeedsDescriptors) GTEST_SKIP();
  EXPECT_TRUE(base::TrueInChild([&] {
    constexpr int kFlushed = 2'000;
    if (!SetLimit(kFew, kFew + 1)) return false;
    auto db = Open("db");
    if (!Succeeds(Fill(db.get(), kFlushed), "fill")) return false;
    TakeAllDescriptors();
    if (!SetLimit(3, kFew + 1)) return false;
    int keys = kFlushed;
    Status refused;
    for (; keys < 2 * kFlushed; ++keys) {
      refused = db->Put(KeyOf(keys), ValueOf(keys));
      if (!refused.ok()) break;
    }
    if (!NamesTheLimit(refused) || !NamesTheLimit(db->Flush())) return false;
    // Nothing is taken for lost.
    for (int i = 0; i < keys; ++i) {
      const auto value = db->Get(KeyOf(i));
      if (!value && !NamesTheLimit(value.error())) return false;
      if (value && !Demand(*value && (*value)->view() == ValueOf(i), "a key is found"))
        return false;
    }
    return SetLimit(kFew + 1, kFew + 1) && Succeeds(db->Put(KeyOf(keys), ValueOf(keys)), "put") &&
           Succeeds(db->Flush(), "flush") && Succeeds(db->CompactRange(), "compact") &&
           Demand(Holds(*db, keys + 1), "all is there") && Succeeds(db->Close(), "close") &&
           Demand(DB::Check((directory_ / "db").string()).value().ok(), "check");
  }));
}

TEST_F(Descriptors, FewAreEnoughToReadBesideAWriter) {
  EXPECT_TRUE(base::TrueInChild([&] {
    constexpr int kKeys = 5'000;
    auto db = Open("db");
    if (!Fill(db.get(), kKeys).ok() || !db->CompactRange().ok() || !db->Close().ok()) return false;
    db.reset();
    if (Tables("db") < kFew || !SetLimit(kFew, kFew)) return false;
    const auto reader = DB::OpenReadOnly((directory_ / "db").string());
    return reader && Holds(**reader, kKeys);
  }));
}

}  // namespace
}  // namespace basalt
