#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace basalt::retrieve {

/// Finds texts that have almost the same words as an earlier one. The shingles of a text are its
/// runs of three terms (all its terms, if they are fewer). Two texts are near-duplicates if they
/// share at least 80 % of their shingles: |A and B| >= 0.8 |A or B| (Broder, "On the resemblance
/// and containment of documents", 1997). Case and punctuation do not matter. One word that differs
/// keeps two sentences apart, and does not keep two long passages apart. Add costs
/// O(texts * terms).
class NearDuplicates {
 public:
  /// Adds the text, unless it is a near-duplicate of one that was added: then false.
  bool Add(std::string_view text);

 private:
  using Shingles = std::vector<uint64_t>;  // Ascending, each once.

  std::vector<Shingles> added_;
};

}  // namespace basalt::retrieve
