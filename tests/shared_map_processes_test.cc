// A map between real processes: readers that check every value while a writer writes, compactions,
// stands still or is killed at any moment; a reader that may only read; writers that get in each
// other's way.
//
//   BASALT_TORTURE_SECONDS  how long the readers and the writer run side by side; 3
//   BASALT_TORTURE_KILLS    how many writers are killed; 20
//   BASALT_TORTURE_SEED     of what is random; 1
//
// `make torture` runs it for a minute, with 200 kills.

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "basalt/shared_map.h"
#include "base/random.h"
#include "base/test_update.h"
#include "shared_map/test_map.h"
#include "tests/shared_map/child_process.h"
#include "tests/shared_map/scoreboard.h"

namespace basalt {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

/// Nothing that a reader does takes this long, however slow the machine, unless it is blocked.
constexpr seconds kBlocked(10);

constexpr int kNobody = 65534;

uint64_t Setting(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Roles of child processes ------------------------------------------------------------------------

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "process %d: %s\n", getpid(), what.c_str());
  std::_Exit(1);
}

void Demand(const Status& status, const std::string& what) {
  if (!status.ok()) Fail(what + ": " + status.ToString());
}

template <class T>
T Demand(Result<T> result, const std::string& what) {
  if (!result) Fail(what + ": " + result.error().ToString());
  return std::move(*result);
}

/// Looks every key up, with no writer there. What is wrong; empty: nothing is. `settle` is given
/// the number of the write that each key is left by.
template <class Settle>
std::string JudgeAll(const Scoreboard& board, SharedMap::Reader* reader, const Settle& settle) {
  for (uint64_t key = 0; key < Scoreboard::kKeys; ++key) {
    const uint64_t acknowledged = board.Acknowledged(key);
    const auto found = reader->Get(Scoreboard::KeyOf(key));
    if (!found) return found.error().ToString();
    std::optional<std::string_view> answer;
    if (*found) answer = (*found)->view();
    if (std::string problem = board.Judge(key, acknowledged, answer); !problem.empty()) {
      return problem;
    }
    const uint64_t begun = board.Begun(key);
    if (begun > acknowledged + 1) return Scoreboard::KeyOf(key) + " has more than one write begun";
    uint64_t number = Scoreboard::Erases(key, begun) ? begun : acknowledged;
    if (answer) number = Scoreboard::NumberOf(key, *answer).value();
    settle(key, number);
  }
  return "";
}

class WriterRole {
 public:
  WriterRole(const std::string& path, const std::string& memory, uint64_t seed)
      : board_(memory), random_(seed) {
    ++board_->opening;
    map_ = Demand(SharedMap::Open(path, {.compact_in_background = false}), "Open");
    Recover();
    ++board_->writing;
  }

  int Run() {
    std::thread compactor([this, seed = random_.Next()] { Compact(seed); });
    while (!board_->stop) {
      switch (random_.Below(12)) {
        case 0:
          WriteBatchOf(1 + random_.Below(Scoreboard::kBatchMax));
          break;
        case 1:
          WriteTwins();
          break;
        case 2:
          UpdateOne(random_.Below(Scoreboard::kTwin));
          break;
        default:
          WriteOne(random_.Below(Scoreboard::kTwin));
      }
      board_->writes.fetch_add(1, std::memory_order_relaxed);
    }
    compactor.join();
    Demand(map_->Close(), "Close");
    return 0;
  }

 private:
  /// All that was acknowledged is there, and of what was under way all or nothing.
  void Recover() {
    auto reader = Demand(map_->NewReader(), "NewReader");
    std::vector<uint64_t> left(Scoreboard::kKeys);
    const std::string problem =
        JudgeAll(*board_, &reader, [&](uint64_t key, uint64_t number) { left[key] = number; });
    if (!problem.empty()) Fail("after Open: " + problem);
    bool any_new = false;
    bool any_old = false;
    for (const auto& entry : board_->batch) {
      const uint64_t key = entry - 1;
      if (entry == 0 || board_->Begun(key) == board_->Acknowledged(key)) continue;
      // An erasure of what was erased cannot be told from nothing.
      const bool both_erase = Scoreboard::Erases(key, board_->Begun(key)) &&
                              Scoreboard::Erases(key, board_->Acknowledged(key));
      if (both_erase) continue;
      (left[key] == board_->Begun(key) ? any_new : any_old) = true;
    }
    if (any_new && any_old) Fail("after Open: a part of a batch");
    for (auto& entry : board_->batch) entry = 0;
    for (uint64_t key = 0; key < Scoreboard::kKeys; ++key) {
      board_->keys[key].acknowledged = left[key];
      board_->keys[key].begun = left[key];
    }
  }

