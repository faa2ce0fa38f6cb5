#include "basalt/store.h"

#include <string>

#include "base/out_of_memory.h"

namespace basalt::internal {

Status DifferInLength(std::span<const std::string_view> keys,
                      std::span<const Result<MaybeValue>> results) {
  return base::ErrorThatSays(StatusCode::kInvalidArgument, [&] {
    return "MultiGet: " + std::to_string(keys.size()) + " keys, but room for " +
           std::to_string(results.size()) + " results";
  });
}

}  // namespace basalt::internal
