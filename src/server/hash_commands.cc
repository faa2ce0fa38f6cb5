#include <algorithm>
#include <cmath>

#include "server/command.h"
#include "server/numbers.h"
#include "server/random_choice.h"
#include "server/scan.h"

namespace basalt::server {
namespace {

bool OpenHash(Call& call, Key* hash) { return call.Open(call.arg(1), Type::kHash, hash); }

/// Sets a field. True: it is new.
bool PutField(Call& call, Key* hash, std::string_view field, std::string_view value) {
  if (!hash->exists && hash->meta.id == 0) call.view.MakeCollection(hash, Type::kHash);
  const std::string element = ElementKey(hash->meta.id, field);
  const bool is_new = !call.view.Has(element);
  if (is_new) ++hash->meta.count;
  call.view.Put(element, value);
  return is_new;
}

std::optional<std::string> GetField(Call& call, const Key& hash, std::string_view field) {
  return hash.exists ? call.view.Get(ElementKey(hash.meta.id, field)) : std::nullopt;
}

void ReplyField(Call& call, const std::optional<std::string>& value) {
  value ? call.reply.Bulk(*value) : call.reply.Null();
}

void SetFields(Call& call, bool as_hmset) {
  if (call.count() % 2 == 1) {
    return call.reply.Error("ERR wrong number of arguments for '" + std::string(call.command.name) +
                            "' command");
  }
  Key hash;
  if (!OpenHash(call, &hash)) return;
  int64_t added = 0;
  for (size_t i = 2; i < call.count(); i += 2) {
    added += PutField(call, &hash, call.arg(i), call.arg(i + 1)) ? 1 : 0;
  }
  call.view.Save(hash);
  as_hmset ? call.reply.Ok() : call.reply.Integer(added);
}
void RunHset(Call& call) { SetFields(call, false); }
void RunHmset(Call& call) { SetFields(call, true); }

void RunHsetnx(Call& call) {
  Key hash;
  if (!OpenHash(call, &hash)) return;
  if (GetField(call, hash, call.arg(2))) return call.reply.Integer(0);
  PutField(call, &hash, call.arg(2), call.arg(3));
  call.view.Save(hash);
  call.reply.Integer(1);
}

void RunHget(Call& call) {
  Key hash;
  if (OpenHash(call, &hash)) ReplyField(call, GetField(call, hash, call.arg(2)));
}

void RunHmget(Call& call) {
  Key hash;
  if (!OpenHash(call, &hash)) return;
  call.reply.Array(call.count() - 2);
  for (size_t i = 2; i < call.count(); ++i) ReplyField(call, GetField(call, hash, call.arg(i)));
}

void RunHdel(Call& call) {
  Key hash;
  if (!OpenHash(call, &hash)) return;
  int64_t removed = 0;
  for (size_t i = 2; i < call.count() && hash.exists; ++i) {
    const std::string element = ElementKey(hash.meta.id, call.arg(i));
    if (!call.view.Has(element)) continue;
    call.view.Delete(element);
    --hash.meta.count;
    ++removed;
  }
  if (removed > 0) call.view.Save(hash);
  call.reply.Integer(removed);
}

void RunHlen(Call& call) {
  Key hash;
  if (OpenHash(call, &hash)) call.reply.Integer(static_cast<int64_t>(hash.meta.count));
}

void RunHstrlen(Call& call) {
  Key hash;
  if (!OpenHash(call, &hash)) return;
  call.reply.Integer(
      static_cast<int64_t>(GetField(call, hash, call.arg(2)).value_or(std::string()).size()));
}

void RunHexists(Call& call) {
  Key hash;
  if (OpenHash(call, &hash)) call.reply.Integer(GetField(call, hash, call.arg(2)) ? 1 : 0);
}

void ReplyAll(Call& call, bool fields, bool values) {
  Key hash;
  if (!OpenHash(call, &hash)) return;
  fields&& values ? call.reply.Map(hash.meta.count) : call.reply.Array(hash.meta.count);
  if (!hash.exists) return;
  for (Walk walk(&call.view, ElementPrefix(hash.meta.id), !values);
       walk.Valid() && !call.reply.is_over_limit(); walk.Next()) {
    if (fields) call.reply.Bulk(walk.key());
    if (values) call.reply.Bulk(walk.value());
  }
}
void RunHgetall(Call& call) { ReplyAll(call, true, true); }
void RunHkeys(Call& call) { ReplyAll(call, true, false); }
void RunHvals(Call& call) { ReplyAll(call, false, true); }

void RunHincrby(Call& call) {
  const std::optional<int64_t> step = call.Integer(3);
  if (!step) return;
  Key hash;
  if (!OpenHash(call, &hash)) return;
  const std::optional<std::string> present = GetField(call, hash, call.arg(2));
  const std::optional<int64_t> number = present ? ParseInteger(*present) : 0;
  if (!number) return call.reply.Error("ERR hash value is not an integer");
  int64_t sum = 0;
  if (__builtin_add_overflow(*number, *step, &sum)) {
    return call.reply.Error("ERR increment or decrement would overflow");
  }
  PutField(call, &hash, call.arg(2), std::to_string(sum));
  call.view.Save(hash);
  call.reply.Integer(sum);
}

void RunHincrbyfloat(Call& call) {
  const auto step = ParseLongDouble(call.arg(3));
  if (!step) return call.reply.Error("ERR value is not a valid float");
  Key hash;
  if (!OpenHash(call, &hash)) return;
  const std::optional<std::string> present = GetField(call, hash, call.arg(2));
  const auto number = present ? ParseLongDouble(*present) : 0.0L;
  if (!number) return call.reply.Error("ERR hash value is not a float");
  const long double sum = *number + *step;
  if (std::isnan(sum) || std::isinf(sum)) {
    return call.reply.Error("ERR increment would produce NaN or Infinity");
  }
  const std::string text = FormatLongDouble(sum);
  PutField(call, &hash, call.arg(2), text);
  call.view.Save(hash);
  call.reply.Bulk(text);
}

void RunHscan(Call& call) {
  Key hash;
  Scan scan;
  if (!scan.Parse(call, 2, false) || !OpenHash(call, &hash)) return;
  std::vector<std::pair<std::string, std::string>> found;
  Walk walk(&call.view, ElementPrefix(hash.meta.id));
  if (!scan.place.empty()) walk.Seek(scan.place);
  for (uint64_t seen = 0; hash.exists && walk.Valid() && seen < scan.count; ++seen, walk.Next()) {
    if (scan.Matches(walk.key())) found.emplace_back(walk.key(), walk.value());
  }
  Scan::ReplyCursor(call, walk);
  call.reply.Array(found.size() * 2);
  for (const auto& [field, value] : found) {
    call.reply.Bulk(field);
    call.reply.Bulk(value);
  }
}

void RunHrandfield(Call& call) {
  const bool has_count = call.count() > 2;
  const std::optional<int64_t> wanted = has_count ? call.Integer(2) : 1;
  if (!wanted) return;
  const bool with_values = call.count() == 4 && call.Is(3, "withvalues");
  if (call.count() > 4 || (call.count() == 4 && !with_values)) return call.SyntaxError();
  if (*wanted < -(INT64_MAX / 2) || *wanted > INT64_MAX / 2) {
    return call.reply.Error("ERR value is out of range");
  }
  Key hash;
  if (!OpenHash(call, &hash)) return;
  if (!has_count && !hash.exists) return call.reply.Null();
  std::vector<std::pair<std::string, std::string>> all;
  if (hash.exists && *wanted != 0) {
    for (Walk walk(&call.view, ElementPrefix(hash.meta.id)); walk.Valid(); walk.Next()) {
      all.emplace_back(walk.key(), walk.value());
    }
  }
  const std::vector<size_t> chosen =
      ChooseRandomly(all.size(), *wanted, call.reply.limit_bytes() / 8);
  if (!has_count) return all.empty() ? call.reply.Null() : call.reply.Bulk(all[chosen[0]].first);
  const bool nested = with_values && call.reply.version() == 3;
  call.reply.Array(chosen.size() * (with_values && !nested ? 2 : 1));
  for (const size_t index : chosen) {
    if (nested) call.reply.Array(2);
    call.reply.Bulk(all[index].first);
    if (with_values) call.reply.Bulk(all[index].second);
  }
}

constexpr Command kHashCommands[] = {
    {"hset", "key field value [field value ...]", -4, kWrite | kFast, 1, 1, 1, Group::kHash,
     "Sets fields of a hash.", RunHset},
    {"hmset", "key field value [field value ...]", -4, kWrite | kFast, 1, 1, 1, Group::kHash,
     "Sets fields of a hash, with another reply than HSET.", RunHmset},
    {"hsetnx", "key field value", 4, kWrite | kFast, 1, 1, 1, Group::kHash,
     "Sets a field of a hash only when it is absent.", RunHsetnx},
    {"hget", "key field", 3, kReadOnly | kFast, 1, 1, 1, Group::kHash,
     "Returns the value of a field of a hash.", RunHget},
    {"hmget", "key field [field ...]", -3, kReadOnly | kFast, 1, 1, 1, Group::kHash,
     "Returns the values of several fields of a hash.", RunHmget},
    {"hdel", "key field [field ...]", -3, kWrite | kFast, 1, 1, 1, Group::kHash,
     "Removes fields of a hash.", RunHdel},
    {"hlen", "key", 2, kReadOnly | kFast | kSingleRead, 1, 1, 1, Group::kHash,
     "Returns the number of fields of a hash.", RunHlen},
    {"hstrlen", "key field", 3, kReadOnly | kFast, 1, 1, 1, Group::kHash,
     "Returns the length of the value of a field.", RunHstrlen},
    {"hexists", "key field", 3, kReadOnly | kFast, 1, 1, 1, Group::kHash,
     "Says whether a hash has a field.", RunHexists},
    {"hgetall", "key", 2, kReadOnly, 1, 1, 1, Group::kHash,
     "Returns all fields and values of a hash, in order of the fields.", RunHgetall},
    {"hkeys", "key", 2, kReadOnly, 1, 1, 1, Group::kHash, "Returns all fields of a hash.",
     RunHkeys},
    {"hvals", "key", 2, kReadOnly, 1, 1, 1, Group::kHash, "Returns all values of a hash.",
     RunHvals},
    {"hincrby", "key field increment", 4, kWrite | kFast, 1, 1, 1, Group::kHash,
     "Adds to a whole number in a field.", RunHincrby},
    {"hincrbyfloat", "key field increment", 4, kWrite | kFast, 1, 1, 1, Group::kHash,
     "Adds to a floating point number in a field.", RunHincrbyfloat},
    {"hscan", "key cursor [MATCH pattern] [COUNT count]", -3, kReadOnly, 1, 1, 1, Group::kHash,
     "Iterates over the fields of a hash, in order.", RunHscan},
    {"hrandfield", "key [count [WITHVALUES]]", -2, kReadOnly, 1, 1, 1, Group::kHash,
     "Returns random fields of a hash.", RunHrandfield},
};

}  // namespace

std::span<const Command> HashCommands() { return kHashCommands; }

}  // namespace basalt::server
