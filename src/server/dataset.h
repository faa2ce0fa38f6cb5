#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "basalt/db.h"
#include "basalt/status.h"

namespace basalt::server {

inline constexpr uint8_t kDatabases = 16;

/// Where iterations over keys, fields and members go on: the numbers that SCAN and its kin hand out
/// stand for keys in order. The newest kCursorsMax are known; they begin at a random number, so
/// that one from before a restart is not taken for another's. Thread-safe.
class CursorTable {
 public:
  static constexpr size_t kCursorsMax = 16384;

  CursorTable();
  uint64_t Add(std::string place);
  /// Nothing: it is not known, or not any more.
  std::optional<std::string> Find(uint64_t cursor) const;

 private:
  mutable std::mutex mutex_;
  uint64_t next_;
  std::unordered_map<uint64_t, std::string> places_;
  std::deque<uint64_t> order_;
};

/// The data of a server: the keyspace "redis" of a database (encoding.h has its layout), the ids of
/// new collections, and the sweeper. Thread-safe. The database outlives it.
class Dataset {
 public:
  /// Makes the keyspace when it is absent, and begins an epoch of ids. `is_power_durable`: the
  /// database writes at Durability::kPower.
  static Result<std::unique_ptr<Dataset>> Open(DB* db, bool is_power_durable);

  DB& db() noexcept { return *db_; }
  KeyspaceId keyspace() const noexcept { return keyspace_; }
  uint64_t NewId() noexcept { return next_id_.fetch_add(1, std::memory_order_relaxed); }
  bool is_power_durable() const noexcept { return is_power_durable_; }
  CursorTable& cursors() noexcept { return cursors_; }

  /// Whether the tables are small enough beside the cache that a range read seldom needs the disk.
  /// Then event loops may iterate; else pool threads do. Renewed by Sweep.
  bool iterates_in_memory() const noexcept {
    return iterates_in_memory_.load(std::memory_order_relaxed);
  }

  /// Tells Sweep that there is a collection with an expiry. After the commit that has written it.
  void NoteExpiry() noexcept { may_have_expiries_.store(true, std::memory_order_release); }

  /// Removes elements of collections that have expired, at most `limit` collections. Gives how many
  /// it looked at. Reads nothing as long as no collection has an expiry. One call at a time.
  Result<size_t> Sweep(size_t limit);

  /// Keys of a Redis database that are there now. Reads all of their names.
  Result<uint64_t> CountKeys(uint8_t db);
  /// The same, as it was counted before; anew if that is longer ago than a hundred times what
  /// counting took, and a second.
  uint64_t ApproximateKeys(uint8_t db);

  /// Milliseconds since 1970.
  static uint64_t NowMs() noexcept;

 private:
  Dataset(DB* db, bool is_power_durable) : db_(db), is_power_durable_(is_power_durable) {}
  Status BeginEpoch();
  Result<size_t> SweepExpired(size_t limit);
  Status SweepOne(std::string_view record_key, std::string_view owner);
  void LookAtTables();

  struct Count {
    uint64_t keys = 0;
    std::chrono::steady_clock::time_point valid_until{};
  };

  DB* db_;
  const bool is_power_durable_;
  KeyspaceId keyspace_ = KeyspaceId::kDefault;
  std::atomic<uint64_t> next_id_{0};
  std::atomic<bool> iterates_in_memory_{true};
  std::atomic<bool> may_have_expiries_{true};  // False: no record of an expiry was committed.
  uint64_t memory_budget_ = 0;
  CursorTable cursors_;
  std::mutex counts_mutex_;
  Count counts_[kDatabases];
};

}  // namespace basalt::server
