#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "server/command.h"
#include "server/numbers.h"
#include "server/random_choice.h"
#include "server/scan.h"
#include "server/sorted_set.h"

namespace basalt::server {
namespace {

bool OpenZset(Call& call, size_t index, Key* zset) {
  return call.Open(call.arg(index), Type::kZset, zset);
}

struct AddOptions {
  bool nx = false;
  bool xx = false;
  bool gt = false;
  bool lt = false;
  bool ch = false;
  bool incr = false;
};

/// What became of a member that ZADD or ZINCRBY named.
struct Added {
  bool is_new = false;
  bool changed = false;
  std::optional<double> score{};  // Nothing: the options kept it as it was.
  bool not_a_number = false;
};

Added AddScored(Call& call, Key* zset, std::string_view member, double score,
                const AddOptions& options) {
  const std::optional<double> old = ScoreOfMember(call, *zset, member);
  if (old ? options.nx : options.xx) return {};
  if (old && options.incr) score += *old;
  if (std::isnan(score)) return {.not_a_number = true};
  if (old && ((options.gt && score <= *old) || (options.lt && score >= *old))) return {};
  if (!old || score != *old) PutScore(call, zset, member, old, score);
  return {.is_new = !old, .changed = old && score != *old, .score = score};
}

/// Reads ZADD's options; gives where scores begin, or nothing, and an error is replied.
std::optional<size_t> ParseAddOptions(Call& call, AddOptions* options) {
  size_t at = 2;
  for (; at < call.count(); ++at) {
    const std::string word = ToLower(call.arg(at));
    if (word == "nx") {
      options->nx = true;
    } else if (word == "xx") {
      options->xx = true;
    } else if (word == "gt") {
      options->gt = true;
    } else if (word == "lt") {
      options->lt = true;
    } else if (word == "ch") {
      options->ch = true;
    } else if (word == "incr") {
      options->incr = true;
    } else {
      break;
    }
  }
  const size_t left = call.count() - at;
  if (left == 0 || left % 2 != 0) {
    call.SyntaxError();
  } else if (options->nx && options->xx) {
    call.reply.Error("ERR XX and NX options at the same time are not compatible");
  } else if ((options->gt && options->nx) || (options->lt && options->nx) ||
             (options->gt && options->lt)) {
    call.reply.Error("ERR GT, LT, and/or NX options at the same time are not compatible");
  } else if (options->incr && left > 2) {
    call.reply.Error("ERR INCR option supports a single increment-element pair");
  } else {
    return at;
  }
  return std::nullopt;
}

void NotANumber(Call& call) { call.reply.Error("ERR resulting score is not a number (NaN)"); }

void RunZadd(Call& call) {
  AddOptions options;
  const std::optional<size_t> first = ParseAddOptions(call, &options);
  if (!first) return;
  std::vector<double> scores;
  for (size_t i = *first; i < call.count(); i += 2) {
    const std::optional<double> score = call.Double(i);
    if (!score) return;
    scores.push_back(*score);
  }
  Key zset;
  if (!OpenZset(call, 1, &zset)) return;
  int64_t added = 0;
  int64_t changed = 0;
  Added last;
  for (size_t i = 0; i < scores.size(); ++i) {
    last = AddScored(call, &zset, call.arg(*first + 2 * i + 1), scores[i], options);
    if (last.not_a_number) return NotANumber(call);
    added += last.is_new ? 1 : 0;
    changed += last.changed ? 1 : 0;
  }
  if (added + changed > 0) call.view.Save(zset);
  if (options.incr) return last.score ? call.reply.Double(*last.score) : call.reply.Null();
  call.reply.Integer(options.ch ? added + changed : added);
}

void RunZincrby(Call& call) {
  const std::optional<double> step = call.Double(2);
  if (!step) return;
  Key zset;
  if (!OpenZset(call, 1, &zset)) return;
  const Added added = AddScored(call, &zset, call.arg(3), *step, {.incr = true});
  if (added.not_a_number) return NotANumber(call);
  if (added.is_new || added.changed) call.view.Save(zset);
  call.reply.Double(added.score.value_or(0));
}

void RunZrem(Call& call) {
  Key zset;
  if (!OpenZset(call, 1, &zset)) return;
  int64_t removed = 0;
  for (size_t i = 2; i < call.count(); ++i) {
    const std::optional<double> score = ScoreOfMember(call, zset, call.arg(i));
    if (!score) continue;
    RemoveScored(call, &zset, call.arg(i), *score);
    ++removed;
  }
  if (removed > 0) call.view.Save(zset);
  call.reply.Integer(removed);
}

void ReplyScore(Call& call, const std::optional<double>& score) {
  score ? call.reply.Double(*score) : call.reply.Null();
}

void RunZscore(Call& call) {
  Key zset;
  if (OpenZset(call, 1, &zset)) ReplyScore(call, ScoreOfMember(call, zset, call.arg(2)));
}

void RunZmscore(Call& call) {
  Key zset;
  if (!OpenZset(call, 1, &zset)) return;
  call.reply.Array(call.count() - 2);
  for (size_t i = 2; i < call.count(); ++i) {
    ReplyScore(call, ScoreOfMember(call, zset, call.arg(i)));
  }
}

void RunZcard(Call& call) {
  Key zset;
  if (OpenZset(call, 1, &zset)) call.reply.Integer(static_cast<int64_t>(zset.meta.count));
}

void ReplyRank(Call& call, bool reverse) {
  Key zset;
  if (!OpenZset(call, 1, &zset)) return;
  const std::optional<double> score = ScoreOfMember(call, zset, call.arg(2));
  if (!score) return call.reply.Null();
  int64_t rank = 0;
  ScoreWalk walk(call, zset);
  if (reverse) walk.SeekToLast();
  for (; walk.Valid() && walk.member() != call.arg(2); walk.Move(reverse)) ++rank;
  call.reply.Integer(rank);
}
void RunZrank(Call& call) { ReplyRank(call, false); }
void RunZrevrank(Call& call) { ReplyRank(call, true); }

/// Removes and gives up to `count` members from one end.
std::vector<ScoredMember> PopMembers(Call& call, Key* zset, bool greatest, uint64_t count) {
  const int64_t last = static_cast<int64_t>(std::min(count, zset->meta.count)) - 1;
  if (last < 0) return {};
  const std::vector<ScoredMember> popped =
      SelectMembers(call, *zset, {.reverse = greatest, .start = 0, .stop = last});
  for (const ScoredMember& member : popped) {
    RemoveScored(call, zset, member.member, member.score);
  }
  if (!popped.empty()) call.view.Save(*zset);
  return popped;
}

void PopFromEnd(Call& call, bool greatest) {
  if (call.count() > 3) return call.SyntaxError();
  std::optional<int64_t> count;
  if (call.count() == 3) {
    count = ParseInteger(call.arg(2));
    if (!count || *count < 0) {
      return call.reply.Error("ERR value is out of range, must be positive");
    }
  }
  Key zset;
  if (!OpenZset(call, 1, &zset)) return;
  const std::vector<ScoredMember> popped =
      PopMembers(call, &zset, greatest, static_cast<uint64_t>(count.value_or(1)));
  if (count) return ReplyMembers(call, popped, true);
  call.reply.Array(popped.size() * 2);
  for (const ScoredMember& member : popped) {
    call.reply.Bulk(member.member);
    call.reply.Double(member.score);
  }
}
void RunZpopmin(Call& call) { PopFromEnd(call, false); }
void RunZpopmax(Call& call) { PopFromEnd(call, true); }

void BlockingPopMember(Call& call, bool greatest) {
  std::optional<Wait> wait = ParseWait(call, call.arg(call.count() - 1));
  if (!wait) return;
  for (size_t i = 1; i + 1 < call.count(); ++i) {
    Key zset;
    if (!OpenZset(call, i, &zset)) return;
    const std::vector<ScoredMember> popped = PopMembers(call, &zset, greatest, 1);
    if (popped.empty()) {
      wait->keys.emplace_back(call.arg(i));
      continue;
    }
    call.reply.Array(3);
    call.reply.Bulk(call.arg(i));
    call.reply.Bulk(popped[0].member);
    return call.reply.Double(popped[0].score);
  }
  call.wait = std::move(wait);
}
void RunBzpopmin(Call& call) { BlockingPopMember(call, false); }
void RunBzpopmax(Call& call) { BlockingPopMember(call, true); }

void RunZscan(Call& call) {
  Key zset;
  Scan scan;
  if (!scan.Parse(call, 2, false) || !OpenZset(call, 1, &zset)) return;
  std::vector<ScoredMember> found;
  Walk walk(&call.view, ElementPrefix(zset.meta.id) + 'm');
  if (!scan.place.empty()) walk.Seek(scan.place);
  for (uint64_t seen = 0; walk.Valid() && seen < scan.count; ++seen, walk.Next()) {
    if (scan.Matches(walk.key()) && walk.value().size() == 8) {
      found.push_back({std::string(walk.key()), ScoreOf(LoadBigEndian(walk.value().data()))});
    }
  }
  Scan::ReplyCursor(call, walk);
  call.reply.Array(found.size() * 2);
  for (const ScoredMember& member : found) {
    call.reply.Bulk(member.member);
    call.reply.Bulk(FormatDouble(member.score));
  }
}

void RunZrandmember(Call& call) {
  const bool has_count = call.count() > 2;
  const std::optional<int64_t> wanted = has_count ? call.Integer(2) : 1;
  if (!wanted) return;
  const bool with_scores = call.count() == 4 && call.Is(3, "withscores");
  if (call.count() > 4 || (call.count() == 4 && !with_scores)) return call.SyntaxError();
  if (*wanted < -(INT64_MAX / 2) || *wanted > INT64_MAX / 2) {
    return call.reply.Error("ERR value is out of range");
  }
  Key zset;
  if (!OpenZset(call, 1, &zset)) return;
  const std::vector<ScoredMember> all = SelectMembers(call, zset, {});
  std::vector<ScoredMember> chosen;
  for (const size_t index : ChooseRandomly(all.size(), *wanted, call.reply.limit_bytes() / 8)) {
    chosen.push_back(all[index]);
  }
  if (has_count) return ReplyMembers(call, chosen, with_scores);
  chosen.empty() ? call.reply.Null() : call.reply.Bulk(chosen[0].member);
}

enum class SortedOperation : uint8_t { kInter, kUnion, kDiff };
enum class Aggregate : uint8_t { kSum, kMin, kMax };

struct Combination {
  size_t first = 0;  // The keys' places.
  size_t end = 0;
  std::vector<double> weights{};
  Aggregate aggregate = Aggregate::kSum;
  bool with_scores = false;

