#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <thread>

#include "base/random.h"
#include "bench/shared_map_floor.h"
#include "bench/shared_map_measure.h"

// Reads of a map that changes.

namespace basalt::bench {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void PutAgain(BasaltSubject* map, const SharedMapRecords& records, uint64_t number, char filling) {
  std::array<char, kSharedMapValueBytes> value;
  records.FillValue(number, filling, value.data());
  map->Put(RecordKey::Of(number).view(), {value.data(), value.size()});
}

// What reader and writer, two processes, say to each other.
struct Talk {
  enum Step : int { kWait, kWrite, kEnd };

  std::atomic<int> step = kWait;
  std::atomic<bool> rests = false;  // The writer, which then has brought the rest up to date.
  std::atomic<uint64_t> puts = 0;
  std::atomic<uint64_t> folds = 0;
};

// Writes while it is told to. Ends the process, not its caller.
[[noreturn]] void WriteAndEnd(const SharedMapRecords& records, const std::string& directory,
                              Talk* talk) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  constexpr uint64_t kPutsAtOnce = 64;
  {
    BasaltSubject map(SharedMapLayout::kDerived);
    map.OpenToWrite(directory, {});
    base::Random random(records.count());
    while (talk->step != Talk::kEnd) {
      if (talk->step == Talk::kWait) {
        talk->folds = map.Stats().optimizations;
        talk->rests = true;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        continue;
      }
      talk->rests = false;
      for (uint64_t i = 0; i < kPutsAtOnce; ++i) {
        PutAgain(&map, records, random.Below(records.count()), 'w');
      }
      talk->puts += kPutsAtOnce;
    }
  }
  _exit(0);
}

class WriterProcess {
 public:
  WriterProcess(const SharedMapRecords& records, const std::string& directory) {
    void* const place =
        mmap(nullptr, sizeof(Talk), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED) Fail("share memory with a writer", "there is none");
    talk_ = new (place) Talk;
    child_ = fork();
    if (child_ < 0) Fail("start a writer", "fork failed");
    if (child_ == 0) WriteAndEnd(records, directory, talk_);
    WaitUntilItRests();
  }
  WriterProcess(const WriterProcess&) = delete;
  WriterProcess& operator=(const WriterProcess&) = delete;
  ~WriterProcess() {
    talk_->step = Talk::kEnd;
    int status = 0;
    if (waitpid(child_, &status, 0) != child_ || status != 0) Fail("write", "the writer failed");
    munmap(talk_, sizeof(Talk));
  }

  void Start() const { talk_->step = Talk::kWrite; }
  void Stop() const {
    talk_->step = Talk::kWait;
    WaitUntilItRests();
  }
  uint64_t puts() const noexcept { return talk_->puts; }
  /// As of the last Stop.
  uint64_t folds() const noexcept { return talk_->folds; }

