#pragma once

#include <string>

namespace basalt::bench {

/// What printf would print.
[[gnu::format(printf, 1, 2)]] std::string Format(const char* format, ...);

}  // namespace basalt::bench
