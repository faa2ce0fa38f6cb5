#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "text/word_break.h"

namespace basalt::retrieve {

/// Divides a text into passages of at most `bytes_max` bytes, in order, without the white space
/// around them. Paragraphs (divided by an empty line) that fit together form one passage; a longer
/// one is divided behind a sentence, else between words, else between characters. The same text
/// gives the same passages. `bytes_max` is at least 4.
std::vector<text::Span> DividePassages(std::string_view text, size_t bytes_max);

}  // namespace basalt::retrieve
