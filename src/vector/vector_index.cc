#include "basalt/vector_index.h"

#include <chrono>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/out_of_memory.h"
#include "vector/attribute_code.h"
#include "vector/index_core.h"

namespace basalt {
namespace {

/// Vectors do not expire, also where the keyspace's default says otherwise, unless asked.
WriteOptions OptionsIn(KeyspaceId keyspace, WriteOptions options = {}) {
  options.keyspace = keyspace;
  if (!options.ttl && !options.expiry) options.ttl = std::chrono::milliseconds(0);
  return options;
}

Result<VectorItem> ItemOf(const vector::IndexMetadata& metadata, std::string_view id,
                          std::string_view bytes) {
  BASALT_ASSIGN_OR_RETURN(const vector::VectorRecordView record,
                          vector::DecodeVectorRecord(metadata, bytes));
  VectorItem item;
  item.id = id;
  item.vector.resize(metadata.dimension);
  std::memcpy(item.vector.data(), record.vector.data(), record.vector.size());
  BASALT_ASSIGN_OR_RETURN(item.attributes, vector::DecodeAttributes(record.attributes));
  return item;
}

Result<std::optional<VectorItem>> ItemOf(const vector::IndexMetadata& metadata, std::string_view id,
                                         const MaybeValue& value) {
  if (!value) return std::nullopt;
  return ItemOf(metadata, id, value->view());
}

/// Replaces the attributes of a record.
UpdateFunction AttributesUpdate(const vector::IndexMetadata& metadata, std::string_view id,
                                const Attributes& attributes) {
  return [&metadata, id, &attributes](EntryUpdate& entry) -> Status {
    if (!entry.exists()) {
      return Status(StatusCode::kNotFound,
                    "there is no vector '" + std::string(id) + "' whose attributes to replace");
    }
    BASALT_ASSIGN_OR_RETURN(const vector::VectorRecordView record,
                            vector::DecodeVectorRecord(metadata, entry.value()));
    std::vector<float> elements(metadata.dimension);
    std::memcpy(elements.data(), record.vector.data(), record.vector.size());
    BASALT_ASSIGN_OR_RETURN(std::string changed,
                            vector::EncodeVectorRecord(metadata, elements, attributes));
    entry.Set(std::move(changed));
    return Status();
  };
}

Result<std::unique_ptr<VectorIndex>> IndexOf(Result<std::unique_ptr<vector::IndexCore>> core) {
  if (!core) return core.error();
  return vector::IndexAccess::Make(*std::move(core));
}

}  // namespace

std::string_view VectorSearchPathName(VectorSearchPlan::Path path) noexcept {
  switch (path) {
    case VectorSearchPlan::Path::kScan:
      return "scan";
    case VectorSearchPlan::Path::kWalk:
      return "walk";
    case VectorSearchPlan::Path::kScanCodes:
      return "scan of codes";
    case VectorSearchPlan::Path::kWalkThenScan:
      return "walk, then scan of codes";
    case VectorSearchPlan::Path::kLookUp:
      return "lookup of ids";
    case VectorSearchPlan::Path::kScanStore:
      break;
  }
  return "scan of the store";
}

VectorIndex::VectorIndex(std::unique_ptr<vector::IndexCore> core) noexcept
    : core_(std::move(core)) {}

VectorIndex::~VectorIndex() = default;

Result<std::unique_ptr<VectorIndex>> VectorIndex::Create(Store* store, std::string_view name,
                                                         const VectorIndexOptions& options) {
  return base::OrOutOfMemory(
      [&] { return IndexOf(vector::IndexCore::Create(store, name, options)); });
}

Result<std::unique_ptr<VectorIndex>> VectorIndex::Open(Store* store, std::string_view name,
                                                       const VectorIndexOptions& options) {
  return base::OrOutOfMemory(
      [&] { return IndexOf(vector::IndexCore::Open(store, name, options)); });
}

Result<std::unique_ptr<VectorIndex>> VectorIndex::OpenOrCreate(Store* store, std::string_view name,
                                                               const VectorIndexOptions& options) {
  auto opened = Open(store, name, options);
  if (opened || opened.code() != StatusCode::kNotFound) return opened;
  auto made = Create(store, name, options);
  // Somebody else has made it meanwhile.
  if (!made && made.code() == StatusCode::kAlreadyExists) return Open(store, name, options);
  return made;
}

VectorMetric VectorIndex::metric() const noexcept { return core_->metadata().metric; }
VectorElement VectorIndex::element() const noexcept { return core_->metadata().element; }
size_t VectorIndex::dimension() const noexcept { return core_->metadata().dimension; }
const std::string& VectorIndex::model() const noexcept { return core_->metadata().model; }
KeyspaceId VectorIndex::keyspace() const noexcept { return core_->keyspace(); }

Result<Commit> VectorIndex::Add(std::string_view id, std::span<const float> vector,
                                const Attributes& attributes, const WriteOptions& options) {
  return base::OrOutOfMemory([&]() -> Result<Commit> {
    BASALT_ASSIGN_OR_RETURN(const std::string key, vector::VectorKey(id));
    BASALT_ASSIGN_OR_RETURN(const std::string record,
                            vector::EncodeVectorRecord(core_->metadata(), vector, attributes));
    auto committed = core_->store().Put(key, record, OptionsIn(keyspace(), options));
    if (committed) core_->Upkeep(1);
    return committed;
  });
}

Status VectorIndex::Add(Transaction& tx, std::string_view id, std::span<const float> vector,
                        const Attributes& attributes) {
  return base::OrOutOfMemory([&]() -> Status {
    BASALT_ASSIGN_OR_RETURN(const std::string key, vector::VectorKey(id));
    BASALT_ASSIGN_OR_RETURN(const std::string record,
                            vector::EncodeVectorRecord(core_->metadata(), vector, attributes));
    return tx.Put(key, record, OptionsIn(keyspace()));
  });
}

Result<Commit> VectorIndex::AddBatch(std::span<const VectorItem> items,
                                     const WriteOptions& options) {
  return base::OrOutOfMemory([&]() -> Result<Commit> {
    const WriteOptions of_records = OptionsIn(keyspace(), options);
    WriteBatch batch;
    for (const VectorItem& item : items) {
      BASALT_ASSIGN_OR_RETURN(const std::string key, vector::VectorKey(item.id));
      const auto record =
          vector::EncodeVectorRecord(core_->metadata(), item.vector, item.attributes);
      if (!record) {
        return Status(record.code(), "vector '" + item.id + "' of the batch: " +
                                         std::string(record.error().message()));
      }
      batch.Put(key, *record,
                {.keyspace = keyspace(), .ttl = of_records.ttl, .expiry = of_records.expiry});
    }
    WriteOptions of_batch = options;
    of_batch.keyspace = KeyspaceId::kDefault;
    of_batch.ttl.reset();
    of_batch.expiry.reset();
    auto committed = core_->store().Write(batch, of_batch);
    if (committed) core_->Upkeep(items.size());
    return committed;
  });
}

Result<Commit> VectorIndex::Update(std::string_view id, const Attributes& attributes,
                                   const WriteOptions& options) {
  return base::OrOutOfMemory([&]() -> Result<Commit> {
    BASALT_ASSIGN_OR_RETURN(const std::string key, vector::VectorKey(id));
    WriteOptions of_record = options;
    of_record.keyspace = keyspace();
    auto committed =
        core_->store().Update(key, AttributesUpdate(core_->metadata(), id, attributes), of_record);
    if (committed) core_->Upkeep(1);
    return committed;
  });
}

Status VectorIndex::Update(Transaction& tx, std::string_view id, const Attributes& attributes) {
  return base::OrOutOfMemory([&]() -> Status {
    BASALT_ASSIGN_OR_RETURN(const std::string key, vector::VectorKey(id));
    WriteOptions options;
    options.keyspace = keyspace();
    return tx.Update(key, AttributesUpdate(core_->metadata(), id, attributes), options);
  });
}

Result<Commit> VectorIndex::Remove(std::string_view id, const WriteOptions& options) {
  return base::OrOutOfMemory([&]() -> Result<Commit> {
    BASALT_ASSIGN_OR_RETURN(const std::string key, vector::VectorKey(id));
    WriteOptions of_record = options;
    of_record.keyspace = keyspace();
    auto committed = core_->store().Delete(key, of_record);
    if (committed) core_->Upkeep(1);
    return committed;
  });
}

Status VectorIndex::Remove(Transaction& tx, std::string_view id) {
  return base::OrOutOfMemory([&]() -> Status {
    BASALT_ASSIGN_OR_RETURN(const std::string key, vector::VectorKey(id));
    WriteOptions options;
    options.keyspace = keyspace();
    return tx.Delete(key, options);
  });
}

Result<std::optional<VectorItem>> VectorIndex::Get(std::string_view id) const {
  return base::OrOutOfMemory([&]() -> Result<std::optional<VectorItem>> {
    BASALT_ASSIGN_OR_RETURN(const std::string key, vector::VectorKey(id));
    BASALT_ASSIGN_OR_RETURN(const MaybeValue value,
                            core_->store().Get(key, {.keyspace = keyspace()}));
    return ItemOf(core_->metadata(), id, value);
  });
}

Result<std::optional<VectorItem>> VectorIndex::Get(Transaction& tx, std::string_view id) const {
  return base::OrOutOfMemory([&]() -> Result<std::optional<VectorItem>> {
    BASALT_ASSIGN_OR_RETURN(const std::string key, vector::VectorKey(id));
    BASALT_ASSIGN_OR_RETURN(const MaybeValue value, tx.Get(key, {.keyspace = keyspace()}));
    return ItemOf(core_->metadata(), id, value);
  });
}

Result<std::vector<std::optional<VectorItem>>> VectorIndex::MultiGet(
    std::span<const std::string_view> ids) const {
  using Items = std::vector<std::optional<VectorItem>>;
  return base::OrOutOfMemory([&]() -> Result<Items> {
    std::vector<std::string> keys;
    for (const std::string_view id : ids) {
      BASALT_ASSIGN_OR_RETURN(std::string key, vector::VectorKey(id));
      keys.push_back(std::move(key));
    }
    const std::vector<std::string_view> views(keys.begin(), keys.end());
    std::vector<Result<MaybeValue>> values(keys.size());
    BASALT_RETURN_IF_ERROR(core_->store().MultiGet(views, values, {.keyspace = keyspace()}));
    Items items;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (!values[i]) return values[i].error();
      BASALT_ASSIGN_OR_RETURN(std::optional<VectorItem> item,
                              ItemOf(core_->metadata(), ids[i], *values[i]));
      items.push_back(std::move(item));
    }
    return items;
  });
}

