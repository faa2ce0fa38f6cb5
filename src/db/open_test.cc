#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "db/environment.h"
#include "io/manual_executor.h"
#include "io/sim_clock.h"
#include "io/sim_file_system.h"

namespace basalt::db {
namespace {

constexpr char kOpenedPath[] = "/db";

/// Databases on simulated disks.
class Opening : public testing::Test {
 protected:
  Environment EnvironmentOn(io::SimFileSystem* disk) {
    Environment environment;
    environment.fs = disk;
    environment.clock = &clock_;
    environment.executor = &executor_;
    return environment;
  }

  Result<std::unique_ptr<DB>> Open(io::SimFileSystem* disk) {
    return OpenDatabase(kOpenedPath, {.memory_budget = uint64_t{1} << 20}, EnvironmentOn(disk));
  }

  /// Nothing opens the database, Check finds why, and both say what to do.
  void ExpectRefused(io::SimFileSystem* disk, const std::string& part) {
    const auto expect = [&](const Status& status) {
      EXPECT_EQ(status.code(), StatusCode::kCorruption) << status.ToString();
      EXPECT_NE(status.message().find(part), std::string_view::npos) << status.ToString();
      EXPECT_NE(status.message().find("basalt repair"), std::string_view::npos)
          << status.ToString();
    };
    expect(Open(disk).status());
    expect(OpenDatabaseReadOnly(kOpenedPath, {}, EnvironmentOn(disk)).status());
    const auto report = CheckDatabase(kOpenedPath, EnvironmentOn(disk), {});
    ASSERT_TRUE(report);
    ASSERT_FALSE(report->ok());
    expect(report->findings.front().status);
  }

  io::SimClock clock_;
  io::ManualExecutor executor_{1};
  io::SimFileSystem disk_;
};

TEST_F(Opening, RemovesNothingBeforeTheNameOfTheManifestIsDurable) {
  auto db = Open(&disk_).value();
  ASSERT_TRUE(db->Put("first", "1", {.durability = Durability::kPower}).ok());
  ASSERT_TRUE(db->Flush().ok());
  ASSERT_TRUE(db->Put("second", "2", {.durability = Durability::kPower}).ok());
  // Killed where the manifest has its name, and the directory was not synced.
  std::unique_ptr<io::SimFileSystem> killed;
  bool is_renamed = false;
  disk_.SetObserver([&](uint64_t, std::string_view operation, std::string_view path) {
    if (is_renamed && killed == nullptr) killed = disk_.Clone();
    is_renamed = is_renamed || (operation == "rename" && path == "/db/MANIFEST.tmp");
  });
  ASSERT_TRUE(db->CompactRange().ok());
  disk_.SetObserver({});
  ASSERT_NE(killed, nullptr);

  ASSERT_TRUE(Open(killed.get())) << "and it is killed, too";
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const std::unique_ptr<io::SimFileSystem> cut = killed->Clone();
    cut->Crash(seed);
    const auto opened = Open(cut.get());
    ASSERT_TRUE(opened) << seed << ": " << opened.error().ToString();
    for (const char* key : {"first", "second"}) {
      const auto value = (*opened)->Get(key);
      EXPECT_TRUE(value && *value) << seed << ": " << key;
    }
  }
}

/// The log files, by number.
std::vector<std::string> LogsOf(io::SimFileSystem* disk) {
  std::vector<std::string> paths;
  const auto names = disk->List(kOpenedPath);
  for (const std::string& name : *names) {
    if (name.ends_with(".log")) paths.push_back(io::JoinPath(kOpenedPath, name));
  }
  return paths;
}

TEST_F(Opening, MissesALogThatWasDeletedOrCutAfterAClose) {
  constexpr int kKeys = 50;
  auto db = Open(&disk_).value();
  for (int i = 0; i < kKeys; ++i) ASSERT_TRUE(db->Put("key" + std::to_string(i), "value").ok());
  ASSERT_TRUE(db->Close().ok());
  ASSERT_EQ(LogsOf(&disk_).size(), 1U);
  const std::string log = LogsOf(&disk_).front();
  const uint64_t size = disk_.FileSize(log).value();

  const auto deleted = disk_.Clone();
  ASSERT_TRUE(deleted->RemoveFile(log).ok());
  ExpectRefused(deleted.get(), "LSN 1 to 50");
  uint64_t sound = 0;
  for (uint64_t cut_at = 0; cut_at < size; ++cut_at) {
    const auto cut = disk_.Clone();
    ASSERT_TRUE(cut->Open(log, io::OpenMode::kReadWrite).value()->Truncate(cut_at).ok());
    if (const auto opened = Open(cut.get())) {
      ++sound;
      EXPECT_TRUE((*opened)->Get("key" + std::to_string(kKeys - 1)).value()) << cut_at;
    } else {
      ExpectRefused(cut.get(), "to 50");
    }
  }
  EXPECT_LE(sound, 20U) << "cuts of nothing but the closing record";

  // What is in tables is not missed.
  ASSERT_TRUE(Open(&disk_).value()->Flush().ok());
  for (const std::string& path : LogsOf(&disk_)) ASSERT_TRUE(disk_.RemoveFile(path).ok());
  EXPECT_TRUE(Open(&disk_).value()->Get("key0").value());
}

TEST_F(Opening, MissesWhatLayInALogThatWasOverwritten) {
  for (const bool is_closed : {true, false}) {
    const auto disk = std::make_unique<io::SimFileSystem>();
    {
      auto db = Open(disk.get()).value();
      for (int i = 0; i < 50; ++i) ASSERT_TRUE(db->Put("key" + std::to_string(i), "value").ok());
      if (is_closed) {
        ASSERT_TRUE(db->Close().ok());
      }
    }
    // As the output of a program would, whose descriptor it is.
    const std::string log = LogsOf(disk.get()).front();
    ASSERT_TRUE(
        disk->Open(log, io::OpenMode::kReadWrite).value()->WriteAt(0, std::string(900, 'x')).ok());
    ExpectRefused(disk.get(), log);
    ASSERT_TRUE(RepairDatabase(kOpenedPath, EnvironmentOn(disk.get())));
    EXPECT_TRUE(Open(disk.get()));
    EXPECT_TRUE(disk->Exists("/db/lost/000001.log").value());
  }
}

TEST_F(Opening, RefusesNothingThatAPowerCutLeavesOfANewLog) {
  auto db = Open(&disk_).value();
  ASSERT_TRUE(db->Put("first", "1", {.durability = Durability::kPower}).ok());
  ASSERT_TRUE(db->Flush().ok());
  // A new file, which was never synced.
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(db->Put("key" + std::to_string(i), "value").ok());
  uint64_t without_header = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const auto cut = disk_.Clone();
    cut->Crash(seed);
    const auto logs = LogsOf(cut.get());
    std::string bytes;
    if (!logs.empty()) bytes = io::ReadWholeFile(cut.get(), logs.back(), 1 << 26).value();
    const bool has_magic = bytes.find("BSLTLOG1") != std::string::npos;
    without_header += bytes.find("value") != std::string::npos && !has_magic ? 1 : 0;
    const auto opened = Open(cut.get());
    ASSERT_TRUE(opened) << seed << ": " << opened.error().ToString();
    EXPECT_TRUE((*opened)->Get("first").value()) << seed;
  }
  EXPECT_GT(without_header, 5U) << "so the model covers that";
}

