#include "table/table.h"

#include <memory>
#include <new>
#include <string>
#include <utility>

#include "base/check.h"
#include "cache/visit.h"
#include "table/block.h"
#include "table/block_hint.h"
#include "table/block_ref.h"
#include "table/checked_block.h"
#include "table/table_iterator.h"
#include "table/table_metadata.h"
#include "table/table_verifier.h"

namespace basalt::table {
namespace {

// Keeps a block alive for a value that lies in it.
struct BlockPin : Value::Pin {
  BlockPin(BlockRef pinned, std::string_view value)
      : Value::Pin{.data = value.data(), .release = &Release}, block(std::move(pinned)) {}

  static void Release(Value::Pin* pin) noexcept { delete static_cast<BlockPin*>(pin); }

  BlockRef block;
};

// Takes a record out of its block. False: its value is too large to be copied, and not taken.
bool TakeSmall(const Block& block, uint32_t record, TableRead* found) noexcept {
  const std::string_view value = block.value(record);
  found->tag = block.tag(record);
  found->time_ms = block.time_ms(record);
  if (value.size() > Value::kInlineBytes) return false;
  // Made in its place: an assignment would copy it once more.
  std::destroy_at(&found->value);
  new (&found->value) Value(Value::Copy(value));
  return true;
}

// Takes the value that was too large.
void TakeLarge(BlockRef block, uint32_t record, TableRead* found) {
  const std::string_view value = block->value(record);
  found->value = Value::Pinned(new BlockPin(std::move(block), value), value.size());
}

}  // namespace

Table::Table(std::unique_ptr<io::File> file, std::unique_ptr<const TableMetadata> metadata,
             std::shared_ptr<Cache> cache)
    : file_(std::move(file)),
      metadata_(std::move(metadata)),
      cache_(std::move(cache)),
      hints_(cache_ == nullptr ? nullptr : new BlockHint[metadata_->index->count()]) {}

Table::~Table() = default;

Result<std::shared_ptr<Table>> Table::Open(std::unique_ptr<io::File> file,
                                           uint64_t expected_file_id, uint32_t expected_keyspace,
                                           uint64_t expected_bytes, std::shared_ptr<Cache> cache,
                                           std::shared_ptr<MetadataBudget> budget) {
  MetadataReader reader(*file, expected_file_id, expected_keyspace, expected_bytes);
  BASALT_ASSIGN_OR_RETURN(std::unique_ptr<const TableMetadata> metadata,
                          reader.Read(std::move(budget)));
  return std::shared_ptr<Table>(new Table(std::move(file), std::move(metadata), std::move(cache)));
}

size_t Table::block_count() const { return metadata_->index->count(); }
const TableProperties& Table::properties() const { return metadata_->properties; }
const std::string& Table::path() const { return file_->path(); }
uint64_t Table::metadata_bytes() const { return metadata_->charge.bytes(); }
bool Table::has_point_index() const { return !metadata_->point_index.empty(); }

size_t Table::FindBlock(std::string_view key, base::Tag tag) const {
  return metadata_->index->LowerBound(key, tag);
}

Result<BlockRef> Table::ReadBlock(size_t index, bool fill_cache) const {
  if (cache_ != nullptr) {
    if (MaybeValue cached = cache_->Get(BlockKey::Of(*metadata_, index).view())) {
      BlockRef block(std::move(*cached));
      hints_[index].Note(*block);
      return block;
    }
  }
  return LoadCheckedBlock(*file_, *metadata_, index, fill_cache ? cache_.get() : nullptr);
}

void Table::PrefetchSearch(size_t index) const noexcept {
  if (hints_ != nullptr) hints_[index].PrefetchSearch();
}

template <class Locate>
Table::Answer Table::AskBlock(size_t index, const Locate& locate, Reading* reading) const {
  Located located;
  BlockRef block;
  bool is_cached = false;
  if (cache_ != nullptr) {
    bool is_done = false;
    is_cached = cache::Visit(*cache_, BlockKey::Of(*metadata_, index).view(),
                             [&](const cache::VisitedValue& visited) noexcept {
                               const Block seen = BlockRef::View(visited.view());
                               hints_[index].Note(seen);
                               located = locate(seen);
                               is_done = located.answer != Answer::kFound ||
                                         TakeSmall(seen, located.record, reading->found);
                               if (is_done) return;
                               if (MaybeValue kept = visited.Keep()) {
                                 block = BlockRef(std::move(*kept));
                               }
                             });
    if (is_done) return located.answer;
  }
  if (!block && reading->access == Access::kCached) return Answer::kNotCached;
  if (!block) {
    // A block that is cached, but cannot be pinned once more, is not put there again.
    const bool keeps = reading->access == Access::kReadAndKeep && !is_cached;
    auto loaded = LoadCheckedBlock(*file_, *metadata_, index, keeps ? cache_.get() : nullptr);
    if (!loaded) {
      reading->error = loaded.error();
      return Answer::kFailed;
    }
    block = std::move(*loaded);
    located = locate(*block);
    if (located.answer != Answer::kFound || TakeSmall(*block, located.record, reading->found)) {
      return located.answer;
    }
  }
  TakeLarge(std::move(block), located.record, reading->found);
  return Answer::kFound;
}

Table::Answer Table::AskPlace(RecordPlace place, std::string_view key, base::Tag seek_tag,
                              Reading* reading) const {
  Answer answer = Answer::kOutside;
  if (place.block < block_count()) {
    const auto locate = [&](const Block& block) noexcept -> Located {
      if (place.ordinal >= block.count()) return {Answer::kOutside};
      if (!block.KeyEquals(place.ordinal, key)) return {Answer::kOther};
      if (block.tag(place.ordinal) > seek_tag) return {Answer::kTooNew};
      return {Answer::kFound, place.ordinal};
    };
    if (hints_ != nullptr) hints_[place.block].PrefetchRecord(place.ordinal);
    answer = AskBlock(place.block, locate, reading);
  }
  if (answer != Answer::kOutside) return answer;
  reading->error =
      TableError(StatusCode::kCorruption, path(), "point index", metadata_->point_index_offset,
                 "it names record " + std::to_string(place.ordinal) + " of block " +
                     std::to_string(place.block) + ", which is not there");
  return Answer::kFailed;
}

Table::Answer Table::Search(std::string_view key, base::Tag seek_tag, Reading* reading) const {
  const size_t index = FindBlock(key, seek_tag);
  if (index == block_count()) return Answer::kOther;
  // The block ends at or after the target, so the first record from there on is in it.
  PrefetchSearch(index);
  const auto locate = [&](const Block& block) noexcept -> Located {
    const uint32_t record = block.LowerBound(key, seek_tag);
    if (record == block.count() || !block.KeyEquals(record, key)) return {Answer::kOther};
    return {Answer::kFound, record};
  };
  return AskBlock(index, locate, reading);
}

Table::Answer Table::Lookup(std::string_view key, uint64_t hash, base::SequenceNumber at,
                            Reading* reading) const {
  const base::Tag seek_tag = base::SeekTag(at);
  if (metadata_->point_index.empty()) {
    if (!metadata_->filter.empty() && !metadata_->filter.MayContain(hash)) return Answer::kOther;
    return Search(key, seek_tag, reading);
  }
  PointIndex::Lookup lookup(metadata_->point_index, hash);
  for (RecordPlace place; lookup.Next(&place);) {
    const Answer answer = AskPlace(place, key, seek_tag, reading);
    if (answer == Answer::kOther) continue;
    // Older versions follow the newest one, perhaps in blocks behind it.
    return answer == Answer::kTooNew ? Search(key, seek_tag, reading) : answer;
  }
  return Answer::kOther;
}

Result<bool> Table::Get(std::string_view key, uint64_t hash, base::SequenceNumber at,
                        bool fill_cache, TableRead* found) const {
  Reading reading{.access = fill_cache ? Access::kReadAndKeep : Access::kRead, .found = found};
  const Answer answer = Lookup(key, hash, at, &reading);
  if (answer == Answer::kFailed) return reading.error;
  return answer == Answer::kFound;
}

Table::CachedAnswer Table::GetCached(std::string_view key, uint64_t hash, base::SequenceNumber at,
                                     TableRead* found) const {
  Reading reading{.access = Access::kCached, .found = found};
  switch (Lookup(key, hash, at, &reading)) {
    case Answer::kFound:
      return CachedAnswer::kFound;
    case Answer::kOther:
      return CachedAnswer::kAbsent;
    default:
      return CachedAnswer::kUnknown;
  }
}

void Table::Prefetch(uint64_t hash) const noexcept { metadata_->point_index.Prefetch(hash); }

std::unique_ptr<base::RecordIterator> Table::NewIterator(bool fill_cache) const {
  return std::make_unique<TableIterator>(shared_from_this(), fill_cache);
}

Status Table::Verify(const std::function<bool(uint64_t bytes)>& on_block,
                     const std::function<void(uint64_t offset, Status fault)>& on_fault) const {
  return TableVerifier(*file_, *metadata_, on_block, on_fault).Run();
}

}  // namespace basalt::table
