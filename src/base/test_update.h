#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "basalt/store.h"

// For tests: an update function in terms of values alone.

namespace basalt::base {

/// `change` gets the present value, or nothing, and gives the new one, nothing (delete), or an
/// error.
template <class Change>
UpdateFunction ByValue(Change change) {
  return [change = std::move(change)](EntryUpdate& entry) mutable -> Status {
    std::optional<std::string_view> present;
    if (entry.exists()) present = entry.value();
    Result<std::optional<std::string>> next = change(present);
    if (!next) return next.error();
    if (*next) {
      entry.Set(std::move(**next));
    } else {
      entry.Delete();
    }
    return {};
  };
}

}  // namespace basalt::base
