#pragma once

#include <memory>

#include "basalt/iterator.h"
#include "basalt/options.h"

namespace basalt::db {

class Core;

/// Never null; what is wrong with the options is in the iterator's status.
std::unique_ptr<Iterator> NewDBIterator(const std::shared_ptr<Core>& core,
                                        const ReadOptions& options);

}  // namespace basalt::db
