#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/iterator.h"
#include "basalt/options.h"
#include "tests/metamorphic/model.h"
#include "tests/metamorphic/operation.h"

namespace basalt::metamorphic {

/// What came of a comparison: an error that nobody expects, or something wrong, or neither.
struct Outcome {
  Status error{};
  std::optional<std::string> problem{};
};

/// An iterator of the database and its twin over the model's frozen contents, moved together and
/// compared after each move. Lives through later writes, flushes and compactions.
class IteratorPair {
 public:
  /// `view`: what the iterator sees, by the moment of its creation.
  IteratorPair(std::unique_ptr<Iterator> iterator, std::shared_ptr<const Contents> view,
               const ReadOptions& options);

  /// Moves both. Next and Prev are left out where there is no position.
  Outcome Apply(const std::vector<Move>& moves);
  /// From the first record to the last, and back.
  Outcome CompareAll();
  /// What a SeekToFirst answers; ok when it left the iterator valid.
  Status StatusAfterSeek();

 private:
  using Position = Contents::const_iterator;

  void MoveTwin(const Move& move);
  /// A position found for `target` in the whole, brought into the range.
  Position Clamped(Position position, std::string_view target) const;
  void MoveIterator(const Move& move);
  Outcome Apply(const Move& move);
  /// At a merge that does not fit, an iterator tells so and is not valid, but one of keys only.
  Outcome Compare(const Move& move);

  std::unique_ptr<Iterator> iterator_;
  std::shared_ptr<const Contents> view_;
  Position begin_;  ///< The range that the bounds or the prefix leave, [begin_, end_).
  Position end_;
  Position at_;          ///< end_: not valid.
  Position unreadable_;  ///< The key at which the last move ended in an error; end_: none.
  bool keys_only_;
};

}  // namespace basalt::metamorphic
