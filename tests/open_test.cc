// What a person gets wrong when opening and writing: each a clear message, and nothing lost.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "base/test_fork.h"
#include "base/test_update.h"

namespace basalt {
namespace {

constexpr auto kNoDurability = static_cast<Durability>(4);

class OpenTest : public testing::Test {
 protected:
  OpenTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "basalt-open-XXXXXX").string();
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  ~OpenTest() override { std::filesystem::remove_all(directory_); }

  std::string Path(const std::string& name) const { return (directory_ / name).string(); }

  static void ExpectError(const Status& status, StatusCode code, std::string_view part) {
    EXPECT_EQ(status.code(), code) << status.ToString();
    EXPECT_NE(status.message().find(part), std::string_view::npos) << status.ToString();
  }

  /// Bounds what this process may write, and gives the bound before. A write beyond it fails
  /// (EFBIG); a limit of descriptors would do, but the sanitizers need some themselves.
  static rlim_t LimitFileSize(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    const rlim_t before = std::exchange(limit.rlim_cur, bytes);
    setrlimit(RLIMIT_FSIZE, &limit);
    return before;
  }

  std::filesystem::path directory_;
};

TEST_F(OpenTest, ARelativePathAndALinkAreFollowedOnce) {
  namespace fs = std::filesystem;
  for (const char* const place : {"first", "second"}) fs::create_directory(Path(place));
  const auto lead_to = [&](const char* place) {
    fs::remove(Path("link"));
    fs::create_symlink(Path(place), Path("link"));
  };
  // Its working directory is its own.
  const int code = base::InChild([&] {
    for (const std::string& path : {std::string("relative"), Path("link/linked")}) {
      lead_to("first");
      fs::current_path(Path("first"));
      auto db = DB::Open(path);
      if (!db || !(*db)->Put("key", "before").ok()) return 1;
      lead_to("second");
      fs::current_path(Path("second"));
      for (const char* const value : {"between", "after"}) {
        if (!(*db)->Put("key", value).ok() || !(*db)->Flush().ok()) return 2;
      }
      if (!(*db)->Close().ok()) return 3;
    }
    return 0;
  });
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(fs::is_empty(Path("second")));
  for (const char* const name : {"relative", "linked"}) {
    auto db = DB::Open((fs::path(Path("first")) / name).string(), {.create_if_missing = false});
    ASSERT_TRUE(db) << db.error().ToString();
    const auto value = (*db)->Get("key");
    ASSERT_TRUE(value && *value);
    EXPECT_EQ((*value)->view(), "after");
  }
}

TEST_F(OpenTest, WhatHasNoLogIsKeptAfterAFlushThatFailed) {
  for (const bool syncs : {false, true}) {
    const std::string path = Path(syncs ? "synced" : "closed");
    // Its limit of a file's size is its own.
    const int code = base::InChild([&] {
      auto db = DB::Open(path);
      if (!db) return 1;
      const auto unlogged = (*db)->CreateKeyspace("unlogged", {.durability = Durability::kMemory});
      if (!unlogged || !(*db)->Put("key", "value", {.keyspace = *unlogged}).ok()) return 2;
      const rlim_t before = LimitFileSize(0);
      if ((*db)->Flush().ok() || (*db)->Sync().ok()) return 3;
      LimitFileSize(before);
      if (!syncs) return (*db)->Close().ok() ? 0 : 4;
      return (*db)->Sync().ok() ? 0 : 5;
    });
    EXPECT_EQ(code, 0);
    auto db = DB::Open(path);
    ASSERT_TRUE(db) << db.error().ToString();
    const auto unlogged = (*db)->OpenKeyspace("unlogged");
    ASSERT_TRUE(unlogged);
    const auto value = (*db)->Get("key", {.keyspace = *unlogged});
    ASSERT_TRUE(value);
    EXPECT_TRUE(*value) << (syncs ? "synced" : "closed");
  }
}

TEST_F(OpenTest, StaticDestructorsCanStillUseADatabase) {
  const int code = base::InChild([&] {
    static std::unique_ptr<DB> db =
        DB::Open(Path("db"), {.compression = Compression::kLz4ThenZstd}).value();
    static const auto use = [] {
      const std::string value(1000, 'v');
      WriteBatch batch;
      batch.Put("batch", value);
      const bool is_written = db->Put("key", value).ok() && db->Write(batch).ok() &&
                              db->Delete("absent").ok() && db->Flush().ok() &&
                              db->CompactRange().ok();
      const auto read = db->Get("key");
      return is_written && read && *read && (*read)->view() == value;
    };
    if (!use()) return 1;
    // It runs where static objects are destroyed: after what is thread_local.
    std::atexit([] { _exit(use() && db->Close().ok() ? 0 : 2); });
    std::exit(3);
  });
  EXPECT_EQ(code, 0);
}

TEST_F(OpenTest, EachCloseGivesTheAnswerOfTheFirst) {
  const int code = base::InChild([&] {
    auto db = DB::Open(Path("db"), {.durability = Durability::kMemory});
    if (!db || !(*db)->Put("key", "value").ok()) return 1;
    LimitFileSize(0);
    const Status first = (*db)->Close();
    if (first.ok()) return 2;
    return (*db)->Close().ToString() == first.ToString() ? 0 : 3;
  });
  EXPECT_EQ(code, 0);
}

TEST_F(OpenTest, WrongPathsAreNamed) {
  ExpectError(DB::Open("").error(), StatusCode::kInvalidArgument, "empty");
  ExpectError(DB::Open(Path("absent"), {.create_if_missing = false}).error(), StatusCode::kNotFound,
              "there is no database at " + Path("absent"));
  ExpectError(DB::Open(Path("no/such/parent")).error(), StatusCode::kNotFound, "no/such");
  std::ofstream(Path("file")) << "text";
  ExpectError(DB::Open(Path("file")).error(), StatusCode::kInvalidArgument, "is a file");
  std::filesystem::create_directory(Path("photos"));
  std::ofstream(Path("photos/cat.jpg")) << "text";
  ExpectError(DB::Open(Path("photos")).error(), StatusCode::kInvalidArgument, "cat.jpg");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(Path("photos")), {}), 1)
      << "a foreign directory is left alone";
  ExpectError(DB::Open("/proc/basalt").error(), StatusCode::kNotFound, "/proc/basalt");
}

