#include "server/http_route.h"

#include "server/attempt.h"
#include "server/metrics.h"
#include "server/openapi.h"

namespace basalt::server {
namespace {

constexpr int kAttempts = 64;

std::optional<HttpResponse> RunHealth(const HttpCall&) {
  return HttpResponse{.content_type = "text/plain", .body = "ok\n"};
}

std::optional<HttpResponse> RunReady(const HttpCall& call) {
  if (call.hub.is_stopping()) return Problem(503, "the server is stopping");
  return HttpResponse{.content_type = "text/plain", .body = "ready\n"};
}

std::optional<HttpResponse> RunMetrics(const HttpCall& call) {
  if (!call.MayDo(kRightAdmin)) return Problem(403, "metrics need the right 'admin'");
  return HttpResponse{.content_type = "text/plain; version=0.0.4", .body = MetricsText(call.hub)};
}

std::optional<HttpResponse> RunOpenApi(const HttpCall&) {
  return HttpResponse{.content_type = "application/json", .body = std::string(OpenApiDocument())};
}

constexpr HttpRoute kRoutes[] = {
    {"/healthz", "GET, HEAD", true, RunHealth},
    {"/readyz", "GET, HEAD", true, RunReady},
    {"/metrics", "GET, HEAD", false, RunMetrics},
    {"/openapi.json", "GET, HEAD", false, RunOpenApi},
    {"/v1/keys/{key}", "GET, HEAD, PUT, DELETE", false, RunHttpKey},
    {"/v1/keys", "GET, HEAD", false, RunHttpScan},
    {"/v1/batch", "POST", false, RunHttpBatch},
    {"/", "POST", false, RunHttpCommands},
    {"/pipeline", "POST", false, RunHttpCommands},
    {"/multi-exec", "POST", false, RunHttpCommands},
};

}  // namespace

std::span<const HttpRoute> HttpRoutes() noexcept { return kRoutes; }

const HttpRoute* FindHttpRoute(std::string_view path, std::string_view* name) noexcept {
  for (const HttpRoute& route : kRoutes) {
    const size_t brace = route.path.find('{');
    if (brace == std::string_view::npos) {
      if (path == route.path) return &route;
    } else if (path.starts_with(route.path.substr(0, brace))) {
      *name = path.substr(brace);
      return &route;
    }
  }
  return nullptr;
}

std::optional<HttpResponse> InHttpTransaction(
    const HttpCall& call, uint8_t db, const std::function<HttpResponse(View&)>& run,
    const std::function<void(const View&, HttpResponse*)>& finish) {
  for (int i = 0; i < kAttempts; ++i) {
    View view(&call.hub.dataset(), db, call.mode, false);
    HttpResponse response = run(view);
    const Status committed = view.Commit();
    if (committed.ok()) {
      call.hub.waiting().Signal(view.changed());
      finish(view, &response);
      return response;
    }
    if (committed.code() == StatusCode::kWouldBlock && call.mode == Mode::kLoop) {
      return std::nullopt;
    }
    if (committed.code() != StatusCode::kAborted) return ProblemOf(committed);
    if (call.mode == Mode::kPool) PauseAfterConflict(i);
  }
  return Problem(503, "too many conflicts with other clients: try again");
}

}  // namespace basalt::server
