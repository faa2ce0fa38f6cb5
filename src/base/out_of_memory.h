#pragma once

#include <new>
#include <string_view>
#include <type_traits>

#include "basalt/status.h"

namespace basalt::base {

inline Status OutOfMemory(
    std::string_view message = "out of memory: free some, then retry") noexcept {
  return Status(StatusCode::kResourceExhausted, message, SubCode::kMemory);
}

/// An error with the message that `describe()` makes; without one where there is no memory for it.
template <class Describe>
Status ErrorThatSays(StatusCode code, const Describe& describe) noexcept {
  try {
    return Status(code, describe());
  } catch (const std::bad_alloc&) {
    return Status(code, {});
  }
}

/// What `call` answers, a Status or a Result; OutOfMemory where it throws std::bad_alloc.
template <class Call, class... Message>
auto OrOutOfMemory(const Call& call, const Message&... message)
    -> std::invoke_result_t<const Call&> {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return OutOfMemory(message...);
  }
}

}  // namespace basalt::base
