#pragma once

#include <optional>
#include <string_view>

#include "basalt/status.h"
#include "basalt/wall_time.h"

namespace basalt {

/// Walks a store's keys in bytewise order as they were when the iterator was made (or at its
/// snapshot), within its bounds. Unpositioned until a Seek.
///
///     auto it = db->NewIterator({.prefix = "user/"});
///     for (it->SeekToFirst(); it->Valid(); it->Next()) Use(it->key(), it->value());
///     if (!it->status().ok()) Report(it->status());
///
/// One thread at a time. It keeps its store's core alive: destroying the store's handle first is
/// safe. Closing a database makes its iterators answer FailedPrecondition in `status()`, at the
/// next move or, going forward, some dozen records later.
class Iterator {
 public:
  virtual ~Iterator() = default;
  Iterator(const Iterator&) = delete;
  Iterator& operator=(const Iterator&) = delete;

  /// True at a record. False before the first Seek, beyond either end, and after an error.
  bool Valid() const noexcept { return valid_; }
  /// The present record; views last until the next move. Only when Valid(). `value` is empty under
  /// ReadOptions::keys_only.
  std::string_view key() const noexcept { return key_; }
  std::string_view value() const noexcept { return value_; }
  /// When the present record expires, by the clock of its database; nothing: never. Only when
  /// Valid(). A walk shows what had not expired when the iterator was made, so that the moment may
  /// have passed. Costs a call, and nothing where it is not asked.
  virtual std::optional<WallTime> expiry() const noexcept { return std::nullopt; }

  virtual void SeekToFirst() = 0;
  virtual void SeekToLast() = 0;
  /// To the first key >= `target` (clamped to the bounds).
  virtual void Seek(std::string_view target) = 0;
  /// To the last key <= `target` (clamped to the bounds).
  virtual void SeekForPrev(std::string_view target) = 0;
  /// Nothing when not Valid(). Amortised O(1) plus the records hidden between the two keys.
  virtual void Next() = 0;
  virtual void Prev() = 0;

  /// Ok, or the error that ended the iteration; it stays until the next Seek that succeeds.
  const Status& status() const noexcept { return status_; }

 protected:
  Iterator() = default;
  std::string_view key_;
  std::string_view value_;
  bool valid_ = false;
  Status status_;
};

}  // namespace basalt
