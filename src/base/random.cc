#include "base/random.h"

#include <sys/random.h>

#include <cerrno>

#include "base/check.h"

namespace basalt::base {

uint64_t RandomSeed() noexcept {
  uint64_t seed = 0;
  ssize_t got = 0;
  do {
    got = getrandom(&seed, sizeof seed, 0);
  } while (got < 0 && errno == EINTR);
  // Requests up to 256 bytes are never cut short, and nothing else fails on a kernel that has it.
  BASALT_CHECK(got == static_cast<ssize_t>(sizeof seed));
  return seed;
}

}  // namespace basalt::base
