#pragma once

#include <memory>

#include "basalt/options.h"
#include "basalt/transaction.h"
#include "net/client.h"

namespace basalt::net {

/// A transaction over the wire. It is optimistic on the client: the server keeps a snapshot from
/// the first read on; the client keeps the writes and what was read, and sends both with the
/// commit. A transaction whose client goes away has changed nothing and holds no lock.
Transaction NewTransaction(std::shared_ptr<Client> client, const TransactionOptions& options);

}  // namespace basalt::net
