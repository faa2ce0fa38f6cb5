#include <algorithm>
#include <charconv>
#include <system_error>

#include "base/coding.h"
#include "server/command.h"
#include "server/numbers.h"

// An entry of a stream is a record under its id: fields and values, each behind its length as 4
// little-endian bytes.

namespace basalt::server {
namespace {

constexpr StreamId kStreamIdMax{UINT64_MAX, UINT64_MAX};

std::string TextOf(StreamId id) { return std::to_string(id.ms) + "-" + std::to_string(id.seq); }

std::optional<uint64_t> ParseUnsigned(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// "ms-seq", or "ms" alone, which stands for ms-`missing`.
std::optional<StreamId> ParseId(std::string_view text, uint64_t missing) {
  const size_t dash = text.find('-');
  const std::optional<uint64_t> ms = ParseUnsigned(text.substr(0, dash));
  if (!ms) return std::nullopt;
  if (dash == std::string_view::npos) return StreamId{*ms, missing};
  const std::optional<uint64_t> seq = ParseUnsigned(text.substr(dash + 1));
  if (!seq) return std::nullopt;
  return StreamId{*ms, *seq};
}

void InvalidId(Call& call) {
  call.reply.Error("ERR Invalid stream ID specified as stream command argument");
}

/// The id after this one; nothing: there is none.
std::optional<StreamId> After(StreamId id) {
  if (id.seq < UINT64_MAX) return StreamId{id.ms, id.seq + 1};
  if (id.ms < UINT64_MAX) return StreamId{id.ms + 1, 0};
  return std::nullopt;
}
std::optional<StreamId> Before(StreamId id) {
  if (id.seq > 0) return StreamId{id.ms, id.seq - 1};
  if (id.ms > 0) return StreamId{id.ms - 1, UINT64_MAX};
  return std::nullopt;
}

StreamId IdOfKey(std::string_view key) {
  return {LoadBigEndian(key.data()), LoadBigEndian(key.data() + 8)};
}
std::string KeyOfId(StreamId id) {
  std::string key;
  AppendBigEndian(&key, id.ms);
  AppendBigEndian(&key, id.seq);
  return key;
}

struct StreamEntry {
  StreamId id;
  std::vector<std::string> words;
};

std::vector<std::string> DecodeWords(Call& call, std::string_view bytes) {
  std::vector<std::string> words;
  while (bytes.size() >= 4) {
    const auto size = base::Load<uint32_t>(bytes.data());
    bytes.remove_prefix(4);
    if (size > bytes.size()) break;
    words.emplace_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  if (!bytes.empty()) {
    call.view.Fail({StatusCode::kCorruption, "an entry of a stream is malformed"});
  }
  return words;
}

std::vector<StreamEntry> ReadEntries(Call& call, const Key& stream, StreamId low, StreamId high,
                                     uint64_t count, bool reverse) {
  std::vector<StreamEntry> entries;
  if (!stream.exists || low > high) return entries;
  Walk walk(&call.view, ElementPrefix(stream.meta.id));
  reverse ? walk.SeekForPrev(KeyOfId(high)) : walk.Seek(KeyOfId(low));
  while (walk.Valid() && entries.size() < count) {
    const StreamId id = IdOfKey(walk.key());
    if (id < low || id > high) break;
    entries.push_back({id, DecodeWords(call, walk.value())});
    reverse ? walk.Prev() : walk.Next();
  }
  return entries;
}

void ReplyEntries(Call& call, const std::vector<StreamEntry>& entries) {
  call.reply.Array(entries.size());
  for (const StreamEntry& entry : entries) {
    call.reply.Array(2);
    call.reply.Bulk(TextOf(entry.id));
    call.reply.Array(entry.words.size());
    for (const std::string& word : entry.words) call.reply.Bulk(word);
  }
}

/// How much of a stream XADD and XTRIM keep.
struct Trim {
  std::optional<uint64_t> length{};
  std::optional<StreamId> least{};

  /// Reads MAXLEN or MINID at `*at` and passes it. False: an error is replied.
  bool Parse(Call& call, size_t* at);
  int64_t Apply(Call& call, Key* stream) const;
};

bool Trim::Parse(Call& call, size_t* at) {
  const bool by_length = call.Is(*at, "maxlen");
  ++*at;
  const bool is_near = *at < call.count() && call.arg(*at) == "~";
  if (is_near || (*at < call.count() && call.arg(*at) == "=")) ++*at;
  if (*at >= call.count()) return call.SyntaxError(), false;
  if (by_length) {
    const std::optional<int64_t> number = call.Integer(*at);
    if (!number) return false;
    if (*number < 0) {
      call.reply.Error("ERR The MAXLEN argument must be >= 0.");
      return false;
    }
    length = static_cast<uint64_t>(*number);
  } else {
    least = ParseId(call.arg(*at), 0);
    if (!least) return InvalidId(call), false;
  }
  ++*at;
  if (*at + 1 < call.count() && call.Is(*at, "limit")) {
    if (!is_near) {
      call.reply.Error("ERR syntax error, LIMIT cannot be used without the special ~ option");
      return false;
    }
    if (!call.Integer(*at + 1)) return false;
    *at += 2;
  }
  return true;
}

int64_t Trim::Apply(Call& call, Key* stream) const {
  std::vector<StreamId> gone;
  Walk walk(&call.view, ElementPrefix(stream->meta.id), true);
  for (; walk.Valid(); walk.Next()) {
    const StreamId id = IdOfKey(walk.key());
    const bool is_gone =
        (length && stream->meta.count - gone.size() > *length) || (least && id < *least);
    if (!is_gone) break;
    gone.push_back(id);
  }
  for (const StreamId id : gone) call.view.Delete(StreamKey(stream->meta.id, id));
  stream->meta.count -= gone.size();
  if (!gone.empty()) stream->meta.deleted = std::max(stream->meta.deleted, gone.back());
  return static_cast<int64_t>(gone.size());
}

/// The id that XADD asks for: all of it, its first part, or nothing.
struct WantedId {
  std::optional<uint64_t> ms{};
  std::optional<uint64_t> seq{};

  /// False: an error is replied.
  bool Parse(Call& call, std::string_view text);
  /// Nothing: an error is replied.
  std::optional<StreamId> Choose(Call& call, StreamId last) const;
};

bool WantedId::Parse(Call& call, std::string_view text) {
  if (text == "*") return true;
  const bool has_ms_alone = text.ends_with("-*");
  const auto id = ParseId(has_ms_alone ? text.substr(0, text.size() - 2) : text, 0);
  if (!id) return InvalidId(call), false;
  ms = id->ms;
  if (has_ms_alone) return true;
  seq = id->seq;
  if (*id != StreamId{}) return true;
  call.reply.Error("ERR The ID specified in XADD must be greater than 0-0");
  return false;
}

std::optional<StreamId> WantedId::Choose(Call& call, StreamId last) const {
  std::optional<StreamId> id;
  if (!ms) {
    const uint64_t now = Dataset::NowMs();
    id = now > last.ms ? StreamId{now, 0} : After(last);
  } else if (seq) {
    id = StreamId{*ms, *seq};
  } else if (*ms > last.ms) {
    id = StreamId{*ms, 0};
  } else if (*ms == last.ms && last.seq < UINT64_MAX) {
    id = StreamId{*ms, last.seq + 1};
  }
  if (id && *id > last) return id;
  call.reply.Error(
      "ERR The ID specified in XADD is equal or smaller than the target stream top item");
  return std::nullopt;
}

void RunXadd(Call& call) {
  Trim trim;
  bool makes = true;
  size_t at = 2;
  for (bool more = true; more && at < call.count();) {
    if (call.Is(at, "nomkstream")) {
      makes = false;
      ++at;
    } else if (call.Is(at, "maxlen") || call.Is(at, "minid")) {
      if (!trim.Parse(call, &at)) return;
    } else {
      more = false;
    }
  }
  const size_t words = call.count() - std::min(at + 1, call.count());
  if (words < 2 || words % 2 != 0) {
    return call.reply.Error("ERR wrong number of arguments for 'xadd' command");
  }
  WantedId wanted;
  if (!wanted.Parse(call, call.arg(at))) return;
  Key stream;
  if (!call.Open(call.arg(1), Type::kStream, &stream)) return;
  if (!stream.exists && !makes) return call.reply.Null();
  const std::optional<StreamId> id = wanted.Choose(call, stream.meta.last);
  if (!id) return;
  if (!stream.exists) call.view.MakeCollection(&stream, Type::kStream);
  std::string bytes;
  for (size_t i = at + 1; i < call.count(); ++i) {
    base::Append(&bytes, static_cast<uint32_t>(call.arg(i).size()));
    bytes += call.arg(i);
  }
  call.view.Put(StreamKey(stream.meta.id, *id), bytes);
  stream.meta.last = *id;
  ++stream.meta.count;
  ++stream.meta.added;
  if (trim.length || trim.least) trim.Apply(call, &stream);
  call.view.Save(stream);
  call.reply.Bulk(TextOf(*id));
}

void RunXtrim(Call& call) {
  Trim trim;
  size_t at = 2;
  if (!call.Is(2, "maxlen") && !call.Is(2, "minid")) return call.SyntaxError();
  if (!trim.Parse(call, &at)) return;
  if (at != call.count()) return call.SyntaxError();
  Key stream;
  if (!call.Open(call.arg(1), Type::kStream, &stream)) return;
  if (!stream.exists) return call.reply.Integer(0);
  const int64_t removed = trim.Apply(call, &stream);
  if (removed > 0) call.view.Save(stream);
  call.reply.Integer(removed);
}

void RunXlen(Call& call) {
  Key stream;
  if (call.Open(call.arg(1), Type::kStream, &stream)) {
    call.reply.Integer(static_cast<int64_t>(stream.meta.count));
  }
}

void RunXdel(Call& call) {
  Key stream;
  if (!call.Open(call.arg(1), Type::kStream, &stream)) return;
  if (!stream.exists) return call.reply.Integer(0);
  std::vector<StreamId> ids;
  for (size_t i = 2; i < call.count(); ++i) {
    const std::optional<StreamId> id = ParseId(call.arg(i), 0);
    if (!id) return InvalidId(call);
    ids.push_back(*id);
  }
  int64_t removed = 0;
  for (const StreamId id : ids) {
    const std::string element = StreamKey(stream.meta.id, id);
    if (!call.view.Has(element)) continue;
    call.view.Delete(element);
    --stream.meta.count;
    stream.meta.deleted = std::max(stream.meta.deleted, id);
    ++removed;
  }
  if (removed > 0) call.view.Save(stream);
  call.reply.Integer(removed);
}

/// An end of a range. Nothing: an error is replied, or the range is empty.
std::optional<StreamId> ParseEnd(Call& call, std::string_view text, bool is_low) {
  if (text == "-") return StreamId{};
  if (text == "+") return kStreamIdMax;
  const bool exclusive = text.starts_with('(');
  std::optional<StreamId> id = ParseId(text.substr(exclusive ? 1 : 0), is_low ? 0 : UINT64_MAX);
  if (!id) return InvalidId(call), std::nullopt;
  if (!exclusive) return id;
  id = is_low ? After(*id) : Before(*id);
  if (!id) {
    call.reply.Error(is_low ? "ERR invalid start ID for the interval"
                            : "ERR invalid end ID for the interval");
  }
  return id;
}

void ReplyStreamRange(Call& call, bool reverse) {
  const std::optional<StreamId> low = ParseEnd(call, call.arg(reverse ? 3 : 2), true);
  if (!low) return;
  const std::optional<StreamId> high = ParseEnd(call, call.arg(reverse ? 2 : 3), false);
  if (!high) return;
  std::optional<int64_t> count;
  for (size_t i = 4; i < call.count(); i += 2) {
    if (!call.Is(i, "count") || i + 1 >= call.count()) return call.SyntaxError();
    count = call.Integer(i + 1);
    if (!count) return;
    count = std::max<int64_t>(*count, 0);
  }
  Key stream;
  if (!call.Open(call.arg(1), Type::kStream, &stream)) return;
  if (!stream.exists) return call.reply.Array(0);
  if (count && *count == 0) return call.reply.NullArray();
  const uint64_t most = count ? static_cast<uint64_t>(*count) : UINT64_MAX;
  ReplyEntries(call, ReadEntries(call, stream, *low, *high, most, reverse));
}
void RunXrange(Call& call) { ReplyStreamRange(call, false); }
void RunXrevrange(Call& call) { ReplyStreamRange(call, true); }

struct StreamReading {
  uint64_t count = UINT64_MAX;
  std::optional<int64_t> block_ms{};
  size_t first = 0;  // The first key; as many ids follow the keys.
  size_t keys = 0;

  bool Parse(Call& call);
};

bool StreamReading::Parse(Call& call) {
  for (size_t i = 1; i < call.count(); ++i) {
    const bool has_value = i + 1 < call.count();
    if (call.Is(i, "count") && has_value) {
      const std::optional<int64_t> number = call.Integer(++i);
      if (!number) return false;
      count = *number > 0 ? static_cast<uint64_t>(*number) : UINT64_MAX;
    } else if (call.Is(i, "block") && has_value) {
      block_ms = call.Integer(++i, "ERR timeout is not an integer or out of range");
      if (!block_ms) return false;
      if (*block_ms < 0) return call.reply.Error("ERR timeout is negative"), false;
    } else if (call.Is(i, "streams") && has_value) {
      first = i + 1;
      break;
    } else {
      return call.SyntaxError(), false;
    }
  }
  if (first == 0) return call.SyntaxError(), false;
  if ((call.count() - first) % 2 != 0) {
    call.reply.Error(
        "ERR Unbalanced 'xread' list of streams: for each stream key an ID or '$' must be "
        "specified.");
    return false;
  }
  keys = (call.count() - first) / 2;
  return true;
}

void RunXread(Call& call) {
  StreamReading reading;
  if (!reading.Parse(call)) return;
  Wait wait;
  wait.args.assign(call.args.begin(), call.args.end());
  std::vector<std::pair<std::string_view, std::vector<StreamEntry>>> found;
  for (size_t i = 0; i < reading.keys; ++i) {
    const std::string_view name = call.arg(reading.first + i);
    const size_t id_index = reading.first + reading.keys + i;
    Key stream;
    if (!call.Open(name, Type::kStream, &stream)) return;
    std::optional<StreamId> last = stream.meta.last;
    if (call.arg(id_index) != "$") last = ParseId(call.arg(id_index), 0);
    if (!last) return InvalidId(call);
    // When it runs again, "$" stands for what was the last entry now.
    wait.args[id_index] = TextOf(*last);
    wait.keys.emplace_back(name);
    const std::optional<StreamId> low = After(*last);
    if (!low) continue;
    auto entries = ReadEntries(call, stream, *low, kStreamIdMax, reading.count, false);
    if (!entries.empty()) found.emplace_back(name, std::move(entries));
  }
  if (found.empty() && reading.block_ms) {
    if (*reading.block_ms > 0) wait.timeout = std::chrono::milliseconds(*reading.block_ms);
    call.wait = std::move(wait);
    return;
  }
  if (found.empty()) return call.reply.NullArray();
  const bool is_map = call.reply.version() == 3;
  is_map ? call.reply.Map(found.size()) : call.reply.Array(found.size());
  for (const auto& [name, entries] : found) {
    if (!is_map) call.reply.Array(2);
    call.reply.Bulk(name);
    ReplyEntries(call, entries);
  }
}

constexpr Command kStreamCommands[] = {
    {"xadd",
     "key [NOMKSTREAM] [MAXLEN|MINID [= | ~] threshold [LIMIT count]] *|id field value [field "
     "value ...]",
     -5, kWrite | kFast, 1, 1, 1, Group::kStream, "Adds an entry to a stream.", RunXadd},
    {"xtrim", "key MAXLEN|MINID [= | ~] threshold [LIMIT count]", -4, kWrite, 1, 1, 1,
     Group::kStream, "Removes the oldest entries of a stream. ~ and LIMIT change nothing.",
     RunXtrim},
    {"xlen", "key", 2, kReadOnly | kFast | kSingleRead, 1, 1, 1, Group::kStream,
     "Returns the number of entries of a stream.", RunXlen},
    {"xdel", "key id [id ...]", -3, kWrite | kFast, 1, 1, 1, Group::kStream,
     "Removes entries of a stream.", RunXdel},
    {"xrange", "key start end [COUNT count]", -4, kReadOnly, 1, 1, 1, Group::kStream,
     "Returns the entries in a range of ids.", RunXrange},
    {"xrevrange", "key end start [COUNT count]", -4, kReadOnly, 1, 1, 1, Group::kStream,
     "Returns the entries in a range of ids, the newest first.", RunXrevrange},
    {"xread", "[COUNT count] [BLOCK milliseconds] STREAMS key [key ...] id [id ...]", -4,
     kReadOnly | kBlocking | kMovableKeys, 0, 0, 0, Group::kStream,
     "Returns the entries after given ids. With BLOCK it waits until there is one.", RunXread},
};

}  // namespace

std::span<const Command> StreamCommands() { return kStreamCommands; }

}  // namespace basalt::server
