#include "text/tokenizer.h"

#include "text/character.h"

namespace basalt::text {
namespace {

// What is looked at of a word. Longer ones are not normalised as a whole.
constexpr size_t kWordBytesMax = 4 * kMaxTermBytes;

}  // namespace

void Tokenizer::Reset(std::string_view text, bool stems) noexcept {
  text_ = text;
  stems_ = stems;
  breaker_ = WordBreaker(text);
  rest_ = 0;
  run_ = 0;
  next_position_ = 0;
  has_piece_ = NextPiece();
}

bool Tokenizer::Next() {
  while (true) {
    if (run_ > 0) {
      if (has_piece_ && piece_.is_unspaced && piece_.span.begin == last_.end) {
        const Span pair = {last_.begin, piece_.span.end};
        last_ = piece_.span;
        ++run_;
        has_piece_ = NextPiece();
        if (Emit(pair, TokenKind::kPair)) return true;
      } else {
        const TokenKind kind = run_ == 1 ? TokenKind::kSingle : TokenKind::kTail;
        run_ = 0;
        if (Emit(last_, kind)) return true;
      }
      continue;
    }
    if (!has_piece_) return false;
    const Piece piece = piece_;
    has_piece_ = NextPiece();
    if (piece.is_unspaced) {
      last_ = piece.span;
      run_ = 1;
    } else if (Emit(piece.span, TokenKind::kWord)) {
      return true;
    }
  }
}

/// Whether there is one. Pieces lie within one segment of the breaker.
bool Tokenizer::NextPiece() noexcept {
  while (true) {
    while (rest_ < breaker_.segment().end) {
      const Piece piece = TakePiece();
      if (piece.span.size() == 0) continue;
      piece_ = piece;
      return true;
    }
    if (!breaker_.Next()) return false;
    rest_ = breaker_.segment().begin;
  }
}

/// Takes what begins at `rest_`: one unspaced character with its marks, or all up to the next one,
/// or a malformed byte. The piece begins and ends with a letter or number; empty: there is none.
Tokenizer::Piece Tokenizer::TakePiece() noexcept {
  const size_t begin = rest_;
  const size_t end = breaker_.segment().end;
  Piece piece;
  while (rest_ < end) {
    const Character character = ReadCharacter(text_, rest_);
    const CharacterClass found = CharacterClass::Of(character.code_point);
    const size_t behind = rest_ + character.bytes;
    const bool is_malformed = character.bytes == 1 && character.code_point > 0x7F;
    if (is_malformed && rest_ == begin) {
      rest_ = behind;
      return {};
    }
    if (rest_ != begin && (is_malformed || found.is_unspaced())) break;
    if (piece.is_unspaced && !found.is_ignored()) break;
    if (found.is_ignored()) {
      if (piece.span.end == rest_) piece.span.end = behind;
    } else if (found.is_word()) {
      if (piece.span.size() == 0) piece.span.begin = rest_;
      piece.span.end = behind;
    }
    piece.is_unspaced |= found.is_unspaced();
    rest_ = behind;
  }
  return piece;
}

std::string_view Tokenizer::TermOf(std::string_view source, TokenKind kind) {
  std::string_view term = normalizer_.Normalize(CutToBytes(source, kWordBytesMax));
  if (kind == TokenKind::kWord && stems_ && stemmer_ != nullptr) term = stemmer_->Stem(term);
  return CutToBytes(term, kMaxTermBytes);
}

/// False if nothing is left of it.
bool Tokenizer::Emit(Span span, TokenKind kind) {
  token_.term = TermOf(span.Of(text_), kind);
  if (token_.term.empty()) return false;
  token_.span = span;
  token_.position = next_position_++;
  token_.kind = kind;
  return true;
}

}  // namespace basalt::text
