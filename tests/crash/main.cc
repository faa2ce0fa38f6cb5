// Power cuts, on a simulated file system. A random workload (puts, deletes, batches, both
// durability levels, syncs, flushes, compactions, clean reopenings; memtables of a few KiB) is
// stopped at random file system calls. Each of these moments is cut several times, in every way
// that the model of io/sim_file_system.h allows; after each cut the database is reopened and read
// whole: what it holds must be a prefix of what was written, and contain every write that was
// acknowledged at kPower. From one of the cuts the workload then goes on.
//
//   basalt_crash [--minutes N | --rounds N] [--seed S] [--threads N]
//
// A failure prints the seed of its round, which repeats it: --rounds 1 --seed S.

#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "base/random.h"
#include "db/environment.h"
#include "io/manual_executor.h"
#include "io/sim_clock.h"
#include "io/sim_file_system.h"
#include "tests/crash/write_history.h"

namespace basalt::crash {
namespace {

constexpr char kPath[] = "/db";
constexpr size_t kMaxOperations = 1000;
constexpr size_t kCutsPerMoment = 6;
constexpr size_t kCallsBetweenMoments = 60;

/// A moment at which the power may be cut: the disk, and what must be found on it afterwards.
struct Moment {
  std::unique_ptr<io::SimFileSystem> disk;
  uint64_t call;
  size_t durable;
  size_t begun;
};

/// One seed's workload and its cuts.
class Round {
 public:
  explicit Round(uint64_t seed)
      : seed_(seed), random_(seed), disk_(std::make_unique<io::SimFileSystem>()) {
    memtable_bytes_ = uint64_t{1} << random_.Between(12, 16);
    key_count_ = uint64_t{1} << random_.Between(2, 9);
    operations_ = random_.Between(20, kMaxOperations);
  }

  ~Round() { disk_->SetObserver({}); }
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;

  /// The number of states tried; an error is the first wrong one.
  Result<uint64_t> Run() {
    Observe();
    if (Status opened = Open(); !opened.ok()) return Failed("the first Open: " + opened.ToString());
    for (size_t i = 0; i < operations_; ++i) {
      if (Status stepped = Step(); !stepped.ok()) return stepped;
      while (!moments_.empty()) {
        Moment moment = std::move(moments_.back());
        moments_.pop_back();
        if (Status cut = Cut(moment); !cut.ok()) return cut;
      }
    }
    return states_;
  }

 private:
  Status Failed(const std::string& what) const {
    return Status(StatusCode::kCorruption, "seed " + std::to_string(seed_) + ": " + what);
  }

  db::Environment EnvironmentOn(io::SimFileSystem* disk, io::ManualExecutor* executor) {
    db::Environment environment;
    environment.fs = disk;
    environment.clock = &clock_;
    environment.executor = executor;
    environment.memtable_bytes = memtable_bytes_;
    environment.table_bytes = memtable_bytes_ / 2;
    return environment;
  }

  static DBOptions Options() { return {.memory_budget = uint64_t{4} << 20}; }

  void Observe() {
    next_moment_ = random_.Between(1, kCallsBetweenMoments);
    disk_->SetObserver([this](uint64_t, std::string_view, std::string_view) {
      if (--next_moment_ > 0) return;
      next_moment_ = random_.Between(1, 2 * kCallsBetweenMoments);
      moments_.push_back({disk_->Clone(), disk_->calls(), history_.durable(), history_.begun()});
    });
  }

  Status Open() {
    auto opened = db::OpenDatabase(kPath, Options(), EnvironmentOn(disk_.get(), &executor_));
    if (!opened) return opened.error();
    db_ = std::move(*opened);
    return {};
  }

  std::string RandomKey() { return "key" + std::to_string(random_.Below(key_count_)); }
  std::string RandomValue() {
    const uint64_t size =
        random_.OneIn(50) ? random_.Below(3 * memtable_bytes_ / 2) : random_.Below(200);
    std::string value(size, static_cast<char>('a' + random_.Below(26)));
    for (size_t i = 0; i < value.size(); i += 1 + random_.Below(16)) {
      value[i] = static_cast<char>(random_.Next());
    }
    return value;
  }

