#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "basalt/perfect_hash.h"
#include "base/check.h"
#include "phash/test_reseal.h"

// Any bytes as a perfect hash function, as a fingerprint set and as a map, once as they are and
// once with all checksums made right, so that what they protect is reached. Either they are refused
// with a message, or every hash gets a number in range and an answer, one at a time the same as
// many at once.

namespace {

using basalt::FingerprintMap;
using basalt::FingerprintSet;
using basalt::PerfectHash;
using basalt::Status;
using basalt::StatusCode;

constexpr size_t kHashes = 100;

void CheckError(const Status& status, bool may_be_the_other_kind) {
  BASALT_CHECK(!status.message().empty());
  BASALT_CHECK(status.code() == StatusCode::kCorruption ||
               status.code() == StatusCode::kUnsupported ||
               (may_be_the_other_kind && status.code() == StatusCode::kInvalidArgument));
}

/// Some at both ends and some in between.
void MakeHashes(uint64_t* hashes) {
  for (uint64_t i = 0; i < kHashes; ++i) hashes[i] = i * 0x9E37'79B9'7F4A'7C15;
  hashes[1] = ~uint64_t{0};
}

void CheckNumbers(const PerfectHash& function) {
  const uint64_t bound = function.size() == 0 ? 1 : function.size();
  uint64_t hashes[kHashes];
  uint64_t indexes[kHashes];
  MakeHashes(hashes);
  function.IndexMany(hashes, indexes);
  for (size_t i = 0; i < kHashes; ++i) {
    BASALT_CHECK(indexes[i] < bound);
    BASALT_CHECK(indexes[i] == function.Index(hashes[i]));
  }
  for (const PerfectHash::LevelFigures& level : function.levels()) {
    BASALT_CHECK(level.keys <= function.size() && level.bytes <= function.bytes().size());
  }
}

void CheckFunction(std::string_view bytes) {
  const auto function = PerfectHash::Open(bytes);
  if (!function) return CheckError(function.error(), false);
  BASALT_CHECK(function->bytes() == bytes);
  CheckNumbers(*function);
}

void CheckSet(std::string_view bytes) {
  const auto set = FingerprintSet::Open(bytes);
  if (!set) return CheckError(set.error(), true);
  CheckNumbers(set->numbers());
  uint64_t hashes[kHashes];
  bool answers[kHashes];
  MakeHashes(hashes);
  set->MayContainMany(hashes, answers);
  for (size_t i = 0; i < kHashes; ++i) BASALT_CHECK(answers[i] == set->MayContain(hashes[i]));
}

void CheckMap(std::string_view bytes) {
  const auto map = FingerprintMap::Open(bytes);
  if (!map) return CheckError(map.error(), true);
  CheckNumbers(map->numbers());
  uint64_t hashes[kHashes];
  MakeHashes(hashes);
  for (const uint64_t hash : hashes) {
    const auto payload = map->Get(hash);
    BASALT_CHECK(!payload || *payload >> map->payload_bits() == 0);
  }
}

/// A copy with nothing before or behind it that may be read.
std::unique_ptr<char[]> Alone(std::string_view bytes) {
  auto copy = std::make_unique<char[]>(bytes.size());
  bytes.copy(copy.get(), bytes.size());
  return copy;
}

void CheckAll(std::string_view bytes) {
  const std::unique_ptr<char[]> copy = Alone(bytes);
  const std::string_view alone(copy.get(), bytes.size());
  CheckFunction(alone);
  CheckSet(alone);
  CheckMap(alone);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  CheckAll(bytes);
  std::string function = bytes;
  basalt::phash::ResealFunction(function.data(), function.size(), /*golden=*/true);
  CheckAll(function);
  basalt::phash::ResealCells(&bytes, /*golden=*/true);
  CheckAll(bytes);
  return 0;
}
