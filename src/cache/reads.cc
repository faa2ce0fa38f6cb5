#include <algorithm>
#include <array>
#include <atomic>
#include <new>
#include <string>

#include "base/out_of_memory.h"
#include "cache/core.h"

// Lookups: what of them is not inline in core.h.

namespace basalt::cache {

[[gnu::always_inline]] inline Index::Found CacheCore::FindAlive(Shard& shard, uint64_t hash,
                                                                std::string_view key,
                                                                bool counts) noexcept {
  for (;;) {
    const Index::Found found = shard.index().Find(hash, key);
    if (!found) return found;
    if ((found.word & Word::kExpires) != 0) {
      uint64_t deadline_ms = 0;
      // It was unlinked after we found it: what is there now decides.
      if (!found.entry()->state.ReadDeadline(&deadline_ms)) continue;
      if (deadline_ms != 0 && clock_.HasCome(deadline_ms, clock_.CoarseMillis())) return {};
    }
    if (counts) Index::RaiseFrequency(found);
    return found;
  }
}

template <bool kCounts>
MaybeValue CacheCore::GetOther(std::string_view key) noexcept {
  if (key.size() >= 4 && key.size() <= 8) return GetQuickly<kCounts, 4, 8>(key);
  return GetSlowly<kCounts>(key);
}

template <bool kCounts, size_t kKeyBytesMin, size_t kKeyBytesMax>
MaybeValue CacheCore::GetExpiring(std::string_view key, uint64_t word,
                                  std::atomic<uint8_t>* frequency) noexcept {
  if (key.size() < kKeyBytesMin || key.size() > kKeyBytesMax) __builtin_unreachable();
  // First: a call later on would have much to keep across it.
  const uint64_t far_off_ms = clock_.FarOff();
  auto guard = base::QuickEpochGuard::Resume();
  Lookups* const own = OwnLookups(guard.thread_number());
  if (own == nullptr) __builtin_unreachable();
  if (kCounts) Index::Raise(frequency, &own->nowhere);
  const Entry* const entry = Index::EntryOf(word);
  uint64_t deadline_ms = 0;
  if (entry->key_bytes != key.size() || entry->has_pin_part() ||
      !SameBytes({entry->KeyAt(false), key.size()}, key) ||
      !entry->state.ReadDeadline(&deadline_ms) || deadline_ms <= far_off_ms) [[unlikely]] {
    guard.Suspend();
    return GetAtGlance<kCounts>(key, word, &own->nowhere);
  }
  if (kCounts) AddToOwn(&own->hits, 1);
  return MaybeValue(std::in_place, HandedOut{.pin = nullptr,
                                             .bytes = entry->ValueAt(key.size(), false),
                                             .size = entry->value_bytes});
}

template <bool kCounts>
MaybeValue CacheCore::GetAtGlance(std::string_view key, uint64_t word,
                                  std::atomic<uint8_t>* frequency) noexcept {
  {
    const auto guard = base::QuickEpochGuard::Resume();
    Moment now(&clock_);
    // Both before the entry has come from memory, as in GetQuickly.
    if ((word & Word::kExpires) != 0) now.CoarseMillis();
    if (kCounts && Word::IsLive(word)) Index::Raise(frequency, Nowhere(guard.thread_number()));
    HandedOut out;
    if (HandOut(word, key, &now, &out)) {
      if (kCounts) Count(guard.thread_number(), 1, 0);
      return MaybeValue(std::in_place, out);
    }
  }
  return GetSlowly<kCounts>(key);
}

// Returned as it is made: an optional that is filled later is set to zeros first.
template <bool kCounts>
MaybeValue CacheCore::GetSlowly(std::string_view key) noexcept {
  const uint64_t hash = HashOf(key);
  Shard& shard = ShardOf(hash);
  try {
    const base::EpochGuard guard;
    const Index::Found found = FindAlive(shard, hash, key, kCounts);
    if (kCounts) Count(guard.thread_number(), found ? 1 : 0, found ? 0 : 1);
    if (!found) return std::nullopt;
    return MaybeValue(std::in_place, ValueOf{shard, found.entry()});
  } catch (const std::bad_alloc&) {
    return std::nullopt;  // A cache may always miss.
  }
}

// Get is inline in cache.cc, and calls these.
template MaybeValue CacheCore::GetOther<true>(std::string_view) noexcept;
template MaybeValue CacheCore::GetOther<false>(std::string_view) noexcept;
template MaybeValue CacheCore::GetExpiring<true, 9, 16>(std::string_view, uint64_t,
                                                        std::atomic<uint8_t>*) noexcept;
template MaybeValue CacheCore::GetExpiring<false, 9, 16>(std::string_view, uint64_t,
                                                         std::atomic<uint8_t>*) noexcept;
template MaybeValue CacheCore::GetAtGlance<true>(std::string_view, uint64_t,
                                                 std::atomic<uint8_t>*) noexcept;
template MaybeValue CacheCore::GetAtGlance<false>(std::string_view, uint64_t,
                                                  std::atomic<uint8_t>*) noexcept;
template MaybeValue CacheCore::GetSlowly<true>(std::string_view) noexcept;
template MaybeValue CacheCore::GetSlowly<false>(std::string_view) noexcept;

Entry* CacheCore::FindCounted(uint64_t hash, std::string_view key, uint32_t thread) noexcept {
  const Index::Found found = FindAlive(ShardOf(hash), hash, key, true);
  Count(thread, found ? 1 : 0, found ? 0 : 1);
  return found ? found.entry() : nullptr;
}

[[gnu::noinline]] bool CacheCore::FindValue(std::string_view key, uint64_t hash,
                                            MaybeValue* value) noexcept {
  Shard& shard = ShardOf(hash);
  value->reset();
  const Index::Found found = FindAlive(shard, hash, key, true);
  if (!found) return false;
  try {
    value->emplace(ValueOf{shard, found.entry()});
  } catch (const std::bad_alloc&) {
    return false;  // As for Get.
  }
  return true;
}

Status CacheCore::MultiGet(std::span<const std::string_view> keys, std::span<MaybeValue> values) {
  if (keys.size() != values.size()) {
    return base::ErrorThatSays(StatusCode::kInvalidArgument, [&] {
      return "multi-get from a cache: " + std::to_string(keys.size()) + " keys, but room for " +
             std::to_string(values.size()) + " values";
    });
  }
  constexpr size_t kGroup = 32;
  std::array<uint64_t, kGroup> hashes;
  std::array<const Index::Bucket*, kGroup> homes;
  std::array<Index::Glance, kGroup> glances;
  std::array<uint8_t, kGroup> away;
  for (size_t first = 0; first < keys.size(); first += kGroup) {
    const size_t count = std::min(kGroup, keys.size() - first);
    try {
      const base::EpochGuard guard;
      for (size_t i = 0; i < count; ++i) {
        hashes[i] = HashOf(keys[first + i]);
        homes[i] = &ShardOf(hashes[i]).index().Home(hashes[i]);
        __builtin_prefetch(homes[i], 0, 2);
      }
      size_t away_count = 0;
      for (size_t i = 0; i < count; ++i) {
        glances[i] = Index::GlanceAt(*homes[i], hashes[i]);
        __builtin_prefetch(glances[i].candidate(), 0, 2);
        if (!glances[i].may_be_away()) continue;
        __builtin_prefetch(Index::Segment::BuddyOf(homes[i]), 0, 2);
        away[away_count++] = static_cast<uint8_t>(i);
      }
      // Of few keys, but a group has some: one that waited alone would cost as much as all others.
      for (const uint8_t i : std::span(away).first(away_count)) {
        glances[i] = Index::GlanceAway(*homes[i], hashes[i]);
        __builtin_prefetch(glances[i].candidate(), 0, 2);
      }
      std::atomic<uint8_t>* const nowhere = Nowhere(guard.thread_number());
      Moment now(&clock_);
      uint64_t hits = 0;
      for (size_t i = 0; i < count; ++i) {
        const uint64_t hash = hashes[i];
        MaybeValue& value = values[first + i];
        HandedOut out;
        if (HandOut(glances[i].word, keys[first + i], &now, &out)) [[likely]] {
          Index::Raise(glances[i].frequency, nowhere);
          value.emplace(out);
          ++hits;
        } else if (glances[i].is_absent) {
          value.reset();
        } else {
          hits += FindValue(keys[first + i], hash, &value) ? 1 : 0;
        }
      }
      Count(guard.thread_number(), hits, count - hits);
    } catch (const std::bad_alloc&) {
      for (MaybeValue& value : values.subspan(first, count)) value.reset();  // As for Get.
    }
  }
  return {};
}

EntryRef CacheCore::Find(std::string_view key, bool counts, bool* is_refused) noexcept {
  const uint64_t hash = HashOf(key);
  Shard& shard = ShardOf(hash);
  EntryRef ref;
  bool is_absent = false;
  try {
    const base::EpochGuard guard;
    const Index::Found found = FindAlive(shard, hash, key, counts);
    is_absent = !found;
    if (found && shard.TryPin(found.entry())) ref = EntryRef(&shard, found.entry());
    if (counts) Count(guard.thread_number(), ref ? 1 : 0, ref ? 0 : 1);
  } catch (const std::bad_alloc&) {
    ref = EntryRef();  // As for Get.
  }
  if (is_refused != nullptr) *is_refused = !ref && !is_absent;
  return ref;
}

}  // namespace basalt::cache
