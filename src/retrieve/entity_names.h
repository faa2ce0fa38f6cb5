#pragma once

#include <set>
#include <string>
#include <string_view>

namespace basalt::retrieve {

/// The entities that a text names, in a form in which spellings of one name are the same: words as
/// TermNormalizer gives them, with single spaces. They are found by a rule that depends on the text
/// alone: runs of words that begin with a capital letter, which small words such as "of the" may
/// connect, without the articles and pronouns that begin a sentence. A name with such small words
/// also gives its parts: "University of Oxford" names "university of oxford", "university" and
/// "oxford". A name is cut to 200 bytes.
std::set<std::string> FindEntityNames(std::string_view text);

/// The entity that a title names: all its words, without a remark in brackets at the end. Empty: it
/// has no word.
std::string EntityOfTitle(std::string_view title);

}  // namespace basalt::retrieve
