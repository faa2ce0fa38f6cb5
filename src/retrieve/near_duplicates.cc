#include "retrieve/near_duplicates.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/hash.h"
#include "text/tokenizer.h"

namespace basalt::retrieve {
namespace {

constexpr size_t kShingleTerms = 3;

std::vector<uint64_t> ShinglesOf(std::string_view text) {
  std::vector<uint64_t> terms;
  text::Tokenizer tokenizer;
  for (tokenizer.Reset(text); tokenizer.Next();) {
    terms.push_back(base::Hash(tokenizer.token().term));
  }
  std::vector<uint64_t> shingles;
  if (terms.empty()) return shingles;
  const size_t width = std::min(kShingleTerms, terms.size());
  for (size_t i = 0; i + width <= terms.size(); ++i) {
    shingles.push_back(base::Hash(
        std::string_view(reinterpret_cast<const char*>(&terms[i]), width * sizeof(uint64_t))));
  }
  std::ranges::sort(shingles);
  shingles.erase(std::ranges::unique(shingles).begin(), shingles.end());
  return shingles;
}

bool AreNear(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  std::vector<uint64_t> shared;
  std::ranges::set_intersection(a, b, std::back_inserter(shared));
  const size_t all = a.size() + b.size() - shared.size();
  return all > 0 && shared.size() * 5 >= all * 4;
}

}  // namespace

bool NearDuplicates::Add(std::string_view text) {
  Shingles shingles = ShinglesOf(text);
  for (const Shingles& other : added_) {
    if (AreNear(shingles, other)) return false;
  }
  added_.push_back(std::move(shingles));
  return true;
}

}  // namespace basalt::retrieve
