#include "memtable/fresh_run.h"

#include <algorithm>

#include "base/branchless_search.h"
#include "base/coding.h"
#include "base/internal_key.h"

namespace basalt::memtable {

void FreshRun::Insert(const Record& record) noexcept {
  if (entries_.empty()) {
    shared_ = record.key().size();
  } else if (const size_t shared =
                 std::min(shared_, base::SharedBytes(entries_.front().record->key(), record.key()));
             shared != shared_) {
    shared_ = shared;
    for (SortEntry& entry : entries_) entry.prefix = base::KeyPrefix(entry.record->key(), shared);
  }
  const SortEntry inserted{&record, base::KeyPrefix(record.key(), shared_)};
  auto place = entries_.begin() +
               static_cast<ptrdiff_t>(base::FirstNotBelow(entries_.data(), entries_.size(),
                                                          inserted.prefix, &SortEntry::prefix));
  if (place != entries_.end() && place->prefix == inserted.prefix) {
    const auto is_before = [&](const SortEntry& entry) {
      return entry.prefix == inserted.prefix && CompareRecords(*entry.record, record) < 0;
    };
    place = std::partition_point(place, entries_.end(), is_before);
  }
  entries_.insert(place, inserted);
}

void FreshRun::Clear() noexcept {
  entries_.clear();
  shared_ = 0;
  tails_ = 0;
}

}  // namespace basalt::memtable
