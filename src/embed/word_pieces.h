#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "basalt/status.h"

namespace basalt::embed {

/// Divides texts into the word pieces of a BERT vocabulary, with the same result as the
/// BertTokenizer of the Hugging Face libraries:
///
/// 1. The names of the special tokens, as "[SEP]", stand for these tokens.
/// 2. Control characters and malformed bytes go; white space becomes a space; a CJK ideograph is a
///    word by itself. Without case: accents go (NFD without nonspacing marks), letters become lower
///    case.
/// 3. Words end at spaces; a punctuation character is a word by itself.
/// 4. A word is divided into the longest pieces of the vocabulary, from its beginning on; pieces
///    behind the first one are written with ## before them. A word that cannot be divided, or has
///    more than 100 characters, is [UNK].
///
/// Immutable; any number of threads. O(length of the text) for texts of short words.
class WordPieces {
 public:
  struct Options {
    bool has_case = false;  ///< Upper and lower case, and accents, differ.
  };
  /// `vocabulary`: a piece a line, whose number is its id. Corruption: it has no [CLS], [SEP] or
  /// [UNK], or more than 2^24 pieces.
  static Result<WordPieces> Parse(std::string_view vocabulary, Options options);

  size_t vocabulary_size() const noexcept { return size_; }

  /// The ids of a text: [CLS], at most `tokens_max` - 2 pieces, [SEP]. `tokens_max` is at least 2.
  void Encode(std::string_view text, size_t tokens_max, std::vector<uint32_t>* ids) const;

 private:
  struct Words;
  WordPieces() = default;
  void AddText(std::string_view text, size_t ids_max, std::vector<uint32_t>* ids) const;
  void AddWord(std::string_view word, size_t ids_max, std::vector<uint32_t>* ids) const;
  const uint32_t* Find(const std::string& piece) const;

  Options options_;
  size_t size_ = 0;
  std::unordered_map<std::string, uint32_t> ids_;
  // Longest piece, in bytes: longer ones are not looked for.
  size_t piece_bytes_max_ = 0;
  uint32_t cls_ = 0;
  uint32_t sep_ = 0;
  uint32_t unknown_ = 0;
};

}  // namespace basalt::embed
