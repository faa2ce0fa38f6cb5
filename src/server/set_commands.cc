#include <algorithm>
#include <set>

#include "server/command.h"
#include "server/numbers.h"
#include "server/random_choice.h"
#include "server/scan.h"

namespace basalt::server {
namespace {

/// A larger set gives a random member without all being read.
constexpr uint64_t kMembersReadAtOnce = 512;

bool AddMember(Call& call, Key* set, std::string_view member) {
  if (!set->exists && set->meta.id == 0) call.view.MakeCollection(set, Type::kSet);
  const std::string element = ElementKey(set->meta.id, member);
  if (call.view.Has(element)) return false;
  call.view.Put(element, {});
  ++set->meta.count;
  return true;
}

bool RemoveMember(Call& call, Key* set, std::string_view member) {
  if (!set->exists) return false;
  const std::string element = ElementKey(set->meta.id, member);
  if (!call.view.Has(element)) return false;
  call.view.Delete(element);
  --set->meta.count;
  return true;
}

bool HasMember(Call& call, const Key& set, std::string_view member) {
  return set.exists && call.view.Has(ElementKey(set.meta.id, member));
}

std::vector<std::string> MembersOf(Call& call, const Key& set) {
  std::vector<std::string> members;
  if (!set.exists) return members;
  for (Walk walk(&call.view, ElementPrefix(set.meta.id), true); walk.Valid(); walk.Next()) {
    members.emplace_back(walk.key());
  }
  return members;
}

void RunSadd(Call& call) {
  Key set;
  if (!call.Open(call.arg(1), Type::kSet, &set)) return;
  int64_t added = 0;
  for (size_t i = 2; i < call.count(); ++i) added += AddMember(call, &set, call.arg(i)) ? 1 : 0;
  if (added > 0) call.view.Save(set);
  call.reply.Integer(added);
}

void RunSrem(Call& call) {
  Key set;
  if (!call.Open(call.arg(1), Type::kSet, &set)) return;
  int64_t removed = 0;
  for (size_t i = 2; i < call.count(); ++i) removed += RemoveMember(call, &set, call.arg(i));
  if (removed > 0) call.view.Save(set);
  call.reply.Integer(removed);
}

void RunScard(Call& call) {
  Key set;
  if (call.Open(call.arg(1), Type::kSet, &set)) {
    call.reply.Integer(static_cast<int64_t>(set.meta.count));
  }
}

void RunSismember(Call& call) {
  Key set;
  if (call.Open(call.arg(1), Type::kSet, &set)) {
    call.reply.Integer(HasMember(call, set, call.arg(2)) ? 1 : 0);
  }
}

void RunSmismember(Call& call) {
  Key set;
  if (!call.Open(call.arg(1), Type::kSet, &set)) return;
  call.reply.Array(call.count() - 2);
  for (size_t i = 2; i < call.count(); ++i) {
    call.reply.Integer(HasMember(call, set, call.arg(i)) ? 1 : 0);
  }
}

void RunSmembers(Call& call) {
  Key set;
  if (!call.Open(call.arg(1), Type::kSet, &set)) return;
  call.reply.Set(set.meta.count);
  if (!set.exists) return;
  for (Walk walk(&call.view, ElementPrefix(set.meta.id), true);
       walk.Valid() && !call.reply.is_over_limit(); walk.Next()) {
    call.reply.Bulk(walk.key());
  }
}

void RunSscan(Call& call) {
  Key set;
  Scan scan;
  if (!scan.Parse(call, 2, false) || !call.Open(call.arg(1), Type::kSet, &set)) return;
  std::vector<std::string> found;
  Walk walk(&call.view, ElementPrefix(set.meta.id), true);
  if (!scan.place.empty()) walk.Seek(scan.place);
  for (uint64_t seen = 0; walk.Valid() && seen < scan.count; ++seen, walk.Next()) {
    if (scan.Matches(walk.key())) found.emplace_back(walk.key());
  }
  Scan::ReplyCursor(call, walk);
  call.reply.Array(found.size());
  for (const std::string& member : found) call.reply.Bulk(member);
}

/// Some member of a set that is there.
std::string RandomMember(Call& call, const Key& set) {
  if (set.meta.count <= kMembersReadAtOnce) {
    const std::vector<std::string> members = MembersOf(call, set);
    if (members.empty()) return {};
    return members[ChooseRandomly(members.size(), 1, 1)[0]];
  }
  Walk walk(&call.view, ElementPrefix(set.meta.id), true);
  SeekToRandom(&walk);
  return walk.Valid() ? std::string(walk.key()) : std::string();
}

void RunSpop(Call& call) {
  if (call.count() > 3) return call.SyntaxError();
  std::optional<int64_t> count;
  if (call.count() == 3) {
    count = ParseInteger(call.arg(2));
    if (!count || *count < 0) {
      return call.reply.Error("ERR value is out of range, must be positive");
    }
  }
  Key set;
  if (!call.Open(call.arg(1), Type::kSet, &set)) return;
  if (!count) {
    if (!set.exists) return call.reply.Null();
    const std::string member = RandomMember(call, set);
    RemoveMember(call, &set, member);
    call.view.Save(set);
    return call.reply.Bulk(member);
  }
  if (static_cast<uint64_t>(*count) >= set.meta.count) {
    RunSmembers(call);
    return call.view.Remove(set);
  }
  const std::vector<std::string> members = MembersOf(call, set);
  const std::vector<size_t> chosen = ChooseRandomly(members.size(), *count, 0);
  call.reply.Set(chosen.size());
  for (const size_t index : chosen) {
    call.reply.Bulk(members[index]);
    RemoveMember(call, &set, members[index]);
  }
  if (!chosen.empty()) call.view.Save(set);
}

void RunSrandmember(Call& call) {
  if (call.count() > 3) return call.SyntaxError();
  Key set;
  if (call.count() == 2) {
    if (!call.Open(call.arg(1), Type::kSet, &set)) return;
    return set.exists ? call.reply.Bulk(RandomMember(call, set)) : call.reply.Null();
  }
  const std::optional<int64_t> count = call.Integer(2);
  if (!count) return;
  if (*count < -(INT64_MAX / 2)) return call.reply.Error("ERR value is out of range");
  if (!call.Open(call.arg(1), Type::kSet, &set)) return;
  const std::vector<std::string> members = MembersOf(call, set);
  const std::vector<size_t> chosen =
      ChooseRandomly(members.size(), *count, call.reply.limit_bytes() / 8);
  call.reply.Array(chosen.size());
  for (const size_t index : chosen) call.reply.Bulk(members[index]);
}

void RunSmove(Call& call) {
  Key source;
  Key target;
  if (!call.Open(call.arg(1), Type::kSet, &source)) return;
  if (!source.exists) return call.reply.Integer(0);
  if (!call.Open(call.arg(2), Type::kSet, &target)) return;
  if (call.arg(1) == call.arg(2)) {
    return call.reply.Integer(HasMember(call, source, call.arg(3)) ? 1 : 0);
  }
  if (!RemoveMember(call, &source, call.arg(3))) return call.reply.Integer(0);
  call.view.Save(source);
  if (AddMember(call, &target, call.arg(3))) call.view.Save(target);
  call.reply.Integer(1);
}

enum class SetOperation : uint8_t { kInter, kUnion, kDiff };

/// The result over the keys from `first` up to `end`. False: one of them has another type.
bool Combine(Call& call, SetOperation operation, size_t first, size_t end, size_t limit,
             std::set<std::string>* result) {
  std::vector<Key> sets;
  for (size_t i = first; i < end; ++i) {
    Key set;
    if (!call.Open(call.arg(i), Type::kSet, &set)) return false;
    sets.push_back(std::move(set));
  }
  if (operation == SetOperation::kUnion) {
    for (const Key& set : sets) {
      for (std::string& member : MembersOf(call, set)) result->insert(std::move(member));
    }
    return true;
  }
  const bool inter = operation == SetOperation::kInter;
  // The smallest set gives the candidates of an intersection.
  const auto base =
      inter
          ? std::min_element(sets.begin(), sets.end(),
                             [](const Key& a, const Key& b) { return a.meta.count < b.meta.count; })
          : sets.begin();
  for (std::string& member : MembersOf(call, *base)) {
    const bool kept = std::all_of(sets.begin(), sets.end(), [&](const Key& set) {
      return &set == &*base || HasMember(call, set, member) == inter;
    });
    if (kept) result->insert(std::move(member));
    if (result->size() >= limit) break;
  }
  return true;
}

void ReplyCombined(Call& call, SetOperation operation) {
  std::set<std::string> result;
  if (!Combine(call, operation, 1, call.count(), SIZE_MAX, &result)) return;
  call.reply.Set(result.size());
  for (const std::string& member : result) call.reply.Bulk(member);
}
void RunSinter(Call& call) { ReplyCombined(call, SetOperation::kInter); }
void RunSunion(Call& call) { ReplyCombined(call, SetOperation::kUnion); }
void RunSdiff(Call& call) { ReplyCombined(call, SetOperation::kDiff); }

void StoreCombined(Call& call, SetOperation operation) {
  std::set<std::string> result;
  if (!Combine(call, operation, 2, call.count(), SIZE_MAX, &result)) return;
  const Key old = call.view.Find(call.arg(1));
  call.view.Remove(old);
  Key target{.name = call.arg(1)};
  if (!result.empty()) {
    call.view.MakeCollection(&target, Type::kSet);
    target.meta.count = result.size();
    for (const std::string& member : result) {
      call.view.Put(ElementKey(target.meta.id, member), {});
    }
    call.view.Save(target);
  }
  call.reply.Integer(static_cast<int64_t>(result.size()));
}
void RunSinterstore(Call& call) { StoreCombined(call, SetOperation::kInter); }
void RunSunionstore(Call& call) { StoreCombined(call, SetOperation::kUnion); }
void RunSdiffstore(Call& call) { StoreCombined(call, SetOperation::kDiff); }

void RunSintercard(Call& call) {
  const std::optional<int64_t> numkeys = ParseInteger(call.arg(1));
  if (!numkeys || *numkeys <= 0) return call.reply.Error("ERR numkeys should be greater than 0");
  if (static_cast<uint64_t>(*numkeys) > call.count() - 2) {
    return call.reply.Error("ERR Number of keys can't be greater than number of args");
  }
  const size_t end = 2 + static_cast<size_t>(*numkeys);
  size_t limit = SIZE_MAX;
  for (size_t i = end; i < call.count(); i += 2) {
    if (!call.Is(i, "limit") || i + 1 >= call.count()) return call.SyntaxError();
    const std::optional<int64_t> number = ParseInteger(call.arg(i + 1));
    if (!number || *number < 0) return call.reply.Error("ERR LIMIT can't be negative");
    limit = *number == 0 ? SIZE_MAX : static_cast<size_t>(*number);
  }
  std::set<std::string> result;
  if (!Combine(call, SetOperation::kInter, 2, end, limit, &result)) return;
  call.reply.Integer(static_cast<int64_t>(result.size()));
}

constexpr Command kSetCommands[] = {
    {"sadd", "key member [member ...]", -3, kWrite | kFast, 1, 1, 1, Group::kSet,
     "Adds members to a set.", RunSadd},
    {"srem", "key member [member ...]", -3, kWrite | kFast, 1, 1, 1, Group::kSet,
     "Removes members of a set.", RunSrem},
    {"scard", "key", 2, kReadOnly | kFast | kSingleRead, 1, 1, 1, Group::kSet,
     "Returns the number of members of a set.", RunScard},
    {"sismember", "key member", 3, kReadOnly | kFast, 1, 1, 1, Group::kSet,
     "Says whether a set has a member.", RunSismember},
    {"smismember", "key member [member ...]", -3, kReadOnly | kFast, 1, 1, 1, Group::kSet,
     "Says of each member whether a set has it.", RunSmismember},
    {"smembers", "key", 2, kReadOnly, 1, 1, 1, Group::kSet,
     "Returns all members of a set, in order.", RunSmembers},
    {"sscan", "key cursor [MATCH pattern] [COUNT count]", -3, kReadOnly, 1, 1, 1, Group::kSet,
     "Iterates over the members of a set, in order.", RunSscan},
    {"spop", "key [count]", -2, kWrite | kFast, 1, 1, 1, Group::kSet,
     "Removes and returns random members of a set.", RunSpop},
    {"srandmember", "key [count]", -2, kReadOnly, 1, 1, 1, Group::kSet,
     "Returns random members of a set.", RunSrandmember},
    {"smove", "source destination member", 4, kWrite | kFast, 1, 2, 1, Group::kSet,
     "Moves a member from one set to another.", RunSmove},
    {"sinter", "key [key ...]", -2, kReadOnly, 1, -1, 1, Group::kSet,
     "Returns the intersection of sets.", RunSinter},
    {"sunion", "key [key ...]", -2, kReadOnly, 1, -1, 1, Group::kSet, "Returns the union of sets.",
     RunSunion},
    {"sdiff", "key [key ...]", -2, kReadOnly, 1, -1, 1, Group::kSet,
     "Returns the members of the first set that no other has.", RunSdiff},
    {"sinterstore", "destination key [key ...]", -3, kWrite, 1, -1, 1, Group::kSet,
     "Stores the intersection of sets.", RunSinterstore},
    {"sunionstore", "destination key [key ...]", -3, kWrite, 1, -1, 1, Group::kSet,
     "Stores the union of sets.", RunSunionstore},
    {"sdiffstore", "destination key [key ...]", -3, kWrite, 1, -1, 1, Group::kSet,
     "Stores the difference of sets.", RunSdiffstore},
    {"sintercard", "numkeys key [key ...] [LIMIT limit]", -3, kReadOnly | kMovableKeys, 0, 0, 0,
     Group::kSet, "Counts the members of an intersection.", RunSintercard},
};

}  // namespace

std::span<const Command> SetCommands() { return kSetCommands; }

}  // namespace basalt::server
