#pragma once

#include <memory>

#include "basalt/options.h"
#include "basalt/status.h"
#include "basalt/transaction.h"
#include "memtable/store.h"

namespace basalt::memtable {

/// A transaction on a store; it keeps the store's core alive.
Result<Transaction> NewTransaction(const std::shared_ptr<StoreCore>& core,
                                   const TransactionOptions& options);

}  // namespace basalt::memtable
