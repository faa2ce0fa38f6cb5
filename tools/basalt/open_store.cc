#include "tools/basalt/open_store.h"

#include <utility>

#include "basalt/client.h"
#include "net/address.h"

namespace basalt::tools {
namespace {

/// Of a batch for a server, which takes more.
constexpr uint64_t kRemoteBatchBytes = uint64_t{1} << 20;

template <class OpenDatabase>
Result<std::unique_ptr<Store>> OpenStore(const std::string& path, const OpenDatabase& open) {
  if (net::IsServerUrl(path)) {
    Result<std::unique_ptr<net::RemoteStore>> store = net::RemoteStore::Connect(path);
    if (!store) return store.error();
    return std::unique_ptr<Store>(*std::move(store));
  }
  Result<std::unique_ptr<DB>> db = open();
  if (!db) return db.error();
  return std::unique_ptr<Store>(*std::move(db));
}

}  // namespace

Result<std::unique_ptr<Store>> OpenStoreToRead(const std::string& path, const ReadAccess& access) {
  return OpenStore(path, [&] { return OpenToRead(path, access); });
}

Result<std::unique_ptr<Store>> OpenStoreToWrite(const std::string& path, const DBOptions& options) {
  return OpenStore(path, [&] { return OpenToWrite(path, options); });
}

Status CloseStore(Store* store) {
  auto* const db = dynamic_cast<DB*>(store);
  return db == nullptr ? Status() : db->Close();
}

uint64_t BatchBytesMax(const Store& store) {
  const auto* const db = dynamic_cast<const DB*>(&store);
  return db == nullptr ? kRemoteBatchBytes : db->GetStats().memory_budget / 8;
}

}  // namespace basalt::tools