  uint64_t Begin(uint64_t key) {
    const uint64_t number = board_->Acknowledged(key) + 1;
    board_->keys[key].begun.store(number, std::memory_order_release);
    return number;
  }
  void Acknowledge(uint64_t key) {
    board_->keys[key].acknowledged.store(board_->Begun(key), std::memory_order_release);
  }

  void WriteOne(uint64_t key) {
    const uint64_t number = Begin(key);
    const std::string name = Scoreboard::KeyOf(key);
    Demand(Scoreboard::Erases(key, number) ? map_->Delete(name)
                                           : map_->Put(name, Scoreboard::ValueOf(key, number)),
           "a write");
    Acknowledge(key);
  }

  void UpdateOne(uint64_t key) {
    const uint64_t before = board_->Acknowledged(key);
    const uint64_t number = Begin(key);
    const auto update =
        [&](std::optional<std::string_view> old) -> Result<std::optional<std::string>> {
      const bool right =
          old ? Scoreboard::NumberOf(key, *old) == before : Scoreboard::Erases(key, before);
      if (!right) Fail("Update of " + Scoreboard::KeyOf(key) + " was given another value");
      if (Scoreboard::Erases(key, number)) return std::optional<std::string>();
      return std::optional<std::string>(Scoreboard::ValueOf(key, number));
    };
    Demand(map_->Update(Scoreboard::KeyOf(key), base::ByValue(update)), "Update");
    Acknowledge(key);
  }

  void WriteTwins() { WriteTogether({Scoreboard::kTwin, Scoreboard::kTwin + 1}); }

