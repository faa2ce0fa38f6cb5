#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/metamorphic/operation.h"

namespace basalt::metamorphic {

/// What a key has. Values are shared, so that copies are cheap.
struct Cell {
  std::shared_ptr<const std::string> value{};
  uint64_t expiry_ms = 0;  ///< Absent from then on; 0: never.
  /// A merge wanted to change a number that is none: reading the key is FailedPrecondition.
  bool is_unreadable = false;

  bool HasExpired(uint64_t now_ms) const noexcept { return expiry_ms != 0 && expiry_ms <= now_ms; }
  /// What a reader sees is the same.
  bool LooksLike(const Cell& other) const;
};

/// What a keyspace should hold: an ordinary map.
using Contents = std::map<std::string, Cell, std::less<>>;

/// The contents of all keyspaces at one moment.
using SpaceContents = std::array<std::shared_ptr<const Contents>, kSpaces>;

/// Contents as a reader of that moment sees them: without what has expired.
std::shared_ptr<const Contents> ReadAt(const std::shared_ptr<const Contents>& contents,
                                       uint64_t now_ms);
/// The key's cell, if a reader of that moment sees it.
const Cell* FindAt(const Contents& contents, std::string_view key, uint64_t now_ms);

/// One record of a write.
struct Change {
  RecordKind kind = RecordKind::kPut;
  Space space = Space::kDefault;
  std::string key;
  std::string end{};                           ///< Of a range.
  std::shared_ptr<const std::string> value{};  ///< Of a put, and a merge's operand.
  uint64_t expiry_ms = 0;                      ///< Of a put.
  MergeOperator merge_operator = MergeOperator::kAppend;
};

/// What was written to a database, and what a power cut may leave of it.
///
/// Kept are the present contents and, for every write since the last one that is known to be
/// durable, how to take it back. A database after a power cut must hold the contents after one of
/// these writes, or those before the first. Which one is found by hashes: that of a map is the sum
/// of its records' hashes, so that taking back a write changes it in O(its records).
class Model {
 public:
  using UncertainKeys = std::vector<std::pair<Space, std::string>>;

  Model();

  /// The present contents, which later writes leave alone.
  SpaceContents Freeze() const;
  const Contents& contents(Space space) const { return *contents_[static_cast<size_t>(space)]; }

  /// One atomic write at that wall time; its changes apply in order.
  void Write(std::span<const Change> changes, uint64_t now_ms);
  /// A keyspace loses all that it holds, as a write does.
  void Clear(Space space);
  /// All writes up to here survive a power cut.
  void SetDurable() { undo_.clear(); }

  /// After a power cut: makes what was found at that wall time the present contents, if it is a
  /// prefix of what was written with all that is durable. Else says how it differs from the nearest
  /// such prefix. Prefixes that look alike may differ in when keys expire: `uncertain` gets those.
  std::optional<std::string> Recover(const SpaceContents& found, uint64_t now_ms,
                                     UncertainKeys* uncertain);

 private:
  struct Before {
    Space space;
    std::string key;
    std::optional<Cell> cell;
  };
  using Undo = std::vector<Before>;  ///< In the order of the changes.

  Contents& Mutable(Space space);
  void Apply(const Change& change, uint64_t now_ms, Undo* undo);
  void Set(Space space, const std::string& key, std::optional<Cell> cell, Undo* undo);
  /// What the hash of what is seen changes by.
  uint64_t TakeBackLast(uint64_t now_ms);
  uint64_t HashAt(uint64_t now_ms) const;
  std::string DifferenceFrom(const SpaceContents& found, uint64_t now_ms) const;
  std::string DescribeNearest(const SpaceContents& found, uint64_t now_ms);

  std::array<std::shared_ptr<Contents>, kSpaces> contents_;
  std::vector<Undo> undo_;
};

/// The keys in which two maps differ, as text; empty when they look alike. At most a few are named.
std::string Difference(const Contents& expected, const Contents& found);

}  // namespace basalt::metamorphic
