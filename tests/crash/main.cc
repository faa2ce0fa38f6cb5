// Power cuts, on a simulated file system. A random workload (puts, some with a time to live,
// deletes, range deletes, merges, batches over two keyspaces, both durability levels, syncs,
// flushes, compactions, clean reopenings; memtables of a few KiB) is stopped at random file system
// calls. Each of these moments is cut several times, in every way that the model of
// io/sim_file_system.h allows; after each cut the database is reopened and read whole: what both
// keyspaces hold together must be a prefix of what was written, and contain every write that was
// acknowledged at kPower. A third keyspace has no log: it may hold any value that was ever put
// there, and nothing else. From one of the cuts the workload then goes on.
//
// Chains begin at some of the moments: the process is killed there, or the power is cut; the next
// one opens the database, and is killed at one of its first calls, mostly within recovery; and so
// on. In the end the same must hold as after one cut; where the power was never cut, every write
// that was acknowledged must be there. From some of the kills, too, the workload goes on.
//
//   basalt_crash [--minutes N | --rounds N] [--seed S] [--threads N]
//
// A failure prints the seed of its round, which repeats it: --rounds 1 --seed S.

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "base/check.h"
#include "base/coding.h"
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
constexpr unsigned kCallsOfRecoveryBits = 9;  // A link of a chain ends within 2^9 calls.
constexpr std::string_view kSecondName = "second";
constexpr std::string_view kUnloggedName = "unlogged";
/// Before the second keyspace's keys in the history; no key of the default one begins so.
constexpr std::string_view kSecondMark = "second/";

using Content = std::map<std::string, std::string>;

/// 8 bytes, as merges of numbers have them.
std::string NumberBytes(uint64_t number) {
  std::string bytes(sizeof(number), '\0');
  base::Store(bytes.data(), number);
  return bytes;
}

/// A keyspace that is not there holds nothing.
Result<Content> ReadNamed(const DB& db, std::string_view name) {
  const auto keyspace = db.OpenKeyspace(name);
  if (keyspace) return ReadContent(db, *keyspace);
  if (keyspace.error().code() == StatusCode::kNotFound) return Content();
  return keyspace.error();
}

/// All that is logged, as the history has it.
Result<Content> ReadLogged(const DB& db) {
  auto content = ReadContent(db);
  if (!content) return content.error();
  const auto second = ReadNamed(db, kSecondName);
  if (!second) return second.error();
  for (const auto& [key, value] : *second) (*content)[std::string(kSecondMark) + key] = value;
  return content;
}

