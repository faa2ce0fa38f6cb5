#include "base/short_hash.h"

#include <gtest/gtest.h>

#include <string>

#include "base/hash.h"
#include "base/random.h"

namespace basalt::base {
namespace {

TEST(HashShort, IsTheHashOfTheRestOfTheLibraryForKeysOfEveryLength) {
  base::Random random(7);
  for (size_t bytes = 0; bytes <= 64; ++bytes) {
    for (int i = 0; i < 100; ++i) {
      std::string key(bytes, '\0');
      for (char& byte : key) byte = static_cast<char>(random.Below(256));
      const uint64_t seed = random.Next();
      ASSERT_EQ(HashShort(key, seed), Hash(key, seed)) << bytes << " bytes";
    }
  }
}

}  // namespace
}  // namespace basalt::base
