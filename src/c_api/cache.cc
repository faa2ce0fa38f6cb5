#include "basalt/cache.h"

#include "basalt/json.h"
#include "c_api/call.h"
#include "c_api/handles.h"
#include "c_api/options.h"

namespace basalt::c_api {
namespace {

Status CheckCache(const basalt_cache* cache, const void* key, size_t key_size) {
  BASALT_C_REQUIRE(cache != nullptr, "cache");
  if (cache->origin.IsInherited()) return Inherited();
  BASALT_C_REQUIRE(IsBytes(key, key_size), "key");
  return {};
}

Status PreparePut(const basalt_cache* cache, const void* key, size_t key_size, const void* value,
                  size_t value_size, int64_t ttl_ms, CachePutOptions* to) {
  BASALT_C_RETURN_IF_ERROR(CheckCache(cache, key, key_size));
  BASALT_C_REQUIRE(IsBytes(value, value_size), "value");
  return ToTtl(ttl_ms, &to->ttl);
}

}  // namespace
}  // namespace basalt::c_api

using namespace basalt;         // NOLINT(google-*)
using namespace basalt::c_api;  // NOLINT(google-*)

int basalt_cache_create(const basalt_cache_options* options, basalt_cache** cache,
                        basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(cache != nullptr, "cache");
    *cache = nullptr;
    CacheOptions cache_options;
    BASALT_C_RETURN_IF_ERROR(ToCacheOptions(options, &cache_options));
    Result<std::unique_ptr<Cache>> made = Cache::Create(std::move(cache_options));
    if (!made) return made.error();
    *cache = new basalt_cache{.cache = *std::move(made)};
    return {};
  });
}

void basalt_cache_free(basalt_cache* cache) { delete cache; }

int basalt_cache_put(basalt_cache* cache, const void* key, size_t key_size, const void* value,
                     size_t value_size, int64_t ttl_ms, basalt_error* error) {
  return Call(error, [&]() -> Status {
    CachePutOptions put;
    BASALT_C_RETURN_IF_ERROR(PreparePut(cache, key, key_size, value, value_size, ttl_ms, &put));
    return cache->cache->Put(ViewOf(key, key_size), ViewOf(value, value_size), put);
  });
}

int basalt_cache_put_if_absent(basalt_cache* cache, const void* key, size_t key_size,
                               const void* value, size_t value_size, int64_t ttl_ms, bool* created,
                               basalt_error* error) {
  return Call(error, [&]() -> Status {
    if (created != nullptr) *created = false;
    CachePutOptions put;
    BASALT_C_RETURN_IF_ERROR(PreparePut(cache, key, key_size, value, value_size, ttl_ms, &put));
    Result<bool> made =
        cache->cache->PutIfAbsent(ViewOf(key, key_size), ViewOf(value, value_size), put);
    if (!made) return made.error();
    if (created != nullptr) *created = *made;
    return {};
  });
}

int basalt_cache_get(basalt_cache* cache, const void* key, size_t key_size, basalt_value* value,
                     basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(value != nullptr, "value");
    GiveNothing(value);
    BASALT_C_RETURN_IF_ERROR(CheckCache(cache, key, key_size));
    Give(cache->cache->Get(ViewOf(key, key_size)), value);
    return {};
  });
}

int basalt_cache_take(basalt_cache* cache, const void* key, size_t key_size, basalt_value* value,
                      basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(value != nullptr, "value");
    GiveNothing(value);
    BASALT_C_RETURN_IF_ERROR(CheckCache(cache, key, key_size));
    Give(cache->cache->Take(ViewOf(key, key_size)), value);
    return {};
  });
}

int basalt_cache_delete(basalt_cache* cache, const void* key, size_t key_size, bool* found,
                        basalt_error* error) {
  return Call(error, [&]() -> Status {
    if (found != nullptr) *found = false;
    BASALT_C_RETURN_IF_ERROR(CheckCache(cache, key, key_size));
    const bool erased = cache->cache->Delete(ViewOf(key, key_size));
    if (found != nullptr) *found = erased;
    return {};
  });
}

int basalt_cache_touch(basalt_cache* cache, const void* key, size_t key_size, int64_t ttl_ms,
                       bool* found, basalt_error* error) {
  return Call(error, [&]() -> Status {
    if (found != nullptr) *found = false;
    BASALT_C_RETURN_IF_ERROR(CheckCache(cache, key, key_size));
    if (ttl_ms == 0) {
      return Status(StatusCode::kInvalidArgument,
                    "touch: ttl_ms is 0, and must be positive or BASALT_NO_TTL");
    }
    std::optional<std::chrono::milliseconds> ttl;
    BASALT_C_RETURN_IF_ERROR(ToTtl(ttl_ms, &ttl));
    const bool touched = cache->cache->Touch(ViewOf(key, key_size), *ttl);
    if (found != nullptr) *found = touched;
    return {};
  });
}

int basalt_cache_clear(basalt_cache* cache, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_RETURN_IF_ERROR(CheckCache(cache, nullptr, 0));
    cache->cache->Clear();
    return {};
  });
}

int basalt_cache_set_capacity(basalt_cache* cache, uint64_t capacity_bytes, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_RETURN_IF_ERROR(CheckCache(cache, nullptr, 0));
    return cache->cache->SetCapacity(capacity_bytes);
  });
}

int basalt_cache_stats(const basalt_cache* cache, char** json, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(json != nullptr, "json");
    *json = nullptr;
    BASALT_C_RETURN_IF_ERROR(CheckCache(cache, nullptr, 0));
    *json = CopyForCaller(ToJson(cache->cache->GetStats()));
    return {};
  });
}