 private:
  void WaitUntilItRests() const {
    while (!talk_->rests) {
      if (waitpid(child_, nullptr, WNOHANG) != 0) Fail("write", "the writer failed");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  Talk* talk_;
  pid_t child_;
};

struct Rates {
  double wall = 0;       // Reads a second.
  double processor = 0;  // Reads a second of the reader's processor time.
};

using ReadSome = std::function<void(SharedMapRequests)>;

Rates ReadFor(double seconds, const ReadSome& read, SharedMapRequests requests) {
  constexpr size_t kReadsAtOnce = 6'400;
  uint64_t reads = 0;
  size_t next = 0;
  const double processor_start = ThreadSeconds();
  const Clock::time_point start = Clock::now();
  double passed = 0;
  while (passed < seconds) {
    if (next + kReadsAtOnce > requests.size()) next = 0;
    read(requests.subspan(next, kReadsAtOnce));
    next += kReadsAtOnce;
    reads += kReadsAtOnce;
    passed = SecondsSince(start);
  }
  const double processor = ThreadSeconds() - processor_start;
  return {static_cast<double>(reads) / passed, static_cast<double>(reads) / processor};
}

}  // namespace

SharedMapFigures MeasureChanges(const SharedMapPlan& plan, const std::string& directory) {
  const SharedMapRecords records(plan.keys, plan.seed);
  BasaltSubject map(SharedMapLayout::kFixed);
  map.Build(records, directory);
  map.OpenToWrite(directory, {.compact_in_background = false});
  ReadAll(&map, plan.keys);

  SharedMapFigures figures;
  base::Random seeds(plan.seed);
  uint64_t changed = 0;
  uint64_t number = 0;
  for (const uint64_t percent : {0, 1, 2, 5, 10, 15, 20}) {
    // Along the cycle: random, and every one another.
    for (; changed < plan.keys * percent / 100; ++changed) {
      PutAgain(&map, records, number, 'c');
      number = records.Next(number);
    }
    ReadAll(&map, plan.keys);
    double dependent = 1e9;
    double independent = 1e9;
    double miss = 1e9;
    double batch = 1e9;
    for (int pass = 0; pass < plan.passes; ++pass) {
      const uint64_t seed = seeds.Next();
      dependent = std::min(dependent, DependentNs(&map, plan.operations, seed % plan.keys));
      const std::vector<RecordKey> hits = RandomHits(plan.keys, plan.operations, seed);
      independent = std::min(independent, IndependentNs(&map, hits));
      batch = std::min(batch, BatchNs(&map, hits));
      miss = std::min(miss, MissNs(&map, RandomMisses(plan.keys, plan.operations, seed)));
    }
    const std::string benchmark = "changes_" + std::to_string(percent);
    figures.push_back({benchmark, "dependent", "ns", dependent});
    figures.push_back({benchmark, "independent", "ns", independent});
    figures.push_back({benchmark, "miss", "ns", miss});
    figures.push_back({benchmark, "batch", "ns", batch});
  }
  return figures;
}

SharedMapFigures MeasureBesideWriter(const SharedMapPlan& plan, const std::string& directory) {
  const SharedMapRecords records(plan.keys, plan.seed);
  BasaltSubject map(SharedMapLayout::kFixed);
  map.Build(records, directory);
  const WriterProcess writer(records, directory);
  map.Open(directory);
  ReadAll(&map, plan.keys);
  const SharedMapFloor floor(records, directory + "/floor");

  const std::vector<RecordKey> requests = RandomHits(plan.keys, plan.operations, plan.seed);
  SharedMapFigures figures;
  base::Random seeds(plan.seed);
  const std::pair<const char*, ReadSome> kinds[] = {
      {"get", [&](SharedMapRequests some) { IndependentNs(&map, some); }},
      {"batch", [&](SharedMapRequests some) { BatchNs(&map, some); }},
      {"floor", [&](SharedMapRequests some) { floor.BatchNs(some.size(), seeds.Next()); }}};
  std::array<Rates, std::size(kinds)> quiet;
  for (size_t i = 0; i < quiet.size(); ++i) {
    quiet[i] = ReadFor(plan.slice_seconds, kinds[i].second, requests);
  }
  for (size_t i = 0; i < quiet.size(); ++i) {
    const uint64_t puts_before = writer.puts();
    const uint64_t folds_before = writer.folds();
    const Clock::time_point start = Clock::now();
    writer.Start();
    const Rates beside = ReadFor(plan.slice_seconds, kinds[i].second, requests);
    const double seconds = SecondsSince(start);
    const auto puts = static_cast<double>(writer.puts() - puts_before);
    writer.Stop();
    const auto folds = static_cast<double>(writer.folds() - folds_before);
    const std::string benchmark = std::string("beside_writer_") + kinds[i].first;
    figures.push_back({benchmark, "quiet", "1/s", quiet[i].wall});
    figures.push_back({benchmark, "reads", "1/s", beside.wall});
    figures.push_back({benchmark, "share", "%", 100 * beside.wall / quiet[i].wall});
    figures.push_back(
        {benchmark, "processor_share", "%", 100 * beside.processor / quiet[i].processor});
    figures.push_back({benchmark, "puts", "1/s", puts / seconds});
    figures.push_back({benchmark, "folds", "folds", folds});
  }
  return figures;
}

}  // namespace basalt::bench
