#pragma once

#include <string>
#include <string_view>

#include "basalt/options.h"
#include "basalt/status.h"

namespace basalt::base {

/// The error that an option, `name`, has a value that its enum does not; `values` are those that
/// there are.
template <class Enum>
Status NoSuchValue(std::string_view name, Enum value, std::string_view values) {
  return Status(StatusCode::kInvalidArgument, std::string(name) + " is " +
                                                  std::to_string(static_cast<int>(value)) +
                                                  ", and must be " + std::string(values));
}

/// Ok, or that the option `name` is none.
inline Status CheckDurability(std::string_view name, Durability durability) {
  if (durability <= Durability::kPower) [[likely]]
    return {};
  return NoSuchValue(name, durability, "kMemory, kInterval, kProcess or kPower");
}

}  // namespace basalt::base
