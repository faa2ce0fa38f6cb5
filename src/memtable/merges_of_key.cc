#include "memtable/merges_of_key.h"

#include <algorithm>
#include <string>

#include "base/epoch.h"

namespace basalt::memtable {

bool MergesOfKey::TakeFrom(Generation* table, uint32_t keyspace, std::string_view key,
                           uint64_t hash, base::SequenceNumber at, uint64_t expiry_ms) {
  const Record* record;
  {
    const base::EpochGuard inside;
    record = table->Find(keyspace, key, hash, at, nullptr);
  }
  const base::SequenceNumber cover = table->range_deletes().SequenceAt(keyspace, key, at, nullptr);
  const size_t before = merges.size();
  bool is_end = cover != 0;
  while (record != nullptr) {
    const base::Tag tag = record->tag.load(std::memory_order_acquire);
    if (base::TagSequence(tag) < cover) break;
    if (base::TagKind(tag) != RecordKind::kMerge) {
      if (base::TagKind(tag) == RecordKind::kPut) {
        below = {tag, record->time_ms(), table->ValueOf(*record)};
      }
      is_end = true;
      break;
    }
    if (record->is_fold()) {
      const FoldedMerges folded = record->folded();
      if (folded.IsSplitBy(expiry_ms)) {
        record = table->Older(*record);
        continue;
      }
      folds.push_back(folded);
    }
    merges.push_back({std::string(record->value()), record->time_ms()});
    record = table->Behind(*record);
  }
  if (merges.size() - before >= Generation::kFoldedMin) long_walks.push_back(table);
  return is_end;
}

bool MergesOfKey::IsSplit() const noexcept {
  return std::ranges::any_of(
      folds, [this](const FoldedMerges& folded) { return folded.IsSplitBy(below.time_ms); });
}

}  // namespace basalt::memtable
