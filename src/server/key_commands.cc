#include <algorithm>

#include "server/access.h"
#include "server/command.h"
#include "server/glob.h"
#include "server/numbers.h"
#include "server/random_choice.h"
#include "server/scan.h"
#include "server/session.h"

namespace basalt::server {
namespace {

void RunDel(Call& call) {
  int64_t removed = 0;
  for (size_t i = 1; i < call.count(); ++i) {
    const Key key = call.view.Find(call.arg(i));
    if (!key.exists) continue;
    call.view.Remove(key);
    ++removed;
  }
  call.reply.Integer(removed);
}

void RunExists(Call& call) {
  int64_t found = 0;
  for (size_t i = 1; i < call.count(); ++i) found += call.view.Find(call.arg(i)).exists ? 1 : 0;
  call.reply.Integer(found);
}

void RunType(Call& call) {
  const Key key = call.view.Find(call.arg(1));
  call.reply.Simple(key.exists ? TypeName(key.meta.type) : "none");
}

struct ExpireConditions {
  bool nx = false;
  bool xx = false;
  bool gt = false;
  bool lt = false;

  bool Parse(Call& call) {
    for (size_t i = 3; i < call.count(); ++i) {
      const std::string word = ToLower(call.arg(i));
      if (word == "nx") {
        nx = true;
      } else if (word == "xx") {
        xx = true;
      } else if (word == "gt") {
        gt = true;
      } else if (word == "lt") {
        lt = true;
      } else {
        call.reply.Error("ERR Unsupported option " + std::string(call.arg(i)));
        return false;
      }
    }
    if (nx && (xx || gt || lt)) {
      call.reply.Error("ERR NX and XX, GT or LT options at the same time are not compatible");
      return false;
    }
    if (gt && lt) {
      call.reply.Error("ERR GT and LT options at the same time are not compatible");
      return false;
    }
    return true;
  }

