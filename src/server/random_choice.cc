#include "server/random_choice.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/random.h"
#include "server/encoding.h"

namespace basalt::server {
namespace {

base::Random& ThreadRandom() {
  static thread_local base::Random random(base::RandomSeed());
  return random;
}

}  // namespace

std::vector<size_t> ChooseRandomly(size_t size, int64_t wanted, uint64_t repeated_max) {
  std::vector<size_t> chosen;
  if (size == 0) return chosen;
  base::Random& random = ThreadRandom();
  if (wanted < 0) {
    const uint64_t count = std::min(uint64_t{0} - static_cast<uint64_t>(wanted), repeated_max);
    chosen.reserve(count);
    for (uint64_t i = 0; i < count; ++i) chosen.push_back(random.Next() % size);
    return chosen;
  }
  chosen.resize(size);
  for (size_t i = 0; i < size; ++i) chosen[i] = i;
  const size_t count = std::min(size, static_cast<size_t>(wanted));
  for (size_t i = 0; i < count; ++i) std::swap(chosen[i], chosen[i + random.Next() % (size - i)]);
  chosen.resize(count);
  return chosen;
}

void SeekToRandom(Walk* walk) {
  walk->SeekToFirst();
  if (!walk->Valid()) return;
  const std::string first(walk->key());
  walk->SeekToLast();
  if (!walk->Valid()) return;
  const std::string last(walk->key());
  const auto shared = static_cast<size_t>(
      std::mismatch(first.begin(), first.end(), last.begin(), last.end()).first - first.begin());
  const auto number = [&](const std::string& key) {
    std::string bytes = key.substr(shared, 8);
    bytes.resize(8, '\0');
    return LoadBigEndian(bytes.data());
  };
  const uint64_t low = number(first);
  const uint64_t width = number(last) - low;
  const uint64_t random = ThreadRandom().Next();
  std::string place = first.substr(0, shared);
  AppendBigEndian(&place, width == UINT64_MAX ? random : low + random % (width + 1));
  walk->Seek(place);
  if (!walk->Valid()) walk->SeekToLast();
}

}  // namespace basalt::server
