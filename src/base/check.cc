#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace basalt::base {

void CheckFailed(const char* file, int line, const char* condition) noexcept {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace basalt::base
