#include "vector/neighbour_choice.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace basalt::vector {
namespace {

constexpr size_t kChosenMax = GraphNodes::kBaseLinks;
// Chosen ones that a candidate is compared with before the others are worth looking at.
constexpr size_t kComparedAtOnce = 8;

bool IsDiverse(const GraphNodes& nodes, const Candidate& candidate,
               std::span<const uint32_t> chosen) noexcept {
  const uint8_t* const code = nodes.Code(Link::SlotOf(candidate.word));
  std::array<uint32_t, kComparedAtOnce> distances;
  for (size_t begin = 0; begin < chosen.size(); begin += kComparedAtOnce) {
    const auto some = chosen.subspan(begin, std::min(kComparedAtOnce, chosen.size() - begin));
    nodes.Distances(code, some, distances.data());
    for (size_t i = 0; i < some.size(); ++i) {
      if (distances[i] < candidate.distance) return false;
    }
  }
  return true;
}

}  // namespace

size_t ChooseNeighbours(const GraphNodes& nodes, size_t chosen_max, size_t filled,
                        std::span<Candidate> candidates) {
  BASALT_CHECK(chosen_max <= kChosenMax && filled <= chosen_max);
  std::array<uint32_t, kChosenMax> chosen;
  size_t tree_links = 0;  // That are still to come.
  for (const Candidate& candidate : candidates) {
    tree_links += static_cast<size_t>(Link::IsTree(candidate.word));
  }
  // Those not chosen are moved behind, in their order.
  size_t count = 0;
  for (size_t i = 0; i < candidates.size() && count < chosen_max; ++i) {
    const Candidate candidate = candidates[i];
    const bool is_tree = Link::IsTree(candidate.word);
    tree_links -= static_cast<size_t>(is_tree);
    if (!is_tree && (count + tree_links >= chosen_max ||
                     !IsDiverse(nodes, candidate, {chosen.data(), count}))) {
      continue;
    }
    std::rotate(candidates.begin() + static_cast<ptrdiff_t>(count),
                candidates.begin() + static_cast<ptrdiff_t>(i),
                candidates.begin() + static_cast<ptrdiff_t>(i) + 1);
    chosen[count++] = Link::SlotOf(candidate.word);
  }
  return std::max(count, std::min(filled, candidates.size()));
}

}  // namespace basalt::vector
