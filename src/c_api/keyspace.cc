#include <cstdlib>
#include <cstring>
#include <vector>

#include "c_api/call.h"
#include "c_api/handles.h"
#include "c_api/options.h"

namespace basalt::c_api {
namespace {

/// Calls `find(name)`, which gives a Result<KeyspaceId>, with checked arguments.
template <class Find>
Status GiveKeyspace(const basalt_store* store, const void* name, size_t name_size,
                    uint32_t* keyspace, const Find& find) {
  BASALT_C_REQUIRE(keyspace != nullptr, "keyspace");
  *keyspace = 0;
  BASALT_C_RETURN_IF_ERROR(CheckStore(store));
  BASALT_C_REQUIRE(IsBytes(name, name_size), "name");
  Result<KeyspaceId> found = find(ViewOf(name, name_size));
  if (!found) return found.error();
  *keyspace = static_cast<uint32_t>(*found);
  return {};
}

/// One block: the array, then the names.
basalt_keyspace_info* CopyInfos(const std::vector<KeyspaceInfo>& infos) {
  size_t size = infos.size() * sizeof(basalt_keyspace_info);
  for (const KeyspaceInfo& info : infos) size += info.name.size() + 1;
  auto* copies = static_cast<basalt_keyspace_info*>(std::malloc(size));
  if (copies == nullptr) throw std::bad_alloc();
  char* name = reinterpret_cast<char*>(copies + infos.size());
  for (size_t i = 0; i < infos.size(); ++i) {
    copies[i] = {
        .name = name, .name_size = infos[i].name.size(), .id = static_cast<uint32_t>(infos[i].id)};
    std::memcpy(name, infos[i].name.c_str(), infos[i].name.size() + 1);
    name += infos[i].name.size() + 1;
  }
  return copies;
}

}  // namespace
}  // namespace basalt::c_api

using namespace basalt;         // NOLINT(google-*)
using namespace basalt::c_api;  // NOLINT(google-*)

int basalt_keyspace_create(basalt_store* store, const void* name, size_t name_size,
                           const basalt_keyspace_options* options, uint32_t* keyspace,
                           basalt_error* error) {
  return Call(error, [&]() -> Status {
    KeyspaceOptions made;
    BASALT_C_RETURN_IF_ERROR(ToKeyspaceOptions(options, &made));
    return GiveKeyspace(store, name, name_size, keyspace, [&](std::string_view checked) {
      return store->store->CreateKeyspace(checked, made);
    });
  });
}

int basalt_keyspace_open(const basalt_store* store, const void* name, size_t name_size,
                         uint32_t* keyspace, basalt_error* error) {
  return Call(error, [&] {
    return GiveKeyspace(store, name, name_size, keyspace, [&](std::string_view checked) {
      return store->store->OpenKeyspace(checked);
    });
  });
}

int basalt_keyspace_open_or_create(basalt_store* store, const void* name, size_t name_size,
                                   const basalt_keyspace_options* options, uint32_t* keyspace,
                                   basalt_error* error) {
  return Call(error, [&]() -> Status {
    KeyspaceOptions made;
    BASALT_C_RETURN_IF_ERROR(ToKeyspaceOptions(options, &made));
    return GiveKeyspace(store, name, name_size, keyspace, [&](std::string_view checked) {
      return store->store->OpenOrCreateKeyspace(checked, made);
    });
  });
}

int basalt_keyspace_drop(basalt_store* store, uint32_t keyspace, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_RETURN_IF_ERROR(CheckStore(store));
    return store->store->DropKeyspace(static_cast<KeyspaceId>(keyspace));
  });
}

int basalt_keyspace_list(const basalt_store* store, basalt_keyspace_info** infos, size_t* count,
                         basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(infos != nullptr, "infos");
    *infos = nullptr;
    BASALT_C_REQUIRE(count != nullptr, "count");
    *count = 0;
    BASALT_C_RETURN_IF_ERROR(CheckStore(store));
    Result<std::vector<KeyspaceInfo>> listed = store->store->ListKeyspaces();
    if (!listed) return listed.error();
    *infos = CopyInfos(*listed);
    *count = listed->size();
    return {};
  });
}
