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
  for (size_t i = 0; i < lookups_->index.block_count(); ++i) {
    IndexEntry entry;
    if (!FindEntry(i, &entry)) {
      SkipBlock(i);
      continue;
    }
    CheckBlock(i, entry);
    blocks_end_ = entry.handle.offset + entry.handle.payload_bytes + kBlockTrailerBytes;
    if (!GoesOn(entry.handle.payload_bytes + kBlockTrailerBytes)) return cancelled;
  }
  CheckEnd(metadata_.data_end, "section");
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

const Block* TableVerifier::Part(size_t part) {
  if (part_number_ != part) {
    part_number_ = part;
    auto entries = LoadIndexPart(file_, *lookups_, part, nullptr);
    part_fault_ = entries.status();
    part_ = entries ? std::move(*entries) : BlockRef();
  }
  return part_ ? &*part_ : nullptr;
}

bool TableVerifier::FindEntry(size_t index, IndexEntry* entry) {
  const BlockIndex& blocks = lookups_->index;
  if (blocks.whole() != nullptr) {
    *entry = blocks.Entry(index);
    return true;
  }
  const Block* const entries = Part(blocks.PartOf(index));
  if (entries == nullptr) return false;
  *entry = blocks.EntryIn(*entries, index);
  return true;
}

size_t TableVerifier::FindBlock(std::string_view key, base::Tag tag) {
  const BlockIndex& blocks = lookups_->index;
  if (blocks.whole() != nullptr) return blocks.whole()->LowerBound(key, tag);
  const size_t part = blocks.FindPart(key, tag);
  if (part == blocks.part_count()) return blocks.block_count();
  const Block* const entries = Part(part);
  return blocks.FirstBlockOf(part) + (entries == nullptr ? 0 : entries->LowerBound(key, tag));
}

// A part of the index that cannot be read is one fault, whatever it lists.
void TableVerifier::SkipBlock(size_t index) {
  const BlockIndex& blocks = lookups_->index;
  const size_t part = blocks.PartOf(index);
  if (index == blocks.FirstBlockOf(part)) Report(blocks.handle(part).offset, part_fault_);
  record_counts_.push_back(0);
  blocks_end_ = 0;
}

// Within a part of the index blocks follow one another; from part to part it is seen here.
void TableVerifier::CheckEnd(uint64_t next_offset, const char* next) const {
  if (blocks_end_ == 0 || blocks_end_ == next_offset) return;
  Report(next_offset, TableError(StatusCode::kCorruption, file_.path(), next, next_offset,
                                 "it does not begin where the block before it ends"));
}

void TableVerifier::CheckBlock(size_t index, const IndexEntry& entry) {
  const uint64_t offset = entry.handle.offset;
  CheckEnd(offset, "block");
  const auto block = LoadCheckedBlock(file_, *lookups_, index, entry, nullptr);
  record_counts_.push_back(block ? (*block)->count() : 0);
  if (!block) return Report(offset, block.error());
  // Whether the key's versions begin in this block, the index knows.
  std::string last_key = entry.bound_key;
  bool is_first = index == 0 || entry.bound_tag == base::kNewestTag;
  BlockCursor cursor;
  cursor.Reset(**block);
  for (cursor.MoveTo(0); cursor.Valid(); cursor.Next()) {
    CountRecord(cursor.key(), cursor.tag(), cursor.time_ms(), cursor.value(), &census_);
    if (!is_first && cursor.key() == last_key) continue;
    is_first = false;
    last_key = cursor.key();
    CheckLookups(index, entry, cursor.index(), last_key);
  }
}

void TableVerifier::CheckLookups(size_t index, const IndexEntry& entry, uint32_t record,
                                 std::string_view key) {
  const uint64_t hash = base::Hash(key);
  const auto report = [&](std::string what) {
    const uint64_t offset = entry.handle.offset;
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

bool TableVerifier::HoldsKey(RecordPlace place, std::string_view key, size_t newest_block) {
  // Only few keys have versions in other blocks than the newest one's; the index knows which.
  if (place.block < newest_block || place.block > FindBlock(key, 0)) return false;
  IndexEntry entry;
  if (place.block >= lookups_->index.block_count() || !FindEntry(place.block, &entry)) return false;
  const auto block = LoadCheckedBlock(file_, *lookups_, place.block, entry, nullptr);
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
