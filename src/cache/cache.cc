#include "basalt/cache.h"

#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "base/check.h"
#include "cache/core.h"

namespace basalt {

// ---- Handles ----

CacheReservation::CacheReservation(std::shared_ptr<cache::CacheCore> core, uint64_t bytes) noexcept
    : core_(std::move(core)), bytes_(bytes) {}
CacheReservation::CacheReservation(CacheReservation&& other) noexcept
    : core_(std::move(other.core_)), bytes_(std::exchange(other.bytes_, 0)) {}
CacheReservation& CacheReservation::operator=(CacheReservation&& other) noexcept {
  std::swap(core_, other.core_);
  std::swap(bytes_, other.bytes_);
  return *this;
}
CacheReservation::~CacheReservation() {
  if (core_ != nullptr) core_->Unreserve(bytes_);
}

CacheAllocation::CacheAllocation(cache::Shard* shard, cache::Entry* entry, uint64_t hash) noexcept
    : shard_(shard), entry_(entry), hash_(hash) {}
CacheAllocation::CacheAllocation(CacheAllocation&& other) noexcept
    : shard_(other.shard_), entry_(std::exchange(other.entry_, nullptr)), hash_(other.hash_) {}
CacheAllocation& CacheAllocation::operator=(CacheAllocation&& other) noexcept {
  std::swap(shard_, other.shard_);
  std::swap(entry_, other.entry_);
  std::swap(hash_, other.hash_);
  return *this;
}
CacheAllocation::~CacheAllocation() {
  if (entry_ == nullptr || shard_->common().IsInherited()) return;
  const cache::NewEntry drop(shard_, entry_, hash_);
}

std::span<char> CacheAllocation::bytes() & noexcept {
  return {entry_->value(), entry_->value_bytes};
}

Value CacheAllocation::Publish() && {
  cache::NewEntry entry(shard_, std::exchange(entry_, nullptr), hash_);
  cache::CacheCore* const core = shard_->common().core;
  return core->LinkPinned(std::move(entry), cache::Condition::kAlways).ToValue();
}

// ---- Cache ----

Cache::Cache(std::shared_ptr<cache::CacheCore> core) noexcept : core_(std::move(core)) {}
Cache::~Cache() { core_->Close(); }

Result<std::unique_ptr<Cache>> Cache::Create(CacheOptions options) {
  BASALT_ASSIGN_OR_RETURN(std::shared_ptr<cache::CacheCore> core,
                          cache::CacheCore::Create(std::move(options)));
  std::unique_ptr<Cache> cache(new (std::nothrow) Cache(std::move(core)));
  if (cache == nullptr) return cache::NoMemory();
  return cache;
}

Status Cache::Put(std::string_view key, std::string_view value, const CachePutOptions& options) {
  return core_->PutBytes(key, value, options.ttl, cache::Condition::kAlways).status();
}

Result<bool> Cache::PutIfAbsent(std::string_view key, std::string_view value,
                                const CachePutOptions& options) {
  return core_->PutBytes(key, value, options.ttl, cache::Condition::kIfAbsent);
}

Result<bool> Cache::Replace(std::string_view key, std::string_view value,
                            const CachePutOptions& options) {
  return core_->PutBytes(key, value, options.ttl, cache::Condition::kIfPresent);
}

cache::CacheCore& cache::CoreOf(const Cache& cache) noexcept { return *cache.core_; }

MaybeValue Cache::Get(std::string_view key) { return core_->Get<true>(key); }
MaybeValue Cache::Peek(std::string_view key) const { return core_->Get<false>(key); }

Status Cache::MultiGet(std::span<const std::string_view> keys, std::span<MaybeValue> values) {
  return core_->MultiGet(keys, values);
}

MaybeValue Cache::Take(std::string_view key) { return core_->TakeBytes(key); }

bool Cache::Delete(std::string_view key) { return core_->Delete(key); }

bool Cache::Touch(std::string_view key, std::chrono::milliseconds ttl) {
  return core_->Touch(key, ttl);
}

Status Cache::Update(std::string_view key, const UpdateFunction& fn) {
  return core_->Update(key, fn);
}

Result<Value> Cache::GetOrCompute(std::string_view key,
                                  const std::function<Result<std::string>()>& fn,
                                  const CachePutOptions& options) {
  const auto compute = [&]() -> Result<cache::NewEntry> {
    BASALT_ASSIGN_OR_RETURN(const std::string value, fn());
    return core_->NewBytes(key, value, options.ttl);
  };
  BASALT_ASSIGN_OR_RETURN(cache::EntryRef ref,
                          core_->GetOrCompute(key, options.ttl, std::cref(compute)));
  return std::move(ref).ToValue();
}

Result<CacheAllocation> Cache::Allocate(std::string_view key, size_t size,
                                        const CachePutOptions& options) {
  BASALT_ASSIGN_OR_RETURN(cache::NewEntry entry, core_->Allocate(key, size, options.ttl));
  return CacheAllocation(entry.shard(), entry.Release(), entry.hash());
}

Status Cache::ForEach(
    const std::function<bool(std::string_view key, std::string_view value)>& visit) {
  return core_->ForEach(
      [&](const cache::Entry& entry) { return visit(entry.key(), entry.value_view()); });
}

void Cache::Clear() { core_->Clear(); }
Status Cache::SetCapacity(uint64_t capacity_bytes) { return core_->SetCapacity(capacity_bytes); }

Result<CacheReservation> Cache::Reserve(uint64_t bytes) {
  BASALT_RETURN_IF_ERROR(core_->Reserve(bytes));
  return CacheReservation(core_, bytes);
}

CacheStats Cache::GetStats() const { return core_->GetStats(); }

// ---- Stats ----

double CacheStats::hit_ratio() const noexcept {
  const uint64_t lookups = hits + misses;
  return lookups == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(lookups);
}

namespace {

/// As the names of Prometheus may begin.
std::string NameOf(std::string_view prefix) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::string name(!prefix.empty() && is_digit(prefix.front()) ? "_" : "");
  for (const char c : prefix) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    name += is_letter || is_digit(c) || c == ':' ? c : '_';
  }
  return name;
}

}  // namespace

