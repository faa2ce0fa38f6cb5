#include "table/table_verifier.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/hash.h"
#include "table/checked_block.h"
#include "table/stored_block.h"

namespace basalt::table {
namespace {

// Whether blocks held what the properties say. Their keys are checked when blocks are read.
bool SameCounts(const TableProperties& a, const TableProperties& b) {
  return a.records == b.records && a.deletes == b.deletes && a.merges == b.merges &&
         a.expiring == b.expiring && a.raw_key_bytes == b.raw_key_bytes &&
         a.raw_value_bytes == b.raw_value_bytes && a.smallest_sequence == b.smallest_sequence &&
         a.largest_sequence == b.largest_sequence && a.earliest_expiry_ms == b.earliest_expiry_ms &&
         a.latest_expiry_ms == b.latest_expiry_ms;
}

}  // namespace

Status TableVerifier::Run() {
  Status cancelled(StatusCode::kCancelled, "verify " + file_.path() + ": cancelled");
  lookups_ = &ReadMetadata();
  const uint64_t block_bytes = metadata_.data_end - sizeof(FileHeader);
  if (!GoesOn(metadata_.properties.file_bytes - block_bytes)) return cancelled;
  for (size_t i = 0; i < metadata_.index->count(); ++i) {
    CheckBlock(i);
    if (!GoesOn(metadata_.handle(i).payload_bytes + kBlockTrailerBytes)) return cancelled;
  }
  CheckPlaces();
  CheckCounts();
  return Status();
}

const TableMetadata& TableVerifier::ReadMetadata() {
  const TableProperties& properties = metadata_.properties;
  MetadataReader reader(file_, properties.file_id, properties.keyspace, properties.file_bytes);
  auto metadata = reader.ReadAll();
  if (!metadata) {
    Report(reader.offset(), metadata.error());
    return metadata_;
  }
  all_metadata_ = std::move(*metadata);
  return *all_metadata_;
}

void TableVerifier::CheckBlock(size_t index) {
  const auto block = LoadCheckedBlock(file_, metadata_, index, nullptr);
  record_counts_.push_back(block ? (*block)->count() : 0);
  if (!block) return Report(metadata_.handle(index).offset, block.error());
  // Whether the key's versions begin in this block, the index knows.
  std::string last_key =
      index == 0 ? std::string() : metadata_.index->Key(static_cast<uint32_t>(index - 1));
  bool is_first = index == 0;
  BlockCursor cursor;
  cursor.Reset(**block);
  for (cursor.MoveTo(0); cursor.Valid(); cursor.Next()) {
    CountRecord(cursor.key(), cursor.tag(), cursor.time_ms(), cursor.value(), &census_);
    if (!is_first && cursor.key() == last_key) continue;
    is_first = false;
    last_key = cursor.key();
    CheckLookups(index, cursor.index(), last_key);
  }
}

void TableVerifier::CheckLookups(size_t index, uint32_t record, std::string_view key) const {
  const uint64_t hash = base::Hash(key);
  const auto report = [&](std::string what) {
    const uint64_t offset = metadata_.handle(index).offset;
    Report(offset, TableError(StatusCode::kCorruption, file_.path(), "block", offset,
                              what.append(std::to_string(record))));
  };
  if (!lookups_->filter.empty() && !lookups_->filter.MayContain(hash)) {
    report("the filter does not know the key of record ");
  }
  if (lookups_->point_index.empty()) return;
  const RecordPlace newest{.block = static_cast<uint32_t>(index), .ordinal = record};
  PointIndex::Lookup lookup(lookups_->point_index, hash);
  for (RecordPlace place; lookup.Next(&place);) {
    if (place == newest) return;
    if (HoldsKey(place, key, index)) {
      return report("the point index leads to an older version of the key of record ");
    }
  }
  report("the point index does not know the key of record ");
}

bool TableVerifier::HoldsKey(RecordPlace place, std::string_view key, size_t newest_block) const {
  // Only few keys have versions in other blocks than the newest one's; the index knows which.
  if (place.block < newest_block || place.block > metadata_.index->LowerBound(key, 0)) return false;
  if (place.block >= metadata_.index->count()) return false;
  const auto block = LoadCheckedBlock(file_, metadata_, place.block, nullptr);
  return block && place.ordinal < (*block)->count() && (*block)->KeyEquals(place.ordinal, key);
}

void TableVerifier::CheckPlaces() const {
  uint64_t outside = 0;
  lookups_->point_index.ForEach([&](RecordPlace place) {
    const bool is_inside =
        place.block < record_counts_.size() &&
        (record_counts_[place.block] == 0 || place.ordinal < record_counts_[place.block]);
    outside += is_inside ? 0 : 1;
  });
  if (outside == 0) return;
  const uint64_t offset = lookups_->point_index_offset;
  Report(offset, TableError(StatusCode::kCorruption, file_.path(), "point index", offset,
                            "it names " + std::to_string(outside) + " records that are not there"));
}

void TableVerifier::CheckCounts() const {
  if (std::ranges::count(record_counts_, 0u) != 0) return;
  const TableProperties& properties = metadata_.properties;
  if (SameCounts(census_, properties)) return;
  const uint64_t offset = metadata_.properties_offset;
  Report(offset,
         TableError(StatusCode::kCorruption, file_.path(), "properties", offset,
                    "they do not describe the records; " + std::to_string(census_.records) +
                        " were found, " + std::to_string(properties.records) + " are claimed"));
}

}  // namespace basalt::table
