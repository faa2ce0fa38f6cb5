// Measures transactions against RocksDB's OptimisticTransactionDB: each reads one key and writes it
// (read-modify-write). A conflict is repeated in both. Also measures what a batch costs that goes
// through a transaction instead of Store::Write. Rounds alternate; ratios are of neighbouring runs.

#include <rocksdb/db.h>
#include <rocksdb/utilities/optimistic_transaction_db.h>
#include <rocksdb/utilities/transaction.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "basalt/db.h"
#include "basalt/transaction.h"
#include "base/random.h"
#include "bench/options.h"
#include "bench/report.h"
#include "bench/text.h"

namespace basalt::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Settings {
  std::string output = "build/bench/transaction.json";
  std::string directory = "build/bench/scratch";
  std::vector<int> threads = {1, 2};
  uint64_t keys = 100'000;
  uint64_t transactions = 200'000;
  int runs = 5;
};

constexpr size_t kBatch = 100;
const std::string kValue(100, 'v');

std::string KeyOf(uint64_t number) {
  return Format("%016llx", static_cast<unsigned long long>(number));
}

/// What is measured on both.
class TransactionSubject {
 public:
  virtual ~TransactionSubject() = default;
  virtual void Put(const std::string& key, const std::string& value) = 0;
  /// Reads the key and writes it, in one transaction. False: a conflict.
  virtual bool TryIncrement(const std::string& key) = 0;
};

std::string Changed(std::string_view value) {
  std::string changed(value);
  changed[0] = changed[0] == 'v' ? 'w' : 'v';
  return changed;
}

class BasaltTransactions final : public TransactionSubject {
 public:
  explicit BasaltTransactions(const std::string& directory) {
    auto opened = DB::Open(directory);
    if (!opened) Fail("open basalt", opened.error().ToString());
    db_ = std::move(*opened);
  }

  void Put(const std::string& key, const std::string& value) override {
    const Status put = db_->Put(key, value);
    if (!put.ok()) Fail("put into basalt", put.ToString());
  }

  bool TryIncrement(const std::string& key) override {
    Transaction transaction = db_->Begin().value();
    const auto value = transaction.Get(key);
    if (!value || !*value) Fail("get from basalt", "the key is missing");
    const Status put = transaction.Put(key, Changed((*value)->view()));
    if (!put.ok()) Fail("put in a transaction of basalt", put.ToString());
    const Status committed = transaction.Commit();
    if (!committed.ok() && committed.code() != StatusCode::kAborted) {
      Fail("commit to basalt", committed.ToString());
    }
    return committed.ok();
  }

  void WriteBatches(uint64_t batches, bool through_transaction) {
    base::Random random(batches);
    for (uint64_t i = 0; i < batches; ++i) {
      WriteBatch batch;
      for (size_t put = 0; put < kBatch; ++put) batch.Put(KeyOf(random.Below(kBatchKeys)), kValue);
      if (through_transaction) {
        Transaction transaction = db_->Begin().value();
        Status written = transaction.Write(batch);
        if (written.ok()) written = transaction.Commit();
        if (!written.ok()) Fail("commit a batch to basalt", written.ToString());
      } else {
        const Status written = db_->Write(batch);
        if (!written.ok()) Fail("write a batch to basalt", written.ToString());
      }
    }
  }

 private:
  static constexpr uint64_t kBatchKeys = 1'000'000;
  std::unique_ptr<DB> db_;
};

class RocksDbTransactions final : public TransactionSubject {
 public:
  explicit RocksDbTransactions(const std::string& directory) {
    rocksdb::Options options;
    options.create_if_missing = true;
    rocksdb::OptimisticTransactionDB* opened = nullptr;
    Check(rocksdb::OptimisticTransactionDB::Open(options, directory, &opened), "open rocksdb");
    db_.reset(opened);
  }

  void Put(const std::string& key, const std::string& value) override {
    Check(db_->Put({}, key, value), "put into rocksdb");
  }

  bool TryIncrement(const std::string& key) override {
    thread_local std::unique_ptr<rocksdb::Transaction> kept;  // RocksDB advises to use it again.
    rocksdb::Transaction* const old = kept.release();
    std::unique_ptr<rocksdb::Transaction> transaction(db_->BeginTransaction({}, {}, old));
    std::string value;
    Check(transaction->GetForUpdate({}, key, &value), "get from rocksdb");
    Check(transaction->Put(key, Changed(value)), "put in a transaction of rocksdb");
    const rocksdb::Status committed = transaction->Commit();
    if (!committed.ok() && !committed.IsBusy() && !committed.IsTryAgain()) {
      Check(committed, "commit to rocksdb");
    }
    return committed.ok();
  }

 private:
  static void Check(const rocksdb::Status& status, std::string_view what) {
    if (!status.ok()) Fail(what, status.ToString());
  }
  std::unique_ptr<rocksdb::OptimisticTransactionDB> db_;
};

/// Transactions a second, and how many were repeated.
struct Rate {
  double per_second = 0;
  double conflicts = 0;
};

