#include "tools/basalt/text_format.h"

#include <boost/json.hpp>
#include <charconv>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/base64.h"
#include "tools/basalt/figures.h"

namespace basalt::tools {
namespace {

uint8_t ByteAt(std::string_view bytes, size_t i) { return static_cast<uint8_t>(bytes[i]); }

bool InRange(std::string_view bytes, size_t i, uint8_t low, uint8_t high) {
  return i < bytes.size() && ByteAt(bytes, i) >= low && ByteAt(bytes, i) <= high;
}

/// The length of the well-formed UTF-8 sequence at the start of `bytes` (not empty), or 0: the
/// table of well-formed byte sequences in the Unicode standard, chapter 3.9.
size_t Utf8SequenceLength(std::string_view bytes) {
  const uint8_t lead = ByteAt(bytes, 0);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (!InRange(bytes, 1, low, high)) return 0;
  if (lead < 0xE0) return 2;
  if (!InRange(bytes, 2, 0x80, 0xBF)) return 0;
  if (lead < 0xF0) return 3;
  return InRange(bytes, 3, 0x80, 0xBF) ? 4 : 0;
}

/// The length of the longest prefix that is well-formed UTF-8.
size_t Utf8PrefixLength(std::string_view bytes) {
  size_t length = 0;
  while (length < bytes.size()) {
    const size_t next = Utf8SequenceLength(bytes.substr(length));
    if (next == 0) break;
    length += next;
  }
  return length;
}

/// Of UTF-8. Escaped, because a reader drops it where it begins a text.
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool IsPlain(uint8_t byte) { return byte >= 0x20 && byte < 0x7F && byte != '\\'; }

void AppendEscape(uint8_t byte, std::string& out) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  switch (byte) {
    case '\\':
      out += "\\\\";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    default:
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
  }
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

Status MalformedRecord(std::string_view what) { return {StatusCode::kInvalidArgument, what}; }

std::string Column(size_t position) { return "column " + std::to_string(position + 1); }

constexpr std::string_view kTextExpiry = "expiry_ms=";
constexpr std::string_view kTextKeyspace = "keyspace=";

/// Nothing: it is no moment at which a record may expire.
std::optional<WallTime> ExpiryAt(int64_t ms) {
  if (ms <= 0) return std::nullopt;
  return WallTime(std::chrono::milliseconds(ms));
}

/// Nothing: the last part of a text line is no expiry.
std::optional<WallTime> ParseTextExpiry(std::string_view text) {
  if (!text.starts_with(kTextExpiry)) return std::nullopt;
  text.remove_prefix(kTextExpiry.size());
  int64_t ms = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ms);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return ExpiryAt(ms);
}

/// Reads one part of a text line behind the value; each may be there once.
Status ParseTextDetail(std::string_view part, size_t tab, Record* record) {
  if (part.starts_with(kTextKeyspace) && record->keyspace.empty()) {
    part.remove_prefix(kTextKeyspace.size());
    Result<std::string> name = ParseText(part);
    if (!name) return MalformedRecord("in the keyspace: " + std::string(name.error().message()));
    record->keyspace = std::move(*name);
    if (!record->keyspace.empty()) return {};
  } else if (!record->expiry) {
    record->expiry = ParseTextExpiry(part);
    if (record->expiry) return {};
  }
  return MalformedRecord(
      "a second tab at " + Column(tab) +
      ": inside keys and values write \\t; after the value only expiry_ms=N (milliseconds since "
      "1970) and keyspace=NAME may stand, once each");
}

Result<Record> ParseTextRecord(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  const size_t tab = line.find('\t');
  if (tab == std::string_view::npos) {
    return MalformedRecord("no tab: a line is key, tab, value (or is this --json?)");
  }
  const size_t end = line.find('\t', tab + 1);
  Result<std::string> key = ParseText(line.substr(0, tab));
  if (!key) return MalformedRecord("in the key: " + std::string(key.error().message()));
  Result<std::string> value = ParseText(line.substr(0, end).substr(tab + 1));
  if (!value) return MalformedRecord("in the value: " + std::string(value.error().message()));
  Record record{.key = std::move(*key), .value = std::move(*value)};
  for (size_t at = end; at != std::string_view::npos;) {
    const size_t next = line.find('\t', at + 1);
    const std::string_view part = line.substr(0, next).substr(at + 1);
    if (Status parsed = ParseTextDetail(part, at, &record); !parsed.ok()) return parsed;
    at = next;
  }
  return record;
}

/// The bytes of one member of a JSON line.
Result<std::string> BytesOf(const boost::json::value& member, std::string_view name) {
  if (const boost::json::string* text = member.if_string()) {
    return std::string(text->data(), text->size());
  }
  if (const boost::json::object* object = member.if_object(); object && object->size() == 1) {
    const boost::json::value* encoded = object->if_contains("base64");
    if (encoded != nullptr && encoded->is_string()) {
      const boost::json::string& text = encoded->get_string();
      Result<std::string> bytes = base::DecodeBase64({text.data(), text.size()});
      if (!bytes)
        return MalformedRecord(std::string(name) + ": " + std::string(bytes.error().message()));
      return bytes;
    }
  }
  return MalformedRecord(std::string(name) + " must be a string or {\"base64\":\"...\"}");
}

/// The members that stand in valid JSON, in all of its objects. The parser keeps the last one of a
/// name.
size_t CountMembers(std::string_view json) {
  size_t count = 0;
  bool in_string = false;
  for (size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '"') in_string = !in_string;
    if (json[i] == '\\') ++i;  // Only strings have any; what follows may be a quote.
    if (json[i] == ':' && !in_string) ++count;
  }
  return count;
}

