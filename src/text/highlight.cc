#include "text/highlight.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>

#include "text/character.h"

namespace basalt::text {
namespace {

/// Where one term of a phrase stands: positions and spans, ascending.
struct Place {
  uint32_t position;
  Span span;
};
using PhrasePlaces = std::vector<std::vector<Place>>;

/// What a query looks for, without its tree.
class Matcher {
 public:
  explicit Matcher(const Query& query) { Collect(query); }

  void Look(const Token& token) {
    const auto [begin, end] = terms_.equal_range(token.term);
    bool matches = false;
    for (auto at = begin; at != end; ++at) {
      if (at->second.phrase == kNoPhrase) {
        matches = true;
      } else {
        places_[at->second.phrase][at->second.place].push_back({token.position, token.span});
      }
    }
    matches = matches || std::any_of(prefixes_.begin(), prefixes_.end(), [&](const auto& prefix) {
                return token.term.starts_with(prefix);
              });
    if (matches) spans_.push_back(token.span);
  }

  std::vector<Span> Finish() {
    for (size_t i = 0; i < phrases_.size(); ++i) AddPhrases(*phrases_[i], places_[i]);
    std::sort(spans_.begin(), spans_.end(),
              [](const Span& a, const Span& b) { return a.begin < b.begin; });
    std::vector<Span> joined;
    for (const Span& span : spans_) {
      if (!joined.empty() && span.begin <= joined.back().end) {
        joined.back().end = std::max(joined.back().end, span.end);
      } else {
        joined.push_back(span);
      }
    }
    return joined;
  }

 private:
  static constexpr size_t kNoPhrase = SIZE_MAX;
  struct Use {
    size_t phrase = kNoPhrase;
    size_t place = 0;
  };

  void Collect(const Query& query) {
    switch (query.kind) {
      case Query::Kind::kTerm:
        terms_.emplace(query.term, Use());
        break;
      case Query::Kind::kPrefix:
        prefixes_.push_back(query.term);
        break;
      case Query::Kind::kPhrase:
        if (query.phrase.empty()) break;
        for (size_t i = 0; i < query.phrase.size(); ++i) {
          terms_.emplace(query.phrase[i].term, Use{phrases_.size(), i});
        }
        phrases_.push_back(&query);
        places_.emplace_back(query.phrase.size());
        break;
      case Query::Kind::kAny:
      case Query::Kind::kAll:
        break;
    }
    for (const Query& child : query.children) Collect(child);
  }

  /// The spans of the terms wherever all of them stand at their distances.
  void AddPhrases(const Query& query, const PhrasePlaces& places) {
    std::vector<size_t> next(places.size(), 0);
    for (const Place& first : places.front()) {
      bool stands = true;
      for (size_t i = 0; i < places.size() && stands; ++i) {
        const uint64_t wanted =
            uint64_t{first.position} - query.phrase.front().offset + query.phrase[i].offset;
        while (next[i] < places[i].size() && places[i][next[i]].position < wanted) ++next[i];
        stands = next[i] < places[i].size() && places[i][next[i]].position == wanted;
      }
      if (!stands) continue;
      for (size_t i = 0; i < places.size(); ++i) spans_.push_back(places[i][next[i]].span);
    }
  }

  std::multimap<std::string, Use, std::less<>> terms_;
  std::vector<std::string> prefixes_;
  std::vector<const Query*> phrases_;
  std::vector<PhrasePlaces> places_;
  std::vector<Span> spans_;
};

bool IsContinuation(char byte) noexcept { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

/// The first word boundary from `at` on, looking no further than `bytes_max` bytes for a space; or
/// else the next character.
size_t WordBeginFrom(std::string_view text, size_t at, size_t bytes_max) {
  if (at == 0) return 0;
  const size_t space = text.find_first_of(" \t\r\n", at - 1);
  if (space != text.npos && space < at + bytes_max) {
    return std::min(text.find_first_not_of(" \t\r\n", space), text.size());
  }
  while (at < text.size() && IsContinuation(text[at])) ++at;
  return at;
}

/// The last end of a word up to `at`, the same way.
size_t WordEndUpTo(std::string_view text, size_t at, size_t bytes_max) {
  if (at >= text.size()) return text.size();
  const size_t space = text.find_last_of(" \t\r\n", at);
  if (space != text.npos && space + bytes_max > at) {
    const size_t last = text.find_last_not_of(" \t\r\n", space);
    return last == text.npos ? 0 : last + 1;
  }
  return CutToBytes(text, at).size();
}

}  // namespace

std::vector<Span> FindMatches(const Query& query, std::string_view text, Tokenizer* tokenizer) {
  Matcher matcher(query);
  tokenizer->Reset(text);
  while (tokenizer->Next()) matcher.Look(tokenizer->token());
  return matcher.Finish();
}

Span ChooseExcerpt(std::string_view text, const std::vector<Span>& matches, size_t bytes_max) {
  if (text.size() <= bytes_max) return {0, text.size()};
  // The window of matches [first, last] that holds the most.
  size_t best_first = 0;
  size_t best_count = 0;
  for (size_t first = 0, last = 0; last < matches.size(); ++last) {
    while (first < last && matches[last].end - matches[first].begin > bytes_max) ++first;
    if (last - first + 1 > best_count) {
      best_count = last - first + 1;
      best_first = first;
    }
  }
  Span shown;
  if (best_count > 0) {
    shown.begin = matches[best_first].begin;
    shown.end = matches[best_first + best_count - 1].end;
  }
  if (shown.size() >= bytes_max) {
    return {shown.begin, shown.begin + CutToBytes(text.substr(shown.begin), bytes_max).size()};
  }
  // What is left is put around it, half before and half behind where there is so much.
  const size_t room = bytes_max - shown.size();
  const size_t before =
      std::min(shown.begin, std::max(room / 2, room - std::min(room, text.size() - shown.end)));
  const size_t begin = shown.begin - before;
  const size_t end = std::min(text.size(), begin + bytes_max);
  return {std::min(shown.begin, WordBeginFrom(text, begin, before)),
          std::max(shown.end, WordEndUpTo(text, end, end - shown.end))};
}

}  // namespace basalt::text
