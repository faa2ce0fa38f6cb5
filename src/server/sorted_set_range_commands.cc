#include "server/command.h"
#include "server/numbers.h"
#include "server/sorted_set.h"

namespace basalt::server {
namespace {

struct RangeOptions {
  MemberRange range{};
  bool with_scores = false;
  bool has_limit = false;

  /// Reads the options from `at` on. `any`: BYSCORE, BYLEX and REV are options, too.
  bool Parse(Call& call, size_t at, bool any, bool may_have_scores);
};

bool RangeOptions::Parse(Call& call, size_t at, bool any, bool may_have_scores) {
  for (; at < call.count(); ++at) {
    if (call.Is(at, "withscores") && may_have_scores) {
      with_scores = true;
    } else if (call.Is(at, "limit") && at + 2 < call.count()) {
      const std::optional<int64_t> offset = call.Integer(at + 1);
      if (!offset) return false;
      const std::optional<int64_t> limit = call.Integer(at + 2);
      if (!limit) return false;
      range.offset = *offset;
      range.limit = *limit;
      has_limit = true;
      at += 2;
    } else if (any && call.Is(at, "byscore")) {
      range.by = MemberRange::By::kScore;
    } else if (any && call.Is(at, "bylex")) {
      range.by = MemberRange::By::kLex;
    } else if (any && call.Is(at, "rev")) {
      range.reverse = true;
    } else {
      call.SyntaxError();
      return false;
    }
  }
  if (has_limit && range.by == MemberRange::By::kIndex) {
    call.reply.Error(
        "ERR syntax error, LIMIT is only supported in combination with either "
        "BYSCORE or BYLEX");
    return false;
  }
  if (with_scores && range.by == MemberRange::By::kLex) {
    call.reply.Error("ERR syntax error, WITHSCORES not supported in combination with BYLEX");
    return false;
  }
  return true;
}

void ReplyRange(Call& call, RangeOptions options, bool any, bool may_have_scores) {
  if (!options.Parse(call, 4, any, may_have_scores)) return;
  if (!options.range.ParseBounds(call, 2)) return;
  Key zset;
  if (!call.Open(call.arg(1), Type::kZset, &zset)) return;
  ReplyMembers(call, SelectMembers(call, zset, options.range), options.with_scores);
}

RangeOptions By(MemberRange::By by, bool reverse) {
  return {.range = {.by = by, .reverse = reverse}};
}

void RunZrange(Call& call) { ReplyRange(call, {}, true, true); }
void RunZrevrange(Call& call) { ReplyRange(call, By(MemberRange::By::kIndex, true), false, true); }
void RunZrangebyscore(Call& call) {
  ReplyRange(call, By(MemberRange::By::kScore, false), false, true);
}
void RunZrevrangebyscore(Call& call) {
  ReplyRange(call, By(MemberRange::By::kScore, true), false, true);
}
void RunZrangebylex(Call& call) {
  ReplyRange(call, By(MemberRange::By::kLex, false), false, false);
}
void RunZrevrangebylex(Call& call) {
  ReplyRange(call, By(MemberRange::By::kLex, true), false, false);
}

void RunZrangestore(Call& call) {
  RangeOptions options;
  if (!options.Parse(call, 5, true, false) || !options.range.ParseBounds(call, 3)) return;
  Key zset;
  if (!call.Open(call.arg(2), Type::kZset, &zset)) return;
  StoreMembers(call, call.arg(1), SelectMembers(call, zset, options.range));
}

void ReplyCount(Call& call, MemberRange range) {
  if (!range.ParseBounds(call, 2)) return;
  Key zset;
  if (!call.Open(call.arg(1), Type::kZset, &zset)) return;
  call.reply.Integer(static_cast<int64_t>(SelectMembers(call, zset, range).size()));
}
void RunZcount(Call& call) { ReplyCount(call, {.by = MemberRange::By::kScore}); }
void RunZlexcount(Call& call) { ReplyCount(call, {.by = MemberRange::By::kLex}); }

void RemoveRange(Call& call, MemberRange range) {
  if (!range.ParseBounds(call, 2)) return;
  Key zset;
  if (!call.Open(call.arg(1), Type::kZset, &zset)) return;
  const std::vector<ScoredMember> members = SelectMembers(call, zset, range);
  for (const ScoredMember& member : members) {
    RemoveScored(call, &zset, member.member, member.score);
  }
  if (!members.empty()) call.view.Save(zset);
  call.reply.Integer(static_cast<int64_t>(members.size()));
}
void RunZremrangebyrank(Call& call) { RemoveRange(call, {}); }
void RunZremrangebyscore(Call& call) { RemoveRange(call, {.by = MemberRange::By::kScore}); }
void RunZremrangebylex(Call& call) { RemoveRange(call, {.by = MemberRange::By::kLex}); }

constexpr Command kSortedSetRangeCommands[] = {
    {"zrange", "key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]", -4,
     kReadOnly, 1, 1, 1, Group::kSortedSet,
     "Returns the members in a range of indexes, scores or members.", RunZrange},
    {"zrevrange", "key start stop [WITHSCORES]", -4, kReadOnly, 1, 1, 1, Group::kSortedSet,
     "Returns the members in a range of indexes from the greatest score down.", RunZrevrange},
    {"zrangebyscore", "key min max [WITHSCORES] [LIMIT offset count]", -4, kReadOnly, 1, 1, 1,
     Group::kSortedSet, "Returns the members in a range of scores.", RunZrangebyscore},
    {"zrevrangebyscore", "key max min [WITHSCORES] [LIMIT offset count]", -4, kReadOnly, 1, 1, 1,
     Group::kSortedSet, "Returns the members in a range of scores, the greatest first.",
     RunZrevrangebyscore},
    {"zrangebylex", "key min max [LIMIT offset count]", -4, kReadOnly, 1, 1, 1, Group::kSortedSet,
     "Returns the members in a range of members.", RunZrangebylex},
    {"zrevrangebylex", "key max min [LIMIT offset count]", -4, kReadOnly, 1, 1, 1,
     Group::kSortedSet, "Returns the members in a range of members, the greatest first.",
     RunZrevrangebylex},
    {"zrangestore", "destination source min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]", -5,
     kWrite, 1, 2, 1, Group::kSortedSet, "Stores the members in a range of a sorted set.",
     RunZrangestore},
    {"zcount", "key min max", 4, kReadOnly, 1, 1, 1, Group::kSortedSet,
     "Counts the members in a range of scores.", RunZcount},
    {"zlexcount", "key min max", 4, kReadOnly, 1, 1, 1, Group::kSortedSet,
     "Counts the members in a range of members.", RunZlexcount},
    {"zremrangebyrank", "key start stop", 4, kWrite, 1, 1, 1, Group::kSortedSet,
     "Removes the members in a range of indexes.", RunZremrangebyrank},
    {"zremrangebyscore", "key min max", 4, kWrite, 1, 1, 1, Group::kSortedSet,
     "Removes the members in a range of scores.", RunZremrangebyscore},
    {"zremrangebylex", "key min max", 4, kWrite, 1, 1, 1, Group::kSortedSet,
     "Removes the members in a range of members.", RunZremrangebylex},
};

}  // namespace

std::span<const Command> SortedSetRangeCommands() { return kSortedSetRangeCommands; }

}  // namespace basalt::server
