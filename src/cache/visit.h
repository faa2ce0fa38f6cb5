#pragma once

#include <optional>
#include <string_view>

#include "basalt/cache.h"
#include "basalt/value.h"
#include "cache/core.h"

namespace basalt::cache {

/// A value where it lies in a cache, for as long as a visit lasts.
class VisitedValue {
 public:
  VisitedValue(Shard* shard, Entry* entry) noexcept : shard_(shard), entry_(entry) {}

  std::string_view view() const noexcept { return entry_->value_view(); }
  /// The same bytes, at the same place, for longer than the visit. Nothing: the value is not above
  /// Value::kInlineBytes, which is copied instead, or it has too many pins.
  MaybeValue Keep() const noexcept {
    if (!entry_->has_pin_part() || !shard_->TryPin(entry_)) return std::nullopt;
    return Value::Pinned(entry_->pin_part(), entry_->value_bytes);
  }

 private:
  Shard* shard_;
  Entry* entry_;
};

/// Calls `visit`, which must not throw, with the VisitedValue under `key`; false: there is none.
/// Counts as Cache::Get does.
///
/// The value is kept by the epoch alone: no counter of it is touched, which others might want at
/// the same time, and no Value is made. The visit therefore ends soon, and does not use the cache.
template <class Visitor>
bool Visit(const Cache& cache, std::string_view key, const Visitor& visit) noexcept {
  return CoreOf(cache).Visit(
      key, [&](Shard* shard, Entry* entry) noexcept { visit(VisitedValue(shard, entry)); });
}

}  // namespace basalt::cache