TEST_F(OpenTest, WrongOptionsNameTheField) {
  ExpectError(DB::Open(Path("db"), {.memory_budget = 1000}).error(), StatusCode::kInvalidArgument,
              "memory_budget");
  ExpectError(DB::Open(Path("db"), {.default_ttl = std::chrono::seconds(-1)}).error(),
              StatusCode::kInvalidArgument, "default_ttl");
  ExpectError(DB::Open(Path("db"), {.durability = kNoDurability}).error(),
              StatusCode::kInvalidArgument, "DBOptions::durability is 4");
  ExpectError(DB::Open(Path("db"), {.compression = static_cast<Compression>(3)}).error(),
              StatusCode::kInvalidArgument, "DBOptions::compression is 3");
  EXPECT_FALSE(std::filesystem::exists(Path("db")));
}

TEST_F(OpenTest, ADurabilityThatThereIsNotIsRefusedAndNotKept) {
  {
    auto db = DB::Open(Path("db")).value();
    ASSERT_TRUE(db->Put("kept", "value").ok());
    ExpectError(db->CreateKeyspace("users", {.durability = kNoDurability}).error(),
                StatusCode::kInvalidArgument, "KeyspaceOptions::durability is 4");
    ExpectError(db->Put("refused", "value", {.durability = kNoDurability}),
                StatusCode::kInvalidArgument, "WriteOptions::durability is 4");
    EXPECT_TRUE(db->CreateKeyspace("users", {.durability = Durability::kPower})) << "the last";
    EXPECT_TRUE(db->Put("kept", "value", {.durability = Durability::kPower}).ok());
  }
  const auto db = DB::Open(Path("db")).value();
  EXPECT_TRUE(db->Get("kept").value().has_value());
  EXPECT_FALSE(db->Get("refused").value().has_value());
}

