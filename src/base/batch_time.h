#pragma once

#include <chrono>
#include <cstdint>

#include "basalt/write_batch.h"
#include "base/batch_cursor.h"

// From the times of a batch, which are relative or absolute, to those that a store keeps: a put's
// is its expiry, a merge's is when it was written, in milliseconds since 1970; 0: none.

namespace basalt::base {

/// Whether a record has to be changed before a store can keep it. `default_ttl`: how long a put
/// lives that says nothing; zero: for ever.
inline bool NeedsTime(const BatchCursor& record, std::chrono::milliseconds default_ttl) noexcept {
  if (record.kind() == RecordKind::kMerge) return true;
  return record.kind() == RecordKind::kPut &&
         (record.time_ms() != 0 || record.never_expires() || default_ttl.count() != 0);
}

/// The moment that comes so long after `now_ms`, or the last there is.
inline uint64_t TimeAfter(uint64_t now_ms, uint64_t ttl_ms) noexcept {
  constexpr uint64_t kTimeMax = INT64_MAX;
  return ttl_ms < kTimeMax - now_ms ? now_ms + ttl_ms : kTimeMax;
}

/// The record's time as the store keeps it.
inline uint64_t KeptTime(const BatchCursor& record, std::chrono::milliseconds default_ttl,
                         uint64_t now_ms) noexcept {
  if (record.kind() == RecordKind::kMerge) return now_ms;
  if (record.kind() != RecordKind::kPut || record.never_expires()) return 0;
  if (record.time_is_expiry()) return record.time_ms();
  const uint64_t ttl =
      record.time_ms() != 0 ? record.time_ms() : static_cast<uint64_t>(default_ttl.count());
  return ttl == 0 ? 0 : TimeAfter(now_ms, ttl);
}

}  // namespace basalt::base
