#include "server/http.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "server/http_response.h"
#include "server/http_route.h"
#include "server/http_target.h"
#include "server/numbers.h"

namespace basalt::server {
namespace {

/// Whether the name that the client has for this server is one that no web page can choose: an
/// address, or localhost. Without a password, a page could else reach the server through a name
/// that it lets point here.
bool IsSafeHost(std::string_view host) {
  if (host.empty() || host.starts_with('[')) return true;
  host = host.substr(0, host.find(':'));
  return EqualsIgnoreCase(host, "localhost") ||
         host.find_first_not_of("0123456789.") == std::string_view::npos;
}

/// Whether a request that may change something comes from a web page of another origin. Browsers
/// send such a POST without asking the server before, and tell the page's origin.
bool IsFromForeignPage(const HttpRequest& request) {
  if (request.is_read() || request.origin.empty()) return false;
  return request.origin != "http://" + request.host && request.origin != "https://" + request.host;
}

bool Allows(std::string_view methods, std::string_view method) {
  while (!methods.empty()) {
    const size_t end = std::min(methods.find(", "), methods.size());
    if (methods.substr(0, end) == method) return true;
    methods.remove_prefix(std::min(end + 2, methods.size()));
  }
  return false;
}

std::optional<HttpResponse> Respond(Hub& hub, const HttpRequest& request, Mode mode) {
  if (hub.settings().users.Initial() != nullptr && !IsSafeHost(request.host)) {
    return Problem(421, "without a password the server answers to localhost and addresses only");
  }
  if (IsFromForeignPage(request)) {
    return Problem(403, "web pages of other origins may not change anything");
  }
  const std::string_view path =
      std::string_view(request.target).substr(0, request.target.find('?'));
  std::string_view name;
  const HttpRoute* const route = FindHttpRoute(path, &name);
  const User* const user = hub.settings().users.OfAuthorization(request.authorization);
  if (user == nullptr && (route == nullptr || !route->is_for_anyone)) return Unauthorized();
  if (route == nullptr) return Problem(404, "there is nothing at this address");
  if (!Allows(route->methods, request.method)) {
    HttpResponse refused = Problem(405, "this address has " + std::string(route->methods));
    refused.fields.emplace_back("Allow", route->methods);
    return refused;
  }
  const Result<HttpTarget> target = ParseHttpTarget(request.target);
  if (!target) return ProblemOf(target.error());
  return route->run({hub, user, request, *target, name, mode});
}

}  // namespace

bool IsHttpRequestLine(std::string_view line) noexcept {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line.ends_with(" HTTP/1.1") || line.ends_with(" HTTP/1.0");
}

bool BeginsLikeHttp(std::string_view bytes) noexcept {
  constexpr std::string_view kMethods[] = {"GET",   "HEAD",    "POST",  "PUT",  "DELETE",
                                           "PATCH", "OPTIONS", "TRACE", "QUERY"};
  const size_t space = bytes.find(' ');
  return space != std::string_view::npos && bytes.substr(space).starts_with(" /") &&
         std::ranges::find(kMethods, bytes.substr(0, space)) != std::end(kMethods);
}

bool IsWordOfHttp(std::string_view word) noexcept {
  return EqualsIgnoreCase(word, "post") || EqualsIgnoreCase(word, "host:");
}

std::optional<HttpReply> HandleHttp(Hub& hub, const HttpRequest& request, Mode mode) {
  std::optional<HttpResponse> response = Respond(hub, request, mode);
  if (!response) return std::nullopt;
  HttpReply reply{.closes = !request.keep_alive};
  const bool has_body = request.method != "HEAD";
  HttpBody form = has_body ? HttpBody::kWhole : HttpBody::kNone;
  if (has_body && response->stream) {
    form = request.is_http_1_0 ? HttpBody::kUntilClose : HttpBody::kChunked;
    reply.closes = reply.closes || request.is_http_1_0;
  }
  reply.bytes = response->ToString(!reply.closes, form);
  if (form == HttpBody::kChunked) reply.stream = Chunked(std::move(response->stream));
  if (form == HttpBody::kUntilClose) reply.stream = std::move(response->stream);
  return reply;
}

}  // namespace basalt::server
