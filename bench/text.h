#pragma once

#include <string>
#include <string_view>

namespace basalt::bench {

/// What printf would print.
[[gnu::format(printf, 1, 2)]] std::string Format(const char* format, ...);

/// Prints "<program>: <what>: <why>" and ends the program.
[[noreturn]] void Fail(std::string_view what, std::string_view why);

}  // namespace basalt::bench
