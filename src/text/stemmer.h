#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/status.h"

struct sb_stemmer;

namespace basalt::text {

/// Reduces words of one language to their stems, by the Snowball stemmers of libstemmer. A build
/// without that library has none. One thread at a time.
class Stemmer {
 public:
  /// `language` is a name or code that the library knows: "english", "de". InvalidArgument: it
  /// knows none of that name; the message lists those that it knows. Unsupported: a build without
  /// the library.
  static Result<std::unique_ptr<Stemmer>> Create(std::string_view language);
  /// Names of the languages. Empty: a build without the library.
  static std::vector<std::string> Languages();

  ~Stemmer();
  Stemmer(const Stemmer&) = delete;
  Stemmer& operator=(const Stemmer&) = delete;

  /// The stem of a word as TermNormalizer gives it. The view lasts until the next call.
  std::string_view Stem(std::string_view word);

 private:
  explicit Stemmer(sb_stemmer* stemmer) noexcept : stemmer_(stemmer) {}
  sb_stemmer* stemmer_;
};

}  // namespace basalt::text
