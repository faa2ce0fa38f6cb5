#include "server/http_response.h"

#include <boost/json.hpp>

namespace basalt::server {
namespace {

std::string_view ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 409:
      return "Conflict";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 421:
      return "Misdirected Request";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    case 507:
      return "Insufficient Storage";
    default:
      return "Internal Server Error";
  }
}

}  // namespace

std::string HttpResponse::ToString(bool keep_alive, bool has_body) const {
  std::string text =
      "HTTP/1.1 " + std::to_string(status) + " " + std::string(ReasonOf(status)) + "\r\n";
  const bool may_have_body = status != 204 && status != 304;
  if (may_have_body) {
    if (!content_type.empty()) text += "Content-Type: " + content_type + "\r\n";
    text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  }
  for (const auto& [name, value] : fields) text += name + ": " + value + "\r\n";
  text += "X-Content-Type-Options: nosniff\r\n";
  if (!keep_alive) text += "Connection: close\r\n";
  text += "\r\n";
  if (may_have_body && has_body) text += body;
  return text;
}

HttpResponse Problem(int status, std::string_view detail) {
  const boost::json::object problem = {{"type", "about:blank"},
                                       {"title", std::string(ReasonOf(status))},
                                       {"status", status},
                                       {"detail", std::string(detail)}};
  return {.status = status,
          .content_type = "application/problem+json",
          .body = boost::json::serialize(problem) + "\n"};
}

std::string ProblemResponse(int status, std::string_view detail, bool keep_alive) {
  return Problem(status, detail).ToString(keep_alive);
}

}  // namespace basalt::server
