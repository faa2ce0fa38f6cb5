#include "vector/index_core.h"

#include <chrono>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/out_of_memory.h"
#include "base/random.h"
#include "vector/graph_checkpoint.h"
#include "vector/row_search.h"

namespace basalt::vector {
namespace {

// Rows that are linked for each that is written.
constexpr size_t kLinkedForWritten = 4;
// Records between two reports of progress.
constexpr uint64_t kProgressRecords = 4'096;

std::string_view NameOf(VectorMetric metric) noexcept {
  switch (metric) {
    case VectorMetric::kL2:
      return "L2";
    case VectorMetric::kInnerProduct:
      return "inner product";
    case VectorMetric::kCosine:
      return "cosine";
    case VectorMetric::kHamming:
      break;
  }
  return "Hamming";
}

Status Refuse(std::string_view name, const std::string& what) {
  return Status(StatusCode::kInvalidArgument, "vector index '" + std::string(name) + "': " + what);
}

Status CheckStore(const Store& store) {
  const Capabilities has = store.capabilities();
  const char* const missing = !has.keyspaces      ? "keyspaces"
                              : !has.snapshots    ? "snapshots"
                              : !has.transactions ? "transactions"
                              : !has.changes      ? "changes that can be followed"
                                                  : nullptr;
  if (missing == nullptr) return Status();
  return Status(StatusCode::kUnsupported, std::string("a vector index needs a store with ") +
                                              missing + ", which this one does not have: use a DB");
}

Status CheckStored(std::string_view name, const IndexMetadata& metadata,
                   const VectorIndexOptions& options) {
  if (options.dimension != 0 && options.dimension != metadata.dimension) {
    return Refuse(name, "it is of dimension " + std::to_string(metadata.dimension) +
                            ", and dimension " + std::to_string(options.dimension) +
                            " was asked for");
  }
  if (options.metric && *options.metric != metadata.metric) {
    return Refuse(name, "its metric is " + std::string(NameOf(metadata.metric)) + ", and " +
                            std::string(NameOf(*options.metric)) + " was asked for");
  }
  if (options.element && *options.element != metadata.element) {
    return Refuse(name, "its elements are float32, and another type was asked for");
  }
  if (!options.model.empty() && options.model != metadata.model) {
    return Refuse(name, "its vectors are of model '" + metadata.model + "', and '" + options.model +
                            "' was asked for: vectors of two models cannot be compared");
  }
  return Status();
}

}  // namespace

Result<std::unique_ptr<IndexCore>> IndexCore::Create(Store* store, std::string_view name,
                                                     const VectorIndexOptions& options,
                                                     const RowSet::Options& row_options) {
  BASALT_RETURN_IF_ERROR(CheckStore(*store));
  IndexMetadata metadata{.metric = options.metric.value_or(VectorMetric::kCosine),
                         .element = options.element.value_or(VectorElement::kFloat32),
                         .dimension = 0,
                         .seed = base::RandomSeed(),
                         .model = options.model};
  if (metadata.element != VectorElement::kFloat32 || metadata.metric == VectorMetric::kHamming) {
    return Refuse(name,
                  "only float32 elements and the metrics L2, inner product and cosine can be "
                  "stored");
  }
  auto distance = VectorDistance::Create(metadata.metric, metadata.element, options.dimension);
  if (!distance) return distance.error();
  metadata.dimension = static_cast<uint32_t>(options.dimension);
  BASALT_ASSIGN_OR_RETURN(const KeyspaceId keyspace, store->CreateKeyspace(name));
  WriteOptions write_options;
  write_options.keyspace = keyspace;
  write_options.ttl = std::chrono::milliseconds(0);
  auto core =
      std::make_unique<IndexCore>(store, keyspace, std::move(metadata), *distance, row_options);
  Status status = store->Put(kMetadataKey, EncodeMetadata(core->metadata_), write_options);
  if (status.ok()) status = core->Start(options.on_progress);
  if (!status.ok()) {
    core.reset();
    (void)store->DropKeyspace(keyspace);
    return status;
  }
  return core;
}

Result<std::unique_ptr<IndexCore>> IndexCore::Open(Store* store, std::string_view name,
                                                   const VectorIndexOptions& options,
                                                   const RowSet::Options& row_options) {
  BASALT_RETURN_IF_ERROR(CheckStore(*store));
  BASALT_ASSIGN_OR_RETURN(const KeyspaceId keyspace, store->OpenKeyspace(name));
  BASALT_ASSIGN_OR_RETURN(const MaybeValue bytes, store->Get(kMetadataKey, {.keyspace = keyspace}));
  if (!bytes) {
    return Status(StatusCode::kCorruption,
                  "keyspace '" + std::string(name) +
                      "' has no metadata record of a vector index: it holds other data, or the "
                      "creation of the index was interrupted. Drop it, or use another name");
  }
  BASALT_ASSIGN_OR_RETURN(IndexMetadata metadata, DecodeMetadata(bytes->view()));
  BASALT_RETURN_IF_ERROR(CheckStored(name, metadata, options));
  auto distance = VectorDistance::Create(metadata.metric, metadata.element, metadata.dimension);
  if (!distance) return distance.error();
  auto core =
      std::make_unique<IndexCore>(store, keyspace, std::move(metadata), *distance, row_options);
  BASALT_RETURN_IF_ERROR(core->Start(options.on_progress));
  return core;
}

Status IndexCore::Start(const ProgressFunction& progress) {
  auto subscription = store_.AddListener([this](const CommittedBatch& batch) { OnCommit(batch); });
  // A store that was opened to be read has no commits to follow.
  if (!subscription && subscription.error().sub_code() != SubCode::kReadOnly) {
    return subscription.error();
  }
  if (subscription) subscription_ = *std::move(subscription);
  return Load(progress);
}

Status IndexCore::Load(const ProgressFunction& progress) {
  const std::lock_guard loading(load_mutex_);
  {
    const std::lock_guard lock(follow_mutex_);
    if (rows_ != nullptr && !rows_->is_broken()) return Status();
    is_holding_ = true;
    has_lost_held_ = false;
  }
  Status status = base::OrOutOfMemory([&] { return LoadHolding(progress); });
  const std::lock_guard lock(follow_mutex_);
  is_holding_ = false;
  held_.clear();
  return status;
}

Status IndexCore::LoadHolding(const ProgressFunction& progress) {
  unreadable_.store(0, std::memory_order_relaxed);
  auto rows = std::make_shared<RowSet>(metadata_, row_options_);
  BASALT_ASSIGN_OR_RETURN(const Snapshot snapshot, store_.GetSnapshot());
  BASALT_RETURN_IF_ERROR(ReadRecords(snapshot, rows.get(), progress));

  const std::lock_guard lock(follow_mutex_);
  if (has_lost_held_) return base::OutOfMemory();
  RowSet::Update(rows.get(), snapshot.sequence()).Finish();
  for (const HeldBatch& held : held_) {
    if (held.commit.sequence <= snapshot.sequence()) continue;
    Follow(CommittedBatch(held.bytes, held.count, held.commit), rows.get());
  }
  is_holding_ = false;
  rows_ = std::move(rows);
  return Status();
}

Status IndexCore::ReadRecords(const Snapshot& snapshot, RowSet* rows,
                              const ProgressFunction& progress) {
  BASALT_ASSIGN_OR_RETURN(const std::unique_ptr<LoadedGraph> checkpoint,
                          LoadGraph(store_, keyspace_, snapshot, metadata_));
  if (checkpoint != nullptr) rows->AdoptGraph(std::move(checkpoint->graph));
  is_from_checkpoint_.store(checkpoint != nullptr, std::memory_order_relaxed);
  const auto it = store_.NewIterator(
      {.snapshot = &snapshot, .keyspace = keyspace_, .fill_cache = false, .prefix = kVectorPrefix});
  uint64_t read = 0;
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    const std::string_view id = it->key().substr(kVectorPrefix.size());
    const auto record = DecodeVectorRecord(metadata_, it->value());
    if (!record) {
      unreadable_.fetch_add(1, std::memory_order_relaxed);
      continue;
    }
    const LinkedRow* const linked =
        checkpoint == nullptr ? nullptr : checkpoint->Find(id, record->stamp);
    if (linked == nullptr || !rows->PutLinked(id, *record, it->expiry(), linked->slot)) {
      RowSet::Update update(rows, 0);
      update.Put(id, *record, it->expiry());
      update.Finish();
    }
    if (++read % kProgressRecords != 0) continue;
    BASALT_RETURN_IF_ERROR(rows->Link(kLinkedForWritten * kProgressRecords));
    if (progress != nullptr) progress(read, rows->GetFigures().linked);
  }
  BASALT_RETURN_IF_ERROR(it->status());
  if (checkpoint != nullptr) rows->RemoveUnclaimed();
  BASALT_RETURN_IF_ERROR(rows->Link(read + kBlockRows));
  if (progress != nullptr) progress(read, rows->GetFigures().linked);
  return rows->Repair(false);
}

