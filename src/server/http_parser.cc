#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "server/http.h"
#include "server/http_response.h"

namespace basalt::server {
namespace {

namespace http = boost::beast::http;

constexpr uint32_t kHeaderBytesMax = 16 * 1024;

}  // namespace

struct HttpParser::Parser {
  http::request_parser<http::string_body> parser;
};

HttpParser::HttpParser(const Users& users, uint64_t body_bytes_max)
    : users_(users), body_bytes_max_(body_bytes_max) {}
HttpParser::~HttpParser() = default;

HttpParser::Outcome HttpParser::Next(std::string_view bytes, size_t* consumed) {
  *consumed = 0;
  if (!error_.empty()) return Outcome::kError;
  if (!parser_) {
    if (bytes.empty()) return Outcome::kMore;
    parser_ = std::make_unique<Parser>();
    parser_->parser.body_limit(body_bytes_max_);
    parser_->parser.header_limit(kHeaderBytesMax);
    said_continue_ = false;
  }
  auto& parser = parser_->parser;
  if (!parser.is_header_done()) {
    *consumed = Put(bytes);  // Ends behind the header: the parser is not eager yet.
    if (parser.is_header_done() && error_.empty() && !IsBodyAllowed()) {
      error_ = Unauthorized().ToString(false);
    }
    parser.eager(true);
  }
  if (error_.empty() && parser.is_header_done() && !parser.is_done()) {
    *consumed += Put(bytes.substr(*consumed));
  }
  if (!error_.empty()) return Outcome::kError;
  if (parser.is_done()) {
    Finish();
    return Outcome::kRequest;
  }
  if (parser.is_header_done() && !said_continue_ &&
      boost::beast::iequals(parser.get()[http::field::expect], "100-continue")) {
    said_continue_ = true;
    return Outcome::kContinue;
  }
  return Outcome::kMore;
}

/// Gives bytes to Beast's parser. Returns how many it needs no more; sets error_ if they are
/// malformed.
size_t HttpParser::Put(std::string_view bytes) {
  auto& parser = parser_->parser;
  // What is left of a chunked body has at least the last chunk. Beast's parser asserts that it gets
  // those bytes together.
  constexpr size_t kLastChunkBytes = std::string_view("0\r\n\r\n").size();
  const bool is_chunked_body = parser.is_header_done() && parser.chunked();
  if (bytes.empty() || (is_chunked_body && bytes.size() < kLastChunkBytes)) return 0;
  boost::beast::error_code failed;
  const size_t consumed = parser.put(boost::asio::buffer(bytes.data(), bytes.size()), failed);
  if (failed && failed != http::error::need_more) {
    const bool is_large = failed == http::error::body_limit;
    const bool is_header = failed == http::error::header_limit;
    error_ = ProblemResponse(is_large    ? 413
                             : is_header ? 431
                                         : 400,
                             "the request cannot be read: " + failed.message(), false);
  }
  return consumed;
}

/// Whether the body of the request whose header is there may be received.
bool HttpParser::IsBodyAllowed() const {
  const auto& parser = parser_->parser;
  const bool is_small =
      !parser.chunked() && parser.content_length().value_or(0) <= kStrangerBodyBytesMax;
  if (is_small) return true;
  const auto authorization = parser.get()[http::field::authorization];
  return users_.OfAuthorization({authorization.data(), authorization.size()}) != nullptr;
}

void HttpParser::Finish() {
  auto message = parser_->parser.release();
  const auto field = [&](http::field name) { return std::string(message[name]); };
  request_ = {.method = std::string(message.method_string()),
              .target = std::string(message.target()),
              .host = field(http::field::host),
              .origin = field(http::field::origin),
              .authorization = field(http::field::authorization),
              .if_match = field(http::field::if_match),
              .if_none_match = field(http::field::if_none_match),
              .upstash_encoding = std::string(message["Upstash-Encoding"]),
              .body = std::move(message.body()),
              .keep_alive = message.keep_alive(),
              .is_http_1_0 = message.version() < 11};
  parser_.reset();
}

}  // namespace basalt::server
