#include "text/word_break.h"

namespace basalt::text {
namespace {

constexpr uint32_t Bit(WordBreak value) noexcept { return uint32_t{1} << static_cast<int>(value); }

constexpr uint32_t kLineEnds = Bit(WordBreak::kCr) | Bit(WordBreak::kLf) | Bit(WordBreak::kNewline);
constexpr uint32_t kLetters = Bit(WordBreak::kALetter) | Bit(WordBreak::kHebrewLetter);
constexpr uint32_t kMidNumLetQ = Bit(WordBreak::kMidNumLet) | Bit(WordBreak::kSingleQuote);
constexpr uint32_t kMidLetters = Bit(WordBreak::kMidLetter) | kMidNumLetQ;
constexpr uint32_t kMidNumbers = Bit(WordBreak::kMidNum) | kMidNumLetQ;
constexpr uint32_t kJoinedByUnderscore =
    kLetters | Bit(WordBreak::kNumeric) | Bit(WordBreak::kKatakana);

constexpr bool In(WordBreak value, uint32_t set) noexcept { return (Bit(value) & set) != 0; }

}  // namespace

bool WordBreaker::Next() noexcept {
  if (segment_.end == text_.size()) return false;
  segment_.begin = segment_.end;
  size_t at = segment_.begin;
  while (true) {
    const Character character = ReadCharacter(text_, at);
    const CharacterClass next = CharacterClass::Of(character.code_point);
    const size_t behind = at + character.bytes;
    if (at != segment_.begin && Breaks(next, behind)) break;

    const WordBreak value = next.word_break();
    // WB4: what is ignored changes nothing, unless it has nothing to belong to.
    const bool begins = at == 0 || In(last_, kLineEnds);
    if (!next.is_ignored() || begins) {
      before_that_ = before_;
      before_ = value;
      odd_indicators_ = value == WordBreak::kRegionalIndicator && !odd_indicators_;
    }
    last_ = value;
    at = behind;
    if (at == text_.size()) break;
  }
  segment_.end = at;
  return true;
}

/// Whether a boundary lies before the character `next`, which ends at `behind`.
bool WordBreaker::Breaks(CharacterClass next, size_t behind) noexcept {
  const WordBreak value = next.word_break();
  if (last_ == WordBreak::kCr && value == WordBreak::kLf) return false;                // WB3
  if (In(last_, kLineEnds) || In(value, kLineEnds)) return true;                       // WB3a, b
  if (last_ == WordBreak::kZwj && next.is_pictographic()) return false;                // WB3c
  if (last_ == WordBreak::kWSegSpace && value == WordBreak::kWSegSpace) return false;  // WB3d
  if (next.is_ignored()) return false;                                                 // WB4
  return BreaksBetween(value, behind);
}

bool WordBreaker::BreaksBetween(WordBreak next, size_t behind) noexcept {
  if (In(before_, kLetters)) {
    if (In(next, kLetters | Bit(WordBreak::kNumeric))) return false;  // WB5, 9
    if (before_ == WordBreak::kHebrewLetter) {
      if (next == WordBreak::kSingleQuote) return false;  // WB7a
      if (next == WordBreak::kDoubleQuote) {              // WB7b
        return ClassBehind(behind) != WordBreak::kHebrewLetter;
      }
    }
    if (In(next, kMidLetters)) return !In(ClassBehind(behind), kLetters);  // WB6
  }
  if (In(next, kLetters)) {
    if (before_ == WordBreak::kNumeric) return false;                          // WB10
    if (In(before_, kMidLetters) && In(before_that_, kLetters)) return false;  // WB7
    if (before_ == WordBreak::kDoubleQuote && next == WordBreak::kHebrewLetter &&
        before_that_ == WordBreak::kHebrewLetter) {
      return false;  // WB7c
    }
  }
  if (next == WordBreak::kNumeric) {
    if (before_ == WordBreak::kNumeric) return false;                                   // WB8
    if (In(before_, kMidNumbers) && before_that_ == WordBreak::kNumeric) return false;  // WB11
  }
  if (before_ == WordBreak::kNumeric && In(next, kMidNumbers)) {
    return ClassBehind(behind) != WordBreak::kNumeric;  // WB12
  }
  if (before_ == WordBreak::kKatakana && next == WordBreak::kKatakana) return false;  // WB13
  if (next == WordBreak::kExtendNumLet) {
    return !In(before_, kJoinedByUnderscore | Bit(WordBreak::kExtendNumLet));  // WB13a
  }
  if (before_ == WordBreak::kExtendNumLet) return !In(next, kJoinedByUnderscore);  // WB13b
  if (next == WordBreak::kRegionalIndicator) return !odd_indicators_;              // WB15, 16
  return true;                                                                     // WB999
}

/// The class of the first character from `at` on that is not ignored; kOther: there is none.
WordBreak WordBreaker::ClassBehind(size_t at) const noexcept {
  while (at < text_.size()) {
    const Character character = ReadCharacter(text_, at);
    const CharacterClass found = CharacterClass::Of(character.code_point);
    if (!found.is_ignored()) return found.word_break();
    at += character.bytes;
  }
  return WordBreak::kOther;
}

}  // namespace basalt::text
