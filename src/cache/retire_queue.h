#pragma once

#include <cstddef>
#include <cstdint>

#include "base/epoch.h"

namespace basalt::cache {

/// Entries that were unlinked and may still be read, linked through their state words: needs no
/// memory, so it cannot fail. Two generations: what is retired joins the young one; when no reader
/// is left who could see the old one, it is freed, the young one becomes the old one, and the
/// present epoch is noted for all of it.
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
    if (old_ == nullptr) Age();
    if (old_ == nullptr || epochs_->AdvanceAndScan() <= old_epoch_) return;
    for (Entry* entry = old_; entry != nullptr;) {
      auto* const next = static_cast<Entry*>(entry->state.next_retired());
      free(entry);
      entry = next;
    }
    old_ = nullptr;
    Age();
  }

  /// The same when there are no readers any more.
  template <class Free>
  void Drain(const Free& free) {
    for (int generation = 0; generation < 2; ++generation) {
      for (Entry* entry = old_; entry != nullptr;) {
        auto* const next = static_cast<Entry*>(entry->state.next_retired());
        free(entry);
        entry = next;
      }
      old_ = nullptr;
      Age();
    }
  }

  /// Retired since the last time that something aged.
  size_t young_count() const noexcept { return young_count_; }
  bool empty() const noexcept { return young_ == nullptr && old_ == nullptr; }

 private:
  void Age() noexcept {
    old_ = young_;
    young_ = nullptr;
    young_count_ = 0;
    old_epoch_ = epochs_->Now();
  }

  base::BasicEpochDomain<Atomic>* const epochs_;
  Entry* young_ = nullptr;
  Entry* old_ = nullptr;
  uint64_t old_epoch_ = 0;
  size_t young_count_ = 0;
};

}  // namespace basalt::cache
