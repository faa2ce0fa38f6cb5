#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace basalt::server {

/// A response that is written to the wire as it is.
struct HttpResponse {
  int status = 200;
  std::string content_type{};  ///< Empty: there is no body.
  std::string body{};
  std::vector<std::pair<std::string, std::string>> fields{};

  /// `has_body` false: of a HEAD request, whose length is told all the same.
  std::string ToString(bool keep_alive, bool has_body = true) const;
};

/// An error as RFC 9457 has it.
HttpResponse Problem(int status, std::string_view detail);
std::string ProblemResponse(int status, std::string_view detail, bool keep_alive);

}  // namespace basalt::server
