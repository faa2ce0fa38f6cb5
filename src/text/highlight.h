#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "text/query.h"
#include "text/tokenizer.h"

namespace basalt::text {

/// The parts of a text that a query matches, ascending and disjoint: terms, terms with a prefix,
/// and the terms of phrases where the phrase stands. Parts that touch or overlap are one. It
/// divides the text anew, in one pass.
std::vector<Span> FindMatches(const Query& query, std::string_view text, Tokenizer* tokenizer);

/// The part of a text to show: at most `bytes_max` bytes that hold as many of the matches as any
/// such part does, with what stands around them, from word to word. `matches` are those of
/// FindMatches; without any it is the beginning of the text. A match longer than that is cut.
Span ChooseExcerpt(std::string_view text, const std::vector<Span>& matches, size_t bytes_max);

}  // namespace basalt::text
