#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "db/environment.h"
#include "io/manual_executor.h"
#include "io/sim_clock.h"
#include "io/sim_file_system.h"

namespace basalt::db {
namespace {

constexpr char kPath[] = "/db";

/// Databases on simulated disks.
class Opening : public testing::Test {
 protected:
  Result<std::unique_ptr<DB>> Open(io::SimFileSystem* disk) {
    Environment environment;
    environment.fs = disk;
    environment.clock = &clock_;
    environment.executor = &executor_;
    return OpenDatabase(kPath, {.memory_budget = uint64_t{1} << 20}, environment);
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

}  // namespace
}  // namespace basalt::db