Rate MeasureIncrements(const Settings& settings, int threads, uint64_t seed,
                       TransactionSubject* subject) {
  const uint64_t each = settings.transactions / static_cast<uint64_t>(threads);
  std::vector<uint64_t> conflicts(static_cast<size_t>(threads));
  const auto begin = Clock::now();
  std::vector<std::thread> crew;
  for (int t = 0; t < threads; ++t) {
    crew.emplace_back([&, t] {
      base::Random random(seed * 100 + static_cast<uint64_t>(t));
      uint64_t repeated = 0;
      for (uint64_t i = 0; i < each; ++i) {
        const std::string key = KeyOf(random.Below(settings.keys));
        while (!subject->TryIncrement(key)) ++repeated;
      }
      conflicts[static_cast<size_t>(t)] = repeated;
    });
  }
  for (std::thread& thread : crew) thread.join();
  const std::chrono::duration<double> took = Clock::now() - begin;
  Rate rate{.per_second = static_cast<double>(each) * threads / took.count()};
  for (const uint64_t repeated : conflicts) rate.conflicts += static_cast<double>(repeated);
  return rate;
}

/// Where a subject's store lies. Only this is removed: the directory above may have other files.
std::string StoreOf(const Settings& settings, const char* name) {
  return settings.directory + "/transaction_bench_" + name;
}

template <class SubjectType>
std::unique_ptr<SubjectType> Filled(const Settings& settings, const char* name) {
  const std::string directory = StoreOf(settings, name);
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(settings.directory);
  auto subject = std::make_unique<SubjectType>(directory);
  for (uint64_t key = 0; key < settings.keys; ++key) subject->Put(KeyOf(key), kValue);
  return subject;
}

std::string IncrementOf(int threads) { return Format("increment_%d", threads); }

void RunRound(const Settings& settings, int round, Report* report) {
  const auto measure = [&](TransactionSubject* subject, const char* name, int threads) {
    const Rate rate =
        MeasureIncrements(settings, threads, static_cast<uint64_t>(round) + 1, subject);
    const std::string benchmark = IncrementOf(threads);
    report->Add(benchmark, name, Level::kProcess, "throughput", "ops/s", rate.per_second, threads);
    report->Add(benchmark, name, Level::kProcess, "conflicts", "", rate.conflicts, threads);
  };
  const auto ours = Filled<BasaltTransactions>(settings, "basalt");
  const auto theirs = Filled<RocksDbTransactions>(settings, "rocksdb");
  for (const int threads : settings.threads) {
    if (round % 2 == 0) measure(ours.get(), "basalt", threads);
    measure(theirs.get(), "rocksdb", threads);
    if (round % 2 != 0) measure(ours.get(), "basalt", threads);
  }
  const uint64_t batches = settings.transactions / kBatch;
  const auto time_of = [&](bool through_transaction) {
    const auto begin = Clock::now();
    ours->WriteBatches(batches, through_transaction);
    const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
    return took.count() / static_cast<double>(batches);
  };
  for (const bool through_transaction : {round % 2 == 0, round % 2 != 0}) {
    report->Add("batch", "basalt", Level::kProcess, through_transaction ? "transaction" : "plain",
                "us", time_of(through_transaction));
  }
}

/// The median, least and greatest quotient of neighbouring runs.
void PrintRatio(const std::string& what, const Figure* over, const Figure* under) {
  const Figure ratio = RatioToBest(over, {under});
  std::printf("%-60s %5.2f (%.2f to %.2f)\n", what.c_str(), ratio.Median(), ratio.Min(),
              ratio.Max());
}

void PrintRatios(const Settings& settings, const Report& report) {
  for (const int threads : settings.threads) {
    const std::string benchmark = IncrementOf(threads);
    PrintRatio(Format("increments of basalt over those of rocksdb, %d thread(s)", threads),
               report.Find(benchmark, "basalt", "throughput"),
               report.Find(benchmark, "rocksdb", "throughput"));
  }
  PrintRatio("time of a batch of 100 in a transaction over the plain one",
             report.Find("batch", "basalt", "transaction"),
             report.Find("batch", "basalt", "plain"));
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Compares transactions of Basalt with those of RocksDB.");
  AddOutput(&app, &settings.output);
  app.add_option("--dir", settings.directory,
                 "Scratch directory; only the stores made in it are removed")
      ->capture_default_str();
  AddThreads(&app, &settings.threads);
  app.add_option("--keys", settings.keys, "Keys in a store")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t{1'000}, uint64_t{100'000'000}));
  app.add_option("--transactions", settings.transactions, "Transactions of a run")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t{kBatch}, uint64_t{1'000'000'000}));
  AddRuns(&app, &settings.runs);
  CLI11_PARSE(app, argc, argv);

  std::printf("%s\n", MachineDescription().c_str());
  Report report;
  for (int round = 0; round < settings.runs; ++round) {
    RunRound(settings, round, &report);
    std::fprintf(stderr, "round %d of %d\n", round + 1, settings.runs);
  }
  for (const char* name : {"basalt", "rocksdb"}) {
    std::filesystem::remove_all(StoreOf(settings, name));
  }
  WriteFile(settings.output, report.ToJson());
  PrintRatios(settings, report);
  return 0;
}

}  // namespace
}  // namespace basalt::bench

int main(int argc, char** argv) { return basalt::bench::Main(argc, argv); }
