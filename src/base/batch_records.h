#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "basalt/status.h"
#include "basalt/write_batch.h"

namespace basalt::base {

/// WriteBatch::ForEach over the bytes of a validated batch. `end` is the offset of the record's
/// end.
Status ForEachRecord(std::string_view bytes,
                     const std::function<Status(const WriteBatch::Record&, size_t end)>& visit);

}  // namespace basalt::base
