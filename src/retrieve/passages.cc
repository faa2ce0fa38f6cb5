#include "retrieve/passages.h"

#include <algorithm>

#include "text/character.h"

namespace basalt::retrieve {
namespace {

bool IsSpace(char byte) noexcept {
  return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

text::Span Trimmed(std::string_view text, text::Span span) noexcept {
  while (span.begin < span.end && IsSpace(text[span.begin])) ++span.begin;
  while (span.begin < span.end && IsSpace(text[span.end - 1])) --span.end;
  return span;
}

/// Where the paragraph that begins at `begin` ends.
size_t ParagraphEnd(std::string_view text, size_t begin) noexcept {
  for (size_t at = text.find('\n', begin); at != std::string_view::npos;
       at = text.find('\n', at + 1)) {
    const size_t next = text.find_first_not_of(" \t\r", at + 1);
    if (next == std::string_view::npos || text[next] == '\n') return at;
  }
  return text.size();
}

/// The greatest length up to `bytes_max` at which a long text may be divided.
size_t DivisionOf(std::string_view text, size_t bytes_max) noexcept {
  size_t behind_sentence = 0;
  size_t behind_word = 0;
  for (size_t at = 1; at <= bytes_max; ++at) {
    if (!IsSpace(text[at])) continue;
    behind_word = at;
    if (std::string_view(".!?").find(text[at - 1]) != std::string_view::npos) behind_sentence = at;
  }
  // A sentence that ends early leaves most of the room unused.
  if (behind_sentence > bytes_max / 3) return behind_sentence;
  if (behind_word > 0) return behind_word;
  return std::max<size_t>(1, text::CutToBytes(text, bytes_max).size());
}

}  // namespace

std::vector<text::Span> DividePassages(std::string_view text, size_t bytes_max) {
  std::vector<text::Span> passages;
  text::Span open;  // Paragraphs that are gathered.
  const auto close = [&] {
    if (open.size() > 0) passages.push_back(open);
    open = {};
  };
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = ParagraphEnd(text, begin);
    text::Span paragraph = Trimmed(text, {begin, end});
    begin = end + 1;
    if (paragraph.size() == 0) continue;
    if (open.size() > 0 && paragraph.end - open.begin <= bytes_max) {
      open.end = paragraph.end;
      continue;
    }
    close();
    while (paragraph.size() > bytes_max) {
      const size_t length = DivisionOf(paragraph.Of(text), bytes_max);
      passages.push_back(Trimmed(text, {paragraph.begin, paragraph.begin + length}));
      paragraph = Trimmed(text, {paragraph.begin + length, paragraph.end});
    }
    open = paragraph;
  }
  close();
  return passages;
}

}  // namespace basalt::retrieve