/// A database whose key "n" counts writes, and that is opened read-only beside its writer.
class OpeningBesideAWriter : public Opening {
 protected:
  void SetUp() override { writer_ = Open(&disk_).value(); }

  void Write() {
    const std::string value = std::to_string(++written_) + " " + std::string(100, 'x');
    ASSERT_TRUE(writer_->Put("n", value, {.durability = durability_}).ok());
    ASSERT_TRUE(writer_->Put("key" + std::to_string(written_ % 50), value).ok());
  }
  void WriteAndFlush() {
    Write();
    ASSERT_TRUE(writer_->Flush().ok());
    executor_.RunAll();
  }
  void WriteAndCompact() {
    WriteAndFlush();
    ASSERT_TRUE(writer_->CompactRange().ok());
  }

  /// Opens the database, and calls `act` before each call that this makes, from the number `first`
  /// on and then at every `step`-th one. False: it makes fewer than `first` calls.
  bool OpenWhile(const std::function<void()>& act, uint64_t first, uint64_t step) {
    bool is_acting = false;
    uint64_t calls = 0;
    uint64_t manifests_read = 0;
    disk_.SetObserver([&](uint64_t, std::string_view operation, std::string_view path) {
      if (is_acting) return;
      ++calls;
      manifests_read += operation == "open" && path == "/db/MANIFEST" ? 1 : 0;
      if (calls < first || (calls - first) % step != 0) return;
      is_acting = true;
      act();
      is_acting = false;
    });
    const uint64_t acknowledged = written_;
    const auto reader = OpenDatabaseReadOnly(kOpenedPath, {.memory_budget = uint64_t{1} << 20},
                                             EnvironmentOn(&disk_));
    disk_.SetObserver({});
    const std::string where =
        "from call " + std::to_string(first) + ", each " + std::to_string(step) + ": ";
    EXPECT_TRUE(reader) << where << reader.status().ToString();
    if (!reader) return false;
    EXPECT_EQ(manifests_read, 1U) << where << "one look is enough";
    const auto value = (*reader)->Get("n");
    EXPECT_TRUE(value && *value) << where << value.status().ToString();
    if (!value || !*value) return false;
    const uint64_t seen = std::stoull((*value)->ToString());
    EXPECT_GE(seen, std::max(acknowledged, seen_before_)) << where;
    seen_before_ = seen;
    return calls >= first;
  }