bool IndexCore::IsAbout(const CommittedBatch& batch) const {
  bool is_about = false;
  (void)batch.ForEach([&](const WriteBatch::Record& record) {
    is_about = is_about || record.keyspace == keyspace_;
    return Status();
  });
  return is_about;
}

void IndexCore::OnCommit(const CommittedBatch& batch) noexcept {
  const std::lock_guard lock(follow_mutex_);
  try {
    if (!IsAbout(batch)) return;
    if (is_holding_) {
      held_.push_back({std::string(batch.bytes()), batch.count(), batch.commit()});
    }
    if (rows_ != nullptr && !rows_->is_broken()) Follow(batch, rows_.get());
  } catch (const std::bad_alloc&) {
    has_lost_held_ = true;
    if (rows_ != nullptr) rows_->Break();
  }
}

void IndexCore::Follow(const CommittedBatch& batch, RowSet* rows) {
  RowSet::Update update(rows, batch.commit().sequence);
  bool is_followed = true;
  (void)batch.ForEach([&](const WriteBatch::Record& record) {
    if (record.keyspace == keyspace_) FollowRecord(record, &update, &is_followed);
    return Status();
  });
  if (is_followed) update.Finish();
}

void IndexCore::FollowRecord(const WriteBatch::Record& record, RowSet::Update* update,
                             bool* is_followed) {
  const auto id_of = [](std::string_view key) { return key.substr(kVectorPrefix.size()); };
  const bool is_vector = record.key.starts_with(kVectorPrefix);
  switch (record.kind) {
    case RecordKind::kPut: {
      if (!is_vector) return;
      const auto decoded = DecodeVectorRecord(metadata_, record.value);
      if (decoded) {
        update->Put(id_of(record.key), *decoded, record.expiry);
      } else {
        unreadable_.fetch_add(1, std::memory_order_relaxed);
        update->Erase(id_of(record.key));
      }
      return;
    }
    case RecordKind::kDelete:
      if (is_vector) update->Erase(id_of(record.key));
      return;
    case RecordKind::kDeleteRange: {
      const std::string_view end = record.value;
      if (end <= kVectorPrefix || (record.key > kVectorPrefix && !is_vector)) return;
      update->EraseRange(is_vector ? id_of(record.key) : std::string_view(),
                         end.starts_with(kVectorPrefix) ? std::optional(id_of(end)) : std::nullopt);
      return;
    }
    default:
      // What a merge makes of a record the store knows alone.
      *is_followed = *is_followed && !is_vector;
      return;
  }
}