std::string CacheStats::ToPrometheus(std::string_view prefix) const {
  const std::string begin = NameOf(prefix) + "_";
  std::string text;
  const auto family = [&](std::string_view name, std::string_view type, std::string_view help) {
    const std::string full = begin + std::string(name);
    text += "# HELP " + full + " " + std::string(help) + "\n# TYPE " + full + " " +
            std::string(type) + "\n";
    return full;
  };
  const auto sample = [&](const std::string& name, std::string_view labels, uint64_t value) {
    text += name + std::string(labels) + " " + std::to_string(value) + "\n";
  };
  const std::string lookups = family("lookups_total", "counter", "Gets by result.");
  sample(lookups, "{result=\"hit\"}", hits);
  sample(lookups, "{result=\"miss\"}", misses);
  sample(family("inserts_total", "counter", "New keys."), "", inserts);
  const std::string removals = family("removals_total", "counter", "Entries that left, by reason.");
  sample(removals, "{reason=\"evicted\"}", evicted);
  sample(removals, "{reason=\"expired\"}", expired);
  sample(removals, "{reason=\"replaced\"}", replaced);
  sample(removals, "{reason=\"erased\"}", erased);
  sample(family("refused_total", "counter", "Puts that found no room."), "", refused);
  sample(family("computed_total", "counter", "Values that GetOrCompute computed."), "", computed);
  sample(family("entries", "gauge", "Entries."), "", entries);
  sample(family("capacity_bytes", "gauge", "The limit of all bytes."), "", capacity_bytes);
  const std::string bytes_by_part = family("bytes", "gauge", "Bytes taken, by part.");
  sample(bytes_by_part, "{part=\"entries\"}", entry_bytes);
  sample(bytes_by_part, "{part=\"index\"}", index_bytes);
  sample(bytes_by_part, "{part=\"retired\"}", retired_bytes);
  sample(bytes_by_part, "{part=\"pinned\"}", pinned_bytes);
  sample(bytes_by_part, "{part=\"reserved\"}", reserved_bytes);
  sample(family("pinned_entries", "gauge", "Handles that hold an entry."), "", pinned_entries);
  return text;
}

}  // namespace basalt
