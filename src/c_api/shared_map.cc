#include "basalt/shared_map.h"

#include "basalt/json.h"
#include "c_api/call.h"
#include "c_api/handles.h"
#include "c_api/options.h"

namespace basalt::c_api {
namespace {

Status GiveMap(Result<std::unique_ptr<SharedMap>> opened, basalt_map** map) {
  if (!opened) return std::move(opened).error();
  *map = new basalt_map{*std::move(opened)};
  return {};
}

Status OpenMap(const char* path, const basalt_map_options* options, basalt_map** map,
               Result<std::unique_ptr<SharedMap>> (*open)(std::string_view,
                                                          const SharedMapOptions&)) {
  BASALT_C_REQUIRE(map != nullptr, "map");
  *map = nullptr;
  BASALT_C_REQUIRE(path != nullptr, "path");
  SharedMapOptions map_options;
  Duplicates duplicates{};
  BASALT_C_RETURN_IF_ERROR(ToMapOptions(options, &map_options, &duplicates));
  return GiveMap(open(path, map_options), map);
}

Status CheckKeys(const void* const* keys, const size_t* key_sizes, size_t count,
                 std::vector<std::string_view>* views) {
  BASALT_C_REQUIRE((keys != nullptr && key_sizes != nullptr) || count == 0, "keys");
  views->resize(count);
  for (size_t i = 0; i < count; ++i) {
    BASALT_C_REQUIRE(IsBytes(keys[i], key_sizes[i]), "a key");
    (*views)[i] = ViewOf(keys[i], key_sizes[i]);
  }
  return {};
}

void GiveView(const SharedMap::MaybeView& view, const char** value, size_t* value_size) {
  *value = nullptr;
  *value_size = 0;
  if (!view) return;
  const std::string_view bytes = view->view();
  *value = bytes.data() == nullptr ? "" : bytes.data();
  *value_size = bytes.size();
}

}  // namespace
}  // namespace basalt::c_api

using namespace basalt;         // NOLINT(google-*)
using namespace basalt::c_api;  // NOLINT(google-*)

int basalt_map_create(const char* path, const basalt_map_options* options, basalt_map** map,
                      basalt_error* error) {
  return Call(error, [&] { return OpenMap(path, options, map, &SharedMap::Create); });
}

int basalt_map_open(const char* path, const basalt_map_options* options, basalt_map** map,
                    basalt_error* error) {
  return Call(error, [&] { return OpenMap(path, options, map, &SharedMap::Open); });
}

int basalt_map_attach(const char* path, basalt_map** map, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(map != nullptr, "map");
    *map = nullptr;
    BASALT_C_REQUIRE(path != nullptr, "path");
    return GiveMap(SharedMap::Attach(path), map);
  });
}

int basalt_map_close(basalt_map* map, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(map != nullptr, "map");
    return map->map->Close();
  });
}

void basalt_map_free(basalt_map* map) { delete map; }

int basalt_map_put(basalt_map* map, const void* key, size_t key_size, const void* value,
                   size_t value_size, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(map != nullptr, "map");
    BASALT_C_REQUIRE(IsBytes(key, key_size), "key");
    BASALT_C_REQUIRE(IsBytes(value, value_size), "value");
    return map->map->Put(ViewOf(key, key_size), ViewOf(value, value_size));
  });
}

int basalt_map_delete(basalt_map* map, const void* key, size_t key_size, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(map != nullptr, "map");
    BASALT_C_REQUIRE(IsBytes(key, key_size), "key");
    return map->map->Delete(ViewOf(key, key_size));
  });
}

int basalt_map_write(basalt_map* map, const basalt_batch* batch, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(map != nullptr, "map");
    BASALT_C_REQUIRE(batch != nullptr, "batch");
    return map->map->Write(batch->batch);
  });
}

int basalt_map_sync(basalt_map* map, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(map != nullptr, "map");
    return map->map->Sync();
  });
}

int basalt_map_compact(basalt_map* map, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(map != nullptr, "map");
    return map->map->Compact();
  });
}

int basalt_map_stats(const basalt_map* map, char** json, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(json != nullptr, "json");
    *json = nullptr;
    BASALT_C_REQUIRE(map != nullptr, "map");
    Result<SharedMapStats> stats = map->map->GetStats();
    if (!stats) return stats.error();
    *json = CopyForCaller(ToJson(*stats));
    return {};
  });
}

int basalt_map_check(const char* path, char** report, basalt_error* error) {
  return Call(error, [&]() -> Status {
    if (report != nullptr) *report = nullptr;
    BASALT_C_REQUIRE(path != nullptr, "path");
    Result<SharedMapReport> checked = SharedMap::Check(path);
    if (!checked) return checked.error();
    if (report != nullptr) *report = CopyForCaller(ToJson(*checked));
    if (checked->ok()) return {};
    return Status(StatusCode::kCorruption,
                  std::string(path) + ": " + std::to_string(checked->problems.size()) +
                      " problems, the first: " + checked->problems.front());
  });
}

