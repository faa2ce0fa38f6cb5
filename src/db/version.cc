#include "db/version.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "base/branchless_search.h"
#include "base/check.h"
#include "base/coding.h"
#include "base/fork_count.h"
#include "base/out_of_memory.h"
#include "db/file_names.h"
#include "db/tree_key.h"

namespace basalt::db {
namespace {

std::vector<base::RangeCover::Range> RangesUpTo(const std::vector<RangeDelete>& ranges,
                                                base::SequenceNumber at) {
  std::vector<base::RangeCover::Range> some;
  for (const RangeDelete& range : ranges) {
    if (range.sequence <= at) some.push_back({range.begin, range.end, range.sequence});
  }
  return some;
}

std::vector<RangeDelete> Sorted(std::vector<RangeDelete> ranges) {
  std::ranges::sort(ranges, {}, [](const RangeDelete& range) {
    return std::pair(std::string_view(range.begin), range.sequence);
  });
  return ranges;
}

std::vector<std::string_view> ReachOf(const std::vector<RangeDelete>& ranges) {
  std::vector<std::string_view> reach;
  reach.reserve(ranges.size());
  for (const RangeDelete& range : ranges) {
    reach.push_back(reach.empty() ? range.end
                                  : std::max(reach.back(), std::string_view(range.end)));
  }
  return reach;
}

/// Whether the table's own keys lack the keyspace that its tree's keys begin with.
bool LacksKeyspace(const table::TableProperties& properties) noexcept {
  return TreeOf(properties.keyspace) == kSharedTree &&
         properties.keyspace != table::kSharedKeyspaces;
}

table::TableProperties WithTreeKeys(table::TableProperties properties) {
  if (LacksKeyspace(properties)) {
    properties.smallest_key = TreeKey(properties.keyspace, properties.smallest_key);
    properties.largest_key = TreeKey(properties.keyspace, properties.largest_key);
  }
  return properties;
}

}  // namespace

TableFile::TableFile(io::FileSystem* fs, std::string path, const Place& place,
                     table::TableProperties properties, Resources resources,
                     RetainedVersions retained)
    : fs_(fs),
      path_(std::move(path)),
      place_(place),
      fork_count_(base::ForkCount()),
      properties_(WithTreeKeys(std::move(properties))),
      resources_(std::move(resources)),
      retained_(std::move(retained)) {}

TableFile::~TableFile() {
  if (!obsolete_.load(std::memory_order_relaxed)) return;
  if (fork_count_ != base::ForkCount()) return;
  // A file that stays is found and removed by the next Open.
  static_cast<void>(base::OrOutOfMemory([&] {
    return resources_.obsolete == nullptr ? fs_->RemoveFile(path_)
                                          : resources_.obsolete->Remove(path_);
  }));
}

Result<std::unique_ptr<io::File>> TableFile::OpenFile() const {
  io::DescriptorPool* const descriptors = resources_.descriptors;
  auto file = descriptors == nullptr ? fs_->Open(path_, io::OpenMode::kRead)
                                     : descriptors->Open(fs_, path_, resources_.closing);
  if (!file && file.error().code() == StatusCode::kNotFound) return NotThere();
  return file;
}

Status TableFile::Pin() const {
  const std::scoped_lock lock(mutex_);
  if (table_ != nullptr || pinned_ != nullptr) return {};
  BASALT_ASSIGN_OR_RETURN(pinned_, OpenFile());
  return {};
}

Result<const table::Table*> TableFile::Open() const {
  if (const table::Table* table = OpenedTable(); table != nullptr) return table;
  const std::scoped_lock lock(mutex_);
  if (table_ == nullptr) {
    std::unique_ptr<io::File> file = std::move(pinned_);
    if (file == nullptr) {
      BASALT_ASSIGN_OR_RETURN(file, OpenFile());
    }
    BASALT_ASSIGN_OR_RETURN(
        std::shared_ptr<table::Table> table,
        table::Table::Open(std::move(file), properties_.file_id, properties_.keyspace,
                           properties_.file_bytes, resources_.cache, resources_.metadata));
    if (resources_.cache != nullptr) {
      // Where pinned blocks leave no room, the metadata stay uncharged rather than the table shut.
      auto reservation = resources_.cache->Reserve(table->metadata_bytes());
      if (reservation) reservation_ = std::move(*reservation);
    }
    table_ = std::move(table);
    opened_.store(table_.get(), std::memory_order_release);
  }
  return static_cast<const table::Table*>(table_.get());
}

table::TableProperties TableFile::OwnProperties() const {
  table::TableProperties own = properties_;
  if (LacksKeyspace(own)) {
    own.smallest_key.erase(0, kKeyspaceBytes);
    own.largest_key.erase(0, kKeyspaceBytes);
  }
  return own;
}

Status TableFile::NotThere() const {
  return Status(StatusCode::kCorruption, "table " + path_ +
                                             " is named by the manifest but is not there: restore "
                                             "it from lost/ or a backup, or the whole database");
}

bool MayHold(const TableFile& table, const DroppedKeyspace& dropped) noexcept {
  return table.number() < dropped.table_number &&
         KeyspaceOf(table.properties().smallest_key) <= dropped.id &&
         KeyspaceOf(table.properties().largest_key) >= dropped.id;
}

RangeDeletePart::RangeDeletePart(std::vector<RangeDelete> ranges, bool is_shared)
    : is_shared_(is_shared),
      ranges_(Sorted(std::move(ranges))),
      reach_(ReachOf(ranges_)),
      cover_(RangesUpTo(ranges_, base::kMaxSequence)),
      oldest_(std::ranges::min(ranges_, {}, &RangeDelete::sequence).sequence),
      blocks_(ranges_, is_shared) {
  if (!is_shared) return;
  for (const RangeDelete& range : ranges_) {
    of_keyspaces_[KeyspaceOf(range.begin)].ranges.push_back(
        {std::string_view(range.begin).substr(kKeyspaceBytes),
         std::string_view(range.end).substr(kKeyspaceBytes), range.sequence});
  }
  for (auto& [keyspace, its] : of_keyspaces_) its.cover = base::RangeCover(its.ranges);
}

base::SequenceNumber RangeDeletePart::NewestUpTo(base::SequenceNumber at) const noexcept {
  if (at >= newest()) return newest();
  base::SequenceNumber sequence = 0;
  for (size_t i = 0; at >= oldest_ && i < ranges_.size(); ++i) {
    if (ranges_[i].sequence <= at) sequence = std::max(sequence, ranges_[i].sequence);
  }
  return sequence;
}

bool RangeDeletePart::MayCoverBoth(std::string_view smallest, std::string_view largest,
                                   base::SequenceNumber after) const noexcept {
  return cover_.SequenceAt(smallest) > after && cover_.SequenceAt(largest) > after;
}

std::span<const RangeDelete> RangeDeletePart::Near(std::string_view smallest,
                                                   std::string_view largest) const noexcept {
  const auto first = std::ranges::upper_bound(reach_, smallest) - reach_.begin();
  const auto behind = std::ranges::upper_bound(ranges_.begin() + first, ranges_.end(), largest, {},
                                               &RangeDelete::begin);
  return {ranges_.begin() + first, behind};
}

base::SequenceNumber RangeDeletePart::SequenceAt(std::string_view key,
                                                 base::SequenceNumber at) const noexcept {
  const base::SequenceNumber newest = cover_.SequenceAt(key);
  if (newest <= at) return newest;
  base::SequenceNumber sequence = 0;
  for (const RangeDelete& range : Near(key, key)) {
    if (range.sequence <= at && range.begin <= key && key < range.end) {
      sequence = std::max(sequence, range.sequence);
    }
  }
  return sequence;
}

void RangeDeletePart::Collect(uint32_t keyspace, base::SequenceNumber at,
                              std::vector<const base::RangeCover*>* covers,
                              std::vector<base::RangeCover::Range>* loose) const {
  const base::RangeCover* cover = &cover_;
  std::vector<base::RangeCover::Range> all;
  if (TreeOf(keyspace) == kSharedTree) {
    const auto its = of_keyspaces_.find(keyspace);
    if (its == of_keyspaces_.end()) return;
    cover = &its->second.cover;
    if (cover->newest() > at) all = its->second.ranges;
  } else if (cover->newest() > at) {
    all = RangesUpTo(ranges_, at);
  }
  if (cover->newest() <= at) return covers->push_back(cover);
  std::ranges::copy_if(all, std::back_inserter(*loose),
                       [&](const base::RangeCover::Range& range) { return range.sequence <= at; });
}

RangeDeletes::RangeDeletes(std::vector<RangeDelete> ranges, bool is_shared) {
  Add(std::move(ranges), is_shared);
}

void RangeDeletes::Add(std::vector<RangeDelete> ranges, bool is_shared) {
  if (ranges.empty()) return;
  while (!parts_.empty() && parts_.back()->ranges().size() < kPartRatio * ranges.size()) {
    const std::vector<RangeDelete>& last = parts_.back()->ranges();
    ranges.insert(ranges.end(), last.begin(), last.end());
    parts_.pop_back();
  }
  parts_.push_back(std::make_shared<const RangeDeletePart>(std::move(ranges), is_shared));
}

void RangeDeletes::Replace(size_t part, std::vector<RangeDelete> ranges, bool is_shared) {
  parts_.erase(parts_.begin() + static_cast<ptrdiff_t>(part));
  if (ranges.empty()) return;
  auto replacement = std::make_shared<const RangeDeletePart>(std::move(ranges), is_shared);
  const auto place = std::ranges::partition_point(parts_, [&](const auto& other) {
    return other->ranges().size() > replacement->ranges().size();
  });
  parts_.insert(place, std::move(replacement));
}

size_t RangeDeletes::size() const noexcept {
  size_t size = 0;
  for (const auto& part : parts_) size += part->ranges().size();
  return size;
}

base::SequenceNumber RangeDeletes::newest() const noexcept {
  base::SequenceNumber newest = 0;
  for (const auto& part : parts_) newest = std::max(newest, part->newest());
  return newest;
}

bool RangeDeletes::MayCoverBoth(std::string_view smallest, std::string_view largest,
                                base::SequenceNumber after) const noexcept {
  return std::ranges::any_of(
      parts_, [&](const auto& part) { return part->MayCoverBoth(smallest, largest, after); });
}

base::SequenceNumber RangeDeletes::SequenceAt(std::string_view key,
                                              base::SequenceNumber at) const noexcept {
  base::SequenceNumber sequence = 0;
  for (const auto& part : parts_) sequence = std::max(sequence, part->SequenceAt(key, at));
  return sequence;
}

void RangeDeletes::Collect(uint32_t keyspace, base::SequenceNumber at,
                           std::vector<const base::RangeCover*>* covers,
                           std::vector<base::RangeCover::Range>* loose) const {
  for (const auto& part : parts_) part->Collect(keyspace, at, covers, loose);
}

std::function<base::SequenceNumber(std::string_view key, base::SequenceNumber at)> CoverOf(
    const RangeDeletes& ranges) {
  if (ranges.empty()) return nullptr;
  return [&ranges](std::string_view key, base::SequenceNumber at) {
    return ranges.SequenceAt(key, at);
  };
}

LevelSearch::LevelSearch(const TableFiles& files) {
  if (files.empty()) return;
  const std::string& first = files.front()->properties().smallest_key;
  const std::string& last = files.back()->properties().largest_key;
  shared_ = first.substr(0, base::SharedBytes(first, last));
  smallest_.reserve(files.size());
  largest_.reserve(files.size());
  for (const std::shared_ptr<TableFile>& file : files) {
    smallest_.push_back(base::KeyPrefix(file->properties().smallest_key, shared_.size()));
    largest_.push_back(base::KeyPrefix(file->properties().largest_key, shared_.size()));
  }
}

bool LevelSearch::Shares(std::string_view key) const noexcept {
  return base::SameBytes(key.substr(0, shared_.size()), shared_);
}

/// `prefix`: of a key that shares.
size_t LevelSearch::FirstNotBelow(const TableFiles& files, std::string_view key,
                                  uint64_t prefix) const noexcept {
  const size_t at = base::FirstNotBelow(largest_.data(), largest_.size(), prefix);
  if (at == files.size() || largest_[at] != prefix) return at;
  // Whole keys decide among the tables whose largest keys have these 8 bytes, and the one behind.
  const auto equal = std::ranges::upper_bound(largest_.begin() + static_cast<ptrdiff_t>(at),
                                              largest_.end(), prefix);
  const auto found = std::lower_bound(
      files.begin() + static_cast<ptrdiff_t>(at), files.begin() + (equal - largest_.begin()), key,
      [](const auto& file, std::string_view k) { return file->properties().largest_key < k; });
  return static_cast<size_t>(found - files.begin());
}

size_t LevelSearch::FirstNotBelow(const TableFiles& files, std::string_view key) const noexcept {
  if (Shares(key)) return FirstNotBelow(files, key, base::KeyPrefix(key, shared_.size()));
  return key < shared_ ? 0 : files.size();
}

const TableFile* LevelSearch::Find(const TableFiles& files, std::string_view key) const noexcept {
  if (files.empty() || !Shares(key)) return nullptr;
  const uint64_t prefix = base::KeyPrefix(key, shared_.size());
  const size_t at = FirstNotBelow(files, key, prefix);
  if (at == files.size() || smallest_[at] > prefix) return nullptr;
  const bool is_within = smallest_[at] < prefix || files[at]->properties().smallest_key <= key;
  return is_within ? files[at].get() : nullptr;
}

void Tree::IndexLevels() {
  for (size_t level = 1; level < kLevels; ++level) searches_[level] = LevelSearch(levels[level]);
}

const TableFile* Tree::Find(size_t level, std::string_view key) const noexcept {
  BASALT_CHECK(searches_[level].size() == levels[level].size());
  return searches_[level].Find(levels[level], key);
}

TableFiles Tree::Overlapping(size_t level, std::optional<std::string_view> smallest,
                             std::optional<std::string_view> largest) const {
  TableFiles overlapping;
  for (const std::shared_ptr<TableFile>& file : levels[level]) {
    const table::TableProperties& properties = file->properties();
    if (smallest && properties.largest_key < *smallest) continue;
    if (largest && properties.smallest_key > *largest) continue;
    overlapping.push_back(file);
  }
  return overlapping;
}

Status Tree::CheckOrder() const {
  for (size_t level = 1; level < kLevels; ++level) {
    for (size_t i = 1; i < levels[level].size(); ++i) {
      const TableFile& left = *levels[level][i - 1];
      const TableFile& right = *levels[level][i];
      if (left.properties().largest_key >= right.properties().smallest_key) {
        return Status(StatusCode::kCorruption, "the key ranges of " + left.path() + " and " +
                                                   right.path() + " overlap in level " +
                                                   std::to_string(level));
      }
    }
  }
  return CheckLevel0();
}

// A flush may make several tables, with keys apart and sequence numbers of one range.
Status Tree::CheckLevel0() const {
  for (size_t i = 1; i < levels[0].size(); ++i) {
    const table::TableProperties& older = levels[0][i]->properties();
    for (size_t j = i; j-- > 0;) {
      const table::TableProperties& newer = levels[0][j]->properties();
      if (older.largest_sequence < newer.smallest_sequence) break;
      const bool keys_are_apart =
          older.largest_key < newer.smallest_key || newer.largest_key < older.smallest_key;
      if (keys_are_apart) continue;
      return Status(StatusCode::kCorruption, "the sequence ranges of " + levels[0][j]->path() +
                                                 " and " + levels[0][i]->path() +
                                                 " overlap in level 0");
    }
  }
  return {};
}

bool Tree::empty() const noexcept {
  return range_deletes.empty() &&
         std::ranges::all_of(levels, [](const TableFiles& files) { return files.empty(); });
}

const Tree* Version::tree(uint32_t keyspace) const noexcept {
  for (const auto& tree : trees_) {
    if (tree->keyspace == TreeOf(keyspace)) return tree.get();
  }
  return nullptr;
}

Status Version::CheckOrder() const {
  for (const auto& tree : trees_) BASALT_RETURN_IF_ERROR(tree->CheckOrder());
  return {};
}

TableFiles Version::MissingFrom(const std::vector<std::string>& names) const {
  TableFiles missing;
  for (const auto& tree : trees_) {
    for (const TableFiles& level : tree->levels) {
      std::ranges::copy_if(level, std::back_inserter(missing), [&](const auto& file) {
        return !std::ranges::binary_search(names, TableFileName(file->number()));
      });
    }
  }
  return missing;
}

}  // namespace basalt::db
