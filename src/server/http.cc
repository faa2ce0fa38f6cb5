#include "server/http.h"

#include <algorithm>
#include <array>

#include "server/http_commands.h"
#include "server/http_response.h"
#include "server/metrics.h"
#include "server/numbers.h"

namespace basalt::server {
namespace {

constexpr std::string_view kKeysPath = "/v1/keys/";
constexpr int kAttempts = 64;

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Nothing: a percent sign without two digits.
std::optional<std::string> DecodePercent(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      bytes += text[i];
      continue;
    }
    if (i + 2 >= text.size() || HexValue(text[i + 1]) < 0 || HexValue(text[i + 2]) < 0) {
      return std::nullopt;
    }
    bytes += static_cast<char>(HexValue(text[i + 1]) * 16 + HexValue(text[i + 2]));
    i += 2;
  }
  return bytes;
}

std::optional<std::string> DecodeBase64Text(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  while (text.ends_with('=')) text.remove_suffix(1);
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = (bits << 6 | static_cast<uint32_t>(digit)) & 0xFFFFFF;
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>(bits >> count & 0xFF);
    }
  }
  return bytes;
}

/// Whom a request comes from: by the password as a bearer token, or by name and password as Basic
/// has them. Null: nobody.
const User* UserOf(const Hub& hub, const HttpRequest& request) {
  const Users& users = hub.settings().users;
  const bool asks_nobody = users.all().size() == 1 && users.Initial() != nullptr;
  if (request.authorization.empty() || asks_nobody) return users.Initial();
  const std::string_view text = request.authorization;
  const size_t space = text.find(' ');
  if (space == std::string_view::npos) return nullptr;
  const std::string_view scheme = text.substr(0, space);
  if (EqualsIgnoreCase(scheme, "bearer")) return users.FindByPassword(text.substr(space + 1));
  if (!EqualsIgnoreCase(scheme, "basic")) return nullptr;
  const std::optional<std::string> pair = DecodeBase64Text(text.substr(space + 1));
  const size_t colon = pair ? pair->find(':') : std::string::npos;
  if (colon == std::string::npos) return nullptr;
  const std::string_view both = *pair;
  return users.Find(both.substr(0, colon), both.substr(colon + 1));
}

/// Whether the name that the client has for this server is one that no web page can choose: an
/// address, or localhost. Without a password, a page could else reach the server through a name
/// that it lets point here.
bool IsSafeHost(std::string_view host) {
  if (host.empty() || host.starts_with('[')) return true;
  host = host.substr(0, host.find(':'));
  return EqualsIgnoreCase(host, "localhost") ||
         host.find_first_not_of("0123456789.") == std::string_view::npos;
}

std::string TagOf(uint64_t version) { return "\"" + std::to_string(version) + "\""; }

