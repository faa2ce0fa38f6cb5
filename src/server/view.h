#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/iterator.h"
#include "basalt/transaction.h"
#include "server/dataset.h"
#include "server/encoding.h"

namespace basalt::server {

/// Whether a command may wait: for a disk, for a flush, for a long iteration.
enum class Mode : uint8_t {
  kLoop,  ///< On an event loop: what would have to wait is WouldBlock.
  kPool,  ///< On a thread of the pool.
};

/// A key of a Redis database as a view has it.
struct Key {
  std::string_view name;
  bool exists = false;
  Metadata meta{};
  std::string text{};  ///< Of a string: its bytes.
  uint64_t version = 0;
  std::optional<WallTime> expiry{};
};

/// A key that a command has changed.
struct ChangedKey {
  uint8_t db;
  std::string name;
  bool is_removed = false;
  std::optional<WallTime> expiry{};
};

class Walk;

/// What one command, or one MULTI block, sees and changes: a transaction over the data of one Redis
/// database.
///
/// The first error is kept in status(); from then on reads find nothing and writes do nothing. So a
/// command looks at no errors: whoever runs it discards its reply and its changes when status() is
/// not ok. WouldBlock: run it again in Mode::kPool.
///
/// One thread at a time.
class View {
 public:
  /// `single_read`: the command reads one record and writes nothing, so that it needs no snapshot.
  View(Dataset* dataset, uint8_t db, Mode mode, bool single_read);
  ~View();
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  const Status& status() const noexcept { return status_; }
  void Fail(Status status);
  bool ok() const noexcept { return status_.ok(); }
  Mode mode() const noexcept { return mode_; }
  /// Records that were read or written so far.
  uint64_t steps() const noexcept { return steps_; }
  Dataset& dataset() noexcept { return *dataset_; }
  uint8_t db() const noexcept { return db_; }
  void set_db(uint8_t db) noexcept { db_ = db; }

  // Keys.
  Key Find(std::string_view name) { return FindIn(db_, name); }
  Key FindIn(uint8_t db, std::string_view name);
  /// Writes the metadata record with its expiry; removes that of a collection without elements. A
  /// key that was absent and is a collection needs an id (MakeCollection).
  void Save(const Key& key) { SaveIn(db_, key); }
  void SaveIn(uint8_t db, const Key& key);
  /// Makes an absent key an empty collection.
  void MakeCollection(Key* key, Type type);
  /// Removes the key with all its elements.
  void Remove(const Key& key) { RemoveIn(db_, key); }
  void RemoveIn(uint8_t db, const Key& key);
  /// The metadata record alone: the elements go to another key.
  void RemoveName(uint8_t db, const Key& key);
  /// All keys of one database, or of all.
  void RemoveAll(std::optional<uint8_t> db);

  // Elements, by their keys in the store.
  std::optional<std::string> Get(std::string_view element);
  bool Has(std::string_view element);
  void Put(std::string_view element, std::string_view value);
  void Delete(std::string_view element);
  void DeleteRange(std::string_view begin, std::string_view end);

  /// A point to go back to: what was written and changed before it stays.
  struct Mark {
    std::optional<Transaction::Savepoint> savepoint{};
    size_t changed = 0;
  };
  Mark SetMark();
  void RollbackTo(const Mark& mark);

  /// Applies what was written. Aborted: a conflict, run the command again. WouldBlock as above.
  Status Commit();
  /// After a commit: the version of the key whose metadata record was written last.
  uint64_t sequence() const noexcept { return sequence_; }

  /// Keys that were changed, for what waits for them, watches them or is told of them.
  const std::vector<ChangedKey>& changed() const noexcept { return changed_; }

 private:
  friend class Walk;
  Transaction* transaction();
  /// The same, for a write.
  Transaction* BeginWrite();
  void Step(uint64_t steps);
  void RemoveElements(const Metadata& meta);
  void Changed(uint8_t db, const Key& key, bool is_removed);
  ReadOptions Reads(bool track) const;

  Dataset* dataset_;
  uint8_t db_;
  Mode mode_;
  bool single_read_;
  uint64_t steps_ = 0;
  uint64_t sequence_ = 0;
  bool wrote_ = false;
  bool wrote_expiry_ = false;  // Of a collection.
  Status status_;
  std::optional<Transaction> tx_;
  std::vector<ChangedKey> changed_;
  size_t changed_before_ = 0;  // Of changed_, by earlier commands.
};

/// Walks the records of a view whose keys begin with a prefix, in order. Bounds and keys are given
/// without the prefix.
class Walk {
 public:
  /// Of elements, whose changes the metadata record tells; `track`: of anything else.
  Walk(View* view, std::string prefix, bool keys_only = false, bool track = false);

  bool Valid() const noexcept { return it_ != nullptr && it_->Valid(); }
  std::string_view key() const noexcept { return it_->key().substr(prefix_.size()); }
  std::string_view value() const noexcept { return it_->value(); }
  std::optional<WallTime> expiry() const { return it_->expiry(); }
  void SeekToFirst();
  void SeekToLast();
  void Seek(std::string_view target);
  void SeekForPrev(std::string_view target);
  void Next();
  void Prev();
  /// Ends the walk: it is not Valid any more.
  void Finish() noexcept { it_.reset(); }

 private:
  template <class Move>
  void Do(Move move);

  View* view_;
  std::string prefix_;
  std::unique_ptr<Iterator> it_;
};

}  // namespace basalt::server
