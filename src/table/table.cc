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
#include "table/part_key.h"
#include "table/read_ahead.h"
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

/// A value pins its block only if it is at least this part of it. A smaller one is copied, so that
/// what a user holds keeps at most so many times its bytes in memory.
constexpr size_t kPinnedPart = 4;

// Takes a record out of its block. False: its value is not copied, but has to pin the block.
bool TakeCopy(const Block& block, uint32_t record, TableRead* found) noexcept {
  const std::string_view value = block.value(record);
  found->tag = block.tag(record);
  found->time_ms = block.time_ms(record);
  if (value.size() <= Value::kInlineBytes) {
    // Made in its place: an assignment would copy it once more.
    std::destroy_at(&found->value);
    new (&found->value) Value(Value::Copy(value));
    return true;
  }
  if (value.size() >= block.size() / kPinnedPart) return false;
  try {
    found->value = Value::Copy(value);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

// Takes a value that was not copied.
void TakePinned(BlockRef block, uint32_t record, TableRead* found) {
  const std::string_view value = block->value(record);
  found->value = Value::Pinned(new BlockPin(std::move(block), value), value.size());
}

}  // namespace

Table::Table(std::unique_ptr<io::File> file, std::unique_ptr<const TableMetadata> metadata,
             std::shared_ptr<Cache> cache)
    : file_(std::move(file)),
      metadata_(std::move(metadata)),
      cache_(std::move(cache)),
      hints_(cache_ == nullptr || metadata_->index.whole() == nullptr
                 ? nullptr
                 : new BlockHint[metadata_->index.block_count()]) {}

Table::~Table() = default;

Result<std::shared_ptr<Table>> Table::Open(std::unique_ptr<io::File> file,
                                           uint64_t expected_file_id, uint32_t expected_keyspace,
                                           uint64_t expected_bytes, std::shared_ptr<Cache> cache,
                                           std::shared_ptr<MetadataBudget> budget) {
  MetadataReader reader(*file, expected_file_id, expected_keyspace, expected_bytes);
  BASALT_ASSIGN_OR_RETURN(
      std::unique_ptr<const TableMetadata> metadata,
      reader.Read(std::move(budget), cache == nullptr ? MetadataReader::NoRoom::kInMemory
                                                      : MetadataReader::NoRoom::kInParts));
  return std::shared_ptr<Table>(new Table(std::move(file), std::move(metadata), std::move(cache)));
}

Result<std::shared_ptr<Table>> Table::OpenUnnamed(std::unique_ptr<io::File> file) {
  BASALT_ASSIGN_OR_RETURN(const uint64_t bytes, file->Size());
  char first_bytes[sizeof(FileHeader)] = {};
  BASALT_RETURN_IF_ERROR(file->ReadAt(0, first_bytes).status());
  const auto header = FromBytes<FileHeader>({first_bytes, sizeof first_bytes});
  return Open(std::move(file), header.file_id, header.keyspace, bytes, nullptr);
}

size_t Table::block_count() const { return metadata_->index.block_count(); }
const TableProperties& Table::properties() const { return metadata_->properties; }
const std::string& Table::path() const { return file_->path(); }
uint64_t Table::metadata_bytes() const { return metadata_->charge.bytes(); }
bool Table::has_point_index() const { return !metadata_->point_index.empty(); }
bool Table::is_in_parts() const { return metadata_->is_in_parts(); }

Result<size_t> Table::FindBlock(std::string_view key, base::Tag tag) const {
  Reading reading{.access = Access::kRead, .found = nullptr};
  size_t block = 0;
  if (AskIndex(key, tag, &reading, &block) == Answer::kFailed) return reading.error;
  return block;
}

Table::Answer Table::AskIndex(std::string_view key, base::Tag tag, Reading* reading,
                              size_t* block) const {
  const BlockIndex& index = metadata_->index;
  if (const Block* const whole = index.whole()) [[likely]] {
    *block = whole->LowerBound(key, tag);
    return Answer::kFound;
  }
  const size_t part = index.FindPart(key, tag);
  if (part == index.part_count()) {
    *block = index.block_count();
    return Answer::kFound;
  }
  const auto search = [&](const Block& entries) noexcept {
    *block = index.FirstBlockOf(part) + entries.LowerBound(key, tag);
  };
  const PartKey part_key = PartKey::OfIndexPart(metadata_->properties.file_id, part);
  const bool is_cached = cache::Visit(
      *cache_, part_key.view(),
      [&](const cache::VisitedValue& visited) noexcept { search(BlockRef::View(visited.view())); });
  if (is_cached) return Answer::kFound;
  if (reading->access == Access::kCached) return Answer::kNotCached;
  const auto entries = LoadIndexPart(*file_, *metadata_, part, cache_.get());
  if (!entries) {
    reading->error = entries.error();
    return Answer::kFailed;
  }
  search(**entries);
  return Answer::kFound;
}

Table::Answer Table::AskFilter(uint64_t hash, Reading* reading) const {
  const auto answer = [](bool may_contain) {
    return may_contain ? Answer::kFound : Answer::kOther;
  };
  if (!metadata_->filter.empty()) return answer(metadata_->filter.MayContain(hash));
  const FilterPages& pages = metadata_->filter_pages;
  if (pages.empty()) return Answer::kFound;
  const uint64_t page = pages.PageOf(hash);
  const PartKey page_key = PartKey::OfFilterPage(metadata_->properties.file_id, page);
  bool may_contain = false;
  const bool is_cached =
      cache::Visit(*cache_, page_key.view(), [&](const cache::VisitedValue& visited) noexcept {
        may_contain = pages.MayContain(visited.view(), hash);
      });
  if (is_cached) return answer(may_contain);
  if (reading->access == Access::kCached) return Answer::kNotCached;
  const auto loaded = pages.Load(*file_, page, cache_.get());
  if (!loaded) {
    reading->error = loaded.error();
    return Answer::kFailed;
  }
  return answer(pages.MayContain(loaded->view(), hash));
}

Result<IndexEntry> Table::ReadEntry(size_t block) const {
  const BlockIndex& index = metadata_->index;
  if (index.whole() != nullptr) return index.Entry(block);
  const size_t part = index.PartOf(block);
  const PartKey part_key = PartKey::OfIndexPart(metadata_->properties.file_id, part);
  if (MaybeValue cached = cache_->Get(part_key.view())) {
    return index.EntryIn(*BlockRef(std::move(*cached)), block);
  }
  BASALT_ASSIGN_OR_RETURN(const BlockRef entries,
                          LoadIndexPart(*file_, *metadata_, part, cache_.get()));
  return index.EntryIn(*entries, block);
}

Result<BlockRef> Table::LoadBlock(size_t index, bool fill_cache, ReadAhead* ahead) const {
  BASALT_ASSIGN_OR_RETURN(const IndexEntry entry, ReadEntry(index));
  if (ahead != nullptr) ahead->Reading(*file_, index, entry.handle, metadata_->data_end);
  return LoadCheckedBlock(*file_, *metadata_, index, entry, fill_cache ? cache_.get() : nullptr);
}

Result<BlockRef> Table::ReadBlock(size_t index, bool fill_cache, ReadAhead* ahead) const {
  if (cache_ != nullptr) {
    const PartKey key = PartKey::OfBlock(metadata_->properties.file_id, index);
    if (MaybeValue cached = cache_->Get(key.view())) {
      BlockRef block(std::move(*cached));
      if (hints_ != nullptr) hints_[index].Note(*block);
      return block;
    }
  }
  return LoadBlock(index, fill_cache, ahead);
}

void Table::PrefetchHint(size_t index) const noexcept {
  if (hints_ != nullptr) __builtin_prefetch(&hints_[index]);
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
    const PartKey key = PartKey::OfBlock(metadata_->properties.file_id, index);
    is_cached = cache::Visit(*cache_, key.view(), [&](const cache::VisitedValue& visited) noexcept {
      const Block seen = BlockRef::View(visited.view());
      if (hints_ != nullptr) hints_[index].Note(seen);
      located = locate(seen);
      is_done = located.answer != Answer::kFound || TakeCopy(seen, located.record, reading->found);
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
    auto loaded = LoadBlock(index, keeps, nullptr);
    if (!loaded) {
      reading->error = loaded.error();
      return Answer::kFailed;
    }
    block = std::move(*loaded);
    located = locate(*block);
    if (located.answer != Answer::kFound || TakeCopy(*block, located.record, reading->found)) {
      return located.answer;
    }
  }
  TakePinned(std::move(block), located.record, reading->found);
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
    PrefetchRecord(place);
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
  size_t index = 0;
  Answer answer = AskIndex(key, seek_tag, reading, &index);
  if (answer != Answer::kFound) return answer;
  bool is_behind = false;
  const auto locate = [&](const Block& block) noexcept -> Located {
    const uint32_t record = block.LowerBound(key, seek_tag);
    is_behind = record == block.count();
    if (is_behind || !block.KeyEquals(record, key)) return {Answer::kOther};
    return {Answer::kFound, record};
  };
  // The first record from the target on is in the block, or else the next block's first.
  do {
    if (index == block_count()) return Answer::kOther;
    is_behind = false;
    PrefetchSearch(index);
    answer = AskBlock(index++, locate, reading);
  } while (answer == Answer::kOther && is_behind);
  return answer;
}

Table::Answer Table::Lookup(std::string_view key, uint64_t hash, base::SequenceNumber at,
                            Reading* reading) const {
  const base::Tag seek_tag = base::SeekTag(at);
  if (metadata_->point_index.empty()) {
    const Answer answer = AskFilter(hash, reading);
    return answer == Answer::kFound ? Search(key, seek_tag, reading) : answer;
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

std::optional<RecordPlace> Table::FirstPlace(uint64_t hash) const noexcept {
  if (metadata_->point_index.empty()) return std::nullopt;
  PointIndex::Lookup lookup(metadata_->point_index, hash);
  RecordPlace place;
  if (!lookup.Next(&place) || place.block >= block_count()) return std::nullopt;
  PrefetchHint(place.block);
  return place;
}

void Table::PrefetchRecord(RecordPlace place) const noexcept {
  if (hints_ != nullptr) hints_[place.block].PrefetchRecord(place.ordinal);
}

std::unique_ptr<base::RecordIterator> Table::NewIterator(bool fill_cache) const {
  return std::make_unique<TableIterator>(shared_from_this(), fill_cache);
}

Status Table::Verify(const std::function<bool(uint64_t bytes)>& on_block,
                     const std::function<void(uint64_t offset, Status fault)>& on_fault) const {
  return TableVerifier(*file_, *metadata_, on_block, on_fault).Run();
}

}  // namespace basalt::table