  std::unique_ptr<DB> writer_;
  Durability durability_ = Durability::kProcess;
  uint64_t written_ = 0;
  uint64_t seen_before_ = 0;
};

TEST_F(OpeningBesideAWriter, ShowsAllThatWasAcknowledgedWhateverItsWriterDoesMeanwhile) {
  const std::function<void()> acts[] = {[this] { Write(); }, [this] { WriteAndFlush(); },
                                        [this] { WriteAndCompact(); }};
  for (const Durability durability : {Durability::kProcess, Durability::kPower}) {
    durability_ = durability;
    for (const auto& act : acts) {
      // At one call alone, at each from one on, and at some of them.
      for (const uint64_t step : {uint64_t{1} << 20, uint64_t{1}, uint64_t{5}}) {
        for (uint64_t first = 1;; ++first) {
          ASSERT_NO_FATAL_FAILURE(WriteAndFlush());
          ASSERT_NO_FATAL_FAILURE(Write());
          if (!OpenWhile(act, first, step)) break;
        }
      }
    }
  }
  EXPECT_FALSE(HasFailure());
}

TEST_F(OpeningBesideAWriter, LeavesNoFileBehindThatItsWriterWantedToRemove) {
  ASSERT_NO_FATAL_FAILURE(WriteAndFlush());
  ASSERT_TRUE(OpenWhile([this] { WriteAndCompact(); }, 1, 1));
  ASSERT_NO_FATAL_FAILURE(WriteAndFlush());
  const std::vector<std::string> names = disk_.List(kOpenedPath).value();
  const auto tables =
      std::ranges::count_if(names, [](auto& name) { return name.ends_with(".tbl"); });
  uint64_t named = 0;
  for (const LevelStats& level : writer_->GetStats().levels) named += level.tables;
  EXPECT_EQ(static_cast<uint64_t>(tables), named);
}

TEST_F(OpeningBesideAWriter, LooksAgainWhereTheDirectoryCannotBeMarked) {
  disk_.SetFault({.at_call = 1,
                  .error = ENOLCK,
                  .sticky = true,
                  .matches = [](std::string_view operation, std::string_view) {
                    return operation == "mark";
                  }});
  for (uint64_t at = 1;; ++at) {
    ASSERT_NO_FATAL_FAILURE(WriteAndFlush());
    ASSERT_NO_FATAL_FAILURE(Write());
    const uint64_t acknowledged = written_;
    uint64_t calls = 0;
    bool is_acting = false;
    disk_.SetObserver([&](uint64_t, std::string_view, std::string_view) {
      if (is_acting || ++calls != at) return;
      is_acting = true;
      WriteAndCompact();
      is_acting = false;
    });
    const auto reader = OpenDatabaseReadOnly(kOpenedPath, {}, EnvironmentOn(&disk_));
    disk_.SetObserver({});
    ASSERT_TRUE(reader) << at << ": " << reader.status().ToString();
    EXPECT_GE(std::stoull((*reader)->Get("n").value()->ToString()), acknowledged) << at;
    if (calls < at) break;
  }
  disk_.ClearFault();
}

TEST_F(OpeningBesideAWriter, FindsNoDatabaseWhereItWasDestroyedMeanwhile) {
  ASSERT_NO_FATAL_FAILURE(WriteAndFlush());
  ASSERT_TRUE(writer_->Close().ok());
  writer_.reset();
  executor_.RunAll();
  const std::unique_ptr<io::SimFileSystem> whole = disk_.Clone();
  for (uint64_t at = 1;; ++at) {
    const std::unique_ptr<io::SimFileSystem> disk = whole->Clone();
    uint64_t calls = 0;
    disk->SetObserver([&](uint64_t, std::string_view, std::string_view) {
      if (++calls != at) return;
      EXPECT_TRUE(DestroyDatabase(kOpenedPath, EnvironmentOn(disk.get())).ok());
    });
    const auto reader = OpenDatabaseReadOnly(kOpenedPath, {}, EnvironmentOn(disk.get()));
    disk->SetObserver({});
    if (calls < at) break;
    if (!reader) {
      EXPECT_EQ(reader.error().code(), StatusCode::kNotFound)
          << at << ": " << reader.error().ToString();
    }
  }
}

}  // namespace
}  // namespace basalt::db
