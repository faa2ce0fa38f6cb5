#include "db/key_bounds.h"

#include <algorithm>

#include "base/coding.h"
#include "table/block_index.h"

namespace basalt::db {
namespace {

constexpr char kGreatestByte = '\xff';

}  // namespace

std::string LowerBoundOf(std::string_view first, std::optional<std::string_view> before) {
  if (first.size() <= kBoundBytesMax) return std::string(first);
  const std::string_view cut = first.substr(0, kBoundBytesMax);
  if (!before || cut > *before) return std::string(cut);
  return std::string(table::ShortestBetween(*before, first));
}

// A prefix of the key with its last byte raised is above the key. It is below `behind` where the
// raised byte comes after the one in which the two differ.
std::string UpperBoundOf(std::string_view last, std::optional<std::string_view> behind,
                         size_t kept) {
  if (last.size() <= kBoundBytesMax) return std::string(last);
  const size_t first_raised = std::max(kept, behind ? base::SharedBytes(last, *behind) + 1 : 0);
  // The last byte that can be raised within the length, or else the first one behind it.
  size_t raised = kBoundBytesMax;
  while (raised > first_raised && last[raised - 1] == kGreatestByte) --raised;
  if (raised > first_raised) {
    --raised;
  } else {
    raised = std::max(first_raised, kBoundBytesMax);
    while (raised < last.size() && last[raised] == kGreatestByte) ++raised;
    if (raised >= last.size()) return std::string(last);
  }
  std::string bound(last.substr(0, raised + 1));
  bound.back() = static_cast<char>(bound.back() + 1);
  return bound;
}

}  // namespace basalt::db