  Status Step() {
    clock_.Advance(random_.Below(10'000));
    const uint64_t draw = random_.Below(100);
    Status done;
    if (draw < 80) {
      done = WriteSomething();
    } else if (draw < 88) {
      executor_.RunOne();
    } else if (draw < 91) {
      done = db_->Sync();
      if (done.ok()) history_.AcknowledgeDurable();
    } else if (draw < 94) {
      done = db_->Flush();
    } else if (draw < 95) {
      done = db_->CompactRange();
    } else if (draw < 97) {
      if (random_.OneIn(2)) done = db_->Close();
      if (done.ok()) {
        db_.reset();
        executor_.RunAll();
        done = Open();
      }
    } else {
      const auto content = ReadContent(*db_);
      if (!content) {
        done = content.error();
      } else if (*content != history_.content()) {
        done = Status(StatusCode::kCorruption, "the open database is not what was written");
      }
    }
    return done.ok() ? done : Failed(done.ToString());
  }

  Status WriteSomething() {
    std::vector<std::pair<std::string, std::optional<std::string>>> records;
    WriteBatch batch;
    const size_t count = random_.OneIn(4) ? random_.Between(2, 8) : 1;
    for (size_t i = 0; i < count; ++i) {
      std::string key = RandomKey();
      if (random_.OneIn(4)) {
        batch.Delete(key);
        records.emplace_back(std::move(key), std::nullopt);
      } else {
        std::string value = RandomValue();
        batch.Put(key, value);
        records.emplace_back(std::move(key), std::move(value));
      }
    }
    const bool power = random_.OneIn(5);
    history_.Begin(records);
    Status written =
        db_->Write(batch, {.durability = power ? Durability::kPower : Durability::kProcess});
    if (written.ok() && power) history_.AcknowledgeDurable();
    return written;
  }

  Status Cut(const Moment& moment) {
    for (size_t i = 0; i < kCutsPerMoment; ++i) {
      const std::unique_ptr<io::SimFileSystem> disk = moment.disk->Clone();
      const uint64_t crash_seed = random_.Next();
      disk->Crash(crash_seed);
      io::ManualExecutor executor;
      auto opened = db::OpenDatabase(kPath, Options(), EnvironmentOn(disk.get(), &executor));
      const std::string where =
          "call " + std::to_string(moment.call) + ", cut seed " + std::to_string(crash_seed) + ": ";
      if (!opened) return Failed(where + "reopening: " + opened.error().ToString());
      if (random_.OneIn(2)) executor.RunAll();
      const auto content = ReadContent(**opened);
      if (!content) return Failed(where + "reading: " + content.error().ToString());
      const auto found = history_.Find(ContentHash(*content), moment.durable, moment.begun);
      if (!found) return Failed(where + Explain(ContentHash(*content), moment));
      ++states_;
      if (random_.OneIn(8)) {
        if (Status usable = WriteAndCheck(std::move(*opened), disk.get(), &executor);
            !usable.ok()) {
          return Failed(where + usable.ToString());
        }
      }
      opened = std::unique_ptr<DB>();
      executor.RunAll();
    }
    return random_.OneIn(20) ? ContinueFrom(moment) : Status();
  }

  /// What was recovered takes writes, closes, and has no fault.
  Status WriteAndCheck(std::unique_ptr<DB> db, io::SimFileSystem* disk,
                       io::ManualExecutor* executor) {
    for (const Status& written :
         {db->Put("after the cut", "written", {.durability = Durability::kPower}), db->Close()}) {
      if (!written.ok()) return written;
    }
    db.reset();
    executor->RunAll();
    const auto report = db::CheckDatabase(kPath, EnvironmentOn(disk, executor), {});
    if (!report) return report.error();
    return report->ok() ? Status() : report->findings.front().status;
  }

  /// The workload goes on from what one cut left.
  Status ContinueFrom(const Moment& moment) {
    moments_.clear();
    disk_->SetObserver({});
    db_.reset();
    executor_.RunAll();
    disk_ = moment.disk->Clone();
    disk_->Crash(random_.Next());
    Observe();
    const size_t durable = moment.durable;
    if (Status opened = Open(); !opened.ok()) return Failed("reopening: " + opened.ToString());
    const auto content = ReadContent(*db_);
    if (!content) return Failed("reading: " + content.error().ToString());
    if (!history_.Find(ContentHash(*content), durable, moment.begun)) {
      return Failed("going on: " + Explain(ContentHash(*content), moment));
    }
    history_.Restart(*content);
    moments_.clear();  // those seen while reopening belong to the history before
    return {};
  }

  std::string Explain(uint64_t hash, const Moment& moment) const {
    if (const auto earlier = history_.Find(hash, 0, moment.begun); earlier) {
      return "the state after write " + std::to_string(*earlier) + " was found, but write " +
             std::to_string(moment.durable) + " had been acknowledged at kPower";
    }
    return "the content is no prefix of the " + std::to_string(moment.begun) + " writes (" +
           std::to_string(moment.durable) + " acknowledged at kPower)";
  }

  const uint64_t seed_;
  base::Random random_;
  io::SimClock clock_;
  io::ManualExecutor executor_;
  std::unique_ptr<io::SimFileSystem> disk_;
  std::unique_ptr<DB> db_;
  WriteHistory history_;
  std::vector<Moment> moments_;
  uint64_t next_moment_ = 1;
  uint64_t memtable_bytes_ = 0;
  uint64_t key_count_ = 0;
  uint64_t operations_ = 0;
  uint64_t states_ = 0;
};

struct Arguments {
  double minutes = 0;
  uint64_t rounds = 0;
  uint64_t seed = 1;
  unsigned threads = 2;
};

bool Parse(int argc, char** argv, Arguments* arguments) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--minutes") {
      arguments->minutes = std::strtod(argv[i + 1], nullptr);
    } else if (name == "--rounds") {
      arguments->rounds = std::strtoull(argv[i + 1], nullptr, 10);
    } else if (name == "--seed") {
      arguments->seed = std::strtoull(argv[i + 1], nullptr, 10);
    } else if (name == "--threads") {
      arguments->threads = static_cast<unsigned>(std::strtoul(argv[i + 1], nullptr, 10));
    } else {
      return false;
    }
  }
  return argc % 2 == 1 && arguments->threads > 0 &&
         (arguments->minutes > 0) != (arguments->rounds > 0);
}

int Main(int argc, char** argv) {
  Arguments arguments;
  if (!Parse(argc, argv, &arguments)) {
    std::fprintf(stderr,
                 "usage: basalt_crash (--minutes N | --rounds N) [--seed S] [--threads N]\n");
    return 2;
  }
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto minutes_passed = [&] {
    return std::chrono::duration<double, std::ratio<60>>(Clock::now() - start).count();
  };
  std::atomic<uint64_t> next_round{0};
  std::atomic<uint64_t> states{0};
  std::atomic<bool> failed{false};
  std::mutex print_mutex;
  const auto work = [&] {
    while (!failed) {
      const uint64_t round = next_round++;
      if (arguments.rounds > 0 ? round >= arguments.rounds
                               : minutes_passed() >= arguments.minutes) {
        return;
      }
      const auto tried = Round(arguments.seed + round).Run();
      if (tried) {
        states += *tried;
        continue;
      }
      failed = true;
      const std::scoped_lock lock(print_mutex);
      std::printf("FAILED: %s\n", tried.error().ToString().c_str());
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < arguments.threads; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  const double passed = minutes_passed();
  std::printf(
      "power cuts: %llu states of %llu workloads from seed %llu, %.0f states a minute: %s\n",
      static_cast<unsigned long long>(states.load()),
      static_cast<unsigned long long>(next_round.load()),
      static_cast<unsigned long long>(arguments.seed), static_cast<double>(states.load()) / passed,
      failed ? "FAILED" : "all consistent");
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace basalt::crash

int main(int argc, char** argv) { return basalt::crash::Main(argc, argv); }
