#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "basalt/iterator.h"
#include "basalt/options.h"
#include "basalt/status.h"
#include "basalt/store.h"
#include "net/client.h"

// The reads of a remote store, which its transactions share. They throw std::bad_alloc.

namespace basalt::net {

Result<MaybeValue> ReadValue(Client& client, std::string_view key, const ReadOptions& options);
Result<std::optional<Entry>> ReadEntry(Client& client, std::string_view key,
                                       const ReadOptions& options);
/// `options.keyspace` is ignored. What kept the server from being asked is every key's error.
Status ReadValues(const std::shared_ptr<Client>& client, std::span<const KeyspaceKey> keys,
                  std::span<Result<MaybeValue>> results, const ReadOptions& options);
/// The same, all of `options.keyspace`.
Status ReadValues(const std::shared_ptr<Client>& client, std::span<const std::string_view> keys,
                  std::span<Result<MaybeValue>> results, const ReadOptions& options);
std::unique_ptr<Iterator> NewRemoteIterator(const std::shared_ptr<Client>& client,
                                            const ReadOptions& options);

/// WouldBlock: the caller may not wait.
Status MustWait(const Client& client);

}  // namespace basalt::net
