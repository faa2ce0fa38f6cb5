#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace basalt::text {

/// Brings words into the form in which they are indexed and looked up: NFKC with case folding and
/// without ignorable characters (NFKC_Casefold, Unicode 15 section 3.13), and U+2019 as an
/// apostrophe. So "Straße" and "STRASSE", "ﬁ" and "fi", and composed and decomposed accents are one
/// term. Accents stay. Applying it twice changes nothing. One thread at a time; the buffers are
/// kept, so that a word of usual length costs no allocation.
class TermNormalizer {
 public:
  /// `word` is well-formed UTF-8. The view lasts until the next call. Empty if all of the word is
  /// ignorable.
  std::string_view Normalize(std::string_view word);

 private:
  std::string ascii_;
  std::vector<int32_t> buffer_;
};

}  // namespace basalt::text
