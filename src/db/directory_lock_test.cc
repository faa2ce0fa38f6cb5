#include "db/directory_lock.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "db/environment.h"
#include "io/manual_executor.h"
#include "io/sim_clock.h"
#include "io/sim_file_system.h"

namespace basalt::db {
namespace {

constexpr char kLockedPath[] = "/db";

class DirectoryLock : public testing::Test {
 protected:
  /// What is done to a directory, by its whole path from the first look to the end.
  struct Action {
    const char* name;
    std::function<Status()> run;
  };

  db::Environment EnvironmentOf() {
    db::Environment environment;
    environment.fs = &fs_;
    environment.clock = &clock_;
    environment.executor = &executor_;
    return environment;
  }

  Status OpenAndWrite(bool create) {
    auto db =
        OpenDatabase(kLockedPath, {.create_if_missing = create, .memory_budget = uint64_t{1} << 20},
                     EnvironmentOf());
    if (!db) return db.error();
    for (const Status& done :
         {Status((*db)->Put("key", "value")), (*db)->Flush(), Status((*db)->Put("key", "b"))}) {
      if (!done.ok()) return done;
    }
    return (*db)->Close();
  }

  std::vector<Action> Actions() {
    return {
        {"Open", [this] { return OpenAndWrite(true); }},
        {"Open of an existing one", [this] { return OpenAndWrite(false); }},
        {"Check",
         [this] {
           const auto report = CheckDatabase(kLockedPath, EnvironmentOf(), {});
           if (!report || report->ok()) return report.status();
           return report->findings.front().status;
         }},
        {"Repair", [this] { return RepairDatabase(kLockedPath, EnvironmentOf()).status(); }},
        {"Destroy", [this] { return DestroyDatabase(kLockedPath, EnvironmentOf()); }},
    };
  }

  /// Runs `outer`, and `inner` as a whole just before its call number `at`. False: there is no such
  /// call.
  bool RunInside(const Action& outer, const Action& inner, uint64_t at, Status* of_outer,
                 Status* of_inner) {
    bool was_run = false;
    fs_.ResetCalls();
    fs_.SetObserver([&](uint64_t call, std::string_view, std::string_view) {
      if (call != at || std::exchange(was_run, true)) return;
      *of_inner = inner.run();
    });
    *of_outer = outer.run();
    fs_.SetObserver({});
    return was_run;
  }

  io::SimFileSystem fs_{io::SimFileSystem::Durability::kIgnored};
  io::SimClock clock_;
  io::ManualExecutor executor_{1};
};

bool IsExpected(const Status& status) {
  return status.ok() || status.code() == StatusCode::kBusy ||
         status.code() == StatusCode::kNotFound;
}

TEST_F(DirectoryLock, AnActionInTheMiddleOfAnotherOneIsDoneOrRefused) {
  for (const bool exists : {true, false}) {
    for (const Action& outer : Actions()) {
      for (const Action& inner : Actions()) {
        for (uint64_t at = 1;; ++at) {
          static_cast<void>(DestroyDatabase(kLockedPath, EnvironmentOf()));
          static_cast<void>(fs_.RemoveFile(io::JoinPath(kLockedPath, "LOCK")));
          static_cast<void>(fs_.RemoveDirectory(kLockedPath));
          ASSERT_FALSE(fs_.Exists(kLockedPath).value());
          if (exists) {
            ASSERT_TRUE(OpenAndWrite(true).ok());
          }
          Status of_outer;
          Status of_inner;
          if (!RunInside(outer, inner, at, &of_outer, &of_inner)) break;
          const std::string where = std::string(inner.name) + " at call " + std::to_string(at) +
                                    " of " + outer.name + ": ";
          EXPECT_TRUE(IsExpected(of_inner)) << where << of_inner.ToString();
          EXPECT_TRUE(IsExpected(of_outer)) << where << "the outer one: " << of_outer.ToString();
          // One of the two has the lock at the moment.
          EXPECT_TRUE(of_outer.ok() || of_inner.ok() || !exists)
              << where << of_outer.ToString() << ", " << of_inner.ToString();
        }
      }
    }
  }
}

TEST_F(DirectoryLock, OpenIsBusyWhereDestroyHasRemovedTheManifest) {
  ASSERT_TRUE(OpenAndWrite(true).ok());
  int refused = 0;
  bool is_inside = false;
  fs_.SetObserver([&](uint64_t, std::string_view operation, std::string_view path) {
    if (is_inside || operation != "remove" || path == io::JoinPath(kLockedPath, "MANIFEST")) return;
    is_inside = true;
    for (const bool create : {true, false}) {
      const Status opened = OpenAndWrite(create);
      EXPECT_EQ(opened.code(), StatusCode::kBusy) << opened.ToString();
      ++refused;
    }
    is_inside = false;
  });
  EXPECT_TRUE(DestroyDatabase(kLockedPath, EnvironmentOf()).ok());
  fs_.SetObserver({});
  EXPECT_GE(refused, 6) << "the log, a table and the lock";
  EXPECT_FALSE(fs_.Exists(kLockedPath).value());
}

TEST_F(DirectoryLock, WritesNothingIntoTheDirectoryOfSomethingElse) {
  ASSERT_TRUE(fs_.CreateDirectory(kLockedPath).ok());
  for (const char* name : {"000005.log", "CURRENT", "LOCK"}) {
    ASSERT_TRUE(fs_.Open(io::JoinPath(kLockedPath, name), io::OpenMode::kCreate));
  }
  uint64_t changes = 0;
  fs_.SetObserver([&](uint64_t, std::string_view operation, std::string_view) {
    changes += operation == "list" || operation == "stat" ? 0 : 1;
  });
  for (const bool create : {true, false}) {
    const Status opened = OpenAndWrite(create);
    EXPECT_EQ(opened.code(), StatusCode::kInvalidArgument) << opened.ToString();
  }
  EXPECT_EQ(changes, 0U);
  fs_.SetObserver({});
}

}  // namespace
}  // namespace basalt::db
