#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/command.h"

namespace basalt::server {

// Sorted sets, as their commands share them: two records for each member, one by member and one by
// score (encoding.h).

struct ScoredMember {
  std::string member;
  double score = 0;
};

std::optional<double> ScoreOfMember(Call& call, const Key& zset, std::string_view member);
/// Sets a member's score, whatever it was: `old`, or nothing if it is new.
void PutScore(Call& call, Key* zset, std::string_view member, std::optional<double> old,
              double score);
void RemoveScored(Call& call, Key* zset, std::string_view member, double score);

/// Walks a sorted set by score.
class ScoreWalk {
 public:
  ScoreWalk(Call& call, const Key& zset);
  bool Valid() const noexcept { return walk_.Valid(); }
  double score() const noexcept { return ScoreOf(LoadBigEndian(walk_.key().data())); }
  std::string_view member() const noexcept { return walk_.key().substr(8); }
  void SeekToFirst() { walk_.SeekToFirst(); }
  void SeekToLast() { walk_.SeekToLast(); }
  /// To the first member whose score is at least `score`, or above it.
  void SeekUp(double score, bool above);
  /// To the last member whose score is at most `score`, or below it.
  void SeekDown(double score, bool below);
  void Move(bool backward) { backward ? walk_.Prev() : walk_.Next(); }

 private:
  Walk walk_;
};

/// One end of a range of scores or of members.
struct ScoreBound {
  double score = 0;
  bool exclusive = false;
};
struct LexBound {
  enum class Kind : uint8_t { kLeast, kGreatest, kMember } kind = Kind::kMember;
  std::string_view member{};
  bool exclusive = false;
};

/// Which members a range has, and in which order.
struct MemberRange {
  enum class By : uint8_t { kIndex, kScore, kLex } by = By::kIndex;
  bool reverse = false;
  int64_t start = 0;  ///< Of an index range, with its end.
  int64_t stop = -1;
  ScoreBound low{};
  ScoreBound high{};
  LexBound lex_low{};
  LexBound lex_high{};
  int64_t offset = 0;
  int64_t limit = -1;  ///< Negative: no limit.

  /// Reads both ends at `index`; with `reverse` the greater one comes first. False: an error is
  /// replied.
  bool ParseBounds(Call& call, size_t index);
};

std::vector<ScoredMember> SelectMembers(Call& call, const Key& zset, const MemberRange& range);

/// Replies with members, or with members and scores.
void ReplyMembers(Call& call, const std::vector<ScoredMember>& members, bool with_scores);

/// Replaces `destination` by a sorted set of these members and replies with their number.
void StoreMembers(Call& call, std::string_view destination,
                  const std::vector<ScoredMember>& members);

}  // namespace basalt::server
