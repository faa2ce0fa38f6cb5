#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "basalt/cache.h"
#include "base/check.h"
#include "cache/core.h"

namespace basalt::cache {
namespace {

/// Moves the object into an entry for it.
Result<NewEntry> EntryOf(CacheCore* core, std::string_view key, const auto& source,
                         const CachePutOptions& options, bool beyond_budget) {
  Result<NewEntry> entry =
      core->Allocate(key, kWeightBytes + source.bytes, options.ttl, source.weight, beyond_budget);
  if (entry) {
    source.move((*entry)->value() + kWeightBytes, source.object);
    entry->SetConstructed();
  }
  return entry;
}

}  // namespace

ObjectPin::ObjectPin(Shard* shard, Entry* entry) noexcept
    : shard_(shard), entry_(entry), object_(entry->value() + kWeightBytes) {}

ObjectPin::~ObjectPin() {
  if (entry_ != nullptr) shard_->Unpin(entry_);
}

ObjectCache::ObjectCache(std::shared_ptr<CacheCore> core) noexcept : core_(std::move(core)) {}
ObjectCache::~ObjectCache() { core_->Close(); }

Result<std::shared_ptr<CacheCore>> ObjectCache::CreateCore(CacheOptions options,
                                                           void (*destroy)(void*) noexcept) {
  return CacheCore::Create(std::move(options), destroy);
}

Result<bool> ObjectCache::Put(std::string_view key, const Source& source,
                              const CachePutOptions& options, When when) {
  Result<NewEntry> entry = EntryOf(core_.get(), key, source, options, false);
  if (!entry) {
    if (entry.error().code() == StatusCode::kResourceExhausted) {
      if (when == When::kIfAbsent && core_->Find(key, false)) return false;
      core_->Refuse(key);
    }
    return entry.error();
  }
  return core_->Link(std::move(*entry), when == When::kAlways     ? Condition::kAlways
                                        : when == When::kIfAbsent ? Condition::kIfAbsent
                                                                  : Condition::kIfPresent);
}

Status ObjectCache::Update(
    std::string_view key,
    const std::function<Result<std::optional<Source>>(const void* present)>& update) {
  const auto update_entry = [&](const Entry* present) -> Result<std::optional<NewEntry>> {
    BASALT_ASSIGN_OR_RETURN(const std::optional<Source> source,
                            update(present == nullptr ? nullptr : present->value() + kWeightBytes));
    if (!source) return std::optional<NewEntry>();
    BASALT_ASSIGN_OR_RETURN(NewEntry entry, EntryOf(core_.get(), key, *source, {}, false));
    return std::optional(std::move(entry));
  };
  return core_->UpdateEntry(key, std::cref(update_entry));
}

ObjectPin ObjectCache::Get(std::string_view key, bool counts) const {
  EntryRef ref = core_->Find(key, counts);
  return ref ? ObjectPin(ref.shard(), ref.Release()) : ObjectPin();
}

ObjectPin ObjectCache::Take(std::string_view key) {
  EntryRef ref = core_->TakeObject(key);
  return ref ? ObjectPin(ref.shard(), ref.Release()) : ObjectPin();
}

bool ObjectCache::Delete(std::string_view key) { return core_->Delete(key); }

bool ObjectCache::Touch(std::string_view key, std::chrono::milliseconds ttl) {
  return core_->Touch(key, ttl);
}

Result<ObjectPin> ObjectCache::GetOrCompute(std::string_view key,
                                            const std::function<Result<Source>()>& compute,
                                            const CachePutOptions& options) {
  const auto compute_entry = [&]() -> Result<NewEntry> {
    BASALT_ASSIGN_OR_RETURN(const Source source, compute());
    Result<NewEntry> entry = EntryOf(core_.get(), key, source, options, false);
    if (entry || entry.error().code() != StatusCode::kResourceExhausted) return entry;
    return EntryOf(core_.get(), key, source, options, true);
  };
  BASALT_ASSIGN_OR_RETURN(EntryRef ref,
                          core_->GetOrCompute(key, options.ttl, std::cref(compute_entry)));
  return ObjectPin(ref.shard(), ref.Release());
}

Status ObjectCache::ForEach(
    const std::function<bool(std::string_view key, const void* object)>& visit) {
  return core_->ForEach(
      [&](const Entry& entry) { return visit(entry.key(), entry.value() + kWeightBytes); });
}

void ObjectCache::Clear() { core_->Clear(); }
Status ObjectCache::SetCapacity(uint64_t capacity_bytes) {
  return core_->SetCapacity(capacity_bytes);
}
CacheStats ObjectCache::GetStats() const { return core_->GetStats(); }

}  // namespace basalt::cache
