#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/http_response.h"
#include "server/hub.h"
#include "server/users.h"
#include "server/view.h"

namespace basalt::server {

/// A request, as far as the routes look at it.
struct HttpRequest {
  std::string method;
  std::string target;
  std::string host;
  std::string origin;
  std::string authorization;
  std::string if_match;
  std::string if_none_match;
  std::string upstash_encoding;
  std::string body;
  bool keep_alive = true;
  bool is_http_1_0 = false;

  bool is_read() const noexcept { return method == "GET" || method == "HEAD"; }
};

/// Reads requests of HTTP/1.1 one after another (Beast's parser). Header and body are bounded. The
/// body of a request that names no user is bounded by kStrangerBodyBytesMax, and not chunked.
class HttpParser {
 public:
  enum class Outcome : uint8_t { kRequest, kMore, kContinue, kError };

  /// What a request may have without a user.
  static constexpr uint64_t kStrangerBodyBytesMax = 64 * 1024;

  /// The users outlive the parser.
  HttpParser(const Users& users, uint64_t body_bytes_max);
  ~HttpParser();
  HttpParser(const HttpParser&) = delete;
  HttpParser& operator=(const HttpParser&) = delete;

  /// Takes bytes; `*consumed` of them are not needed any more. kRequest: request() has one.
  /// kContinue: the client waits for "100 Continue" before it sends the body. kError: the response
  /// error() must be sent, and the connection closed.
  Outcome Next(std::string_view bytes, size_t* consumed);
  HttpRequest& request() noexcept { return request_; }
  const std::string& error() const noexcept { return error_; }

 private:
  struct Parser;
  size_t Put(std::string_view bytes);
  bool IsBodyAllowed() const;
  void Finish();

  const Users& users_;
  uint64_t body_bytes_max_;
  std::unique_ptr<Parser> parser_;
  bool said_continue_ = false;
  HttpRequest request_;
  std::string error_;
};

/// Whether a first line is that of a request of HTTP/1.x.
bool IsHttpRequestLine(std::string_view line) noexcept;
/// Whether bytes begin with a method of HTTP and a path, as a request line does whose end has not
/// arrived.
bool BeginsLikeHttp(std::string_view bytes) noexcept;
/// Whether the first word of a line is "POST" or "Host:". No command of the Redis protocol has such
/// a name. A web page can make a browser send these words, but not leave both out of a request with
/// a body.
bool IsWordOfHttp(std::string_view word) noexcept;

/// What is sent as the response to a request.
struct HttpReply {
  std::string bytes{};
  std::unique_ptr<HttpStream> stream{};  ///< Not null: what it has follows, as it is.
  bool closes = false;                   ///< The end of the response is that of the connection.
};

/// Answers a request. Nothing: it must be answered in Mode::kPool.
std::optional<HttpReply> HandleHttp(Hub& hub, const HttpRequest& request, Mode mode);

}  // namespace basalt::server
