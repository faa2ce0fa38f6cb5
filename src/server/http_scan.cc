#include <algorithm>
#include <boost/json.hpp>
#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "server/access.h"
#include "server/http_json.h"
#include "server/http_route.h"

// GET /v1/keys: a range of keys as JSON, a line each (NDJSON).
//
//   {"key": K, "type": "string", "value": V, "expiry_ms": N}      `value` of strings only
//   {"cursor": C}     the last line: where the next request goes on, or null at the end of the
//   range
//
// A response without its last line was cut off. An error on the way is a last line of its own,
// {"error": "..."}.
//
// All lines come from one snapshot. The response is made in pieces of kPieceBytes and one record,
// each when the client has read most of what was made before. A cursor is the last key in
// hexadecimal digits, so that nothing is kept between requests. A page ends behind a key whose
// cursor fits into an address of kAddressBytesMax beside the other parameters of the request.

namespace basalt::server {
namespace {

namespace json = boost::json;

constexpr int64_t kRecordsDefault = 1000;
constexpr int64_t kRecordsMax = 1'000'000;
constexpr size_t kPieceBytes = size_t{64} * 1024;
/// A header may have 16 KiB; the rest is for its fields.
constexpr size_t kAddressBytesMax = size_t{12} * 1024;

std::string CursorOf(std::string_view key) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string cursor;
  for (const char c : key) {
    cursor += kDigits[static_cast<unsigned char>(c) >> 4];
    cursor += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return cursor;
}

/// The first key behind the one that a cursor names.
Result<std::string> PlaceOf(std::string_view cursor) {
  const auto bad = Status(StatusCode::kInvalidArgument, "the cursor is not one of this server's");
  if (cursor.size() % 2 != 0) return bad;
  std::string encoded;
  for (size_t i = 0; i < cursor.size(); i += 2) {
    encoded += '%';
    encoded += cursor.substr(i, 2);
  }
  Result<std::string> key = DecodePercent(encoded);
  if (!key) return bad;
  *key += '\0';
  return key;
}

struct KeyRange {
  uint8_t db = 0;
  std::string begin{};
  std::optional<std::string> end{};
  std::string prefix{};
  int64_t records_max = kRecordsDefault;
  bool has_values = true;
  size_t cursor_bytes_max = 0;
};

Result<KeyRange> KeyRangeOf(const HttpTarget& target) {
  KeyRange range;
  BASALT_RETURN_IF_ERROR(
      target.CheckNames({"db", "start", "end", "prefix", "cursor", "limit", "values"}));
  BASALT_ASSIGN_OR_RETURN(range.db, target.Database());
  if (const std::string* prefix = target.Find("prefix")) range.prefix = *prefix;
  range.begin = range.prefix;
  if (const std::string* start = target.Find("start")) {
    range.begin = std::max(range.begin, *start);
  }
  if (const std::string* cursor = target.Find("cursor")) {
    BASALT_ASSIGN_OR_RETURN(const std::string place, PlaceOf(*cursor));
    range.begin = std::max(range.begin, place);
  }
  if (const std::string* end = target.Find("end")) range.end = *end;
  BASALT_ASSIGN_OR_RETURN(const std::optional<int64_t> limit,
                          target.Number("limit", 1, kRecordsMax));
  range.records_max = limit.value_or(kRecordsDefault);
  BASALT_ASSIGN_OR_RETURN(const std::optional<int64_t> values, target.Number("values", 0, 1));
  range.has_values = values.value_or(1) == 1;
  return range;
}

/// What the next request has room for if it has the parameters of this one.
size_t CursorBytesMax(const HttpCall& call) {
  const std::string* const cursor = call.target.Find("cursor");
  const size_t others = call.request.target.size() + std::string_view("&cursor=").size() -
                        (cursor != nullptr ? cursor->size() : 0);
  return kAddressBytesMax - std::min(kAddressBytesMax, others);
}

void AppendLine(const json::object& line, std::string* out) {
  *out += json::serialize(line);
  *out += '\n';
}

class KeyScan final : public HttpStream {
 public:
  KeyScan(Dataset* dataset, const User* user, KeyRange range)
      : user_(user),
        range_(std::move(range)),
        view_(dataset, range_.db, Mode::kPool, false),
        walk_(&view_, MetadataKey(range_.db, {})) {
    walk_.Seek(range_.begin);
    SkipForeign(*user_, {}, &walk_);
  }

  const Status& status() const noexcept { return view_.status(); }

  bool Next(std::string* out) override {
    while (out->size() < kPieceBytes) {
      if (!view_.ok()) return End({{"error", std::string(view_.status().message())}}, out);
      if (!IsInRange()) return End({{"cursor", nullptr}}, out);
      if (records_ >= range_.records_max && last_.size() * 2 <= range_.cursor_bytes_max) {
        return End({{"cursor", CursorOf(last_)}}, out);
      }
      AppendRecord(out);
      walk_.Next();
      SkipForeign(*user_, {}, &walk_);
    }
    return true;
  }

 private:
  static bool End(const json::object& line, std::string* out) {
    AppendLine(line, out);
    return false;
  }
  bool IsInRange() const {
    return walk_.Valid() && walk_.key().starts_with(range_.prefix) &&
           (!range_.end || walk_.key() < *range_.end);
  }

  void AppendRecord(std::string* out) {
    const std::optional<Metadata> meta = DecodeMetadata(walk_.value());
    if (!meta) {
      return view_.Fail({StatusCode::kCorruption, "the metadata record of a key is malformed"});
    }
    last_ = walk_.key();
    ++records_;
    json::object line = {{"key", JsonOfBytes(last_)}, {"type", TypeName(meta->type)}};
    if (range_.has_values && meta->type == Type::kString) {
      line["value"] = JsonOfBytes(walk_.value().substr(1));
    }
    if (const auto expiry = walk_.expiry()) line["expiry_ms"] = expiry->time_since_epoch().count();
    AppendLine(line, out);
  }

  const User* const user_;
  const KeyRange range_;
  View view_;
  Walk walk_;
  int64_t records_ = 0;
  std::string last_;
};

}  // namespace

std::optional<HttpResponse> RunHttpScan(const HttpCall& call) {
  Result<KeyRange> range = KeyRangeOf(call.target);
  if (!range) return ProblemOf(range.error());
  range->cursor_bytes_max = CursorBytesMax(call);
  if (!call.MayDo(kRightRead)) return Problem(403, "this user may not read");
  if (call.mode == Mode::kLoop) return std::nullopt;
  auto scan = std::make_unique<KeyScan>(&call.hub.dataset(), call.user, *std::move(range));
  if (!scan->status().ok()) return ProblemOf(scan->status());
  HttpResponse response{.content_type = "application/x-ndjson"};
  response.stream = std::move(scan);
  return response;
}

}  // namespace basalt::server
