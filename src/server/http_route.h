#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "server/http.h"
#include "server/http_response.h"
#include "server/http_target.h"
#include "server/hub.h"
#include "server/users.h"
#include "server/view.h"

namespace basalt::server {

/// A request on its way to a route.
struct HttpCall {
  Hub& hub;
  const User* user;  ///< Null only on routes for anyone.
  const HttpRequest& request;
  const HttpTarget& target;
  std::string_view name;  ///< What `{...}` of the route's path stands for, percent-encoded.
  Mode mode;

  bool MayDo(uint32_t rights) const noexcept { return (user->rights & rights) == rights; }
};

/// One path of the server. openapi.json describes each of them.
struct HttpRoute {
  std::string_view path;     ///< As in the document; `{...}` stands for the rest of the path.
  std::string_view methods;  ///< As the field Allow has them.
  bool is_for_anyone;        ///< Nobody needs to authenticate.
  /// Nothing: it must be run in Mode::kPool.
  std::optional<HttpResponse> (*run)(const HttpCall& call);
};

std::span<const HttpRoute> HttpRoutes() noexcept;
/// The route of a path, and what `{...}` stands for. Null: there is none.
const HttpRoute* FindHttpRoute(std::string_view path, std::string_view* name) noexcept;

/// Calls `run` with a view and commits what it has changed, again after a conflict. `finish` may
/// complete the response after the commit. Nothing: it must be run in Mode::kPool.
std::optional<HttpResponse> InHttpTransaction(
    const HttpCall& call, uint8_t db, const std::function<HttpResponse(View&)>& run,
    const std::function<void(const View&, HttpResponse*)>& finish);

// The routes of other files.
std::optional<HttpResponse> RunHttpKey(const HttpCall& call);
std::optional<HttpResponse> RunHttpScan(const HttpCall& call);
std::optional<HttpResponse> RunHttpBatch(const HttpCall& call);
std::optional<HttpResponse> RunHttpCommands(const HttpCall& call);

}  // namespace basalt::server
