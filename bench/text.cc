#include "bench/text.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace basalt::bench {

std::string Format(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  va_list again;
  va_copy(again, arguments);
  const int size = std::vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  std::string text(size > 0 ? static_cast<size_t>(size) : 0, '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  return text;
}

void Fail(std::string_view what, std::string_view why) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %.*s: %.*s\n", program_invocation_short_name,
               static_cast<int>(what.size()), what.data(), static_cast<int>(why.size()),
               why.data());
  std::exit(1);
}

}  // namespace basalt::bench