  bool Hold(const std::optional<WallTime>& present, WallTime wanted) const {
    if (nx && present) return false;
    if (xx && !present) return false;
    // No expiry counts as the latest.
    if (gt && (!present || wanted <= *present)) return false;
    return !lt || !present || wanted < *present;
  }
};

void SetExpiry(Call& call, std::string_view unit) {
  ExpireConditions conditions;
  if (!conditions.Parse(call)) return;
  const std::optional<WallTime> expiry = ExpiryFrom(call, unit, call.arg(2), false);
  if (!expiry) return;
  Key key = call.view.Find(call.arg(1));
  if (!key.exists || !conditions.Hold(key.expiry, *expiry)) return call.reply.Integer(0);
  if (expiry->time_since_epoch().count() <= static_cast<int64_t>(Dataset::NowMs())) {
    call.view.Remove(key);
  } else {
    key.expiry = expiry;
    call.view.Save(key);
  }
  call.reply.Integer(1);
}
void RunExpire(Call& call) { SetExpiry(call, "ex"); }
void RunPexpire(Call& call) { SetExpiry(call, "px"); }
void RunExpireat(Call& call) { SetExpiry(call, "exat"); }
void RunPexpireat(Call& call) { SetExpiry(call, "pxat"); }

/// Replies with a moment or duration of the key's expiry, in milliseconds or rounded to seconds.
void ReplyExpiry(Call& call, bool is_duration, bool in_seconds) {
  const Key key = call.view.Find(call.arg(1));
  if (!key.exists) return call.reply.Integer(-2);
  if (!key.expiry) return call.reply.Integer(-1);
  int64_t ms = key.expiry->time_since_epoch().count();
  if (is_duration) ms = std::max<int64_t>(ms - static_cast<int64_t>(Dataset::NowMs()), 0);
  call.reply.Integer(in_seconds ? (ms + 500) / 1000 : ms);
}
void RunTtl(Call& call) { ReplyExpiry(call, true, true); }
void RunPttl(Call& call) { ReplyExpiry(call, true, false); }
void RunExpiretime(Call& call) { ReplyExpiry(call, false, true); }
void RunPexpiretime(Call& call) { ReplyExpiry(call, false, false); }

void RunPersist(Call& call) {
  Key key = call.view.Find(call.arg(1));
  if (!key.exists || !key.expiry) return call.reply.Integer(0);
  key.expiry.reset();
  call.view.Save(key);
  call.reply.Integer(1);
}

/// Gives `key`, with its elements, another name, which may lie in another database.
void MoveKey(Call& call, const Key& key, uint8_t to_db, std::string_view to) {
  call.view.RemoveName(call.view.db(), key);
  Key moved = key;
  moved.name = to;
  call.view.SaveIn(to_db, moved);
}

void Rename(Call& call, bool if_absent) {
  const Key key = call.view.Find(call.arg(1));
  if (!key.exists) return call.reply.Error("ERR no such key");
  const Key target = call.view.Find(call.arg(2));
  if (if_absent && target.exists) return call.reply.Integer(0);
  if (call.arg(1) != call.arg(2)) {
    call.view.Remove(target);
    MoveKey(call, key, call.view.db(), call.arg(2));
  }
  if_absent ? call.reply.Integer(1) : call.reply.Ok();
}
void RunRename(Call& call) { Rename(call, false); }
void RunRenamenx(Call& call) { Rename(call, true); }

/// A database's number; nothing, and an error is replied, where it is none.
std::optional<uint8_t> DatabaseOf(Call& call, size_t index) {
  const std::optional<int64_t> db = call.Integer(index);
  if (!db) return std::nullopt;
  if (*db >= 0 && *db < kDatabases) return static_cast<uint8_t>(*db);
  call.reply.Error("ERR DB index is out of range");
  return std::nullopt;
}

void RunMove(Call& call) {
  const std::optional<uint8_t> db = DatabaseOf(call, 2);
  if (!db) return;
  if (*db == call.view.db()) {
    return call.reply.Error("ERR source and destination objects are the same");
  }
  const Key key = call.view.Find(call.arg(1));
  if (!key.exists || call.view.FindIn(*db, call.arg(1)).exists) return call.reply.Integer(0);
  MoveKey(call, key, *db, call.arg(1));
  call.reply.Integer(1);
}

void CopyElements(Call& call, uint64_t from, uint64_t to) {
  const std::string target = ElementPrefix(to);
  for (Walk walk(&call.view, ElementPrefix(from)); walk.Valid(); walk.Next()) {
    call.view.Put(target + std::string(walk.key()), walk.value());
  }
}

void RunCopy(Call& call) {
  uint8_t to_db = call.view.db();
  bool replace = false;
  for (size_t i = 3; i < call.count(); ++i) {
    if (call.Is(i, "replace")) {
      replace = true;
    } else if (call.Is(i, "db") && i + 1 < call.count()) {
      const std::optional<uint8_t> db = DatabaseOf(call, ++i);
      if (!db) return;
      to_db = *db;
    } else {
      return call.SyntaxError();
    }
  }
  if (to_db == call.view.db() && call.arg(1) == call.arg(2)) {
    return call.reply.Error("ERR source and destination objects are the same");
  }
  const Key key = call.view.Find(call.arg(1));
  const Key target = call.view.FindIn(to_db, call.arg(2));
  if (!key.exists || (target.exists && !replace)) return call.reply.Integer(0);
  call.view.RemoveIn(to_db, target);
  Key copy = key;
  copy.name = call.arg(2);
  if (key.meta.type != Type::kString) {
    copy.meta.id = call.view.dataset().NewId();
    CopyElements(call, key.meta.id, copy.meta.id);
  }
  call.view.SaveIn(to_db, copy);
  call.reply.Integer(1);
}

void RunKeys(Call& call) {
  const std::string_view pattern = call.arg(1);
  std::vector<std::string> names;
  size_t bytes = 0;
  const std::string prefix = GlobPrefix(pattern);
  Walk walk(&call.view, MetadataKey(call.view.db(), prefix), true);
  SkipForeign(*call.session.user(), prefix, &walk);
  for (; walk.Valid() && bytes <= call.reply.limit_bytes();
       walk.Next(), SkipForeign(*call.session.user(), prefix, &walk)) {
    std::string name = prefix + std::string(walk.key());
    if (!GlobMatches(pattern, name)) continue;
    bytes += name.size();
    names.push_back(std::move(name));
  }
  call.reply.Array(names.size());
  for (const std::string& name : names) call.reply.Bulk(name);
}

void RunScan(Call& call) {
  Scan scan;
  if (!scan.Parse(call, 1, true)) return;
  const std::string first = scan.match ? GlobPrefix(*scan.match) : "";
  std::vector<std::string> names;
  Walk walk(&call.view, MetadataKey(call.view.db(), {}), !scan.type.has_value());
  if (const std::string& begin = std::max(scan.place, first); !begin.empty()) walk.Seek(begin);
  SkipForeign(*call.session.user(), {}, &walk);
  uint64_t seen = 0;
  bool is_past = false;  // Past all that the pattern can match.
  for (; walk.Valid() && seen < scan.count && !is_past; ++seen) {
    is_past = !walk.key().starts_with(first);
    if (is_past) break;
    const auto meta = scan.type ? DecodeMetadata(walk.value()) : std::nullopt;
    const bool has_type = !scan.type || (meta && TypeName(meta->type) == *scan.type);
    if (has_type && scan.Matches(walk.key())) names.emplace_back(walk.key());
    walk.Next();
    SkipForeign(*call.session.user(), {}, &walk);
  }
  if (walk.Valid() && !walk.key().starts_with(first)) is_past = true;
  if (is_past) {
    call.reply.Array(2);
    call.reply.Bulk("0");
  } else {
    Scan::ReplyCursor(call, walk);
  }
  call.reply.Array(names.size());
  for (const std::string& name : names) call.reply.Bulk(name);
}

void RunRandomkey(Call& call) {
  Walk walk(&call.view, MetadataKey(call.view.db(), {}), true);
  SeekToRandom(&walk);
  walk.Valid() ? call.reply.Bulk(walk.key()) : call.reply.Null();
}

constexpr Command kKeyCommands[] = {
    {"del", "key [key ...]", -2, kWrite, 1, -1, 1, Group::kGeneric, "Deletes keys.", RunDel},
    {"unlink", "key [key ...]", -2, kWrite | kFast, 1, -1, 1, Group::kGeneric,
     "Deletes keys, as DEL does.", RunDel},
    {"exists", "key [key ...]", -2, kReadOnly | kFast, 1, -1, 1, Group::kGeneric,
     "Counts how many of the keys are there.", RunExists},
    {"touch", "key [key ...]", -2, kReadOnly | kFast, 1, -1, 1, Group::kGeneric,
     "Counts how many of the keys are there.", RunExists},
    {"type", "key", 2, kReadOnly | kFast | kSingleRead, 1, 1, 1, Group::kGeneric,
     "Returns the type of a key.", RunType},
    {"expire", "key seconds [NX | XX | GT | LT]", -3, kWrite | kFast, 1, 1, 1, Group::kGeneric,
     "Sets the time to live of a key in seconds.", RunExpire},
    {"pexpire", "key milliseconds [NX | XX | GT | LT]", -3, kWrite | kFast, 1, 1, 1,
     Group::kGeneric, "Sets the time to live of a key in milliseconds.", RunPexpire},
    {"expireat", "key unix-time-seconds [NX | XX | GT | LT]", -3, kWrite | kFast, 1, 1, 1,
     Group::kGeneric, "Sets the moment in seconds at which a key expires.", RunExpireat},
    {"pexpireat", "key unix-time-milliseconds [NX | XX | GT | LT]", -3, kWrite | kFast, 1, 1, 1,
     Group::kGeneric, "Sets the moment in milliseconds at which a key expires.", RunPexpireat},
    {"ttl", "key", 2, kReadOnly | kFast | kSingleRead, 1, 1, 1, Group::kGeneric,
     "Returns the time to live of a key in seconds.", RunTtl},
    {"pttl", "key", 2, kReadOnly | kFast | kSingleRead, 1, 1, 1, Group::kGeneric,
     "Returns the time to live of a key in milliseconds.", RunPttl},
    {"expiretime", "key", 2, kReadOnly | kFast | kSingleRead, 1, 1, 1, Group::kGeneric,
     "Returns the moment in seconds at which a key expires.", RunExpiretime},
    {"pexpiretime", "key", 2, kReadOnly | kFast | kSingleRead, 1, 1, 1, Group::kGeneric,
     "Returns the moment in milliseconds at which a key expires.", RunPexpiretime},
    {"persist", "key", 2, kWrite | kFast, 1, 1, 1, Group::kGeneric, "Removes the expiry of a key.",
     RunPersist},
    {"rename", "key newkey", 3, kWrite, 1, 2, 1, Group::kGeneric,
     "Renames a key and replaces the one that has the new name.", RunRename},
    {"renamenx", "key newkey", 3, kWrite | kFast, 1, 2, 1, Group::kGeneric,
     "Renames a key only when no key has the new name.", RunRenamenx},
    {"move", "key db", 3, kWrite | kFast, 1, 1, 1, Group::kGeneric,
     "Moves a key to another database.", RunMove},
    {"copy", "source destination [DB destination-db] [REPLACE]", -3, kWrite, 1, 2, 1,
     Group::kGeneric, "Copies the value of a key to another key.", RunCopy},
    {"keys", "pattern", 2, kReadOnly | kSlow, 0, 0, 0, Group::kGeneric,
     "Returns all names of keys that match a pattern.", RunKeys},
    {"scan", "cursor [MATCH pattern] [COUNT count] [TYPE type]", -2, kReadOnly, 0, 0, 0,
     Group::kGeneric, "Iterates over the names of keys, in order.", RunScan},
    {"randomkey", "", 1, kReadOnly, 0, 0, 0, Group::kGeneric,
     "Returns the name of some key. Not all are equally likely.", RunRandomkey},
};

}  // namespace

std::span<const Command> KeyCommands() { return kKeyCommands; }

}  // namespace basalt::server