  void WriteBatchOf(uint64_t count) {
    std::vector<uint64_t> keys;
    while (keys.size() < count) {
      const uint64_t key = random_.Below(Scoreboard::kTwin);
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
    WriteTogether(keys);
  }

  void WriteTogether(const std::vector<uint64_t>& keys) {
    WriteBatch batch;
    for (size_t i = 0; i < keys.size(); ++i) board_->batch[i] = keys[i] + 1;
    for (const uint64_t key : keys) {
      const uint64_t number = Begin(key);
      if (Scoreboard::Erases(key, number)) {
        batch.Delete(Scoreboard::KeyOf(key));
      } else {
        batch.Put(Scoreboard::KeyOf(key), Scoreboard::ValueOf(key, number));
      }
    }
    Demand(map_->Write(batch), "Write");
    // Acknowledged as a whole: a writer that is killed meanwhile must not be thought to have lost
    // a part.
    for (auto& entry : board_->batch) entry = 0;
    for (const uint64_t key : keys) Acknowledge(key);
  }

  /// Compacts all the time, sometimes after so long that log and index have to grow.
  void Compact(uint64_t seed) {
    base::Random random(seed);
    while (!board_->stop) {
      Demand(map_->Compact(), "Compact");
      board_->version = Demand(map_->GetStats(), "GetStats").version;
      if (random.OneIn(3)) std::this_thread::sleep_for(microseconds(random.Below(50'000)));
    }
  }

  SharedMemory<Scoreboard> board_;
  base::Random random_;
  std::unique_ptr<SharedMap> map_;
};

class ReaderRole {
 public:
  ReaderRole(std::string path, const std::string& memory, uint64_t self)
      : path_(std::move(path)), self_(self), board_(memory), random_(self + 1) {
    AttachAnew();
  }

  int Run() {
    seen_.resize(Scoreboard::kKeys);
    for (uint64_t step = 0; !board_->stop; ++step) {
      const auto begin = steady_clock::now();
      Step(step);
      const auto took = steady_clock::now() - begin;
      if (took > kBlocked) Fail("a reader was blocked");
      board_->reads[self_].fetch_add(1, std::memory_order_relaxed);
    }
    return 0;
  }

 private:
  /// A reader that stays with what it has seen, and some of that.
  struct Held {
    SharedMap::Reader reader;
    SharedMap::View view{};
    std::vector<std::pair<uint64_t, std::optional<std::string>>> seen{};
  };

  void AttachAnew() {
    map_ = Demand(SharedMap::Attach(path_), "Attach");
    reader_.emplace(Demand(map_->NewReader(), "NewReader"));
  }

  void Step(uint64_t step) {
    if (step % 5000 == 4999) Scan();
    if (step % 3000 == 2999) AttachAnew();
    if (step % 500 == 499) TakeSnapshot();
    if (step % 500 == 250) HoldView();
    if (step % 100 == 99) Recheck();
    if (step % 20 == 19) GetTwins();
    if (random_.OneIn(8)) {
      GetMany();
    } else {
      GetOne(random_.Below(Scoreboard::kKeys));
    }
  }

  /// The number of the oldest write that an answer which is asked for now may come from. What was
  /// seen once is never gone again, whether it was acknowledged or not.
  uint64_t AtLeast(uint64_t key) const { return std::max(board_->Acknowledged(key), seen_[key]); }

  void Check(uint64_t key, uint64_t at_least, const SharedMap::MaybeView& found, const char* by) {
    std::optional<std::string_view> answer;
    if (found) answer = found->view();
    const std::string problem = board_->Judge(key, at_least, answer);
    if (!problem.empty()) Fail(std::string(by) + ": " + problem);
    if (answer) seen_[key] = std::max(seen_[key], Scoreboard::NumberOf(key, *answer).value());
  }

  void GetOne(uint64_t key) {
    const uint64_t at_least = AtLeast(key);
    Check(key, at_least, Demand(reader_->Get(Scoreboard::KeyOf(key)), "Get"), "Get");
  }

  void GetMany() {
    constexpr size_t kCount = 20;
    std::vector<uint64_t> keys;
    std::vector<uint64_t> at_least;
    std::vector<std::string> names;
    for (size_t i = 0; i < kCount; ++i) {
      keys.push_back(random_.Below(Scoreboard::kKeys));
      at_least.push_back(AtLeast(keys.back()));
      names.push_back(Scoreboard::KeyOf(keys.back()));
    }
    const std::vector<std::string_view> views(names.begin(), names.end());
    std::vector<Result<SharedMap::MaybeView>> results(kCount);
    Demand(reader_->MultiGet(views, results), "MultiGet");
    for (size_t i = 0; i < kCount; ++i) {
      Demand(results[i].status(), "MultiGet");
      Check(keys[i], at_least[i], *results[i], "MultiGet");
    }
  }

  /// Of a batch that was seen once, nothing is missing any more; one call sees all or none of it.
  void GetTwins() {
    const uint64_t first = Scoreboard::kTwin + random_.Below(2);
    const uint64_t second = 2 * Scoreboard::kTwin + 1 - first;
    const uint64_t number = NumberOfTwin(Ask(&*reader_, first), first);
    if (NumberOfTwin(Ask(&*reader_, second), second) < number) Fail("Get: a part of a batch");
    const std::string names[] = {Scoreboard::KeyOf(first), Scoreboard::KeyOf(second)};
    const std::string_view views[] = {names[0], names[1]};
    Result<SharedMap::MaybeView> results[2];
    Demand(reader_->MultiGet(views, results), "MultiGet");
    std::optional<std::string> values[2];
    for (int i = 0; i < 2; ++i) {
      Demand(results[i].status(), "MultiGet");
      if (*results[i]) values[i] = (*results[i])->ToString();
    }
    if (NumberOfTwin(values[0], first) != NumberOfTwin(values[1], second)) {
      Fail("MultiGet: a part of a batch");
    }
  }

  void Scan() {
    // A snapshot has what was acknowledged. Get may have seen the write that is under way.
    std::vector<uint64_t> at_least;
    for (uint64_t key = 0; key < Scoreboard::kKeys; ++key) {
      at_least.push_back(board_->Acknowledged(key));
    }
    std::vector<std::optional<std::string>> found(Scoreboard::kKeys);
    const auto visit = [&](std::string_view name, std::string_view value) {
      const uint64_t key = std::stoull(std::string(name.substr(4)));
      if (key >= Scoreboard::kKeys || found[key]) Fail("a scan: " + std::string(name));
      found[key] = value;
      return Status();
    };
    Demand(reader_->ParallelScan(1, visit), "ParallelScan");
    for (uint64_t key = 0; key < Scoreboard::kKeys; ++key) {
      const std::string problem = board_->Judge(key, at_least[key], found[key]);
      if (!problem.empty()) Fail("ParallelScan: " + problem);
    }
    if (NumberOfTwin(found[Scoreboard::kTwin], Scoreboard::kTwin) !=
        NumberOfTwin(found[Scoreboard::kTwin + 1], Scoreboard::kTwin + 1)) {
      Fail("a scan with a part of a batch");
    }
  }

  static uint64_t NumberOfTwin(const std::optional<std::string>& value, uint64_t key) {
    return value ? Scoreboard::NumberOf(key, *value).value_or(0) : 0;
  }

  void TakeSnapshot() {
    std::vector<uint64_t> keys = {Scoreboard::kTwin, Scoreboard::kTwin + 1};
    while (keys.size() < 10) keys.push_back(random_.Below(Scoreboard::kTwin));
    std::vector<uint64_t> at_least;
    for (const uint64_t key : keys) at_least.push_back(board_->Acknowledged(key));
    snapshot_.emplace(Held{.reader = Demand(reader_->GetSnapshot(), "GetSnapshot")});
    for (size_t i = 0; i < keys.size(); ++i) {
      auto value = Ask(&snapshot_->reader, keys[i]);
      const std::string problem = board_->Judge(keys[i], at_least[i], value);
      if (!problem.empty()) Fail("a snapshot: " + problem);
      snapshot_->seen.emplace_back(keys[i], std::move(value));
    }
    const uint64_t twin = Scoreboard::kTwin;
    if (NumberOfTwin(snapshot_->seen[0].second, twin) !=
        NumberOfTwin(snapshot_->seen[1].second, twin + 1)) {
      Fail("a snapshot with a part of a batch");
    }
  }

  /// Keeps its reader on the version that it is of.
  void HoldView() {
    holder_.reset();
    holder_.emplace(Held{.reader = Demand(map_->NewReader(), "NewReader")});
    const uint64_t key = random_.Below(Scoreboard::kKeys);
    auto found = Demand(holder_->reader.Get(Scoreboard::KeyOf(key)), "Get");
    if (!found) return;
    holder_->seen.emplace_back(key, found->ToString());
    holder_->view = std::move(*found);
    if (!Scoreboard::NumberOf(key, holder_->view.view())) Fail("a view of a torn value");
  }

  void Recheck() {
    if (snapshot_) {
      for (const auto& [key, value] : snapshot_->seen) {
        if (Ask(&snapshot_->reader, key) != value) {
          Fail("a snapshot has changed: " + Scoreboard::KeyOf(key));
        }
      }
    }
    if (holder_ && !holder_->seen.empty() && !(holder_->view == *holder_->seen.front().second)) {
      Fail("a view has changed: " + Scoreboard::KeyOf(holder_->seen.front().first));
    }
  }

  static std::optional<std::string> Ask(SharedMap::Reader* reader, uint64_t key) {
    const auto found = Demand(reader->Get(Scoreboard::KeyOf(key)), "Get");
    if (!found) return std::nullopt;
    if (!Scoreboard::NumberOf(key, found->view())) Fail("a snapshot with a torn value");
    return found->ToString();
  }

  const std::string path_;
  const uint64_t self_;
  SharedMemory<Scoreboard> board_;
  base::Random random_;
  std::unique_ptr<SharedMap> map_;
  std::optional<SharedMap::Reader> reader_;
  std::optional<Held> snapshot_;
  std::optional<Held> holder_;
  std::vector<uint64_t> seen_;  // By key: the newest number.
};

/// Becomes a user who may read all that others may, and change nothing.
void BecomeNobody() {
  if (setgroups(0, nullptr) != 0 || setgid(kNobody) != 0 || setuid(kNobody) != 0) {
    Fail("cannot become another user");
  }
}

void DemandNoRightToWrite(const std::string& path) {
  if (SharedMap::Open(path) || SharedMap::Create(path, {.overwrite = true}) ||
      SharedMapBuilder::Create(path, {.overwrite = true}) || SharedMap::Destroy(path).ok()) {
    Fail("a user who may only read could write");
  }
  const auto map = Demand(SharedMap::Attach(path), "Attach");
  if (map->Put("key:1", "").ok() || map->Compact().ok() || map->Sync().ok()) {
    Fail("who has attached could write");
  }
}

/// PATH MEMORY reader NUMBER | nobody NUMBER | writer SEED
int RunRole(std::span<char* const> arguments) {
  const std::string path = arguments[0];
  const std::string memory = arguments[1];
  const std::string role = arguments[2];
  const uint64_t number = std::strtoull(arguments[3], nullptr, 10);
  if (role == "writer") return WriterRole(path, memory, number).Run();
  if (role == "nobody") {
    BecomeNobody();
    DemandNoRightToWrite(path);
  }
  return ReaderRole(path, memory, number).Run();
}

// Tests -------------------------------------------------------------------------------------------

class SharedMapProcesses : public testing::Test {
 protected:
  SharedMapProcesses() {
    // In memory versions follow one another most quickly.
    std::error_code no_such;
    const std::filesystem::path memory = "/dev/shm";
    constexpr uint64_t kRoom = uint64_t{1} << 30;
    const bool has_room = std::filesystem::space(memory, no_such).available > kRoom && !no_such;
    const std::filesystem::path parent = has_room ? memory : std::filesystem::temp_directory_path();
    std::string pattern = (parent / "basalt-processes-XXXXXX").string();
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    EXPECT_EQ(chmod(pattern.c_str(), 0755), 0);
    umask(022);
    EXPECT_TRUE(SharedMap::Create(path()));
  }
  ~SharedMapProcesses() override { std::filesystem::remove_all(directory_); }

  std::string path() const { return (directory_ / "map").string(); }

  std::unique_ptr<ChildProcess> Start(const std::string& role, uint64_t number) {
    return std::make_unique<ChildProcess>(
        std::vector<std::string>{"--role", path(), board_.name(), role, std::to_string(number)});
  }
  void StartReaders(const std::string& role = "reader") {
    for (uint64_t i = 0; i < Scoreboard::kReaders; ++i) readers_.push_back(Start(role, i));
  }

  /// Waits until `come` says true, or a process has ended, which is a failure.
  template <class Come>
  bool WaitUntil(const Come& come) {
    const auto deadline = steady_clock::now() + 6 * kBlocked;
    while (!come()) {
      if (AnyHasEnded() || steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(microseconds(50));
    }
    return true;
  }
  /// Every reader does so many steps more.
  bool ReadersGoOn(uint64_t steps) {
    std::vector<uint64_t> before;
    for (const auto& reads : board_->reads) before.push_back(reads);
    return WaitUntil([&] {
      for (size_t i = 0; i < before.size(); ++i) {
        if (board_->reads[i] < before[i] + steps) return false;
      }
      return true;
    });
  }
  bool AnyHasEnded() const {
    return std::any_of(readers_.begin(), readers_.end(),
                       [](const auto& reader) { return reader->HasEnded(); });
  }

  void StopAll(ChildProcess* writer) {
    board_->stop = true;
    if (writer != nullptr) {
      EXPECT_EQ(writer->Wait(), 0);
    }
    for (const auto& reader : readers_) EXPECT_EQ(reader->Wait(), 0);
    readers_.clear();
  }

  /// With no writer there, by a handle of this process.
  void ExpectAllRight(const std::unique_ptr<SharedMap>& map) {
    auto reader = map->NewReader();
    ASSERT_TRUE(reader) << reader.error().ToString();
    uint64_t present = 0;
    const std::string problem = JudgeAll(*board_, &*reader, [&](uint64_t key, uint64_t number) {
      if (!Scoreboard::Erases(key, number)) ++present;
    });
    EXPECT_EQ(problem, "");
    EXPECT_EQ(map->GetStats().value().entries, present);
  }
  void ExpectAllRightAtTheEnd() {
    const auto report = SharedMap::Check(path());
    ASSERT_TRUE(report) << report.error().ToString();
    EXPECT_EQ(report->problems, std::vector<std::string>());
    auto attached = SharedMap::Attach(path());
    ASSERT_TRUE(attached) << attached.error().ToString();
    ExpectAllRight(*attached);
    auto opened = SharedMap::Open(path());
    ASSERT_TRUE(opened) << opened.error().ToString();
    ExpectAllRight(*opened);
  }

  std::filesystem::path directory_;
  SharedMemory<Scoreboard> board_;
  std::vector<std::unique_ptr<ChildProcess>> readers_;
};

TEST_F(SharedMapProcesses, ReadersSeeWholeNewValuesAndNeverWait) {
  const auto writer = Start("writer", Setting("BASALT_TORTURE_SEED", 1));
  StartReaders();
  const auto deadline = steady_clock::now() + seconds(Setting("BASALT_TORTURE_SECONDS", 3));
  ASSERT_TRUE(WaitUntil([&] { return board_->writing != 0 || writer->HasEnded(); }));
  do {
    ASSERT_FALSE(writer->HasEnded());
    ASSERT_TRUE(ReadersGoOn(1000));
    std::this_thread::sleep_for(milliseconds(50));
    // Wherever the writer stands still, nobody waits for it.
    writer->Signal(SIGSTOP);
    const bool going_on = ReadersGoOn(1000);
    writer->Signal(SIGCONT);
    ASSERT_TRUE(going_on);
  } while (steady_clock::now() < deadline);
  ASSERT_TRUE(WaitUntil(
      [&] { return (board_->version > 10 && board_->writes > 1000) || writer->HasEnded(); }));
  ASSERT_FALSE(writer->HasEnded());
  StopAll(writer.get());
  ExpectAllRightAtTheEnd();
  RecordProperty("writes", std::to_string(board_->writes));
  RecordProperty("versions", std::to_string(board_->version));
  RecordProperty("reads", std::to_string(board_->reads[0] + board_->reads[1]));
}

TEST_F(SharedMapProcesses, KilledWritersLoseNothingAndReadersGoOn) {
  base::Random random(Setting("BASALT_TORTURE_SEED", 1));
  StartReaders();
  const uint64_t kills = Setting("BASALT_TORTURE_KILLS", 20);
  for (uint64_t kill = 1; kill <= kills; ++kill) {
    SCOPED_TRACE(kill);
    const uint64_t seed = random.Next();
    // One in four while it opens. Counted before it starts, since it may come there at once.
    const auto& moment = random.OneIn(4) ? board_->opening : board_->writing;
    const uint64_t before = moment;
    const auto writer = Start("writer", seed);
    ASSERT_TRUE(WaitUntil([&] { return moment != before || writer->HasEnded(); }));
    std::this_thread::sleep_for(microseconds(random.Below(20'000)));
    writer->Signal(SIGKILL);
    ASSERT_EQ(writer->Wait(), ChildProcess::kSignalled + SIGKILL);
    ASSERT_TRUE(ReadersGoOn(20));
    auto attached = SharedMap::Attach(path());
    ASSERT_TRUE(attached) << attached.error().ToString();
    auto reader = (*attached)->NewReader();
    ASSERT_TRUE(reader) << reader.error().ToString();
    ASSERT_EQ(JudgeAll(*board_, &*reader, [](uint64_t, uint64_t) {}), "");
  }
  EXPECT_GT(board_->writes, kills);
  {
    const auto writer = Start("writer", random.Next());
    ASSERT_TRUE(WaitUntil([&] { return board_->writes > 0 || writer->HasEnded(); }));
    ASSERT_TRUE(ReadersGoOn(100));
    StopAll(writer.get());
  }
  ExpectAllRightAtTheEnd();
  RecordProperty("writes", std::to_string(board_->writes));
  RecordProperty("reads", std::to_string(board_->reads[0] + board_->reads[1]));
}

TEST_F(SharedMapProcesses, AnotherUserWhoMayOnlyReadReads) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can start a process of another user";
  const auto writer = Start("writer", 1);
  StartReaders("nobody");
  ASSERT_TRUE(WaitUntil([&] { return board_->version > 5 || writer->HasEnded(); }));
  ASSERT_TRUE(ReadersGoOn(6000));
  ASSERT_FALSE(writer->HasEnded());
  StopAll(writer.get());
  ExpectAllRightAtTheEnd();
}

TEST_F(SharedMapProcesses, LogsKeepTheSizeThatTheirListsName) {
  const auto map = SharedMap::Open(path(), {.compact_in_background = false}).value();
  // Through several segments.
  const std::string value(1'000, 'v');
  for (int i = 0; i < 1'000; ++i) ASSERT_TRUE(map->Put("key:" + std::to_string(i), value).ok());
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path())) {
    if (entry.path().filename().string().starts_with("log-")) bytes += entry.file_size();
  }
  EXPECT_EQ(bytes, map->GetStats().value().log_capacity_bytes);
}

TEST_F(SharedMapProcesses, AWriterKeepsNoListOpenThatNobodyReads) {
  const auto descriptors = [] {
    const std::filesystem::directory_iterator open("/proc/self/fd");
    return std::distance(begin(open), end(open));
  };
  const auto map = SharedMap::Open(path(), {.compact_in_background = false}).value();
  const auto before = descriptors();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(map->Put("key:1", std::to_string(i)).ok());
    ASSERT_TRUE(map->Compact().ok());
  }
  EXPECT_LE(descriptors(), before + 2);
}

TEST_F(SharedMapProcesses, ASecondWriterIsRefusedWithThePidOfTheFirst) {
  const auto writer = Start("writer", 1);
  ASSERT_TRUE(WaitUntil([&] { return board_->writing != 0 || writer->HasEnded(); }));
  const std::string pid = "process " + std::to_string(writer->pid()) + " ";
  const auto expect_busy = [&](const Status& status) {
    EXPECT_EQ(status.code(), StatusCode::kBusy) << status.ToString();
    EXPECT_NE(status.message().find(pid), std::string_view::npos) << status.ToString();
  };
  expect_busy(SharedMap::Open(path()).status());
  expect_busy(SharedMap::Open(path(), {.lock_timeout = milliseconds(20)}).status());
  expect_busy(SharedMap::Create(path(), {.overwrite = true}).status());
  expect_busy(SharedMap::Destroy(path()));
  EXPECT_EQ(SharedMap::Attach(path()).value()->GetStats().value().writer_pid,
            static_cast<uint64_t>(writer->pid()));
  ASSERT_FALSE(writer->HasEnded());
  writer->Signal(SIGKILL);
  ASSERT_EQ(writer->Wait(), ChildProcess::kSignalled + SIGKILL);
  const auto opened = SharedMap::Open(path());
  ASSERT_TRUE(opened) << opened.error().ToString();
  EXPECT_EQ((*opened)->GetStats().value().writer_pid, static_cast<uint64_t>(getpid()));
}

/// Attaches before every call that `work` makes to the simulated machine's disk.
std::vector<std::unique_ptr<SharedMap>> AttachAtEveryCall(
    shared_map::TestMachine* machine, const std::function<void()>& work,
    const std::function<void(SharedMap*)>& look, bool is_there) {
  std::vector<std::unique_ptr<SharedMap>> attached;
  bool attaching = false;
  machine->fs().SetObserver([&](uint64_t, std::string_view operation, std::string_view path) {
    if (attaching) return;
    attaching = true;
    SCOPED_TRACE("before " + std::string(operation) + " of " + std::string(path));
    auto map = machine->Attach();
    EXPECT_TRUE(map || !is_there) << map.error().ToString();
    if (map) {
      look(map->get());
      attached.push_back(std::move(*map));
    }
    attaching = false;
  });
  work();
  machine->fs().SetObserver({});
  return attached;
}

std::optional<std::string> Ask(const SharedMap& map, const std::string& key) {
  auto reader = map.NewReader().value();
  return shared_map::Lookup(&reader, key);
}

TEST(SharedMapAttach, WhoComesAtAnyCallOfAWriterReadsWhatWasAcknowledgedAndFollows) {
  shared_map::TestMachine machine;
  auto map = machine.Create().value();
  uint64_t acknowledged = 0;
  uint64_t begun = 0;
  const auto write = [&] {
    begun = acknowledged + 1;
    ASSERT_TRUE(map->Put("number", std::to_string(begun)).ok());
    acknowledged = begun;
  };
  const auto attached = AttachAtEveryCall(
      &machine,
      [&] {
        for (int round = 0; round < 4; ++round) {
          write();
          if (round == 2) {
            EXPECT_FALSE(map->Compact([](const SharedMapProgress&) { return false; }).ok());
          } else {
            EXPECT_TRUE(map->Compact().ok());
          }
          write();
          EXPECT_TRUE(map->Put("long", std::string(600'000, 'l')).ok());
          write();
        }
      },
      [&](SharedMap* reader) {
        const uint64_t number = std::stoull(Ask(*reader, "number").value_or("0"));
        EXPECT_TRUE(number == acknowledged || number == begun) << number;
      },
      /*is_there=*/true);
  EXPECT_GT(attached.size(), 100u);
  write();
  for (const auto& reader : attached) EXPECT_EQ(Ask(*reader, "number"), std::to_string(begun));
}

TEST(SharedMapAttach, WhoComesWhileAMapIsMadeOrOpenedAfterARestartFollows) {
  for (const bool restarted : {false, true}) {
    SCOPED_TRACE(restarted);
    shared_map::TestMachine machine;
    std::unique_ptr<SharedMap> map;
    if (restarted) {
      map = machine.Create().value();
      ASSERT_TRUE(map->Put("a", "old", {.durability = Durability::kPower}).ok());
      machine.Restart(1);
      map.reset();
    }
    const auto attached = AttachAtEveryCall(
        &machine, [&] { map = restarted ? machine.Open().value() : machine.Create().value(); },
        [](SharedMap*) {}, /*is_there=*/restarted);
    ASSERT_FALSE(attached.empty());
    ASSERT_TRUE(map->Put("a", "new").ok());
    for (const auto& reader : attached) EXPECT_EQ(Ask(*reader, "a"), "new");
  }
}

/// Probes a map at `path` of some keys in a base and some in the log.
void ExpectThatAbsentKeysAreNotFound(const std::string& path, SharedMapLayout layout) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr uint64_t kProbes = 150'000;
#else
  constexpr uint64_t kProbes = 3'400'000;
#endif
  constexpr uint64_t kBuilt = 150'000;
  constexpr uint64_t kKeys = 200'000;
  auto builder =
      SharedMapBuilder::Create(path, {.layout = layout, .compact_in_background = false}).value();
  for (uint64_t i = 0; i < kBuilt; ++i) {
    ASSERT_TRUE(builder->Add("present:" + std::to_string(i), "v").ok());
  }
  auto map = builder->Finish().value();
  for (uint64_t i = kBuilt; i < kKeys; ++i) {
    ASSERT_TRUE(map->Put("present:" + std::to_string(i), "v").ok());
  }
  ASSERT_EQ(map->GetStats().value().base_records, kBuilt);
  ASSERT_EQ(map->GetStats().value().entries, kKeys);
  const bool is_variable = layout == SharedMapLayout::kVariable;
  ASSERT_EQ(map->GetStats().value().fixed_shards, is_variable ? 0 : map->GetStats().value().shards);
  auto reader = map->NewReader().value();
  ASSERT_TRUE(reader.Get("present:" + std::to_string(kBuilt - 1)).value());
  ASSERT_TRUE(reader.Get("present:" + std::to_string(kKeys - 1)).value());

  constexpr uint64_t kGroup = 100;
  uint64_t found = 0;
  std::vector<std::string> names(kGroup);
  std::vector<std::string_view> keys(kGroup);
  std::vector<Result<SharedMap::MaybeView>> results(kGroup);
  for (uint64_t probe = 0; probe < kProbes; probe += kGroup) {
    for (uint64_t i = 0; i < kGroup; ++i) {
      names[i].assign("present:");
      names[i].append(std::to_string(kKeys + probe + i));
      keys[i] = names[i];
    }
    if (probe % (2 * kGroup) == 0) {
      for (const std::string_view key : keys) found += reader.Get(key).value() ? 1 : 0;
      continue;
    }
    ASSERT_TRUE(reader.MultiGet(keys, results).ok());
    for (const auto& result : results) found += result.value() ? 1 : 0;
  }
  EXPECT_EQ(found, 0u);
}

// Ten million probes in all.
TEST(SharedMapAbsentKeys, AreNeverFound) {
  ExpectThatAbsentKeysAreNotFound(":memory:", SharedMapLayout::kDerived);
  std::string home = (std::filesystem::temp_directory_path() / "basalt_absent_XXXXXX").string();
  ASSERT_NE(mkdtemp(home.data()), nullptr);
  ExpectThatAbsentKeysAreNotFound(home + "/fixed", SharedMapLayout::kFixed);
  ExpectThatAbsentKeysAreNotFound(home + "/variable", SharedMapLayout::kVariable);
  std::filesystem::remove_all(home);
}

}  // namespace
}  // namespace basalt

int main(int argc, char** argv) {
  if (argc == 6 && std::string_view(argv[1]) == "--role") {
    return basalt::RunRole(std::span<char* const>(argv + 2, 4));
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