Result<Record> ParseJsonRecord(std::string_view line) {
  boost::json::monotonic_resource memory;
  boost::json::stream_parser parser(&memory);
  boost::json::error_code error;
  const size_t parsed = parser.write_some(line.data(), line.size(), error);
  if (!error && parsed == line.size()) parser.finish(error);
  const size_t text = error ? Utf8PrefixLength(line) : line.size();
  if (text < line.size() && text <= parsed) {  // What it stopped at is no text.
    return MalformedRecord("not UTF-8 at " + Column(text) +
                           ": such bytes are written {\"base64\":\"...\"} in place of a string");
  }
  if (error) return MalformedRecord("not JSON: " + error.message() + " at " + Column(parsed));
  if (parsed != line.size())
    return MalformedRecord("more than one JSON value, at " + Column(parsed));

  const boost::json::value document = parser.release();
  const boost::json::object* record = document.if_object();
  const boost::json::value* key = record == nullptr ? nullptr : record->if_contains("key");
  const boost::json::value* value = record == nullptr ? nullptr : record->if_contains("value");
  const boost::json::value* expiry_ms =
      record == nullptr ? nullptr : record->if_contains("expiry_ms");
  const boost::json::value* keyspace =
      record == nullptr ? nullptr : record->if_contains("keyspace");
  const size_t known = 2 + (expiry_ms == nullptr ? 0U : 1U) + (keyspace == nullptr ? 0U : 1U);
  if (key == nullptr || value == nullptr || record->size() != known) {
    return MalformedRecord(
        "a line is {\"key\":...,\"value\":...} with these two members, and \"expiry_ms\" "
        "or \"keyspace\" where the record has one");
  }
  Result<std::string> key_bytes = BytesOf(*key, "\"key\"");
  if (!key_bytes) return key_bytes.error();
  Result<std::string> value_bytes = BytesOf(*value, "\"value\"");
  if (!value_bytes) return value_bytes.error();
  std::optional<WallTime> expiry;
  if (expiry_ms != nullptr) {
    if (expiry_ms->is_int64()) expiry = ExpiryAt(expiry_ms->get_int64());
    if (!expiry) {
      return MalformedRecord(
          "\"expiry_ms\" must be a whole number above 0: milliseconds since 1970");
    }
  }
  Result<std::string> keyspace_bytes;
  if (keyspace != nullptr) keyspace_bytes = BytesOf(*keyspace, "\"keyspace\"");
  if (!keyspace_bytes) return keyspace_bytes.error();
  size_t members = known;
  for (const boost::json::value* member : {key, value, keyspace}) {
    if (member != nullptr && member->is_object()) ++members;
  }
  if (CountMembers(line) != members) {
    return MalformedRecord("a member stands twice: leave the one that is meant");
  }
  return Record{std::move(*key_bytes), std::move(*value_bytes), expiry, std::move(*keyspace_bytes)};
}

}  // namespace

