// Money that transactions move between accounts is neither lost nor made, whatever stops the
// database: power cuts, on a simulated file system, and SIGKILL.
//
// Each transfer also writes a record of itself into a keyspace of its own, with the number that it
// found there as the last. What is found after a crash must be the accounts as the first transfers
// leave them, without a gap, and all that were acknowledged as durable must be among them.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "basalt/transaction.h"
#include "base/check.h"
#include "base/coding.h"
#include "base/random.h"
#include "base/test_fork.h"
#include "db/environment.h"
#include "io/manual_executor.h"
#include "io/sim_clock.h"
#include "io/sim_file_system.h"

namespace basalt {
namespace {

constexpr uint64_t kAccounts = 8;
constexpr int64_t kFirstBalance = 1000;
constexpr std::string_view kTransfers = "transfers";

using Balances = std::array<int64_t, kAccounts>;

std::string BalanceBytes(int64_t balance) {
  std::string bytes(8, '\0');
  base::Store(bytes.data(), static_cast<uint64_t>(balance));
  return bytes;
}
int64_t BalanceOf(std::string_view bytes) {
  return bytes.size() == 8 ? static_cast<int64_t>(base::Load<uint64_t>(bytes.data())) : INT64_MIN;
}
std::string AccountKey(uint64_t account) { return "account/" + std::to_string(account); }
std::string TransferKey(uint64_t number) { return std::to_string(1'000'000'000 + number); }

struct Transfer {
  uint64_t from = 0;
  uint64_t to = 0;
  int64_t amount = 0;

  std::string ToString() const {
    return std::to_string(from) + std::to_string(to) + std::to_string(amount);
  }
  static Transfer Parse(std::string_view text) {
    Transfer read{static_cast<uint64_t>(text[0] - '0'), static_cast<uint64_t>(text[1] - '0'), 0};
    std::from_chars(text.data() + 2, text.data() + text.size(), read.amount);
    return read;
  }
};

/// A bank in a store.
class Bank {
 public:
  static Result<Bank> Open(Store* store) {
    Bank bank(store);
    BASALT_ASSIGN_OR_RETURN(bank.transfers_, store->OpenOrCreateKeyspace(kTransfers));
    WriteBatch first;
    first.RequireAbsent(AccountKey(0));
    for (uint64_t i = 0; i < kAccounts; ++i) first.Put(AccountKey(i), BalanceBytes(kFirstBalance));
    const Result<Commit> made = store->Write(first);
    if (!made && made.error().code() != StatusCode::kAborted) return made.error();
    return bank;
  }

  /// One transfer as part of `tx`. In one of three ways: reads and puts; merges alone; a scan over
  /// all accounts, which finds the sum.
  Status Move(Transaction& tx, const Transfer& transfer, uint64_t way, uint64_t* number) const {
    if (way == 0) {
      BASALT_RETURN_IF_ERROR(Add(tx, transfer.from, -transfer.amount));
      BASALT_RETURN_IF_ERROR(Add(tx, transfer.to, transfer.amount));
    } else {
      if (way == 1) BASALT_RETURN_IF_ERROR(CheckSum(tx));
      for (const auto& [account, amount] :
           {std::pair(transfer.from, -transfer.amount), std::pair(transfer.to, transfer.amount)}) {
        BASALT_RETURN_IF_ERROR(
            tx.Merge(AccountKey(account), MergeOperator::kAdd, BalanceBytes(amount)));
      }
    }
    const auto last = tx.NewIterator({.keyspace = transfers_});
    last->SeekToLast();
    BASALT_RETURN_IF_ERROR(last->status());
    *number = last->Valid() ? NumberOf(last->key()) + 1 : 1;
    return tx.Put(TransferKey(*number), transfer.ToString(), {.keyspace = transfers_});
  }

  /// The transfers that are there, if they are the first ones and explain all balances.
  Result<uint64_t> Audit() const {
    Balances expected;
    expected.fill(kFirstBalance);
    const auto transfers = store_->NewIterator({.keyspace = transfers_});
    uint64_t count = 0;
    for (transfers->SeekToFirst(); transfers->Valid(); transfers->Next()) {
      if (NumberOf(transfers->key()) != ++count) return Wrong("a transfer is missing");
      const Transfer transfer = Transfer::Parse(transfers->value());
      expected[transfer.from] -= transfer.amount;
      expected[transfer.to] += transfer.amount;
    }
    BASALT_RETURN_IF_ERROR(transfers->status());
    int64_t sum = 0;
    for (uint64_t i = 0; i < kAccounts; ++i) {
      BASALT_ASSIGN_OR_RETURN(const MaybeValue found, store_->Get(AccountKey(i)));
      if (!found) return Wrong("an account is missing");
      sum += BalanceOf(found->view());
      if (BalanceOf(found->view()) != expected[i]) return Wrong("a balance is not explained");
    }
    if (sum != static_cast<int64_t>(kAccounts) * kFirstBalance) return Wrong("the sum is another");
    return count;
  }

 private:
  explicit Bank(Store* store) : store_(store) {}

  static Status Wrong(std::string_view what) { return Status(StatusCode::kCorruption, what); }
  static uint64_t NumberOf(std::string_view key) {
    uint64_t number = 0;
    std::from_chars(key.data(), key.data() + key.size(), number);
    return number - 1'000'000'000;
  }
  static Status Add(Transaction& tx, uint64_t account, int64_t amount) {
    BASALT_ASSIGN_OR_RETURN(const MaybeValue found, tx.Get(AccountKey(account)));
    if (!found) return Wrong("an account is missing");
    return tx.Put(AccountKey(account), BalanceBytes(BalanceOf(found->view()) + amount));
  }
  static Status CheckSum(Transaction& tx) {
    int64_t sum = 0;
    const auto accounts = tx.NewIterator({.prefix = "account/"});
    for (accounts->SeekToFirst(); accounts->Valid(); accounts->Next()) {
      sum += BalanceOf(accounts->value());
    }
    BASALT_RETURN_IF_ERROR(accounts->status());
    if (sum == static_cast<int64_t>(kAccounts) * kFirstBalance) return {};
    return Wrong("a transaction sees another sum");
  }

  Store* store_;
  KeyspaceId transfers_ = KeyspaceId::kDefault;
};

Transfer RandomTransfer(base::Random* random) {
  return {random->Below(kAccounts), random->Below(kAccounts),
          static_cast<int64_t>(random->Between(1, 100))};
}

// Power cuts

/// A moment at which the power may be cut, and the transfers that must be there afterwards.
struct CutMoment {
  std::unique_ptr<io::SimFileSystem> disk;
  uint64_t durable = 0;
};

class BankUnderPowerCuts {
 public:
  explicit BankUnderPowerCuts(uint64_t seed) : random_(seed) {}
  ~BankUnderPowerCuts() { disk_.SetObserver({}); }

  void Run() {
    const std::unique_ptr<DB> db = Open(&disk_, &executor_);
    Bank bank = Bank::Open(db.get()).value();
    ASSERT_TRUE(db->Sync().ok());
    disk_.SetObserver([this](uint64_t, std::string_view, std::string_view) {
      if (random_.OneIn(25)) moments_.push_back({disk_.Clone(), durable_});
    });
    for (int i = 0; i < 150; ++i) {
      ASSERT_NO_FATAL_FAILURE(Step(db.get(), bank));
      for (const CutMoment& moment : std::exchange(moments_, {})) {
        ASSERT_NO_FATAL_FAILURE(Cut(moment));
      }
    }
    ASSERT_EQ(bank.Audit().value(), acknowledged_);
    EXPECT_GT(cuts_, 20);
    EXPECT_GT(aborted_, 5);
  }

 private:
  std::unique_ptr<DB> Open(io::SimFileSystem* disk, io::ManualExecutor* executor) {
    db::Environment environment;
    environment.fs = disk;
    environment.clock = &clock_;
    environment.executor = executor;
    environment.memtable_bytes = 8192;
    environment.table_bytes = 4096;
    DBOptions options;
    options.memory_budget = uint64_t{4} << 20;
    auto opened = db::OpenDatabase("/db", options, environment);
    EXPECT_TRUE(opened.ok()) << opened.error().ToString();
    return opened ? std::move(*opened) : nullptr;
  }

  /// Two transactions side by side, of which one commits.
  void Step(DB* db, const Bank& bank) {
    Transaction first = db->Begin().value();
    Transaction second = db->Begin().value();
    uint64_t number = 0;
    ASSERT_TRUE(bank.Move(first, RandomTransfer(&random_), random_.Below(3), &number).ok());
    ASSERT_TRUE(bank.Move(second, RandomTransfer(&random_), random_.Below(3), &number).ok());
    const bool power = random_.OneIn(4);
    const WriteOptions options{.durability = power ? Durability::kPower : Durability::kProcess};
    const bool second_wins = random_.OneIn(2);
    ASSERT_TRUE((second_wins ? second : first).Commit(options).ok());
    acknowledged_ = number;
    if (power) durable_ = number;
    const Result<Commit> refused = (second_wins ? first : second).Commit(options);
    ASSERT_FALSE(refused.ok());
    ASSERT_EQ(refused.error().code(), StatusCode::kAborted) << refused.error().ToString();
    ++aborted_;
    if (random_.OneIn(3)) executor_.RunOne();
    const Status tidied = random_.OneIn(20)   ? db->Flush()
                          : random_.OneIn(50) ? db->CompactRange()
                                              : Status();
    ASSERT_TRUE(tidied.ok());
  }

  void Cut(const CutMoment& moment) {
    for (int i = 0; i < 3; ++i) {
      const std::unique_ptr<io::SimFileSystem> disk = moment.disk->Clone();
      disk->Crash(random_.Next());
      io::ManualExecutor executor;
      std::unique_ptr<DB> db = Open(disk.get(), &executor);
      ASSERT_NE(db, nullptr);
      const Result<uint64_t> found = Bank::Open(db.get()).value().Audit();
      ASSERT_TRUE(found.ok()) << found.error().ToString();
      ASSERT_GE(*found, moment.durable);
      ASSERT_LE(*found, acknowledged_ + 1);
      ++cuts_;
      db.reset();
      executor.RunAll();
    }
  }

  base::Random random_;
  io::SimClock clock_;
  io::SimFileSystem disk_;
  io::ManualExecutor executor_;
  std::vector<CutMoment> moments_;
  uint64_t acknowledged_ = 0;
  uint64_t durable_ = 0;
  int cuts_ = 0;
  int aborted_ = 0;
};

TEST(Bank, KeepsItsSumUnderPowerCuts) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ASSERT_NO_FATAL_FAILURE(BankUnderPowerCuts(seed).Run());
  }
}

// SIGKILL

/// Moves money in three threads until it is killed. Writes the number of each transfer that was
/// acknowledged to `acknowledged`.
[[noreturn]] void TransferUntilKilled(const std::string& path, uint64_t seed, int acknowledged) {
  std::unique_ptr<DB> db = DB::Open(path).value();
  const Bank bank = Bank::Open(db.get()).value();
  const auto work = [&](uint64_t thread) {
    base::Random random(seed * 10 + thread);
    while (true) {
      uint64_t number = 0;
      const Transfer transfer = RandomTransfer(&random);
      const uint64_t way = random.Below(3);
      const Result<Commit> moved =
          Transact(*db, [&](Transaction& tx) { return bank.Move(tx, transfer, way, &number); },
                   {.attempts = 1000});
      if (!moved) _exit(2);
      if (write(acknowledged, &number, sizeof number) != sizeof number) _exit(3);
    }
  };
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 2; ++i) threads.emplace_back(work, i);
  work(2);
  std::abort();
}

/// The greatest number in the pipe, of which all ends that write are closed.
uint64_t GreatestIn(int pipe) {
  uint64_t greatest = 0;
  for (uint64_t number = 0; read(pipe, &number, sizeof number) == sizeof number;) {
    greatest = std::max(greatest, number);
  }
  return greatest;
}

// This process opens no database, so that it has no threads when it forks.
TEST(Bank, KeepsItsSumUnderKills) {
  std::string path = (std::filesystem::temp_directory_path() / "basalt-bank-XXXXXX").string();
  ASSERT_NE(mkdtemp(path.data()), nullptr);
  base::Random random(1);
  uint64_t transfers = 0;
  for (uint64_t round = 1; round <= 5; ++round) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      close(ends[0]);
      TransferUntilKilled(path + "/db", round, ends[1]);
    }
    close(ends[1]);
    // It is killed some time after its first transfer.
    uint64_t acknowledged = 0;
    ASSERT_EQ(read(ends[0], &acknowledged, sizeof acknowledged),
              static_cast<ssize_t>(sizeof acknowledged));
    std::thread killer([&, wait = std::chrono::milliseconds(random.Below(200))] {
      std::this_thread::sleep_for(wait);
      kill(child, SIGKILL);
    });
    acknowledged = std::max(acknowledged, GreatestIn(ends[0]));
    killer.join();
    close(ends[0]);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
    transfers = acknowledged;
    const int checked = base::InChild([&] {
      std::unique_ptr<DB> db = DB::Open(path + "/db").value();
      const Result<uint64_t> found = Bank::Open(db.get()).value().Audit();
      if (!found) return 4;
      return *found >= acknowledged ? 0 : 5;
    });
    ASSERT_EQ(checked, 0) << "round " << round;
  }
  EXPECT_GT(transfers, 5u);
  std::filesystem::remove_all(path);
}

}  // namespace
}  // namespace basalt
