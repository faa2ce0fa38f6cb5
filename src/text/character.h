#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

// Characters of UTF-8 text and the properties that words are found by. The properties stand in a
// table of two stages (character_table.cc, 38 KiB, written by scripts/make_character_table from the
// Unicode character database): the block of a code point, then one byte a code point.
//
//   bits 0 to 4   WordBreak, the Word_Break property of UAX #29
//        5        Extended_Pictographic
//        6        part of words: Alphabetic, or a number (general category N)
//        7        written without spaces between words: Han, Hiragana, Katakana, Hangul, and the
//                 scripts of south-east Asia for which lines are broken by dictionary
//
// A byte that begins no well-formed sequence (Unicode 15, table 3-7) is a character by itself,
// U+FFFD, of length 1. So every text is a sequence of characters, and no byte is lost.

namespace basalt::text {

/// The values of the property Word_Break.
enum class WordBreak : uint8_t {
  kOther = 0,
  kCr,
  kLf,
  kNewline,
  kExtend,
  kZwj,
  kFormat,
  kRegionalIndicator,
  kKatakana,
  kHebrewLetter,
  kALetter,
  kSingleQuote,
  kDoubleQuote,
  kMidNumLet,
  kMidLetter,
  kMidNum,
  kNumeric,
  kExtendNumLet,
  kWSegSpace,
};

namespace internal {
inline constexpr size_t kBlockCodePoints = 128;
inline constexpr size_t kBlockEntries = 7173;
extern const char* const kUnicodeVersion;
extern const uint8_t kBlockOf[kBlockEntries];
extern const uint8_t kBlocks[][kBlockCodePoints];
}  // namespace internal

class CharacterClass {
 public:
  static CharacterClass Of(uint32_t code_point) noexcept {
    const size_t entry = code_point / internal::kBlockCodePoints;
    const uint8_t block =
        internal::kBlockOf[entry < internal::kBlockEntries ? entry : internal::kBlockEntries - 1];
    return CharacterClass(internal::kBlocks[block][code_point % internal::kBlockCodePoints]);
  }

  WordBreak word_break() const noexcept { return static_cast<WordBreak>(bits_ & 0x1F); }
  bool is_pictographic() const noexcept { return (bits_ & 0x20) != 0; }
  bool is_word() const noexcept { return (bits_ & 0x40) != 0; }
  bool is_unspaced() const noexcept { return (bits_ & 0x80) != 0; }
  /// Belongs to the character before it (rule WB4).
  bool is_ignored() const noexcept {
    const WordBreak value = word_break();
    return value == WordBreak::kExtend || value == WordBreak::kFormat || value == WordBreak::kZwj;
  }

 private:
  explicit CharacterClass(uint8_t bits) noexcept : bits_(bits) {}
  uint8_t bits_;
};

struct Character {
  uint32_t code_point;
  uint32_t bytes;  ///< 1 to 4
};

inline constexpr uint32_t kReplacementCharacter = 0xFFFD;

/// A character of more than one byte, or a malformed byte. Use ReadCharacter.
Character ReadLongCharacter(std::string_view text, size_t at) noexcept;

/// The character at `at`, which is below the size.
inline Character ReadCharacter(std::string_view text, size_t at) noexcept {
  const auto byte = static_cast<uint8_t>(text[at]);
  return byte < 0x80 ? Character{byte, 1} : ReadLongCharacter(text, at);
}

/// `text` cut to at most `bytes_max` bytes, not within a character.
std::string_view CutToBytes(std::string_view text, size_t bytes_max) noexcept;

}  // namespace basalt::text
