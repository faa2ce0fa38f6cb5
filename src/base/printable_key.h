#pragma once

#include <string>
#include <string_view>

namespace basalt::base {

/// A key as it can stand in a message: in quotes, every byte that is not plain ASCII as \xHH, and
/// only the beginning of a long one, with its length.
std::string PrintableKey(std::string_view key);

}  // namespace basalt::base