/// A moment at which the power may be cut: the disk, and what must be found on it afterwards.
struct Moment {
  std::unique_ptr<io::SimFileSystem> disk;
  uint64_t call;
  size_t durable;
  size_t acknowledged;
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
      moments_.push_back({disk_->Clone(), disk_->calls(), history_.durable(),
                          history_.acknowledged(), history_.begun()});
    });
  }

  Status Open() {
    auto opened = db::OpenDatabase(kPath, Options(), EnvironmentOn(disk_.get(), &executor_));
    if (!opened) return opened.error();
    db_ = std::move(*opened);
    BASALT_ASSIGN_OR_RETURN(second_, OpenOrCreate(kSecondName, {}));
    BASALT_ASSIGN_OR_RETURN(unlogged_,
                            OpenOrCreate(kUnloggedName, {.durability = Durability::kMemory}));
    return {};
  }

  Result<KeyspaceId> OpenOrCreate(std::string_view name, const KeyspaceOptions& options) {
    auto opened = db_->OpenKeyspace(name);
    if (opened || opened.error().code() != StatusCode::kNotFound) return opened;
    return db_->CreateKeyspace(name, options);
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
    if (draw < 73) {
      done = WriteSomething();
    } else if (draw < 79) {
      done = WriteUnlogged();
    } else if (draw < 80) {
      done = random_.OneIn(4) ? RenewSecond() : Status();
    } else if (draw < 88) {
      executor_.RunOne();
    } else if (draw < 91) {
      done = db_->Sync();
      if (done.ok()) history_.AcknowledgeDurable();
    } else if (draw < 94) {
      done = db_->Flush();
    } else if (draw < 95) {
      done = db_->CompactRange(std::nullopt, std::nullopt,
                               random_.OneIn(2) ? second_ : KeyspaceId::kDefault);
    } else if (draw < 97) {
      done = Reopen();
    } else {
      done = CheckOpen();
    }
    return done.ok() ? done : Failed(done.ToString());
  }

  Status Reopen() {
    const bool is_closed = random_.OneIn(2);
    if (is_closed) BASALT_RETURN_IF_ERROR(db_->Close());
    db_.reset();
    executor_.RunAll();
    BASALT_RETURN_IF_ERROR(Open());
    return is_closed ? CheckOpen() : TakeUnlogged();
  }

  Status CheckOpen() {
    const auto content = ReadLogged(*db_);
    if (!content) return content.error();
    if (*content != history_.ContentAt(clock_.WallMillis())) {
      return Status(StatusCode::kCorruption, "the open database is not what was written");
    }
    const auto unlogged = ReadNamed(*db_, kUnloggedName);
    if (!unlogged) return unlogged.error();
    if (*unlogged == unlogged_content_) return {};
    return Status(StatusCode::kCorruption, "the keyspace without a log is not what was written");
  }

  /// What is left of the keyspace without a log is its content from now on.
  Status TakeUnlogged() {
    auto content = ReadNamed(*db_, kUnloggedName);
    if (!content) return content.error();
    BASALT_RETURN_IF_ERROR(CheckUnlogged(*content));
    unlogged_content_ = std::move(*content);
    return {};
  }

  Status CheckUnlogged(const Content& content) const {
    for (const auto& [key, value] : content) {
      if (unlogged_written_.contains(WriteHistory::RecordHash(key, value))) continue;
      return Status(StatusCode::kCorruption,
                    "the keyspace without a log has a value that was never put: " + key);
    }
    return {};
  }

  Status WriteUnlogged() {
    const std::string key = RandomKey();
    if (random_.OneIn(5)) {
      unlogged_content_.erase(key);
      return db_->Delete(key, {.keyspace = unlogged_});
    }
    const std::string value = RandomValue();
    unlogged_written_.insert(WriteHistory::RecordHash(key, value));
    unlogged_content_[key] = value;
    return db_->Put(key, value, {.keyspace = unlogged_});
  }

  Status RenewSecond() {
    history_.Begin();
    history_.DeleteRange(std::string(kSecondMark), std::string(kSecondMark) + '\xFF');
    BASALT_RETURN_IF_ERROR(db_->DropKeyspace(second_));
    history_.Acknowledge();
    history_.AcknowledgeDurable();
    BASALT_ASSIGN_OR_RETURN(second_, db_->CreateKeyspace(kSecondName));
    return {};
  }

  /// Adds one record to the batch, and what it does to the history.
  void AddSomething(WriteBatch* batch) {
    const bool in_second = random_.OneIn(3);
    const KeyspaceId keyspace = in_second ? second_ : KeyspaceId::kDefault;
    const std::string mark(in_second ? kSecondMark : std::string_view());
    std::string key = RandomKey();
    const uint64_t draw = random_.Below(100);
    if (draw < 20) {
      batch->Delete(key, keyspace);
      history_.Set(mark + key, std::nullopt);
    } else if (draw < 25) {
      std::string end = random_.OneIn(4) ? RandomKey() : key + '~';
      if (end < key) std::swap(key, end);
      batch->DeleteRange(key, end, keyspace);
      history_.DeleteRange(mark + key, mark + end);
    } else if (draw < 40) {
      AddMerge(batch, keyspace, mark);
    } else if (draw < 55) {
      const uint64_t ttl_ms = random_.Between(1, random_.OneIn(3) ? 3'000 : 100);
      const std::string value = "expires" + std::to_string(++expiring_values_) + RandomValue();
      batch->Put(key, value, {.keyspace = keyspace, .ttl = std::chrono::milliseconds(ttl_ms)});
      history_.Set(mark + key, value, clock_.WallMillis() + ttl_ms);
    } else {
      const std::string value = RandomValue();
      batch->Put(key, value, {.keyspace = keyspace});
      history_.Set(mark + key, value);
    }
  }

  void AddMerge(WriteBatch* batch, KeyspaceId keyspace, const std::string& mark) {
    const uint64_t now_ms = clock_.WallMillis();
    if (random_.OneIn(2)) {
      const std::string key = "count" + std::to_string(random_.Below(8));
      const uint64_t operand = random_.Next() >> random_.Below(64);
      const WriteHistory::Present* const present = history_.Find(mark + key, now_ms);
      const uint64_t sum = operand + (present ? base::Load<uint64_t>(present->value.data()) : 0);
      batch->Merge(key, MergeOperator::kAdd, NumberBytes(operand), {.keyspace = keyspace});
      history_.Set(mark + key, NumberBytes(sum));
      return;
    }
    const std::string key = RandomKey();
    const std::string operand = "+" + std::to_string(random_.Below(1000));
    const WriteHistory::Present* const present = history_.Find(mark + key, now_ms);
    const std::string value = (present ? present->value : std::string()) + operand;
    const uint64_t expiry_ms = present ? present->expiry_ms : 0;
    batch->Merge(key, MergeOperator::kAppend, operand, {.keyspace = keyspace});
    history_.Set(mark + key, value, expiry_ms);
  }

  Status WriteSomething() {
    WriteBatch batch;
    history_.Begin();
    for (uint64_t i = random_.OneIn(4) ? random_.Between(2, 8) : 1; i > 0; --i) {
      AddSomething(&batch);
    }
    const bool power = random_.OneIn(5);
    Status written =
        db_->Write(batch, {.durability = power ? Durability::kPower : Durability::kProcess});
    if (written.ok()) history_.Acknowledge();
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
      if (Status found = CheckFound(**opened, moment, moment.durable); !found.ok()) {
        return Failed(where + found.ToString());
      }
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
    if (random_.OneIn(2)) {
      if (Status held = Chain(moment); !held.ok()) return held;
    }
    if (random_.OneIn(20)) return ContinueFrom(moment);
    return random_.OneIn(20) ? ContinueFromKill(moment) : Status();
  }

  /// Whether the database is as some write has left it, from number `first` on to the moment's last
  /// one.
  Status CheckFound(const DB& db, const Moment& moment, size_t first) {
    const auto content = ReadLogged(db);
    if (!content) return content.error();
    const uint64_t hash = ContentHash(*content);
    if (!history_.Find(hash, first, moment.begun, clock_.WallMillis())) {
      return Status(StatusCode::kCorruption, Explain(hash, moment, first));
    }
    const auto unlogged = ReadNamed(db, kUnloggedName);
    return unlogged ? CheckUnlogged(*unlogged) : unlogged.error();
  }

  /// Opens the database, and works on in the background, until a random call. Gives the disk as
  /// that call finds it.
  Result<std::unique_ptr<io::SimFileSystem>> OpenUntilKilled(
      std::unique_ptr<io::SimFileSystem> disk) {
    uint64_t left = random_.Below(uint64_t{1} << random_.Between(3, kCallsOfRecoveryBits));
    std::unique_ptr<io::SimFileSystem> killed;
    disk->SetObserver([&](uint64_t, std::string_view, std::string_view) {
      if (killed != nullptr || left-- > 0) return;
      killed = disk->Clone();
      disk->SetFault({.at_call = 1, .error = EIO, .sticky = true});
    });
    io::ManualExecutor executor;
    auto opened = db::OpenDatabase(kPath, Options(), EnvironmentOn(disk.get(), &executor));
    if (!opened && killed == nullptr) return opened.error();
    if (opened && random_.OneIn(2)) {
      while (killed == nullptr && executor.RunOne()) {
      }
    }
    if (opened && killed == nullptr && random_.OneIn(2)) {
      if (Status flushed = (*opened)->Flush(); !flushed.ok() && killed == nullptr) return flushed;
    }
    disk->SetObserver({});
    if (killed == nullptr) killed = disk->Clone();
    opened = std::unique_ptr<DB>();
    executor.RunAll();
    return killed;
  }

  /// Kills and power cuts, one after the other. Nothing is written meanwhile.
  Status Chain(const Moment& moment) {
    std::unique_ptr<io::SimFileSystem> disk = moment.disk->Clone();
    size_t first = moment.acknowledged;
    std::string links = "call " + std::to_string(moment.call) + ", chain";
    const auto fail = [&](const Status& status) {
      return Failed(links + ": " + status.ToString());
    };
    for (uint64_t left = random_.Between(1, 4); left > 0; --left) {
      auto killed = OpenUntilKilled(std::move(disk));
      links += " kill";
      if (!killed) return fail(killed.error());
      disk = std::move(*killed);
      if (random_.OneIn(2)) continue;
      disk->Crash(random_.Next());
      links += " cut";
      first = moment.durable;
    }
    io::ManualExecutor executor;
    auto opened = db::OpenDatabase(kPath, Options(), EnvironmentOn(disk.get(), &executor));
    if (!opened) return fail(opened.error());
    if (Status found = CheckFound(**opened, moment, first); !found.ok()) return fail(found);
    ++states_;
    opened = std::unique_ptr<DB>();
    executor.RunAll();
    return {};
  }

  /// What was recovered takes writes, closes, and has no fault.
  Status WriteAndCheck(std::unique_ptr<DB> db, io::SimFileSystem* disk,
                       io::ManualExecutor* executor) {
    for (const Status& written :
         {Status(db->Put("after the cut", "written", {.durability = Durability::kPower})),
          db->Close()}) {
      if (!written.ok()) return written;
    }
    db.reset();
    executor->RunAll();
    const auto report = db::CheckDatabase(kPath, EnvironmentOn(disk, executor), {});
    if (!report) return report.error();
    return report->ok() ? Status() : report->findings.front().status;
  }

  /// The workload goes on from what a kill left, if that has all that was begun: it is then as if
  /// nothing had happened.
  Status ContinueFromKill(const Moment& moment) {
    if (moment.acknowledged != moment.begun || moment.begun != history_.begun()) return {};
    moments_.clear();
    disk_->SetObserver({});
    db_.reset();
    executor_.RunAll();
    disk_ = moment.disk->Clone();
    history_.ForgetDurableSince(moment.durable);
    Observe();
    if (Status opened = Open(); !opened.ok()) return Failed("reopening: " + opened.ToString());
    if (Status found = CheckFound(*db_, moment, moment.begun); !found.ok()) {
      return Failed("after a kill: " + found.ToString());
    }
    if (Status taken = TakeUnlogged(); !taken.ok()) return Failed("going on: " + taken.ToString());
    return {};
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
    if (Status opened = Open(); !opened.ok()) return Failed("reopening: " + opened.ToString());
    const auto content = ReadLogged(*db_);
    if (!content) return Failed("reading: " + content.error().ToString());
    const uint64_t hash = ContentHash(*content);
    if (!history_.Find(hash, moment.durable, moment.begun, clock_.WallMillis())) {
      return Failed("going on: " + Explain(hash, moment, moment.durable));
    }
    history_.Restart(*content);
    if (Status taken = TakeUnlogged(); !taken.ok()) return Failed("going on: " + taken.ToString());
    moments_.clear();  // those seen while reopening belong to the history before
    return {};
  }

  std::string Explain(uint64_t hash, const Moment& moment, size_t first) {
    if (const auto earlier = history_.Find(hash, 0, moment.begun, clock_.WallMillis()); earlier) {
      return "the state after write " + std::to_string(*earlier) + " was found, but write " +
             std::to_string(first) + " had been acknowledged" +
             (first == moment.durable ? " at kPower" : "");
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
  KeyspaceId second_ = KeyspaceId::kDefault;
  KeyspaceId unlogged_ = KeyspaceId::kDefault;
  WriteHistory history_;
  uint64_t expiring_values_ = 0;
  Content unlogged_content_;
  std::unordered_set<uint64_t> unlogged_written_;  // RecordHash of all that was ever put
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
