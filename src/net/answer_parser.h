#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/status.h"

namespace basalt::net {

/// One element of an answer of the Redis protocol (RESP2). The elements of an array follow it.
struct Token {
  enum class Kind : uint8_t { kSimple, kError, kInteger, kBytes, kNull, kArray };
  Kind kind = Kind::kNull;
  uint64_t offset = 0;  ///< Of its bytes, from the beginning of the answer.
  uint64_t size = 0;    ///< Of its bytes; of an array the number of its elements.
  int64_t number = 0;   ///< Of an integer.
};

// Takes one answer after another apart.
//
// The caller keeps the bytes, beginning with those of the answer that is not complete yet, and
// calls Next when there are more. The parser remembers how far it has come: each byte is looked at
// once, however small the pieces are. An answer is a flat list of tokens, so that nesting needs no
// recursion. Memory grows only with bytes that have arrived, never with a count that was announced.
class AnswerParser {
 public:
  enum class Outcome : uint8_t {
    kAnswer,  ///< tokens() has it.
    kMore,    ///< The bytes end inside an answer.
    kError,   ///< error() says what is wrong. Nothing can be read after it.
  };

  /// The largest answer; a larger one is an error.
  explicit AnswerParser(uint64_t bytes_max) noexcept : bytes_max_(bytes_max) {}

  Outcome Next(std::string_view bytes);

  // After kAnswer, until the next call of Next.
  std::span<const Token> tokens() const noexcept { return tokens_; }
  /// Bytes that the answer takes.
  size_t consumed() const noexcept { return position_; }

  /// After kMore: bytes that the answer has at least. Zero: not known.
  size_t wanted_bytes() const noexcept { return wanted_; }
  const std::string& error() const noexcept { return error_; }

 private:
  Outcome Fail(std::string_view what);
  bool Element(std::string_view line, size_t line_end);

  const uint64_t bytes_max_;
  std::vector<Token> tokens_;
  size_t position_ = 0;  // Behind the last complete token.
  size_t searched_ = 0;  // No line ends before it.
  size_t wanted_ = 0;
  uint64_t missing_ = 1;  // Elements that are still to come.
  bool is_complete_ = false;
  std::string error_;
};

/// Reads an answer's elements in order. After the first that is not what was asked for, ok() is
/// false, and all later ones are zero or empty. The views are into the bytes that were parsed.
class AnswerReader {
 public:
  AnswerReader(std::span<const Token> tokens, std::string_view bytes) noexcept
      : tokens_(tokens), bytes_(bytes) {}

  bool ok() const noexcept { return ok_; }
  bool AtEnd() const noexcept { return at_ == tokens_.size(); }
  /// Null at the end.
  const Token* Peek() const noexcept { return at_ < tokens_.size() ? &tokens_[at_] : nullptr; }
  bool IsError() const noexcept { return Is(Token::Kind::kError); }
  bool IsNull() const noexcept { return Is(Token::Kind::kNull); }
  bool IsSimple() const noexcept { return Is(Token::Kind::kSimple); }

  int64_t Integer() noexcept { return Take(Token::Kind::kInteger).number; }
  std::string_view Bytes() noexcept { return BytesOf(Take(Token::Kind::kBytes)); }
  std::string_view Simple() noexcept { return BytesOf(Take(Token::Kind::kSimple)); }
  std::string_view Error() noexcept { return BytesOf(Take(Token::Kind::kError)); }
  /// The number of elements that follow.
  uint64_t Array() noexcept { return Take(Token::Kind::kArray).size; }
  void Null() noexcept { static_cast<void>(Take(Token::Kind::kNull)); }

 private:
  bool Is(Token::Kind kind) const noexcept {
    return at_ < tokens_.size() && tokens_[at_].kind == kind;
  }
  Token Take(Token::Kind kind) noexcept {
    if (!ok_ || !Is(kind)) {
      ok_ = false;
      at_ = tokens_.size();
      return {};
    }
    return tokens_[at_++];
  }
  std::string_view BytesOf(const Token& token) const noexcept {
    return bytes_.substr(token.offset, token.size);
  }

  std::span<const Token> tokens_;
  std::string_view bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace basalt::net
