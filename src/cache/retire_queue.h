#pragma once

#include <cstddef>
#include <cstdint>

#include "base/epoch.h"

namespace basalt::cache {

/// Entries that were unlinked and may still be read, linked through their state words: needs no
/// memory, so it cannot fail. Three lists: what is retired joins the young one; when no
/// reader is left who could see the old one, that is ready to be freed, the young one becomes the
/// old one, and the present epoch is noted for all of it.
///
/// Freeing costs a cache miss an entry, since it was retired some time ago: writers do it in small
/// steps, so that none of them pays for many.
///
/// Under the shard's lock.
template <template <class> class Atomic, class Entry>
class BasicRetireQueue {
 public:
  explicit BasicRetireQueue(base::BasicEpochDomain<Atomic>* epochs) noexcept : epochs_(epochs) {}

  void Retire(Entry* entry) noexcept {
    entry->state.SetNextRetired(young_);
    young_ = entry;
    ++young_count_;
  }

  /// Gives what nobody sees any more to `free(entry)`.
  template <class Free>
  void Collect(const Free& free) {
    do {
      while (ready_ != nullptr) FreeFirst(&ready_, free);
    } while (Promote());
  }
  /// The same for up to `count_max` of one list. `scans`: it may look at all readers, else it
  /// goes by what others have seen.
  template <class Free>
  void CollectSome(const Free& free, size_t count_max, bool scans) {
    if (ready_ == nullptr) {
      // What has just aged waits for the next time: scans of others may have freed it by then.
      if (old_ == nullptr) return Age();
      if (!(scans ? Promote() : PromoteKnown())) return;
    }
    for (; ready_ != nullptr && count_max != 0; --count_max) FreeFirst(&ready_, free);
  }

  /// The same for all when there are no readers any more.
  template <class Free>
  void Drain(const Free& free) {
    for (Entry** const list : {&ready_, &old_, &young_}) {
      while (*list != nullptr) FreeFirst(list, free);
    }
  }

  /// Retired since the last time that something aged.
  size_t young_count() const noexcept { return young_count_; }
  /// Whether CollectSome is worth its price: something is ready, or is known to be unread, or
  /// enough was retired since the last time that it tried. To look at all readers may cost some
  /// microseconds.
  bool is_due() const noexcept {
    return ready_ != nullptr || young_count_ >= due_at_ ||
           (old_ != nullptr && epochs_->SafeBelow() > old_epoch_);
  }
  bool empty() const noexcept { return young_ == nullptr && old_ == nullptr && ready_ == nullptr; }

 private:
  template <class Free>
  static void FreeFirst(Entry** first, const Free& free) {
    Entry* const entry = *first;
    *first = static_cast<Entry*>(entry->state.next_retired());
    if (*first != nullptr) __builtin_prefetch(*first);
    free(entry);
  }
  /// Whether something became ready.
  bool Promote() noexcept {
    if (old_ == nullptr) Age();
    if (old_ == nullptr) return false;
    if (PromoteKnown()) return true;
    if (epochs_->ScanFor(old_epoch_) > old_epoch_) return PromoteKnown();
    due_at_ = young_count_ + kDueAt;
    return false;
  }
  bool PromoteKnown() noexcept {
    if (epochs_->SafeBelow() <= old_epoch_) return false;
    ready_ = old_;
    Age();
    return true;
  }
  void Age() noexcept {
    old_ = young_;
    young_ = nullptr;
    young_count_ = 0;
    due_at_ = kDueAt;
    old_epoch_ = epochs_->NoteAndAdvance();
  }

  static constexpr size_t kDueAt = 64;

  base::BasicEpochDomain<Atomic>* const epochs_;
  Entry* young_ = nullptr;
  Entry* old_ = nullptr;
  Entry* ready_ = nullptr;
  uint64_t old_epoch_ = 0;
  size_t young_count_ = 0;
  size_t due_at_ = kDueAt;
};

}  // namespace basalt::cache
