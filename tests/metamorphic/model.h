#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace basalt::metamorphic {

/// What a database should hold: an ordinary map. Values are shared, so that copies are cheap.
using Contents = std::map<std::string, std::shared_ptr<const std::string>, std::less<>>;

/// One key's new value; null: removed.
struct Change {
  std::string key;
  std::shared_ptr<const std::string> value;
};

/// What was written to a database, and what a power cut may leave of it.
///
/// Kept are the present contents and, for every write since the last one that is known to be
/// durable, how to take it back. A database after a power cut must hold the contents after one of
/// these writes, or those before the first. Which one is found by hashes: that of a map is the sum
/// of its records' hashes, so that each write changes it in O(its records).
class Model {
 public:
  Model() : contents_(std::make_shared<Contents>()) {}

  /// The present contents, which later writes leave alone.
  std::shared_ptr<const Contents> Freeze() const { return contents_; }
  const Contents& contents() const { return *contents_; }

  /// One atomic write; later changes of a key win.
  void Write(const std::vector<Change>& changes);
  /// All writes up to here survive a power cut.
  void SetDurable() { undo_.clear(); }

  /// After a power cut: makes what was found the present contents, if it is a prefix of what was
  /// written with all that is durable. Else says how it differs from the nearest such prefix.
  std::optional<std::string> Recover(const Contents& found);

 private:
  struct Undo {
    std::vector<Change> before;  ///< In the order in which to apply them.
    uint64_t hash_before;
  };

  Contents& Mutable();
  void Set(const Change& change);
  void TakeBackLast();
  std::string DescribeNearest(const Contents& found);

  std::shared_ptr<Contents> contents_;
  uint64_t hash_ = 0;
  std::vector<Undo> undo_;
};

/// The keys in which two maps differ, as text; empty when they are equal. At most a few are named.
std::string Difference(const Contents& expected, const Contents& found);

}  // namespace basalt::metamorphic
