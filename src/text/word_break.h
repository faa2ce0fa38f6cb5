#pragma once

#include <cstddef>
#include <string_view>

#include "text/character.h"

namespace basalt::text {

/// A range of bytes of a text.
struct Span {
  size_t begin = 0;
  size_t end = 0;

  size_t size() const noexcept { return end - begin; }
  std::string_view Of(std::string_view text) const noexcept {
    return text.substr(begin, end - begin);
  }
  friend bool operator==(const Span&, const Span&) = default;
};

/// Divides a text at the word boundaries of UAX #29 (Unicode 15, rules WB1 to WB999), from its
/// beginning to its end: words, and what lies between them. The segments are gapless. O(1)
/// memory, one pass; a rule that looks ahead passes over ignored characters, each of them at most
/// twice.
class WordBreaker {
 public:
  /// `text` outlives the breaker.
  explicit WordBreaker(std::string_view text) noexcept : text_(text) {}

  /// The next segment, never empty. False at the end.
  bool Next() noexcept;
  Span segment() const noexcept { return segment_; }

 private:
  bool Breaks(CharacterClass next, size_t behind) noexcept;
  bool BreaksBetween(WordBreak next, size_t behind) noexcept;
  WordBreak ClassBehind(size_t at) const noexcept;

  std::string_view text_;
  Span segment_;
  // What stands before the place that is looked at. Ignored characters (WB4) change only `last_`.
  WordBreak last_ = WordBreak::kOther;
  WordBreak before_ = WordBreak::kOther;
  WordBreak before_that_ = WordBreak::kOther;
  bool odd_indicators_ = false;  // an odd number of regional indicators in a row
};

}  // namespace basalt::text