Result<VectorSearchResult> IndexCore::Search(std::span<const float> query,
                                             const VectorSearchOptions& options) const {
  BASALT_RETURN_IF_ERROR(ValidateVector(metadata_, query));
  if (options.k == 0) {
    return Status(StatusCode::kInvalidArgument,
                  "k is 0: a search returns at least one vector; Count says how many there are");
  }
  if (!(options.recall > 0 && options.recall <= 1)) {
    return Status(StatusCode::kInvalidArgument, "recall is " + std::to_string(options.recall) +
                                                    ": it is a share, above 0 and at most 1");
  }
  return base::OrOutOfMemory([&]() -> Result<VectorSearchResult> {
    const RowSearchTarget target{
        .store = store_, .keyspace = keyspace_, .metadata = metadata_, .distance = distance_};
    return RowSearch(target, rows(), query, options).Run();
  });
}

Result<uint64_t> IndexCore::Count() const {
  const std::shared_ptr<RowSet> rows = this->rows();
  BASALT_ASSIGN_OR_RETURN(const Snapshot snapshot, store_.GetSnapshot());
  if (!rows->is_broken()) return rows->Count(snapshot.time());
  uint64_t count = 0;
  const auto it = store_.NewIterator(
      {.snapshot = &snapshot, .keyspace = keyspace_, .fill_cache = false, .prefix = kVectorPrefix});
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    count += static_cast<uint64_t>(DecodeVectorRecord(metadata_, it->value()).has_value());
  }
  BASALT_RETURN_IF_ERROR(it->status());
  return count;
}

void IndexCore::Upkeep(size_t written) {
  const std::shared_ptr<RowSet> rows = this->rows();
  if (rows->is_broken()) {
    (void)Load({});
    return;
  }
  if (rows->Link(kLinkedForWritten * written).ok()) (void)rows->Repair(false);
}

Status IndexCore::Compact() {
  return base::OrOutOfMemory([&]() -> Status {
    BASALT_RETURN_IF_ERROR(Load({}));  // If they are broken.
    const std::shared_ptr<RowSet> rows = this->rows();
    BASALT_RETURN_IF_ERROR(rows->Link(std::numeric_limits<size_t>::max()));
    return rows->Repair(true);
  });
}

Status IndexCore::SaveCheckpoint() {
  const std::shared_ptr<RowSet> rows = this->rows();
  if (rows->is_broken()) return Compact();
  return SaveGraph(&store_, keyspace_, rows.get());
}

}  // namespace basalt::vector
