#include "server/sorted_set.h"

#include <algorithm>

#include "server/numbers.h"

namespace basalt::server {
namespace {

std::string ScoreBytes(uint64_t ordered) {
  std::string bytes;
  AppendBigEndian(&bytes, ordered);
  return bytes;
}

bool ParseScoreBound(std::string_view text, ScoreBound* bound) {
  bound->exclusive = text.starts_with('(');
  const std::optional<double> score = ParseDouble(text.substr(bound->exclusive ? 1 : 0));
  bound->score = score.value_or(0);
  return score.has_value();
}

bool ParseLexBound(std::string_view text, LexBound* bound) {
  if (text == "-" || text == "+") {
    bound->kind = text == "-" ? LexBound::Kind::kLeast : LexBound::Kind::kGreatest;
    return true;
  }
  if (!text.starts_with('[') && !text.starts_with('(')) return false;
  bound->exclusive = text.front() == '(';
  bound->member = text.substr(1);
  return true;
}

bool IsAbove(std::string_view member, const LexBound& low) {
  if (low.kind != LexBound::Kind::kMember) return low.kind == LexBound::Kind::kLeast;
  return low.exclusive ? member > low.member : member >= low.member;
}
bool IsBelow(std::string_view member, const LexBound& high) {
  if (high.kind != LexBound::Kind::kMember) return high.kind == LexBound::Kind::kGreatest;
  return high.exclusive ? member < high.member : member <= high.member;
}

/// Takes what a range's offset and limit let through.
class Taker {
 public:
  explicit Taker(const MemberRange& range) : to_skip_(range.offset), left_(range.limit) {}

  bool IsFull() const { return left_ == 0 || to_skip_ < 0; }
  void Take(std::string_view member, double score) {
    if (to_skip_ > 0) {
      --to_skip_;
      return;
    }
    if (left_ > 0) --left_;
    taken.push_back({std::string(member), score});
  }

  std::vector<ScoredMember> taken;

