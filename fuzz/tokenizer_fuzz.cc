// Any bytes as a text: its segments are gapless, its tokens stand in order within it, and the
// source of a token gives the same term again.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/tokenizer.h"
#include "text/word_break.h"

namespace {

using basalt::text::Span;
using basalt::text::Token;
using basalt::text::Tokenizer;

std::unique_ptr<basalt::text::Stemmer> EnglishStemmer() {
  auto stemmer = basalt::text::Stemmer::Create("english");
  return stemmer ? *std::move(stemmer) : nullptr;
}

void CheckSegments(std::string_view text) {
  basalt::text::WordBreaker breaker(text);
  size_t end = 0;
  while (breaker.Next()) {
    BASALT_CHECK(breaker.segment().begin == end && breaker.segment().size() > 0);
    end = breaker.segment().end;
  }
  BASALT_CHECK(end == text.size());
}

void CheckTokens(std::string_view text, Tokenizer* tokenizer, Tokenizer* of_terms) {
  tokenizer->Reset(text);
  size_t begin = 0;
  uint32_t position = 0;
  while (tokenizer->Next()) {
    const Token& token = tokenizer->token();
    BASALT_CHECK(begin <= token.span.begin && token.span.begin < token.span.end);
    BASALT_CHECK(token.span.end <= text.size());
    BASALT_CHECK(token.position == position++);
    BASALT_CHECK(!token.term.empty() && token.term.size() <= basalt::text::kMaxTermBytes);
    of_terms->Reset(token.span.Of(text));
    BASALT_CHECK(of_terms->Next() && of_terms->token().term == token.term);
    begin = token.span.begin;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Tokenizer tokenizers[] = {Tokenizer(), Tokenizer(), Tokenizer(EnglishStemmer()),
                                   Tokenizer(EnglishStemmer())};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckSegments(text);
  CheckTokens(text, &tokenizers[0], &tokenizers[1]);
  CheckTokens(text, &tokenizers[2], &tokenizers[3]);
  return 0;
}
