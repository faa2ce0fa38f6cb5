#pragma once

#include <memory>

#include "basalt/options.h"
#include "basalt/status.h"
#include "basalt/transaction.h"

namespace basalt::db {

class Core;

/// A transaction of the database. FailedPrecondition: it is closed, or read-only.
Result<Transaction> NewTransaction(const std::shared_ptr<Core>& core,
                                   const TransactionOptions& options);

}  // namespace basalt::db
