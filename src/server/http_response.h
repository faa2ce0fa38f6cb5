#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/status.h"

namespace basalt::server {

/// A body that is made piece by piece while it is sent. One thread at a time.
class HttpStream {
 public:
  HttpStream() = default;
  virtual ~HttpStream() = default;
  HttpStream(const HttpStream&) = delete;
  HttpStream& operator=(const HttpStream&) = delete;

  /// Appends the next piece. False: it was the last one. May wait for the disk.
  virtual bool Next(std::string* out) = 0;
};

/// The stream in the chunked coding of HTTP/1.1, up to the end of the response.
std::unique_ptr<HttpStream> Chunked(std::unique_ptr<HttpStream> stream);

/// How the body of a response is sent.
enum class HttpBody : uint8_t {
  kWhole,
  kChunked,     ///< A stream follows, in chunks.
  kUntilClose,  ///< A stream follows, and its end is that of the connection (HTTP/1.0).
  kNone,        ///< Of a HEAD request. The length is given as for kWhole.
};

struct HttpResponse {
  int status = 200;
  std::string content_type{};  ///< Empty: there is no body.
  std::string body{};
  std::vector<std::pair<std::string, std::string>> fields{};
  std::unique_ptr<HttpStream> stream{};  ///< Not null: the body comes from it.

  /// The response as it is sent, without what a stream has.
  std::string ToString(bool keep_alive, HttpBody form = HttpBody::kWhole) const;
};

/// An error as RFC 9457 has it. `operation`: the place of what failed in a batch.
HttpResponse Problem(int status, std::string_view detail, std::optional<size_t> operation = {});
/// The error of a call to the store, or of a malformed request.
HttpResponse ProblemOf(const Status& status);
/// The response to a request that needs a user and names none.
HttpResponse Unauthorized();
std::string ProblemResponse(int status, std::string_view detail, bool keep_alive);

}  // namespace basalt::server
