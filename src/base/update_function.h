#pragma once

#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "basalt/status.h"
#include "basalt/store.h"

namespace basalt::base {

/// `update(fn)`; what `fn` throws passes by all handlers on the way and reaches the caller as it
/// is, a bad_alloc included.
template <class Update>
Status UpdateThatMayThrow(const UpdateFunction& fn, const Update& update) {
  std::exception_ptr thrown;
  const UpdateFunction guarded =
      [&](std::optional<std::string_view> value) -> Result<std::optional<std::string>> {
    try {
      return fn(value);
    } catch (...) {
      thrown = std::current_exception();
      return Status(StatusCode::kCancelled, "the update function threw");
    }
  };
  Status updated = update(guarded);
  if (thrown != nullptr) std::rethrow_exception(thrown);
  return updated;
}

}  // namespace basalt::base
