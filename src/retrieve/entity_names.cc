#include "retrieve/entity_names.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "text/character.h"
#include "text/term_normalizer.h"
#include "text/word_break.h"

namespace basalt::retrieve {
namespace {

constexpr size_t kNameBytesMax = 200;

/// Words that are capitalised only because a sentence begins. Ascending.
constexpr std::array<std::string_view, 56> kOpeners = {
    "a",    "after", "all",   "although", "an",    "and",    "as",   "at",    "before", "both",
    "but",  "by",    "did",   "do",       "does",  "during", "each", "every", "for",    "from",
    "he",   "her",   "his",   "how",      "i",     "if",     "in",   "is",    "it",     "its",
    "many", "most",  "my",    "of",       "on",    "one",    "or",   "our",   "she",    "since",
    "some", "that",  "the",   "their",    "there", "these",  "they", "this",  "those",  "we",
    "what", "when",  "where", "which",    "who",   "with"};
/// Words inside names.
constexpr std::array<std::string_view, 14> kConnectors = {
    "al", "da", "de", "del", "der", "di", "du", "la", "le", "of", "the", "van", "von", "y"};
static_assert(std::ranges::is_sorted(kOpeners) && std::ranges::is_sorted(kConnectors));

struct Word {
  std::string term;
  bool is_capital = false;
  bool is_connector = false;
  bool is_number = false;
  bool is_joined = false;  // Only a space, a hyphen, or the dot of an initial stands before it.
};

bool IsCapital(uint32_t code_point) noexcept {
  return utf8proc_tolower(static_cast<utf8proc_int32_t>(code_point)) !=
         static_cast<utf8proc_int32_t>(code_point);
}

std::string TermOf(std::string_view word, text::TermNormalizer* normalizer) {
  std::string term(normalizer->Normalize(word));
  if (term.ends_with("'s")) term.resize(term.size() - 2);
  return term;
}

std::vector<Word> WordsOf(std::string_view text) {
  std::vector<Word> words;
  text::TermNormalizer normalizer;
  text::WordBreaker breaker(text);
  bool is_joined = false;
  while (breaker.Next()) {
    const std::string_view piece = breaker.segment().Of(text);
    const text::Character first = text::ReadCharacter(piece, 0);
    if (!text::CharacterClass::Of(first.code_point).is_word() ||
        (first.code_point == text::kReplacementCharacter && first.bytes == 1)) {
      const bool is_initial = !words.empty() && words.back().is_capital &&
                              words.back().term.size() == 1 && piece == ".";
      is_joined = is_joined && (piece == " " || piece == "-" || is_initial);
      continue;
    }
    Word word{.term = TermOf(piece, &normalizer), .is_joined = is_joined};
    word.is_capital = IsCapital(first.code_point);
    word.is_connector = !word.is_capital && std::ranges::binary_search(kConnectors, word.term);
    word.is_number = first.code_point >= '0' && first.code_point <= '9';
    is_joined = true;
    if (!word.term.empty()) words.push_back(std::move(word));
  }
  return words;
}

/// Where the name that begins at `begin` ends.
size_t NameEnd(const std::vector<Word>& words, size_t begin) {
  size_t end = begin + 1;
  for (size_t at = end; at < words.size() && words[at].is_joined; ++at) {
    if (words[at].is_capital || (words[at].is_number && at == end)) {
      end = at + 1;
    } else if (!words[at].is_connector) {
      break;
    }
  }
  return end;
}

std::string Joined(const std::vector<Word>& words, size_t begin, size_t end) {
  std::string name;
  for (size_t i = begin; i < end; ++i) name += (i == begin ? "" : " ") + words[i].term;
  return std::string(text::CutToBytes(name, kNameBytesMax));
}

/// Adds the name of words [begin, end), and its parts between connectors.
void AddNames(const std::vector<Word>& words, size_t begin, size_t end,
              std::set<std::string>* names) {
  names->insert(Joined(words, begin, end));
  for (size_t at = begin; at < end; ++at) {
    if (words[at].is_connector) continue;
    const size_t part = at;
    while (at < end && !words[at].is_connector) ++at;
    names->insert(Joined(words, part, at));
  }
}

}  // namespace

std::set<std::string> FindEntityNames(std::string_view text) {
  std::set<std::string> names;
  const std::vector<Word> words = WordsOf(text);
  for (size_t at = 0; at < words.size();) {
    if (!words[at].is_capital) {
      ++at;
      continue;
    }
    const size_t end = NameEnd(words, at);
    while (at < end &&
           (words[at].is_connector || std::ranges::binary_search(kOpeners, words[at].term))) {
      ++at;
    }
    if (at < end) AddNames(words, at, end, &names);
    at = end;
  }
  return names;
}

std::string EntityOfTitle(std::string_view title) {
  const size_t bracket = title.rfind('(');
  if (bracket != std::string_view::npos && bracket > 0 && title.ends_with(')')) {
    title = title.substr(0, bracket);
  }
  std::vector<Word> words = WordsOf(title);
  // "The Hague" in a text is found without its article, and so is the title.
  size_t begin = 0;
  while (begin + 1 < words.size() && std::ranges::binary_search(kOpeners, words[begin].term)) {
    ++begin;
  }
  return Joined(words, begin, words.size());
}

}  // namespace basalt::retrieve
