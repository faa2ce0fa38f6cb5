#include "server/http_key.h"

#include <algorithm>

#include "base/check.h"
#include "server/http_route.h"

namespace basalt::server {
namespace {

struct KeyTarget {
  std::string key;
  uint8_t db = 0;
  std::optional<std::chrono::milliseconds> ttl{};
};

Result<KeyTarget> KeyTargetOf(const HttpCall& call) {
  KeyTarget target;
  BASALT_ASSIGN_OR_RETURN(target.key, DecodePercent(call.name));
  BASALT_RETURN_IF_ERROR(call.target.CheckNames({"db", "ttl_ms"}));
  BASALT_ASSIGN_OR_RETURN(target.db, call.target.Database());
  BASALT_ASSIGN_OR_RETURN(const std::optional<int64_t> ttl,
                          call.target.Number("ttl_ms", 1, kHttpTtlMsMax));
  if (ttl) target.ttl = std::chrono::milliseconds(*ttl);
  return target;
}

/// The response to a request on a key; what it changes is in the view.
HttpResponse OnKey(const HttpRequest& request, const KeyTarget& target, View& view) {
  Key key = view.Find(target.key);
  if (!request.if_match.empty() && !NamesVersion(request.if_match, key)) {
    return Problem(412, "the key has another version, or is absent");
  }
  if (NamesVersion(request.if_none_match, key)) {
    if (!request.is_read()) return Problem(412, "the key is there");
    return {.status = 304, .fields = {{"ETag", EntityTag(key.version)}}};
  }
  if (request.is_read()) {
    if (!key.exists) return Problem(404, "the key is absent");
    if (key.meta.type != Type::kString) {
      return Problem(409, "the key holds a " + std::string(TypeName(key.meta.type)));
    }
    HttpResponse response{.content_type = "application/octet-stream", .body = std::move(key.text)};
    response.fields.emplace_back("ETag", EntityTag(key.version));
    return response;
  }
  if (request.method == "DELETE") {
    if (!key.exists) return Problem(404, "the key is absent");
    view.Remove(key);
    return {.status = 204};
  }
  PutString(view, &key, request.body, target.ttl);
  return {.status = 204};
}

}  // namespace

std::string EntityTag(uint64_t version) { return "\"" + std::to_string(version) + "\""; }

bool NamesVersion(std::string_view list, const Key& key) {
  if (!key.exists) return false;
  if (list == "*") return true;
  const std::string tag = EntityTag(key.version);
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

void PutString(View& view, Key* key, std::string_view value,
               std::optional<std::chrono::milliseconds> ttl) {
  if (key->exists && key->meta.type != Type::kString) view.Remove(*key);
  key->meta = {.type = Type::kString};
  key->text = value;
  key->expiry.reset();
  if (ttl) key->expiry = WallTime(std::chrono::milliseconds(Dataset::NowMs())) + *ttl;
  view.Save(*key);
}

std::optional<HttpResponse> RunHttpKey(const HttpCall& call) {
  const Result<KeyTarget> target = KeyTargetOf(call);
  if (!target) return ProblemOf(target.error());
  if (!call.user->MayReach(target->key) ||
      !call.MayDo(call.request.is_read() ? kRightRead : kRightWrite)) {
    return Problem(403, "this user may not do that with this key");
  }
  return InHttpTransaction(
      call, target->db, [&](View& view) { return OnKey(call.request, *target, view); },
      [&](const View& view, HttpResponse* response) {
        if (call.request.method != "PUT" || response->status != 204) return;
        response->fields.emplace_back("ETag", EntityTag(view.sequence()));
      });
}

}  // namespace basalt::server
