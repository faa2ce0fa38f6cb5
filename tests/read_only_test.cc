// Databases that one process writes and others open read-only: what was acknowledged before an
// opening is there, and nothing that an opening has shown is missing in a later one.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <string>
#include <tuple>

#include "basalt/db.h"

namespace basalt {
namespace {

using std::chrono::steady_clock;

/// A child process that counts up one key, among others, and says in shared memory how far it is.
class CountingProcess {
 public:
  CountingProcess(const std::string& path, const DBOptions& options, uint64_t value_bytes) {
    void* const shared = mmap(nullptr, sizeof(std::atomic<uint64_t>), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    acknowledged_ = new (shared) std::atomic<uint64_t>(0);
    child_ = fork();
    if (child_ != 0) return;
    auto db = DB::Open(path, options);
    if (!db) _exit(1);
    const std::string filling(value_bytes, 'x');
    for (uint64_t i = 1;; ++i) {
      const std::string number = std::to_string(i);
      if (!(*db)->Put("key" + std::to_string(i % 5000), filling).ok()) _exit(2);
      if (!(*db)->Put("n", number + " " + filling).ok()) _exit(3);
      acknowledged_->store(i);
    }
  }
  ~CountingProcess() {
    kill(child_, SIGKILL);
    int status = 0;
    EXPECT_EQ(waitpid(child_, &status, 0), child_);
    EXPECT_TRUE(WIFSIGNALED(status)) << "it ended by itself: " << WEXITSTATUS(status);
    munmap(acknowledged_, sizeof *acknowledged_);
  }
  CountingProcess(const CountingProcess&) = delete;
  CountingProcess& operator=(const CountingProcess&) = delete;

  uint64_t acknowledged() const { return acknowledged_->load(); }

 private:
  std::atomic<uint64_t>* acknowledged_;
  pid_t child_;
};

class ReadOnlyBesideAWriter
    : public testing::TestWithParam<std::tuple<Durability, uint64_t /*budget*/>> {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "basalt-ro-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path directory_;
};

TEST_P(ReadOnlyBesideAWriter, EachOpeningShowsAllThatWasAcknowledgedBefore) {
  const auto [durability, budget] = GetParam();
  const std::string path = directory_ / "db";
  // Values large enough that memtables are flushed all the time.
  const uint64_t value_bytes = durability == Durability::kPower ? 4000 : 200;
  const CountingProcess writer(path, {.memory_budget = budget, .durability = durability},
                               value_bytes);
  const auto deadline = steady_clock::now() + std::chrono::seconds(60);
  while (writer.acknowledged() == 0) {
    ASSERT_LT(steady_clock::now(), deadline);
    usleep(1000);
  }
  uint64_t seen_before = 0;
  uint64_t openings = 0;
  const auto end = steady_clock::now() + std::chrono::milliseconds(700);
  for (; steady_clock::now() < end || openings < 20; ++openings) {
    const uint64_t acknowledged = writer.acknowledged();
    const auto db = DB::OpenReadOnly(path, {.memory_budget = budget});
    ASSERT_TRUE(db) << db.error().ToString();
    const auto value = (*db)->Get("n");
    ASSERT_TRUE(value) << value.error().ToString();
    ASSERT_TRUE(*value);
    const uint64_t seen = std::stoull((*value)->ToString());
    ASSERT_GE(seen, std::max(acknowledged, seen_before)) << openings;
    seen_before = seen;
  }
}

INSTANTIATE_TEST_SUITE_P(Budgets, ReadOnlyBesideAWriter,
                         testing::Values(std::tuple(Durability::kProcess, uint64_t{1} << 20),
                                         std::tuple(Durability::kInterval, uint64_t{4} << 20),
                                         std::tuple(Durability::kPower, uint64_t{1} << 20)));

}  // namespace
}  // namespace basalt