TEST_F(OpenTest, OversizedAndUnsupportedWritesAreRefusedWhole) {
  auto db = DB::Open(Path("db"), {.memory_budget = 1 << 20}).value();
  ASSERT_TRUE(db->Put("kept", "value").ok());
  ExpectError(db->Put(std::string(65'536, 'k'), "v"), StatusCode::kInvalidArgument, "65536");
  EXPECT_TRUE(db->Put(std::string(65'535, 'k'), "v").ok());
  const std::string big(200'000, 'v');
  const auto expect_too_large = [&](const Status& status, const char* size) {
    ExpectError(status, StatusCode::kInvalidArgument, size);
    ExpectError(status, StatusCode::kInvalidArgument, "the limit is 131072 bytes");
    ExpectError(status, StatusCode::kInvalidArgument, "memory_budget");
  };
  expect_too_large(db->Put("big", big), "a record of 200011 bytes");
  expect_too_large(db->PutIfAbsent("big", big).status(), "a record of 200011 bytes");
  const auto set_big = [&](EntryUpdate& entry) {
    entry.Set(big);
    return Status();
  };
  expect_too_large(db->Update("big", set_big).status(), "a record of 200011 bytes");
  EXPECT_TRUE(db->Put("large", std::string(131'072 - 13, 'v')).ok());
  WriteBatch many;
  for (int i = 0; i < 10; ++i) many.Put("many" + std::to_string(i), std::string(20'000, 'v'));
  expect_too_large(db->Write(many), "a batch of 200130 bytes");
  ExpectError(db->Write(many), StatusCode::kInvalidArgument, "split it");
  WriteBatch batch;
  batch.Put("good", "value");
  batch.Put(std::string(70'000, 'k'), "v");
  ExpectError(db->Write(batch), StatusCode::kInvalidArgument, "70000");
  EXPECT_FALSE(db->Get("good").value().has_value());
  ExpectError(db->Put("key", "value", {.ttl = std::chrono::seconds(-1)}),
              StatusCode::kInvalidArgument, "ttl");
  WriteBatch elsewhere;
  elsewhere.Put("key", "value", {.keyspace = static_cast<KeyspaceId>(7)});
  ExpectError(db->Write(elsewhere), StatusCode::kNotFound, "keyspace 7");
  ExpectError(db->Put("key", "value", {.durability = Durability::kMemory}),
              StatusCode::kInvalidArgument, "kMemory");
  EXPECT_EQ((*db->Get("kept"))->ToString(), "value");
}

TEST_F(OpenTest, ASnapshotOfAnotherStoreIsRefused) {
  auto one = DB::Open(Path("one")).value();
  auto two = DB::Open(Path("two")).value();
  const auto snapshot = one->GetSnapshot().value();
  ExpectError(two->Get("key", {.snapshot = &snapshot}).error(), StatusCode::kInvalidArgument,
              "another store");
  ExpectError(two->NewIterator({.snapshot = &snapshot})->status(), StatusCode::kInvalidArgument,
              "another store");
}

TEST_F(OpenTest, PrefixTogetherWithBoundsIsRefused) {
  auto db = DB::Open(":memory:").value();
  ExpectError(db->NewIterator({.lower = "a", .prefix = "b"})->status(),
              StatusCode::kInvalidArgument, "prefix");
}

TEST_F(OpenTest, ASecondOpenerIsToldWhoHoldsTheDatabase) {
  auto db = DB::Open(Path("db")).value();
  const auto second = DB::Open(Path("db"));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), StatusCode::kBusy);
  const std::string holder = std::to_string(getpid());
  EXPECT_EQ(base::InChild([&] {
              const auto other = DB::Open(Path("db"));
              if (other || other.error().code() != StatusCode::kBusy) return 1;
              return other.error().message().find(holder) == std::string_view::npos ? 2 : 0;
            }),
            0);
  ASSERT_TRUE(db->Close().ok());
  EXPECT_TRUE(DB::Open(Path("db")));
}

TEST_F(OpenTest, AHandleUsedAfterForkIsRefusedAndHarmless) {
  auto db = DB::Open(Path("db")).value();
  ASSERT_TRUE(db->Put("key", "value").ok());
  auto it = db->NewIterator();
  auto snapshot = std::make_unique<Snapshot>(db->GetSnapshot().value());
  EXPECT_EQ(base::InChild([&] {
              if (db->Put("key", "child").code() != StatusCode::kFailedPrecondition) return 1;
              if (db->Get("key").error().code() != StatusCode::kFailedPrecondition) return 2;
              it->SeekToFirst();
              if (it->status().code() != StatusCode::kFailedPrecondition) return 3;
              it.reset();
              snapshot.reset();
              db.reset();
              return 0;
            }),
            0);
  EXPECT_EQ((*db->Get("key"))->ToString(), "value");
  EXPECT_TRUE(db->Put("key", "parent").ok());
  ASSERT_TRUE(db->Close().ok());
  auto reopened = DB::Open(Path("db")).value();
  EXPECT_EQ((*reopened->Get("key"))->ToString(), "parent");
}

TEST_F(OpenTest, TheMemoryDatabaseBehavesTheSameAndLeavesNothing) {
  auto db = DB::Open(":memory:").value();
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(db->Put("key" + std::to_string(i), std::to_string(i)).ok());
  }
  ASSERT_TRUE(db->Flush().ok());
  ASSERT_TRUE(db->CompactRange().ok());
  ASSERT_TRUE(db->Sync().ok());
  EXPECT_EQ((*db->Get("key7"))->ToString(), "7");
  auto other = DB::Open(":memory:").value();
  EXPECT_FALSE(other->Get("key7").value().has_value()) << "each is a database of its own";
  ASSERT_TRUE(db->Close().ok());
  ExpectError(DB::Check(":memory:").error(), StatusCode::kInvalidArgument, "Check");
}

TEST_F(OpenTest, EveryEventIsReportedToTheCallback) {
  int flushes = 0;
  int compactions = 0;
  DBOptions options;
  options.on_event = [&](const Event& event) {
    flushes += event.kind == Event::Kind::kFlush ? 1 : 0;
    compactions += event.kind == Event::Kind::kCompaction ? 1 : 0;
  };
  auto db = DB::Open(Path("db"), options).value();
  ASSERT_TRUE(db->Put("key", "value").ok());
  ASSERT_TRUE(db->Flush().ok());
  ASSERT_TRUE(db->CompactRange().ok());
  ASSERT_TRUE(db->Close().ok());
  EXPECT_EQ(flushes, 1);
  EXPECT_EQ(compactions, 1);
}

TEST_F(OpenTest, AnUpdateThatThrowsChangesNothing) {
  auto db = DB::Open(":memory:").value();
  ASSERT_TRUE(db->Put("key", "before").ok());
  struct Thrown {};
  EXPECT_THROW(
      static_cast<void>(db->Update(
          "key", base::ByValue([](std::optional<std::string_view>)
                                   -> Result<std::optional<std::string>> { throw Thrown{}; }))),
      Thrown);
  EXPECT_EQ((*db->Get("key"))->ToString(), "before");
  ExpectError(db->Update("key", base::ByValue([](std::optional<std::string_view>)
                                                  -> Result<std::optional<std::string>> {
                           return Status(StatusCode::kAlreadyExists, "not twice");
                         })),
              StatusCode::kAlreadyExists, "not twice");
  EXPECT_EQ((*db->Get("key"))->ToString(), "before");
}

}  // namespace
}  // namespace basalt