int basalt_map_destroy(const char* path, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(path != nullptr, "path");
    return SharedMap::Destroy(path);
  });
}

int basalt_map_reader_create(const basalt_map* map, basalt_map_reader** reader,
                             basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(reader != nullptr, "reader");
    *reader = nullptr;
    BASALT_C_REQUIRE(map != nullptr, "map");
    Result<SharedMap::Reader> made = map->map->NewReader();
    if (!made) return made.error();
    *reader = new basalt_map_reader{.reader = *std::move(made)};
    return {};
  });
}

void basalt_map_reader_free(basalt_map_reader* reader) { delete reader; }

int basalt_map_reader_get(basalt_map_reader* reader, const void* key, size_t key_size,
                          const char** value, size_t* value_size, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(value != nullptr, "value");
    *value = nullptr;
    BASALT_C_REQUIRE(value_size != nullptr, "value_size");
    *value_size = 0;
    BASALT_C_REQUIRE(reader != nullptr, "reader");
    BASALT_C_REQUIRE(IsBytes(key, key_size), "key");
    // Without a view the reader goes on to the map's newest state.
    reader->views.clear();
    reader->views.push_back(reader->reader.Get(ViewOf(key, key_size)));
    const Result<SharedMap::MaybeView>& found = reader->views.front();
    if (!found) return found.error();
    GiveView(*found, value, value_size);
    return {};
  });
}

int basalt_map_reader_multi_get(basalt_map_reader* reader, size_t count, const void* const* keys,
                                const size_t* key_sizes, const char** values, size_t* value_sizes,
                                basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE((values != nullptr && value_sizes != nullptr) || count == 0, "values");
    for (size_t i = 0; i < count; ++i) {
      values[i] = nullptr;
      value_sizes[i] = 0;
    }
    BASALT_C_REQUIRE(reader != nullptr, "reader");
    std::vector<std::string_view> views;
    BASALT_C_RETURN_IF_ERROR(CheckKeys(keys, key_sizes, count, &views));
    reader->views.clear();
    reader->views.resize(count);
    BASALT_C_RETURN_IF_ERROR(reader->reader.MultiGet(views, reader->views));
    Status first;
    for (size_t i = 0; i < count; ++i) {
      if (reader->views[i]) {
        GiveView(*reader->views[i], &values[i], &value_sizes[i]);
      } else if (first.ok()) {
        first = reader->views[i].error();
      }
    }
    return first;
  });
}

int basalt_map_reader_scan(basalt_map_reader* reader,
                           int (*visit)(void* context, const char* key, size_t key_size,
                                        const char* value, size_t value_size),
                           void* context, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(reader != nullptr, "reader");
    BASALT_C_REQUIRE(visit != nullptr, "visit");
    reader->views.clear();
    return reader->reader.ParallelScan(1, [&](std::string_view key, std::string_view value) {
      if (visit(context, key.data(), key.size(), value.data(), value.size()) == 0) return Status();
      return Status(StatusCode::kCancelled, "scan: visit asked to stop");
    });
  });
}

int basalt_map_builder_create(const char* path, const basalt_map_options* options,
                              basalt_map_builder** builder, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(builder != nullptr, "builder");
    *builder = nullptr;
    BASALT_C_REQUIRE(path != nullptr, "path");
    SharedMapOptions map_options;
    Duplicates duplicates{};
    BASALT_C_RETURN_IF_ERROR(ToMapOptions(options, &map_options, &duplicates));
    Result<std::unique_ptr<SharedMapBuilder>> made =
        SharedMapBuilder::Create(path, map_options, duplicates);
    if (!made) return made.error();
    *builder = new basalt_map_builder{*std::move(made)};
    return {};
  });
}

void basalt_map_builder_free(basalt_map_builder* builder) { delete builder; }

int basalt_map_builder_add(basalt_map_builder* builder, const void* key, size_t key_size,
                           const void* value, size_t value_size, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(builder != nullptr, "builder");
    BASALT_C_REQUIRE(IsBytes(key, key_size), "key");
    BASALT_C_REQUIRE(IsBytes(value, value_size), "value");
    return builder->builder->Add(ViewOf(key, key_size), ViewOf(value, value_size));
  });
}

int basalt_map_builder_finish(basalt_map_builder* builder, basalt_map** map, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(map != nullptr, "map");
    *map = nullptr;
    BASALT_C_REQUIRE(builder != nullptr, "builder");
    return GiveMap(builder->builder->Finish(), map);
  });
}
