#include "base/retention.h"

#include <algorithm>

namespace basalt::base {

bool Retention::Keep(std::string_view key, base::Tag tag) {
  const base::SequenceNumber sequence = base::TagSequence(tag);
  const auto stripe = static_cast<size_t>(
      std::lower_bound(boundaries_.begin(), boundaries_.end(), sequence) - boundaries_.begin());
  const bool same_key = !first_ && key == key_;
  if (!same_key) {
    first_ = false;
    key_.assign(key);
  }
  const bool hidden = same_key && stripe == stripe_ && stripe < boundaries_.size();
  stripe_ = stripe;
  if (hidden) return false;
  return !(at_bottom_ && stripe == 0 && base::TagKind(tag) == RecordKind::kDelete);
}

}  // namespace basalt::base