Result<VectorSearchResult> VectorIndex::Search(std::span<const float> query,
                                               const VectorSearchOptions& options) const {
  return core_->Search(query, options);
}

Status VectorIndex::ForEach(const std::function<Status(const VectorItem& item)>& visit) const {
  return ForEach({}, visit);
}

Status VectorIndex::ForEach(std::string_view from,
                            const std::function<Status(const VectorItem& item)>& visit) const {
  return base::OrOutOfMemory([&]() -> Status {
    BASALT_ASSIGN_OR_RETURN(const std::string first, vector::VectorKey(from));
    const auto it = core_->store().NewIterator(
        {.keyspace = keyspace(), .fill_cache = false, .prefix = vector::kVectorPrefix});
    for (it->Seek(first); it->Valid(); it->Next()) {
      BASALT_ASSIGN_OR_RETURN(
          const VectorItem item,
          ItemOf(core_->metadata(), it->key().substr(vector::kVectorPrefix.size()), it->value()));
      BASALT_RETURN_IF_ERROR(visit(item));
    }
    return it->status();
  });
}

Result<uint64_t> VectorIndex::Count() const {
  return base::OrOutOfMemory([&] { return core_->Count(); });
}

VectorIndexStats VectorIndex::Stats() const {
  const std::shared_ptr<vector::RowSet> rows = core_->rows();
  const vector::RowSet::Figures figures = rows->GetFigures();
  return {.vectors = figures.rows,
          .linked = figures.linked,
          .removed = figures.removed,
          .unreadable = core_->unreadable(),
          .memory_bytes = figures.bytes,
          .from_checkpoint = core_->is_from_checkpoint()};
}

Status VectorIndex::Compact() { return core_->Compact(); }
Status VectorIndex::SaveCheckpoint() { return core_->SaveCheckpoint(); }

}  // namespace basalt
