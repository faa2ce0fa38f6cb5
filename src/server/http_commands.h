#pragma once

#include "server/http.h"
#include "server/http_response.h"
#include "server/users.h"

namespace basalt::server {

/// Whether a target is one of Upstash's: "/", "/pipeline" or "/multi-exec".
bool IsCommandTarget(std::string_view target) noexcept;

/// Runs commands that are JSON arrays, as the servers of Upstash do: one at "/", several at
/// "/pipeline", several as one transaction at "/multi-exec". Answers {"result": ...} or
/// {"error": ...} for each. With `Upstash-Encoding: base64` texts of results are in base64; without
/// it a text must be UTF-8. On a thread of the pool.
HttpResponse RunHttpCommands(Hub& hub, const User& user, const HttpRequest& request);

}  // namespace basalt::server
