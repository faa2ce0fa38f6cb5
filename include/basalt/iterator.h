#pragma once

#include <optional>
#include <string_view>

#include "basalt/status.h"
#include "basalt/wall_time.h"

// Ordered walks over the keys of a store. Read Iterator first.

namespace basalt {

/// Iterates over a store's keys in bytewise order, within its bounds. It sees the store at its
/// snapshot, or as it was when the iterator was created. It has no position before the first Seek.
///
///     auto it = db->NewIterator({.prefix = "user/"});
///     for (it->SeekToFirst(); it->Valid(); it->Next()) Use(it->key(), it->value());
///     if (!it->status().ok()) Report(it->status());
///
/// Used by one thread at a time. It keeps its store's internal state alive, so the store's handle
/// may be destroyed first. After a database is closed, its iterators report FailedPrecondition in
/// `status()` at the next move. A forward iterator may return several dozen more records before
/// that.
class Iterator {
 public:
  virtual ~Iterator() = default;
  Iterator(const Iterator&) = delete;
  Iterator& operator=(const Iterator&) = delete;

  /// True at a record. False before the first Seek, beyond either end, and after an error.
  bool Valid() const noexcept { return valid_; }
  /// The current record. The views are valid until the next move. Call them only if Valid().
  /// `value` is empty with ReadOptions::keys_only.
  std::string_view key() const noexcept { return key_; }
  std::string_view value() const noexcept { return value_; }
  /// When the current record expires, by the clock of its database. Nothing: never. Call it only if
  /// Valid(). An iterator shows the records that had not expired when it was created, so the time
  /// may have passed already. Costs one call, and nothing if it is not used.
  virtual std::optional<WallTime> expiry() const noexcept { return std::nullopt; }

  virtual void SeekToFirst() = 0;
  virtual void SeekToLast() = 0;
  /// To the first key >= `target` (clamped to the bounds).
  virtual void Seek(std::string_view target) = 0;
  /// To the last key <= `target` (clamped to the bounds).
  virtual void SeekForPrev(std::string_view target) = 0;
  /// Does nothing if the iterator is not valid. Amortised O(1), plus the hidden records between the
  /// two keys.
  virtual void Next() = 0;
  virtual void Prev() = 0;

  /// Ok, or the error that ended the iteration. It stays until the next successful Seek.
  const Status& status() const noexcept { return status_; }

 protected:
  Iterator() = default;
  std::string_view key_;
  std::string_view value_;
  bool valid_ = false;
  Status status_;
};

}  // namespace basalt
