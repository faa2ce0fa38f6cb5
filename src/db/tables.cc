#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/out_of_memory.h"
#include "base/random.h"
#include "db/edit.h"
#include "db/file_names.h"
#include "db/key_bounds.h"
#include "db/tree_key.h"
#include "table/table_builder.h"

// Writing tables, which flushes and compactions have in common.

namespace basalt::db {
namespace {

constexpr uint64_t kRecordsBetweenPauses = 1024;
/// A table of less than this part of a whole one is shared with the next keyspace.
constexpr uint64_t kSharedShare = 4;

}  // namespace

void Core::RetainForReaders(base::SurvivingRecords::Rules* rules) const {
  rules->boundaries.clear();
  if (queue_ == nullptr) {  // recovery: nobody reads yet
    rules->boundaries.push_back(base::kMaxSequence);
    rules->now_ms = WallMillis();
    return;
  }
  const std::scoped_lock lock(mutex_);
  last_boundary_ = visible();
  rules->boundaries = BoundariesLocked();
  rules->now_ms = ExpiredForAllMs();
}

std::vector<base::SequenceNumber> Core::BoundariesLocked() const {
  std::vector<base::SequenceNumber> boundaries;
  for (const auto& [sequence, time_ms] : snapshots_) boundaries.push_back(sequence);
  boundaries.push_back(visible());
  boundaries.erase(std::unique(boundaries.begin(), boundaries.end()), boundaries.end());
  return boundaries;
}

uint64_t Core::ExpiredForAllMs() const noexcept {
  return snapshots_.empty() ? WallMillis() : std::min(snapshots_.begin()->second, WallMillis());
}

void Core::NewTables::CountGarbage(const base::SurvivingRecords& record) {
  const uint64_t bytes = record.key().size() + record.value().size();
  if (base::TagKind(record.tag()) == RecordKind::kPut && record.time_ms() > now_ms) {
    expiry.Add(record.time_ms(), bytes);
  }
  if (record.hidden_from() != 0) {
    retained.Add(record.oldest_reader(), record.hidden_from(), bytes);
  }
}

TableFile::Place Core::NewTables::PlaceAt(uint64_t created_ms) const {
  const table::TableProperties& written = builder->properties();
  return {.number = number,
          .ranges_applied = ranges_applied,
          .created_ms = created_ms,
          .half_expired_ms = expiry.HalfExpiredMs(written.raw_key_bytes + written.raw_value_bytes),
          .retained_bytes = retained.bytes()};
}

Status Core::Pause(uint64_t records, const NewTables& outputs) {
  if (outputs.merge == nullptr) {
    flush_pace_.Advance(outputs.flushed_before + records, outputs.flushed_in_all);
    return {};
  }
  if (Ending()) return Status(StatusCode::kCancelled, "the database is being closed");
  FlushSealed();
  return {};
}

Status Core::WriteTables(base::RecordIterator* source, base::SurvivingRecords::Rules rules,
                         NewTables* outputs) {
  const auto write = [&]() -> Status {
    outputs->now_ms = rules.now_ms;
    base::SurvivingRecords records(source, std::move(rules));
    std::string last_key;
    uint64_t next_pause = kRecordsBetweenPauses;
    while (records.Next()) {
      if (records.seen() >= next_pause) {
        next_pause = records.seen() + kRecordsBetweenPauses;
        BASALT_RETURN_IF_ERROR(Pause(records.seen(), *outputs));
      }
      const bool is_shared = outputs->tree == kSharedTree;
      if (is_shared) {
        BASALT_RETURN_IF_ERROR(EnterKeyspace(records.key(), outputs));
        if (!outputs->keyspace_is_there) continue;
      }
      // A table below level 0 ends where the key changes, so that one key's versions stay together.
      if (outputs->merge != nullptr && records.key() != last_key) {
        BASALT_RETURN_IF_ERROR(EndTable(records.key(), outputs));
      }
      if (outputs->builder == nullptr) BASALT_RETURN_IF_ERROR(StartTable(outputs));
      const bool is_own = is_shared && outputs->table_keyspace != kSharedTree;
      const std::string_view key = records.key().substr(is_own ? kKeyspaceBytes : 0);
      BASALT_RETURN_IF_ERROR(
          outputs->builder->Add(key, records.tag(), records.time_ms(), records.value()));
      outputs->CountGarbage(records);
      if (outputs->merge != nullptr) last_key.assign(records.key());
    }
    BASALT_RETURN_IF_ERROR(source->status());
    outputs->flushed_before += records.seen();
    return outputs->builder == nullptr ? Status() : FinishTable(std::nullopt, outputs);
  };
  Status written = base::OrOutOfMemory(write, "out of memory while writing a table");
  if (!written.ok()) DropTables(outputs);
  return written;
}

// What a dropped keyspace has left goes here. Where a table is not small it ends with its keyspace,
// so that it goes as a whole when that is dropped.
Status Core::EnterKeyspace(std::string_view key, NewTables* outputs) {
  const uint32_t keyspace = KeyspaceOf(key);
  const bool is_open = outputs->builder != nullptr;
  bool ends = false;
  if (keyspace != outputs->keyspace) {
    outputs->keyspace = keyspace;
    outputs->keyspace_is_there = State()->keyspaces->Contains(keyspace);
    ends = is_open && (outputs->table_keyspace != kSharedTree ||
                       (outputs->merge != nullptr &&
                        outputs->builder->file_bytes() >= table_bytes_ / kSharedShare));
  }
  const bool is_too_long = key.size() > kMaxKeyBytes;
  ends = ends || (is_open && is_too_long && outputs->table_keyspace == kSharedTree);
  if (ends) BASALT_RETURN_IF_ERROR(FinishTable(key, outputs));
  if (outputs->builder == nullptr) outputs->table_keyspace = is_too_long ? keyspace : kSharedTree;
  return {};
}

// Partial outputs go at once: on a full disk they are what keeps it full.
void Core::DropTables(NewTables* outputs) const {
  for (const std::shared_ptr<TableFile>& file : outputs->files) file->MarkObsolete();
  outputs->files.clear();
  if (outputs->file == nullptr) return;
  outputs->builder.reset();
  outputs->file.reset();
  static_cast<void>(
      base::OrOutOfMemory([&] { return environment_.fs->RemoveFile(outputs->path); }));
}

size_t Core::BlockBytes() const {
  const std::shared_ptr<const ReadState> state = State();
  uint64_t raw_bytes = 0;
  for (const auto& tree : state->version->trees()) {
    for (const TableFiles& level : tree->levels) {
      for (const std::shared_ptr<TableFile>& file : level) {
        raw_bytes += file->properties().raw_key_bytes + file->properties().raw_value_bytes;
      }
    }
  }
  return raw_bytes <= memory_budget_ ? table::kBlockBytes : table::kBlockBytesBeyondMemory;
}

Status Core::StartTable(NewTables* outputs) {
  {
    const std::scoped_lock lock(mutex_);
    outputs->number = next_table_number_++;
  }
  outputs->path = io::JoinPath(path_, TableFileName(outputs->number));
  BASALT_ASSIGN_OR_RETURN(outputs->file,
                          environment_.fs->Open(outputs->path, io::OpenMode::kCreate));
  outputs->builder = std::make_unique<table::TableBuilder>(
      outputs->file.get(), table::TableBuilderOptions{.file_id = base::RandomSeed(),
                                                      .keyspace = outputs->table_keyspace,
                                                      .compression = options_.compression,
                                                      .at_last_level = outputs->at_last_level,
                                                      .block_bytes = BlockBytes()});
  return {};
}

// The keys of what is written into a level lie in the range of the job's inputs, and so do the
// bounds: nothing else in the level overlaps that.
void Core::SetBounds(std::optional<std::string_view> next_key, NewTables* outputs,
                     table::TableProperties* properties) {
  const size_t kept = outputs->tree == kSharedTree ? kKeyspaceBytes : 0;
  const bool is_own = kept != 0 && outputs->table_keyspace != kSharedTree;
  const uint32_t keyspace = is_own ? outputs->table_keyspace : 0;
  const std::string first = TreeKey(keyspace, properties->smallest_key);
  const std::string last = TreeKey(keyspace, properties->largest_key);
  std::optional<std::string_view> before;
  if (!outputs->files.empty() || !outputs->last_bound.empty()) before = outputs->last_bound;
  std::string lower = LowerBoundOf(first, before);
  std::string upper = UpperBoundOf(last, next_key, kept);
  if (outputs->merge != nullptr) {
    lower = std::max(lower, outputs->merge->smallest_key);
    upper = std::min(upper, outputs->merge->largest_key);
  }
  properties->smallest_key = lower.substr(is_own ? kKeyspaceBytes : 0);
  properties->largest_key = upper.substr(is_own ? kKeyspaceBytes : 0);
  outputs->last_bound = std::move(upper);
}

Status Core::FinishTable(std::optional<std::string_view> next_key, NewTables* outputs) {
  BASALT_RETURN_IF_ERROR(outputs->builder->Finish());
  table::TableProperties properties = outputs->builder->properties();
  SetBounds(next_key, outputs, &properties);
  outputs->files.reserve(outputs->files.size() + 1);  // or nobody would remove its file
  const TableFile::Place place = outputs->PlaceAt(WallMillis());
  auto finished =
      std::make_shared<TableFile>(environment_.fs, outputs->path, place, std::move(properties),
                                  TableResources(), std::exchange(outputs->retained, {}));
  outputs->expiry = {};
  outputs->builder.reset();
  outputs->file.reset();
  outputs->bytes += finished->properties().file_bytes;
  outputs->files.push_back(finished);
  // Nothing is installed that cannot be opened.
  return finished->Open().status();
}

}  // namespace basalt::db
