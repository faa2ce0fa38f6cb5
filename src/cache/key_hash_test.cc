#include "cache/key_hash.h"

#include <gtest/gtest.h>

#include <string>

#include "base/hash.h"
#include "base/random.h"

namespace basalt::cache {
namespace {

TEST(KeyHash, IsTheHashOfTheRestOfTheLibraryForKeysOfEveryLength) {
  base::Random random(7);
  for (size_t bytes = 0; bytes <= 64; ++bytes) {
    for (int i = 0; i < 100; ++i) {
      std::string key(bytes, '\0');
      for (char& byte : key) byte = static_cast<char>(random.Below(256));
      const uint64_t seed = random.Next();
      ASSERT_EQ(HashOfKey(key, seed), base::Hash(key, seed)) << bytes << " bytes";
    }
  }
}

}  // namespace
}  // namespace basalt::cache
