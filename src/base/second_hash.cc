#include "base/second_hash.h"

#include "base/random.h"
#include "base/seeded_hash.h"

namespace basalt::base {

uint64_t SecondHash(std::string_view bytes) noexcept {
  static const SeededHash hash(RandomSeed());
  return hash(bytes);
}

}  // namespace basalt::base
