#pragma once

#include <cstddef>

#include "basalt/status.h"

namespace basalt::base {

/// InvalidArgument unless a MultiGet has as many results as keys.
Status CheckMultiGetLengths(size_t keys, size_t results);

}  // namespace basalt::base