 private:
  int64_t to_skip_;
  int64_t left_;
};

std::vector<ScoredMember> SelectByIndex(Call& call, const Key& zset, const MemberRange& range) {
  const auto size = static_cast<int64_t>(zset.meta.count);
  int64_t first = range.start < 0 ? std::max<int64_t>(range.start + size, 0) : range.start;
  int64_t last = std::min(range.stop < 0 ? range.stop + size : range.stop, size - 1);
  std::vector<ScoredMember> taken;
  if (first > last) return taken;
  if (range.reverse) {
    const int64_t reversed = size - 1 - first;
    first = size - 1 - last;
    last = reversed;
  }
  // From the nearer end.
  const bool backward = first > size - 1 - last;
  ScoreWalk walk(call, zset);
  backward ? walk.SeekToLast() : walk.SeekToFirst();
  const int64_t to_skip = backward ? size - 1 - last : first;
  for (int64_t i = 0; i < to_skip && walk.Valid(); ++i) walk.Move(backward);
  for (int64_t i = first; i <= last && walk.Valid(); ++i) {
    taken.push_back({std::string(walk.member()), walk.score()});
    walk.Move(backward);
  }
  if (backward != range.reverse) std::reverse(taken.begin(), taken.end());
  return taken;
}

std::vector<ScoredMember> SelectByScore(Call& call, const Key& zset, const MemberRange& range) {
  Taker taker(range);
  ScoreWalk walk(call, zset);
  if (range.reverse) {
    walk.SeekDown(range.high.score, range.high.exclusive);
  } else {
    walk.SeekUp(range.low.score, range.low.exclusive);
  }
  for (; walk.Valid() && !taker.IsFull(); walk.Move(range.reverse)) {
    const double score = walk.score();
    const bool inside =
        (range.low.exclusive ? score > range.low.score : score >= range.low.score) &&
        (range.high.exclusive ? score < range.high.score : score <= range.high.score);
    if (!inside) break;
    taker.Take(walk.member(), score);
  }
  return std::move(taker.taken);
}

std::vector<ScoredMember> SelectByLex(Call& call, const Key& zset, const MemberRange& range) {
  Taker taker(range);
  Walk walk(&call.view, ElementPrefix(zset.meta.id) + 'm');
  const LexBound& begin = range.reverse ? range.lex_high : range.lex_low;
  if (range.reverse) {
    begin.kind == LexBound::Kind::kMember ? walk.SeekForPrev(begin.member) : walk.SeekToLast();
  } else if (begin.kind == LexBound::Kind::kMember) {
    walk.Seek(begin.member);
  }
  const auto move = [&] { range.reverse ? walk.Prev() : walk.Next(); };
  if (walk.Valid() && begin.exclusive && walk.key() == begin.member) move();
  for (; walk.Valid() && !taker.IsFull(); move()) {
    if (!IsAbove(walk.key(), range.lex_low) || !IsBelow(walk.key(), range.lex_high)) break;
    const double score = walk.value().size() == 8 ? ScoreOf(LoadBigEndian(walk.value().data())) : 0;
    taker.Take(walk.key(), score);
  }
  return std::move(taker.taken);
}

}  // namespace

std::optional<double> ScoreOfMember(Call& call, const Key& zset, std::string_view member) {
  if (zset.meta.id == 0) return std::nullopt;  // Absent, and not made by this command.
  const std::optional<std::string> bytes = call.view.Get(MemberKey(zset.meta.id, member));
  if (!bytes || bytes->size() != 8) return std::nullopt;
  return ScoreOf(LoadBigEndian(bytes->data()));
}

void PutScore(Call& call, Key* zset, std::string_view member, std::optional<double> old,
              double score) {
  if (!zset->exists && zset->meta.id == 0) call.view.MakeCollection(zset, Type::kZset);
  if (old) {
    call.view.Delete(ScoreKey(zset->meta.id, *old, member));
  } else {
    ++zset->meta.count;
  }
  call.view.Put(MemberKey(zset->meta.id, member), ScoreBytes(OrderedScore(score)));
  call.view.Put(ScoreKey(zset->meta.id, score, member), {});
}

void RemoveScored(Call& call, Key* zset, std::string_view member, double score) {
  call.view.Delete(MemberKey(zset->meta.id, member));
  call.view.Delete(ScoreKey(zset->meta.id, score, member));
  --zset->meta.count;
}

ScoreWalk::ScoreWalk(Call& call, const Key& zset)
    : walk_(&call.view, ElementPrefix(zset.meta.id) + 's', true) {}

void ScoreWalk::SeekUp(double score, bool above) {
  walk_.Seek(ScoreBytes(OrderedScore(score) + (above ? 1 : 0)));
}

void ScoreWalk::SeekDown(double score, bool below) {
  const std::string bound = ScoreBytes(OrderedScore(score) + (below ? 0 : 1));
  walk_.SeekForPrev(bound);
  if (walk_.Valid() && walk_.key() == bound) walk_.Prev();
}

bool MemberRange::ParseBounds(Call& call, size_t index) {
  const std::string_view first = call.arg(reverse ? index + 1 : index);
  const std::string_view second = call.arg(reverse ? index : index + 1);
  if (by == By::kScore) {
    if (ParseScoreBound(first, &low) && ParseScoreBound(second, &high)) return true;
    call.reply.Error("ERR min or max is not a float");
    return false;
  }
  if (by == By::kLex) {
    if (ParseLexBound(first, &lex_low) && ParseLexBound(second, &lex_high)) return true;
    call.reply.Error("ERR min or max not valid string range item");
    return false;
  }
  const std::optional<int64_t> from = call.Integer(index);
  if (!from) return false;
  const std::optional<int64_t> to = call.Integer(index + 1);
  if (!to) return false;
  start = *from;
  stop = *to;
  return true;
}

std::vector<ScoredMember> SelectMembers(Call& call, const Key& zset, const MemberRange& range) {
  if (!zset.exists) return {};
  switch (range.by) {
    case MemberRange::By::kIndex:
      return SelectByIndex(call, zset, range);
    case MemberRange::By::kScore:
      return SelectByScore(call, zset, range);
    case MemberRange::By::kLex:
      return SelectByLex(call, zset, range);
  }
  return {};
}

void ReplyMembers(Call& call, const std::vector<ScoredMember>& members, bool with_scores) {
  const bool nested = with_scores && call.reply.version() == 3;
  call.reply.Array(members.size() * (with_scores && !nested ? 2 : 1));
  for (const ScoredMember& member : members) {
    if (nested) call.reply.Array(2);
    call.reply.Bulk(member.member);
    if (with_scores) call.reply.Double(member.score);
  }
}

void StoreMembers(Call& call, std::string_view destination,
                  const std::vector<ScoredMember>& members) {
  const Key old = call.view.Find(destination);
  call.view.Remove(old);
  Key target{.name = destination};
  for (const ScoredMember& member : members) {
    PutScore(call, &target, member.member, std::nullopt, member.score);
  }
  if (!members.empty()) call.view.Save(target);
  call.reply.Integer(static_cast<int64_t>(members.size()));
}

}  // namespace basalt::server
