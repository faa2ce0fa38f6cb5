#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "basalt/store.h"
#include "tools/basalt/open_database.h"

namespace basalt::tools {

/// Opens the store that a verb reads: a database by its directory, as OpenToRead does, or the store
/// of a server by its URL (basalt/client.h).
Result<std::unique_ptr<Store>> OpenStoreToRead(const std::string& path, const ReadAccess& access);

/// The same for a verb that writes. A server's store is there already: `options` are of a database.
Result<std::unique_ptr<Store>> OpenStoreToWrite(const std::string& path, const DBOptions& options);

/// Closes a database, and reports what could not be saved.
Status CloseStore(Store* store);

/// About the largest batch that the store takes, in bytes.
uint64_t BatchBytesMax(const Store& store);

}  // namespace basalt::tools
