#include "server/http_response.h"

#include <boost/json.hpp>
#include <cstdio>

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

class ChunkedStream final : public HttpStream {
 public:
  explicit ChunkedStream(std::unique_ptr<HttpStream> stream) : stream_(std::move(stream)) {}

  bool Next(std::string* out) override {
    std::string piece;
    const bool has_more = stream_->Next(&piece);
    if (!piece.empty()) {  // An empty chunk would be the end.
      char size[20];
      std::snprintf(size, sizeof size, "%zx\r\n", piece.size());
      *out += size;
      *out += piece;
      *out += "\r\n";
    }
    if (!has_more) *out += "0\r\n\r\n";
    return has_more;
  }

 private:
  const std::unique_ptr<HttpStream> stream_;
};

}  // namespace

std::string HttpResponse::ToString(bool keep_alive, HttpBody form) const {
  std::string text =
      "HTTP/1.1 " + std::to_string(status) + " " + std::string(ReasonOf(status)) + "\r\n";
  const bool may_have_body = status != 204 && status != 304;
  if (may_have_body) {
    if (!content_type.empty()) text += "Content-Type: " + content_type + "\r\n";
    if (form == HttpBody::kChunked) {
      text += "Transfer-Encoding: chunked\r\n";
    } else if (stream == nullptr) {
      text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    }
  }
  for (const auto& [name, value] : fields) text += name + ": " + value + "\r\n";
  text += "X-Content-Type-Options: nosniff\r\n";
  if (!keep_alive) text += "Connection: close\r\n";
  text += "\r\n";
  if (may_have_body && form == HttpBody::kWhole) text += body;
  return text;
}

std::unique_ptr<HttpStream> Chunked(std::unique_ptr<HttpStream> stream) {
  return std::make_unique<ChunkedStream>(std::move(stream));
}

HttpResponse Problem(int status, std::string_view detail, std::optional<size_t> operation) {
  boost::json::object problem = {{"type", "about:blank"},
                                 {"title", std::string(ReasonOf(status))},
                                 {"status", status},
                                 {"detail", std::string(detail)}};
  if (operation) problem["operation"] = *operation;
  return {.status = status,
          .content_type = "application/problem+json",
          .body = boost::json::serialize(problem) + "\n"};
}

HttpResponse ProblemOf(const Status& status) {
  if (status.sub_code() == SubCode::kDiskFull) return Problem(507, status.message());
  if (status.sub_code() == SubCode::kBatchTooLarge) return Problem(413, status.message());
  if (status.code() == StatusCode::kResourceExhausted) return Problem(503, status.message());
  return Problem(status.code() == StatusCode::kInvalidArgument ? 400 : 500, status.message());
}

HttpResponse Unauthorized() {
  HttpResponse refused = Problem(401, "a bearer token is needed: the password of a user");
  refused.fields.emplace_back("WWW-Authenticate", "Bearer");
  return refused;
}

std::string ProblemResponse(int status, std::string_view detail, bool keep_alive) {
  return Problem(status, detail).ToString(keep_alive);
}

}  // namespace basalt::server