  bool Parse(Call& call, size_t numkeys_index, SortedOperation operation, bool stores);
  bool ParseOption(Call& call, size_t* at, SortedOperation operation, bool stores);
};

bool Combination::ParseOption(Call& call, size_t* at, SortedOperation operation, bool stores) {
  if (call.Is(*at, "withscores") && !stores) {
    with_scores = true;
    ++*at;
    return true;
  }
  if (operation != SortedOperation::kDiff && call.Is(*at, "weights") &&
      *at + weights.size() < call.count()) {
    for (double& weight : weights) {
      const std::optional<double> number = call.Double(++*at, "ERR weight value is not a float");
      if (!number) return false;
      weight = *number;
    }
    ++*at;
    return true;
  }
  if (operation != SortedOperation::kDiff && call.Is(*at, "aggregate") && *at + 1 < call.count()) {
    const std::string word = ToLower(call.arg(*at + 1));
    if (word == "sum" || word == "min" || word == "max") {
      aggregate = word == "sum"   ? Aggregate::kSum
                  : word == "min" ? Aggregate::kMin
                                  : Aggregate::kMax;
      *at += 2;
      return true;
    }
  }
  call.SyntaxError();
  return false;
}

bool Combination::Parse(Call& call, size_t numkeys_index, SortedOperation operation, bool stores) {
  const std::optional<int64_t> numkeys = call.Integer(numkeys_index);
  if (!numkeys) return false;
  if (*numkeys < 1) {
    call.reply.Error("ERR at least 1 input key is needed for '" + std::string(call.command.name) +
                     "' command");
    return false;
  }
  first = numkeys_index + 1;
  if (static_cast<uint64_t>(*numkeys) > call.count() - first) {
    call.SyntaxError();
    return false;
  }
  end = first + static_cast<size_t>(*numkeys);
  for (size_t i = first; i < end; ++i) {
    const Key key = call.view.Find(call.arg(i));
    const bool fits = key.meta.type == Type::kSet || key.meta.type == Type::kZset;
    if (key.exists && !fits) return call.WrongType(), false;
  }
  weights.assign(end - first, 1);
  for (size_t at = end; at < call.count();) {
    if (!ParseOption(call, &at, operation, stores)) return false;
  }
  return true;
}

using Scores = std::map<std::string, double>;

/// The members of a set or sorted set. False: the key has another type.
bool ReadScores(Call& call, std::string_view name, double weight, Scores* scores) {
  const Key key = call.view.Find(name);
  if (!key.exists) return true;
  const auto weighted = [&](double score) {
    const double product = score * weight;
    return std::isnan(product) ? 0 : product;
  };
  if (key.meta.type == Type::kSet) {
    for (Walk walk(&call.view, ElementPrefix(key.meta.id), true); walk.Valid(); walk.Next()) {
      (*scores)[std::string(walk.key())] = weighted(1);
    }
    return true;
  }
  if (key.meta.type != Type::kZset) return call.WrongType(), false;
  for (ScoreWalk walk(call, key); walk.Valid(); walk.Move(false)) {
    (*scores)[std::string(walk.member())] = weighted(walk.score());
  }
  return true;
}

double Aggregated(Aggregate aggregate, double a, double b) {
  if (aggregate == Aggregate::kMin) return std::min(a, b);
  if (aggregate == Aggregate::kMax) return std::max(a, b);
  const double sum = a + b;
  return std::isnan(sum) ? 0 : sum;  // Of infinities of both signs.
}

/// The combined members by score. False: an error is replied.
bool CombineScores(Call& call, SortedOperation operation, const Combination& how,
                   std::vector<ScoredMember>* result) {
  Scores all;
  for (size_t i = how.first; i < how.end; ++i) {
    Scores scores;
    if (!ReadScores(call, call.arg(i), how.weights[i - how.first], &scores)) return false;
    if (i == how.first) {
      all = std::move(scores);
    } else if (operation == SortedOperation::kUnion) {
      for (const auto& [member, score] : scores) {
        const auto [at, added] = all.emplace(member, score);
        if (!added) at->second = Aggregated(how.aggregate, at->second, score);
      }
    } else {
      std::erase_if(all, [&](const auto& entry) {
        return scores.contains(entry.first) == (operation == SortedOperation::kDiff);
      });
      if (operation == SortedOperation::kInter) {
        for (auto& [member, score] : all) {
          score = Aggregated(how.aggregate, score, scores[member]);
        }
      }
    }
  }
  for (const auto& [member, score] : all) result->push_back({member, score});
  std::sort(result->begin(), result->end(), [](const ScoredMember& a, const ScoredMember& b) {
    return std::tie(a.score, a.member) < std::tie(b.score, b.member);
  });
  return true;
}

void ReplyCombination(Call& call, SortedOperation operation) {
  Combination how;
  std::vector<ScoredMember> result;
  if (!how.Parse(call, 1, operation, false)) return;
  if (CombineScores(call, operation, how, &result)) ReplyMembers(call, result, how.with_scores);
}
void RunZunion(Call& call) { ReplyCombination(call, SortedOperation::kUnion); }
void RunZinter(Call& call) { ReplyCombination(call, SortedOperation::kInter); }
void RunZdiff(Call& call) { ReplyCombination(call, SortedOperation::kDiff); }

void StoreCombination(Call& call, SortedOperation operation) {
  Combination how;
  std::vector<ScoredMember> result;
  if (!how.Parse(call, 2, operation, true)) return;
  if (CombineScores(call, operation, how, &result)) StoreMembers(call, call.arg(1), result);
}
void RunZunionstore(Call& call) { StoreCombination(call, SortedOperation::kUnion); }
void RunZinterstore(Call& call) { StoreCombination(call, SortedOperation::kInter); }
void RunZdiffstore(Call& call) { StoreCombination(call, SortedOperation::kDiff); }

constexpr Command kSortedSetCommands[] = {
    {"zadd", "key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]", -4,
     kWrite | kFast, 1, 1, 1, Group::kSortedSet, "Sets the scores of members of a sorted set.",
     RunZadd},
    {"zincrby", "key increment member", 4, kWrite | kFast, 1, 1, 1, Group::kSortedSet,
     "Adds to the score of a member.", RunZincrby},
    {"zrem", "key member [member ...]", -3, kWrite | kFast, 1, 1, 1, Group::kSortedSet,
     "Removes members of a sorted set.", RunZrem},
    {"zscore", "key member", 3, kReadOnly | kFast, 1, 1, 1, Group::kSortedSet,
     "Returns the score of a member.", RunZscore},
    {"zmscore", "key member [member ...]", -3, kReadOnly | kFast, 1, 1, 1, Group::kSortedSet,
     "Returns the scores of several members.", RunZmscore},
    {"zcard", "key", 2, kReadOnly | kFast | kSingleRead, 1, 1, 1, Group::kSortedSet,
     "Returns the number of members of a sorted set.", RunZcard},
    {"zrank", "key member", 3, kReadOnly, 1, 1, 1, Group::kSortedSet,
     "Returns the rank of a member, in a time that grows with the rank.", RunZrank},
    {"zrevrank", "key member", 3, kReadOnly, 1, 1, 1, Group::kSortedSet,
     "Returns the rank of a member from the greatest score down.", RunZrevrank},
    {"zpopmin", "key [count]", -2, kWrite | kFast, 1, 1, 1, Group::kSortedSet,
     "Removes and returns the members with the least scores.", RunZpopmin},
    {"zpopmax", "key [count]", -2, kWrite | kFast, 1, 1, 1, Group::kSortedSet,
     "Removes and returns the members with the greatest scores.", RunZpopmax},
    {"bzpopmin", "key [key ...] timeout", -3, kWrite | kNoScript | kBlocking | kFast, 1, -2, 1,
     Group::kSortedSet, "ZPOPMIN of the first sorted set that is there. Waits until there is one.",
     RunBzpopmin},
    {"bzpopmax", "key [key ...] timeout", -3, kWrite | kNoScript | kBlocking | kFast, 1, -2, 1,
     Group::kSortedSet, "ZPOPMAX of the first sorted set that is there. Waits until there is one.",
     RunBzpopmax},
    {"zscan", "key cursor [MATCH pattern] [COUNT count]", -3, kReadOnly, 1, 1, 1, Group::kSortedSet,
     "Iterates over members and scores, in order of the members.", RunZscan},
    {"zrandmember", "key [count [WITHSCORES]]", -2, kReadOnly, 1, 1, 1, Group::kSortedSet,
     "Returns random members of a sorted set.", RunZrandmember},
    {"zunion",
     "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM|MIN|MAX] [WITHSCORES]", -3,
     kReadOnly | kMovableKeys, 0, 0, 0, Group::kSortedSet, "Returns the union of sorted sets.",
     RunZunion},
    {"zinter",
     "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM|MIN|MAX] [WITHSCORES]", -3,
     kReadOnly | kMovableKeys, 0, 0, 0, Group::kSortedSet,
     "Returns the intersection of sorted sets.", RunZinter},
    {"zdiff", "numkeys key [key ...] [WITHSCORES]", -3, kReadOnly | kMovableKeys, 0, 0, 0,
     Group::kSortedSet, "Returns the members of the first sorted set that no other has.", RunZdiff},
    {"zunionstore",
     "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM|MIN|MAX]", -4,
     kWrite | kMovableKeys, 1, 1, 1, Group::kSortedSet, "Stores the union of sorted sets.",
     RunZunionstore},
    {"zinterstore",
     "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM|MIN|MAX]", -4,
     kWrite | kMovableKeys, 1, 1, 1, Group::kSortedSet, "Stores the intersection of sorted sets.",
     RunZinterstore},
    {"zdiffstore", "destination numkeys key [key ...]", -4, kWrite | kMovableKeys, 1, 1, 1,
     Group::kSortedSet, "Stores the difference of sorted sets.", RunZdiffstore},
};

}  // namespace

std::span<const Command> SortedSetCommands() { return kSortedSetCommands; }

}  // namespace basalt::server
