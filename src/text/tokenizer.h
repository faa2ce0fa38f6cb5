#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "text/stemmer.h"
#include "text/term_normalizer.h"
#include "text/word_break.h"

namespace basalt::text {

/// The longest term, in bytes. A longer word is cut, in a text and in a query alike, and is still
/// found.
inline constexpr size_t kMaxTermBytes = 255;

enum class TokenKind : uint8_t {
  kWord,
  kPair,    ///< Two neighbours of a run of characters that are written without spaces.
  kTail,    ///< The last character of such a run.
  kSingle,  ///< A run of a single character.
};

/// A term and where it stands.
struct Token {
  std::string_view term;
  Span span;              ///< The bytes of the source that it was made of.
  uint32_t position = 0;  ///< Counts the tokens of the text.
  TokenKind kind = TokenKind::kWord;
};

/// Divides a text into the terms by which it is found.
///
/// 1. Words are the segments of UAX #29 that hold a letter or a number. Malformed bytes, like
///    punctuation, are no part of a word.
/// 2. Scripts without spaces between words (CharacterClass::is_unspaced: Han, Kana, Hangul, Thai
///    and its relatives) have no words in UAX #29. Of a run of such characters c1 ... cn the terms
///    are the pairs c1c2, c2c3, ..., and cn alone. So a text of two or more characters is found as
///    a phrase of pairs, and a single character as the beginning of a term.
/// 3. Terms are normalised (TermNormalizer), words are stemmed if there is a stemmer, and both are
///    cut to kMaxTermBytes.
///
/// One thread at a time. O(1) memory, one pass over the text; no allocation a token once the
/// buffers have grown.
class Tokenizer {
 public:
  explicit Tokenizer(std::unique_ptr<Stemmer> stemmer = nullptr) noexcept
      : stemmer_(std::move(stemmer)) {}

  /// Begins anew. `text` outlives the last Next. Its tokens must be fewer than 2^32. Without
  /// `stems`, words are not stemmed: they are the beginnings of terms.
  void Reset(std::string_view text, bool stems = true) noexcept;
  /// False at the end.
  bool Next();
  /// After a Next that was true. The term lasts until the next call.
  const Token& token() const noexcept { return token_; }

 private:
  /// A word, or a character that is written without spaces, with the marks on it.
  struct Piece {
    Span span;
    bool is_unspaced = false;
  };
  bool NextPiece() noexcept;
  Piece TakePiece() noexcept;
  bool Emit(Span span, TokenKind kind);
  std::string_view TermOf(std::string_view source, TokenKind kind);

  std::unique_ptr<Stemmer> stemmer_;
  TermNormalizer normalizer_;
  std::string_view text_;
  bool stems_ = true;
  WordBreaker breaker_{std::string_view()};
  size_t rest_ = 0;  // What is left of the breaker's segment begins here.
  Piece piece_;      // The next one, if has_piece_.
  bool has_piece_ = false;
  Span last_{};  // The last character of a run that goes on, if run_ > 0.
  uint64_t run_ = 0;
  uint32_t next_position_ = 0;
  Token token_;
};

}  // namespace basalt::text
