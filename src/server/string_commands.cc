#include <algorithm>
#include <cmath>
#include <set>

#include "server/command.h"
#include "server/numbers.h"

namespace basalt::server {
namespace {

/// The greatest string; Redis has the same limit as its default.
constexpr uint64_t kStringBytesMax = uint64_t{512} << 20;

void RunGet(Call& call) {
  Key key;
  if (!call.Open(call.arg(1), Type::kString, &key)) return;
  if (!key.exists) return call.reply.Null();
  call.reply.Bulk(key.text);
}

/// Makes `key` a string, whatever it was.
void SetString(Call& call, Key* key, std::string_view text, std::optional<WallTime> expiry) {
  if (key->exists && key->meta.type != Type::kString) call.view.Remove(*key);
  key->meta = {.type = Type::kString};
  key->text = text;
  key->expiry = expiry;
  call.view.Save(*key);
}

struct SetOptions {
  bool if_absent = false;
  bool if_present = false;
  bool get = false;
  bool keep_ttl = false;
  std::optional<std::string_view> if_equal{};
  std::string unit{};  // Of the expiry: ex, px, exat, pxat; empty: none.
  std::string_view time{};
};

bool ParseSetOptions(Call& call, SetOptions* options) {
  for (size_t i = 3; i < call.count(); ++i) {
    const std::string word = ToLower(call.arg(i));
    const bool has_more = i + 1 < call.count();
    if (word == "nx" && !options->if_present && !options->if_equal) {
      options->if_absent = true;
    } else if (word == "xx" && !options->if_absent && !options->if_equal) {
      options->if_present = true;
    } else if (word == "ifeq" && has_more && !options->if_absent && !options->if_present) {
      options->if_equal = call.arg(++i);
    } else if (word == "get") {
      options->get = true;
    } else if (word == "keepttl" && options->unit.empty()) {
      options->keep_ttl = true;
    } else if ((word == "ex" || word == "px" || word == "exat" || word == "pxat") && has_more &&
               !options->keep_ttl && options->unit.empty()) {
      options->unit = word;
      options->time = call.arg(++i);
    } else {
      call.SyntaxError();
      return false;
    }
  }
  return true;
}

void RunSet(Call& call) {
  SetOptions options;
  if (!ParseSetOptions(call, &options)) return;
  std::optional<WallTime> expiry;
  if (!options.unit.empty()) {
    expiry = ExpiryFrom(call, options.unit, options.time);
    if (!expiry) return;
  }
  Key key = call.view.Find(call.arg(1));
  const bool is_string = key.exists && key.meta.type == Type::kString;
  if ((options.get || options.if_equal) && key.exists && !is_string) return call.WrongType();
  const bool holds = options.if_absent    ? !key.exists
                     : options.if_present ? key.exists
                     : options.if_equal   ? is_string && key.text == *options.if_equal
                                          : true;
  if (options.get) {
    is_string ? call.reply.Bulk(key.text) : call.reply.Null();
  } else {
    holds ? call.reply.Ok() : call.reply.Null();
  }
  if (!holds) return;
  if (options.keep_ttl) expiry = key.expiry;
  SetString(call, &key, call.arg(2), expiry);
}

void RunSetnx(Call& call) {
  Key key = call.view.Find(call.arg(1));
  if (!key.exists) SetString(call, &key, call.arg(2), std::nullopt);
  call.reply.Integer(key.exists ? 0 : 1);
}

void SetWithTtl(Call& call, std::string_view unit) {
  const std::optional<WallTime> expiry = ExpiryFrom(call, unit, call.arg(2));
  if (!expiry) return;
  Key key = call.view.Find(call.arg(1));
  SetString(call, &key, call.arg(3), expiry);
  call.reply.Ok();
}
void RunSetex(Call& call) { SetWithTtl(call, "ex"); }
void RunPsetex(Call& call) { SetWithTtl(call, "px"); }

void RunGetset(Call& call) {
  Key key;
  if (!call.Open(call.arg(1), Type::kString, &key)) return;
  key.exists ? call.reply.Bulk(key.text) : call.reply.Null();
  SetString(call, &key, call.arg(2), std::nullopt);
}

void RunGetdel(Call& call) {
  Key key;
  if (!call.Open(call.arg(1), Type::kString, &key)) return;
  if (!key.exists) return call.reply.Null();
  call.reply.Bulk(key.text);
  call.view.Remove(key);
}

void RunGetex(Call& call) {
  const std::string word = call.count() > 2 ? ToLower(call.arg(2)) : "";
  const bool persists = word == "persist" && call.count() == 3;
  const bool expires =
      (word == "ex" || word == "px" || word == "exat" || word == "pxat") && call.count() == 4;
  if (call.count() > 2 && !persists && !expires) return call.SyntaxError();
  Key key;
  if (!call.Open(call.arg(1), Type::kString, &key)) return;
  if (!key.exists) return call.reply.Null();
  std::optional<WallTime> expiry;
  if (expires) {
    expiry = ExpiryFrom(call, word, call.arg(3));
    if (!expiry) return;
  }
  call.reply.Bulk(key.text);
  if (!persists && !expires) return;
  if (persists && !key.expiry) return;
  key.expiry = expiry;
  call.view.Save(key);
}

void RunMget(Call& call) {
  call.reply.Array(call.count() - 1);
  for (size_t i = 1; i < call.count(); ++i) {
    const Key key = call.view.Find(call.arg(i));
    if (key.exists && key.meta.type == Type::kString) {
      call.reply.Bulk(key.text);
    } else {
      call.reply.Null();
    }
  }
}

bool HasPairs(Call& call) {
  if (call.count() % 2 == 1) return true;
  call.reply.Error("ERR wrong number of arguments for '" + std::string(call.command.name) +
                   "' command");
  return false;
}

void SetAll(Call& call) {
  for (size_t i = 1; i < call.count(); i += 2) {
    Key key = call.view.Find(call.arg(i));
    SetString(call, &key, call.arg(i + 1), std::nullopt);
  }
}

void RunMset(Call& call) {
  if (!HasPairs(call)) return;
  SetAll(call);
  call.reply.Ok();
}

void RunMsetnx(Call& call) {
  if (!HasPairs(call)) return;
  for (size_t i = 1; i < call.count(); i += 2) {
    if (call.view.Find(call.arg(i)).exists) return call.reply.Integer(0);
  }
  SetAll(call);
  call.reply.Integer(1);
}

void TooLong(Call& call) {
  call.reply.Error("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
}

void RunAppend(Call& call) {
  Key key;
  if (!call.Open(call.arg(1), Type::kString, &key)) return;
  if (key.text.size() + call.arg(2).size() > kStringBytesMax) return TooLong(call);
  key.text += call.arg(2);
  call.view.Save(key);
  call.reply.Integer(static_cast<int64_t>(key.text.size()));
}

void RunStrlen(Call& call) {
  Key key;
  if (!call.Open(call.arg(1), Type::kString, &key)) return;
  call.reply.Integer(static_cast<int64_t>(key.text.size()));
}

void RunGetrange(Call& call) {
  const std::optional<int64_t> from = call.Integer(2);
  if (!from) return;
  const std::optional<int64_t> to = call.Integer(3);
  if (!to) return;
  Key key;
  if (!call.Open(call.arg(1), Type::kString, &key)) return;
  const auto size = static_cast<int64_t>(key.text.size());
  if (*from < 0 && *to < 0 && *from > *to) return call.reply.Bulk("");
  const int64_t begin = std::max<int64_t>(*from < 0 ? *from + size : *from, 0);
  const int64_t last = std::min(std::max<int64_t>(*to < 0 ? *to + size : *to, 0), size - 1);
  if (size == 0 || begin > last) return call.reply.Bulk("");
  call.reply.Bulk(std::string_view(key.text).substr(static_cast<size_t>(begin),
                                                    static_cast<size_t>(last - begin + 1)));
}

void RunSetrange(Call& call) {
  const std::optional<int64_t> offset = call.Integer(2);
  if (!offset) return;
  if (*offset < 0) return call.reply.Error("ERR offset is out of range");
  Key key;
  if (!call.Open(call.arg(1), Type::kString, &key)) return;
  const std::string_view text = call.arg(3);
  if (!text.empty()) {
    const uint64_t end = static_cast<uint64_t>(*offset) + text.size();
    if (end > kStringBytesMax) return TooLong(call);
    if (key.text.size() < end) key.text.resize(end, '\0');
    key.text.replace(static_cast<size_t>(*offset), text.size(), text);
    call.view.Save(key);
  }
  call.reply.Integer(static_cast<int64_t>(key.text.size()));
}

void AddInteger(Call& call, int64_t step) {
  Key key;
  if (!call.Open(call.arg(1), Type::kString, &key)) return;
  const std::optional<int64_t> present = key.exists ? ParseInteger(key.text) : 0;
  if (!present) return call.NotAnInteger();
  int64_t sum = 0;
  if (__builtin_add_overflow(*present, step, &sum)) {
    return call.reply.Error("ERR increment or decrement would overflow");
  }
  key.text = std::to_string(sum);
  call.view.Save(key);
  call.reply.Integer(sum);
}
void RunIncr(Call& call) { AddInteger(call, 1); }
void RunDecr(Call& call) { AddInteger(call, -1); }
void RunIncrby(Call& call) {
  if (const std::optional<int64_t> step = call.Integer(2)) AddInteger(call, *step);
}
void RunDecrby(Call& call) {
  const std::optional<int64_t> step = call.Integer(2);
  if (!step) return;
  if (*step == INT64_MIN) return call.reply.Error("ERR decrement would overflow");
  AddInteger(call, -*step);
}

void RunIncrbyfloat(Call& call) {
  Key key;
  if (!call.Open(call.arg(1), Type::kString, &key)) return;
  const auto present = key.exists ? ParseLongDouble(key.text) : 0.0L;
  const auto step = ParseLongDouble(call.arg(2));
  if (!present || !step) return call.reply.Error("ERR value is not a valid float");
  const long double sum = *present + *step;
  if (std::isnan(sum) || std::isinf(sum)) {
    return call.reply.Error("ERR increment would produce NaN or Infinity");
  }
  key.text = FormatLongDouble(sum);
  call.view.Save(key);
  call.reply.Bulk(key.text);
}

constexpr Command kStringCommands[] = {
    {"get", "key", 2, kReadOnly | kFast | kSingleRead, 1, 1, 1, Group::kString,
     "Returns the string value of a key.", RunGet},
    {"set",
     "key value [NX | XX | IFEQ comparison-value] [GET] [EX seconds | PX milliseconds | EXAT "
     "unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
     -3, kWrite, 1, 1, 1, Group::kString, "Sets the string value of a key, whatever type it had.",
     RunSet},
    {"setnx", "key value", 3, kWrite | kFast, 1, 1, 1, Group::kString,
     "Sets the string value of a key only when it is absent.", RunSetnx},
    {"setex", "key seconds value", 4, kWrite, 1, 1, 1, Group::kString,
     "Sets the string value and the time to live of a key.", RunSetex},
    {"psetex", "key milliseconds value", 4, kWrite, 1, 1, 1, Group::kString,
     "Sets the string value and the time to live in milliseconds of a key.", RunPsetex},
    {"getset", "key value", 3, kWrite | kFast, 1, 1, 1, Group::kString,
     "Sets the string value of a key and returns the previous one.", RunGetset},
    {"getdel", "key", 2, kWrite | kFast, 1, 1, 1, Group::kString,
     "Returns the string value of a key and deletes the key.", RunGetdel},
    {"getex",
     "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT "
     "unix-time-milliseconds | PERSIST]",
     -2, kWrite | kFast, 1, 1, 1, Group::kString,
     "Returns the string value of a key and sets or removes its expiry.", RunGetex},
    {"mget", "key [key ...]", -2, kReadOnly | kFast, 1, -1, 1, Group::kString,
     "Returns the string values of several keys, all of one moment.", RunMget},
    {"mset", "key value [key value ...]", -3, kWrite, 1, -1, 2, Group::kString,
     "Sets the string values of several keys in one step.", RunMset},
    {"msetnx", "key value [key value ...]", -3, kWrite, 1, -1, 2, Group::kString,
     "Sets the string values of several keys only when all are absent.", RunMsetnx},
    {"append", "key value", 3, kWrite | kFast, 1, 1, 1, Group::kString,
     "Appends bytes to the string value of a key.", RunAppend},
    {"strlen", "key", 2, kReadOnly | kFast | kSingleRead, 1, 1, 1, Group::kString,
     "Returns the length of a string value in bytes.", RunStrlen},
    {"getrange", "key start end", 4, kReadOnly | kSingleRead, 1, 1, 1, Group::kString,
     "Returns a part of the string value of a key.", RunGetrange},
    {"substr", "key start end", 4, kReadOnly | kSingleRead, 1, 1, 1, Group::kString,
     "The former name of GETRANGE.", RunGetrange},
    {"setrange", "key offset value", 4, kWrite, 1, 1, 1, Group::kString,
     "Overwrites a part of a string value, which grows as needed.", RunSetrange},
    {"incr", "key", 2, kWrite | kFast, 1, 1, 1, Group::kString, "Adds one to a whole number.",
     RunIncr},
    {"decr", "key", 2, kWrite | kFast, 1, 1, 1, Group::kString,
     "Subtracts one from a whole number.", RunDecr},
    {"incrby", "key increment", 3, kWrite | kFast, 1, 1, 1, Group::kString,
     "Adds to a whole number.", RunIncrby},
    {"decrby", "key decrement", 3, kWrite | kFast, 1, 1, 1, Group::kString,
     "Subtracts from a whole number.", RunDecrby},
    {"incrbyfloat", "key increment", 3, kWrite | kFast, 1, 1, 1, Group::kString,
     "Adds to a floating point number.", RunIncrbyfloat},
};

}  // namespace

std::span<const Command> StringCommands() { return kStringCommands; }

}  // namespace basalt::server
