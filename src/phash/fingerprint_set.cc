#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "basalt/perfect_hash.h"
#include "base/check.h"
#include "phash/cells.h"
#include "phash/format.h"
#include "phash/function.h"
#include "phash/level.h"
#include "phash/packed_bits.h"

namespace basalt {

using phash::Cells;
using phash::PackedBits;

namespace {

constexpr size_t kHashesAtOnce = 256;

Status OutOfMemory() {
  return Status(StatusCode::kResourceExhausted,
                "a fingerprint set or map: out of memory; set memory_budget");
}

Status CheckFingerprintBits(uint32_t bits) {
  if (bits >= FingerprintSet::kBitsMin && bits <= FingerprintSet::kBitsMax) return Status();
  return Status(StatusCode::kInvalidArgument,
                "building a fingerprint set or map: fingerprint_bits is " + std::to_string(bits) +
                    ", outside " + std::to_string(FingerprintSet::kBitsMin) + " to " +
                    std::to_string(FingerprintSet::kBitsMax));
}

Status CheckPayloads(size_t keys, std::span<const uint64_t> payloads, uint32_t bits) {
  const std::string attempt = "building a fingerprint map: ";
  if (bits == 0 || bits > FingerprintMap::kPayloadBitsMax) {
    return Status(StatusCode::kInvalidArgument,
                  attempt + "payload_bits is " + std::to_string(bits) + ", outside 1 to " +
                      std::to_string(FingerprintMap::kPayloadBitsMax));
  }
  if (keys != payloads.size()) {
    return Status(StatusCode::kInvalidArgument, attempt + "there are " + std::to_string(keys) +
                                                    " keys and " + std::to_string(payloads.size()) +
                                                    " payloads");
  }
  const auto wide = std::ranges::find_if(payloads, [&](uint64_t p) { return p >> bits != 0; });
  if (wide == payloads.end()) return Status();
  return Status(StatusCode::kInvalidArgument,
                attempt + "payload " + std::to_string(wide - payloads.begin()) + " is " +
                    std::to_string(*wide) + ", which takes more than " + std::to_string(bits) +
                    " bits");
}

// A view over bytes of `owner` as an owner of those bytes.
template <class Owner>
std::shared_ptr<const char[]> Shared(const Owner& owner) {
  return owner == nullptr ? nullptr : std::shared_ptr<const char[]>(owner, owner->data());
}

}  // namespace

FingerprintSet::FingerprintSet(Cells cells)
    : numbers_(std::move(cells.numbers)),
      fingerprint_bits_(cells.fingerprint_bits),
      bytes_(cells.bytes),
      cells_(cells.cells),
      owner_(Shared(cells.owner)) {}

Result<FingerprintSet> FingerprintSet::Build(std::span<const std::string_view> keys,
                                             uint32_t fingerprint_bits,
                                             const PerfectHashOptions& options) try {
  BASALT_RETURN_IF_ERROR(CheckFingerprintBits(fingerprint_bits));
  BASALT_ASSIGN_OR_RETURN(PerfectHash numbers, PerfectHashBuilder(options).Build(keys));
  const auto walk = [&](const Cells::AddCell& add) {
    for (const std::string_view key : keys) add(numbers.HashKey(key), 0);
    return Status();
  };
  BASALT_ASSIGN_OR_RETURN(Cells cells, Cells::Build(numbers, fingerprint_bits, 0, walk));
  return FingerprintSet(std::move(cells));
} catch (const std::bad_alloc&) {
  return OutOfMemory();
}

Result<FingerprintSet> FingerprintSet::Build(const KeySource& keys, uint32_t fingerprint_bits,
                                             const PerfectHashOptions& options) try {
  BASALT_RETURN_IF_ERROR(CheckFingerprintBits(fingerprint_bits));
  BASALT_ASSIGN_OR_RETURN(PerfectHash numbers, PerfectHashBuilder(options).Build(keys));
  const auto walk = [&](const Cells::AddCell& add) -> Status {
    uint64_t walked = 0;
    BASALT_RETURN_IF_ERROR(keys.Walk([&](std::span<const std::string_view> some) {
      for (const std::string_view key : some) {
        if (walked++ < numbers.size()) add(numbers.HashKey(key), 0);
      }
    }));
    if (walked == numbers.size()) return Status();
    return Status(StatusCode::kInvalidArgument,
                  "building a fingerprint set: a walk over the keys gave " +
                      std::to_string(walked) + " where the first gave " +
                      std::to_string(numbers.size()) +
                      "; a KeySource must give the same keys at each walk");
  };
  BASALT_ASSIGN_OR_RETURN(Cells cells, Cells::Build(numbers, fingerprint_bits, 0, walk));
  return FingerprintSet(std::move(cells));
} catch (const std::bad_alloc&) {
  return OutOfMemory();
}

Result<FingerprintSet> FingerprintSet::BuildFromHashes(std::span<const uint64_t> hashes,
                                                       uint32_t fingerprint_bits,
                                                       const PerfectHashOptions& options) try {
  BASALT_RETURN_IF_ERROR(CheckFingerprintBits(fingerprint_bits));
  BASALT_ASSIGN_OR_RETURN(PerfectHash numbers, PerfectHashBuilder(options).BuildFromHashes(hashes));
  const auto walk = [&](const Cells::AddCell& add) {
    for (const uint64_t hash : hashes) add(hash, 0);
    return Status();
  };
  BASALT_ASSIGN_OR_RETURN(Cells cells, Cells::Build(numbers, fingerprint_bits, 0, walk));
  return FingerprintSet(std::move(cells));
} catch (const std::bad_alloc&) {
  return OutOfMemory();
}

Result<FingerprintSet> FingerprintSet::Open(std::string_view bytes) try {
  BASALT_ASSIGN_OR_RETURN(Cells cells, Cells::Open(bytes, /*payloads=*/false));
  return FingerprintSet(std::move(cells));
} catch (const std::bad_alloc&) {
  return OutOfMemory();
}

bool FingerprintSet::MayContain(uint64_t hash) const noexcept {
  if (size() == 0) return false;
  const uint64_t found =
      PackedBits::Get(cells_, numbers_.function_->Index(hash), fingerprint_bits_);
  return found == phash::Fingerprint(phash::Mix(hash), fingerprint_bits_);
}

void FingerprintSet::MayContainMany(std::span<const uint64_t> hashes,
                                    std::span<bool> answers) const noexcept {
  BASALT_CHECK(answers.size() >= hashes.size());
  if (size() == 0) {
    std::ranges::fill(answers.first(hashes.size()), false);
    return;
  }
  std::array<uint64_t, kHashesAtOnce> indexes;
  for (size_t begin = 0; begin < hashes.size(); begin += kHashesAtOnce) {
    const std::span<const uint64_t> group =
        hashes.subspan(begin, std::min(kHashesAtOnce, hashes.size() - begin));
    numbers_.IndexMany(group, indexes);
    for (size_t i = 0; i < group.size(); ++i) {
      __builtin_prefetch(cells_ + indexes[i] * fingerprint_bits_ / 8);
    }
    for (size_t i = 0; i < group.size(); ++i) {
      const uint64_t found = PackedBits::Get(cells_, indexes[i], fingerprint_bits_);
      answers[begin + i] = found == phash::Fingerprint(phash::Mix(group[i]), fingerprint_bits_);
    }
  }
}

double FingerprintSet::bits_per_key() const noexcept {
  return size() == 0 ? 0 : 8 * static_cast<double>(bytes_.size()) / static_cast<double>(size());
}

FingerprintMap::FingerprintMap(Cells cells)
    : numbers_(std::move(cells.numbers)),
      fingerprint_bits_(cells.fingerprint_bits),
      payload_bits_(cells.payload_bits),
      bytes_(cells.bytes),
      cells_(cells.cells),
      owner_(Shared(cells.owner)) {}

Result<FingerprintMap> FingerprintMap::Build(std::span<const std::string_view> keys,
                                             std::span<const uint64_t> payloads,
                                             uint32_t payload_bits, uint32_t fingerprint_bits,
                                             const PerfectHashOptions& options) try {
  BASALT_RETURN_IF_ERROR(CheckFingerprintBits(fingerprint_bits));
  BASALT_RETURN_IF_ERROR(CheckPayloads(keys.size(), payloads, payload_bits));
  BASALT_ASSIGN_OR_RETURN(PerfectHash numbers, PerfectHashBuilder(options).Build(keys));
  const auto walk = [&](const Cells::AddCell& add) {
    for (size_t i = 0; i < keys.size(); ++i) add(numbers.HashKey(keys[i]), payloads[i]);
    return Status();
  };
  BASALT_ASSIGN_OR_RETURN(Cells cells, Cells::Build(numbers, fingerprint_bits, payload_bits, walk));
  return FingerprintMap(std::move(cells));
} catch (const std::bad_alloc&) {
  return OutOfMemory();
}

Result<FingerprintMap> FingerprintMap::BuildFromHashes(std::span<const uint64_t> hashes,
                                                       std::span<const uint64_t> payloads,
                                                       uint32_t payload_bits,
                                                       uint32_t fingerprint_bits,
                                                       const PerfectHashOptions& options) try {
  BASALT_RETURN_IF_ERROR(CheckFingerprintBits(fingerprint_bits));
  BASALT_RETURN_IF_ERROR(CheckPayloads(hashes.size(), payloads, payload_bits));
  BASALT_ASSIGN_OR_RETURN(PerfectHash numbers, PerfectHashBuilder(options).BuildFromHashes(hashes));
  const auto walk = [&](const Cells::AddCell& add) {
    for (size_t i = 0; i < hashes.size(); ++i) add(hashes[i], payloads[i]);
    return Status();
  };
  BASALT_ASSIGN_OR_RETURN(Cells cells, Cells::Build(numbers, fingerprint_bits, payload_bits, walk));
  return FingerprintMap(std::move(cells));
} catch (const std::bad_alloc&) {
  return OutOfMemory();
}

Result<FingerprintMap> FingerprintMap::Open(std::string_view bytes) try {
  BASALT_ASSIGN_OR_RETURN(Cells cells, Cells::Open(bytes, /*payloads=*/true));
  return FingerprintMap(std::move(cells));
} catch (const std::bad_alloc&) {
  return OutOfMemory();
}

std::optional<uint64_t> FingerprintMap::Get(uint64_t hash) const noexcept {
  if (size() == 0) return std::nullopt;
  const uint64_t cell =
      PackedBits::Get(cells_, numbers_.function_->Index(hash), fingerprint_bits_ + payload_bits_);
  const uint64_t found = cell & ((uint64_t{1} << fingerprint_bits_) - 1);
  if (found != phash::Fingerprint(phash::Mix(hash), fingerprint_bits_)) return std::nullopt;
  return cell >> fingerprint_bits_;
}

double FingerprintMap::bits_per_key() const noexcept {
  return size() == 0 ? 0 : 8 * static_cast<double>(bytes_.size()) / static_cast<double>(size());
}

}  // namespace basalt