bool HasExpired(const Record& record) {
  // In the clock's own nanoseconds, a moment behind the year 2262 would overflow.
  const auto now = std::chrono::floor<WallTime::duration>(std::chrono::system_clock::now());
  return record.expiry && *record.expiry <= now;
}

bool IsUtf8(std::string_view bytes) { return Utf8PrefixLength(bytes) == bytes.size(); }

void AppendText(std::string_view bytes, std::string& out) {
  while (!bytes.empty()) {
    size_t plain = 0;
    while (plain < bytes.size() && IsPlain(ByteAt(bytes, plain))) ++plain;
    out += bytes.substr(0, plain);
    bytes.remove_prefix(plain);
    if (bytes.empty()) return;
    const size_t length = Utf8SequenceLength(bytes);
    const bool is_control = length == 2 && ByteAt(bytes, 0) == 0xC2 && ByteAt(bytes, 1) < 0xA0;
    if (length < 2 || is_control) {
      AppendEscape(ByteAt(bytes, 0), out);
      bytes.remove_prefix(1);
    } else if (bytes.starts_with(kByteOrderMark)) {
      for (size_t i = 0; i < kByteOrderMark.size(); ++i) AppendEscape(ByteAt(bytes, i), out);
      bytes.remove_prefix(kByteOrderMark.size());
    } else {
      out += bytes.substr(0, length);
      bytes.remove_prefix(length);
    }
  }
}

std::string ToText(std::string_view bytes) {
  std::string text;
  AppendText(bytes, text);
  return text;
}

std::string KeyText(std::string_view key) {
  constexpr size_t kShown = 64;
  const std::string text = "'" + ToText(key.substr(0, kShown)) + "'";
  return key.size() <= kShown ? text : text + "... (" + FormatCount(key.size()) + " bytes)";
}

Result<std::string> ParseText(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '\\') {
      bytes += text[i++];
      continue;
    }
    const char form = i + 1 < text.size() ? text[i + 1] : '\0';
    if (form == '\\' || form == 't' || form == 'n' || form == 'r') {
      bytes += form == '\\' ? '\\' : form == 't' ? '\t' : form == 'n' ? '\n' : '\r';
      i += 2;
      continue;
    }
    const int high = form == 'x' && i + 3 < text.size() ? HexDigit(text[i + 2]) : -1;
    const int low = high >= 0 ? HexDigit(text[i + 3]) : -1;
    if (low < 0) {
      return MalformedRecord("a backslash at character " + std::to_string(i + 1) +
                             " begins none of \\\\ \\t \\n \\r \\xNN; a backslash itself is \\\\");
    }
    bytes += static_cast<char>(high << 4 | low);
    i += 4;
  }
  return bytes;
}

void AppendJson(std::string_view bytes, std::string& out) {
  if (IsUtf8(bytes)) {
    out += boost::json::serialize(boost::json::string_view(bytes.data(), bytes.size()));
    return;
  }
  out += R"({"base64":")";
  base::AppendBase64(bytes, out);
  out += R"("})";
}

void AppendRecord(RecordFormat format, std::string_view key, std::optional<std::string_view> value,
                  std::string& out, const RecordDetails& details) {
  const std::optional<WallTime>& expiry = details.expiry;
  const std::string moment = expiry ? std::to_string(expiry->time_since_epoch().count()) : "";
  if (format == RecordFormat::kText) {
    AppendText(key, out);
    if (value.has_value()) {
      out += '\t';
      AppendText(*value, out);
    }
    if (expiry) out.append("\t").append(kTextExpiry).append(moment);
    if (!details.keyspace.empty()) {
      out.append("\t").append(kTextKeyspace);
      AppendText(details.keyspace, out);
    }
  } else {
    out += R"({"key":)";
    AppendJson(key, out);
    if (value.has_value()) {
      out += R"(,"value":)";
      AppendJson(*value, out);
    }
    if (expiry) out.append(R"(,"expiry_ms":)").append(moment);
    if (!details.keyspace.empty()) {
      out += R"(,"keyspace":)";
      AppendJson(details.keyspace, out);
    }
    out += '}';
  }
  out += '\n';
}

Result<Record> ParseRecord(RecordFormat format, std::string_view line) {
  return format == RecordFormat::kText ? ParseTextRecord(line) : ParseJsonRecord(line);
}

}  // namespace basalt::tools