/// Whether a list of entity tags names this version, or is "*" and there is one.
bool NamesVersion(std::string_view list, bool exists, uint64_t version) {
  if (!exists) return false;
  if (list == "*") return true;
  const std::string tag = TagOf(version);
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    std::string_view entry = list.substr(0, comma);
    while (entry.starts_with(' ')) entry.remove_prefix(1);
    while (entry.ends_with(' ')) entry.remove_suffix(1);
    if (entry == tag) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

struct KeyTarget {
  std::string key;
  uint8_t db = 0;
  std::optional<std::chrono::milliseconds> ttl{};
};

/// One parameter of a query. False: it is unknown or malformed.
bool ParseParameter(std::string_view parameter, KeyTarget* target) {
  const size_t equals = parameter.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view name = parameter.substr(0, equals);
  const std::optional<int64_t> number = ParseInteger(parameter.substr(equals + 1));
  constexpr int64_t kTtlMsMax = int64_t{1} << 50;
  if (!number || *number < 0) return false;
  if (name == "db" && *number < kDatabases) {
    target->db = static_cast<uint8_t>(*number);
  } else if (name == "ttl_ms" && *number > 0 && *number <= kTtlMsMax) {
    target->ttl = std::chrono::milliseconds(*number);
  } else {
    return false;
  }
  return true;
}

std::optional<KeyTarget> ParseTarget(std::string_view target) {
  KeyTarget parsed;
  target.remove_prefix(kKeysPath.size());
  const size_t mark = std::min(target.find('?'), target.size());
  std::optional<std::string> key = DecodePercent(target.substr(0, mark));
  if (!key) return std::nullopt;
  parsed.key = *std::move(key);
  std::string_view query = target.substr(std::min(mark + 1, target.size()));
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    if (!ParseParameter(query.substr(0, end), &parsed)) return std::nullopt;
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return parsed;
}

/// The response to a request on a key; what it changes is in the view.
HttpResponse OnKey(const HttpRequest& request, const KeyTarget& target, View& view) {
  Key key = view.Find(target.key);
  const bool is_read = request.method == "GET" || request.method == "HEAD";
  if (!request.if_match.empty() && !NamesVersion(request.if_match, key.exists, key.version)) {
    return Problem(412, "the key has another version, or is absent");
  }
  if (NamesVersion(request.if_none_match, key.exists, key.version)) {
    if (!is_read) return Problem(412, "the key is there");
    return {.status = 304, .fields = {{"ETag", TagOf(key.version)}}};
  }
  if (is_read) {
    if (!key.exists) return Problem(404, "the key is absent");
    if (key.meta.type != Type::kString) {
      return Problem(409, "the key holds a " + std::string(TypeName(key.meta.type)));
    }
    HttpResponse response{.content_type = "application/octet-stream", .body = key.text};
    response.fields.emplace_back("ETag", TagOf(key.version));
    return response;
  }
  if (request.method == "DELETE") {
    if (!key.exists) return Problem(404, "the key is absent");
    view.Remove(key);
    return {.status = 204};
  }
  if (key.exists && key.meta.type != Type::kString) view.Remove(key);
  key.meta = {.type = Type::kString};
  key.text = request.body;
  key.expiry.reset();
  if (target.ttl) {
    key.expiry = WallTime(std::chrono::milliseconds(Dataset::NowMs())) + *target.ttl;
  }
  view.Save(key);
  return {.status = 204};
}

HttpResponse StoreProblem(const Status& status) {
  if (status.sub_code() == SubCode::kDiskFull) return Problem(507, status.message());
  if (status.code() == StatusCode::kResourceExhausted) return Problem(503, status.message());
  return Problem(status.code() == StatusCode::kInvalidArgument ? 400 : 500, status.message());
}

std::optional<HttpResponse> KeyRoute(Hub& hub, const User& user, const HttpRequest& request,
                                     Mode mode) {
  constexpr std::array<std::string_view, 4> kMethods = {"GET", "HEAD", "PUT", "DELETE"};
  if (std::find(kMethods.begin(), kMethods.end(), request.method) == kMethods.end()) {
    HttpResponse refused = Problem(405, "a key has GET, HEAD, PUT and DELETE");
    refused.fields.emplace_back("Allow", "GET, HEAD, PUT, DELETE");
    return refused;
  }
  const std::optional<KeyTarget> target = ParseTarget(request.target);
  if (!target) return Problem(400, "the address has a malformed key or parameter (db, ttl_ms)");
  const bool is_read = request.method == "GET" || request.method == "HEAD";
  if (!user.MayReach(target->key) || (user.rights & (is_read ? kRightRead : kRightWrite)) == 0) {
    return Problem(403, "this user may not do that with this key");
  }
  for (int i = 0; i < kAttempts; ++i) {
    View view(&hub.dataset(), target->db, mode, false);
    HttpResponse response = OnKey(request, *target, view);
    const Status committed = view.Commit();
    if (committed.ok()) {
      hub.waiting().Signal(view.changed());
      if (request.method == "PUT" && response.status == 204) {
        response.fields.emplace_back("ETag", TagOf(view.sequence()));
      }
      return response;
    }
    if (committed.code() == StatusCode::kWouldBlock && mode == Mode::kLoop) return std::nullopt;
    if (committed.code() != StatusCode::kAborted) return StoreProblem(committed);
  }
  return Problem(503, "too many conflicts with other clients: try again");
}

std::optional<HttpResponse> Route(Hub& hub, const HttpRequest& request, Mode mode) {
  if (hub.settings().users.Initial() != nullptr && !IsSafeHost(request.host)) {
    return Problem(421, "without a password the server answers to localhost and addresses only");
  }
  const bool is_read = request.method == "GET" || request.method == "HEAD";
  if (request.target == "/healthz" && is_read) {
    return HttpResponse{.content_type = "text/plain", .body = "ok\n"};
  }
  if (request.target == "/readyz" && is_read) {
    if (hub.is_stopping()) return Problem(503, "the server is stopping");
    return HttpResponse{.content_type = "text/plain", .body = "ready\n"};
  }
  const User* user = UserOf(hub, request);
  if (user == nullptr) {
    HttpResponse refused = Problem(401, "a bearer token is needed: the password of a user");
    refused.fields.emplace_back("WWW-Authenticate", "Bearer");
    return refused;
  }
  if (request.target == "/metrics" && is_read) {
    if ((user->rights & kRightAdmin) == 0) return Problem(403, "metrics need the right 'admin'");
    return HttpResponse{.content_type = "text/plain; version=0.0.4", .body = MetricsText(hub)};
  }
  if (request.target.starts_with(kKeysPath)) return KeyRoute(hub, *user, request, mode);
  if (IsCommandTarget(request.target) && !is_read) {
    if (mode == Mode::kLoop) return std::nullopt;
    return RunHttpCommands(hub, *user, request);
  }
  return Problem(404, "there is nothing at this address");
}

}  // namespace

bool IsHttpRequestLine(std::string_view line) noexcept {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line.ends_with(" HTTP/1.1") || line.ends_with(" HTTP/1.0");
}

std::optional<std::string> HandleHttp(Hub& hub, const HttpRequest& request, Mode mode) {
  const std::optional<HttpResponse> response = Route(hub, request, mode);
  if (!response) return std::nullopt;
  return response->ToString(request.keep_alive, request.method != "HEAD");
}

}  // namespace basalt::server
