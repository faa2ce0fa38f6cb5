#pragma once

#include "basalt/options.h"
#include "basalt/status.h"
#include "basalt/store.h"
#include "basalt/write_batch.h"
#include "net/client.h"
#include "transaction/read_set.h"

// The write of a remote store, which its transactions share. It throws std::bad_alloc.

namespace basalt::net {

/// What a transaction has read: the server finds it unchanged since the snapshot, or answers
/// Aborted.
struct RemoteReads {
  uint64_t snapshot = 0;
  const transaction::ReadSet* reads = nullptr;
};

/// Sends a batch with its conditions. Of `options` durability and may_wait count.
Result<Commit> WriteRemote(Client& client, const WriteBatch& batch, const WriteOptions& options,
                           const RemoteReads& reads = {});

}  // namespace basalt::net
