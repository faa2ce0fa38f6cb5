#include "basalt/store.h"

#include <string>

namespace basalt::internal {

Status DifferInLength(std::span<const std::string_view> keys,
                      std::span<const Result<MaybeValue>> results) {
  return Status(StatusCode::kInvalidArgument, "MultiGet: " + std::to_string(keys.size()) +
                                                  " keys, but room for " +
                                                  std::to_string(results.size()) + " results");
}

}  // namespace basalt::internal
