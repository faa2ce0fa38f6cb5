#include "net/answer_parser.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace basalt::net {
namespace {

/// Of a line: a status, an error, or a number.
constexpr size_t kLineBytesMax = 256 * 1024;
/// Of an answer. A token takes more memory than the shortest element has bytes.
constexpr size_t kTokensMax = 1 << 20;

std::optional<int64_t> NumberOf(std::string_view text) noexcept {
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, failed] = std::from_chars(text.data(), end, number);
  if (failed != std::errc() || stopped != end) return std::nullopt;
  return number;
}

}  // namespace

AnswerParser::Outcome AnswerParser::Fail(std::string_view what) {
  error_ = "the answer is malformed: " + std::string(what);
  return Outcome::kError;
}

AnswerParser::Outcome AnswerParser::Next(std::string_view bytes) {
  if (!error_.empty()) return Outcome::kError;
  if (is_complete_) {
    tokens_.clear();
    position_ = searched_ = 0;
    missing_ = 1;
    is_complete_ = false;
  }
  wanted_ = 0;
  while (missing_ > 0) {
    searched_ = std::max(searched_, position_);
    const size_t end = bytes.find("\r\n", searched_);
    if (end == std::string_view::npos) {
      if (bytes.size() - position_ > kLineBytesMax) return Fail("a line is too long");
      // The last byte may be the first half of a line's end.
      searched_ = std::max(position_, bytes.empty() ? 0 : bytes.size() - 1);
      return Outcome::kMore;
    }
    searched_ = end;
    const std::string_view line = bytes.substr(position_, end - position_);
    if (!Element(line, end + 2)) return Outcome::kError;
    const Token& token = tokens_.back();
    if (token.kind == Token::Kind::kBytes) {
      const uint64_t behind = token.offset + token.size + 2;
      if (behind > bytes.size()) {
        wanted_ = behind;
        tokens_.pop_back();
        return Outcome::kMore;
      }
      if (bytes.substr(behind - 2, 2) != "\r\n") return Fail("bytes do not end where they should");
      position_ = behind;
    } else {
      position_ = end + 2;
    }
    if (position_ > bytes_max_ || tokens_.size() > kTokensMax) {
      return Fail("it is larger than the client takes");
    }
    missing_ += token.kind == Token::Kind::kArray ? token.size : 0;
    --missing_;
  }
  is_complete_ = true;
  return Outcome::kAnswer;
}

/// Adds the token of a line. False: it failed.
bool AnswerParser::Element(std::string_view line, size_t line_end) {
  if (line.empty()) {
    Fail("a line is empty");
    return false;
  }
  const char kind = line.front();
  Token token{.offset = position_ + 1, .size = line.size() - 1};
  if (kind == '+' || kind == '-') {
    token.kind = kind == '+' ? Token::Kind::kSimple : Token::Kind::kError;
    tokens_.push_back(token);
    return true;
  }
  const std::optional<int64_t> number = NumberOf(line.substr(1));
  if (!number || (kind != ':' && kind != '$' && kind != '*')) {
    Fail("a line has an unknown kind, or its number is malformed");
    return false;
  }
  token.number = *number;
  if (kind == ':') {
    token.kind = Token::Kind::kInteger;
  } else if (*number == -1) {
    token = {};
  } else if (*number < 0 || static_cast<uint64_t>(*number) > bytes_max_) {
    Fail("a length is out of range");
    return false;
  } else {
    token = {.kind = kind == '$' ? Token::Kind::kBytes : Token::Kind::kArray,
             .offset = line_end,
             .size = static_cast<uint64_t>(*number)};
  }
  tokens_.push_back(token);
  return true;
}

}  // namespace basalt::net
