#include "basalt/perfect_hash.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/check.h"
#include "phash/function.h"
#include "phash/function_builder.h"

namespace basalt {
namespace {

constexpr size_t kHashesAtOnce = 256;

/// A function with its bytes.
struct OwnedFunction {
  std::string bytes;
  phash::Function function;
};

}  // namespace

PerfectHash::PerfectHash(std::shared_ptr<const phash::Function> function) noexcept
    : function_(std::move(function)) {}

Result<PerfectHash> PerfectHash::Open(std::string_view bytes) try {
  BASALT_ASSIGN_OR_RETURN(phash::Function function, phash::Function::Open(bytes));
  return PerfectHash(std::make_shared<const phash::Function>(std::move(function)));
} catch (const std::bad_alloc&) {
  return Status(StatusCode::kResourceExhausted, "opening a perfect hash function: out of memory");
}

Result<PerfectHash> PerfectHash::Own(Result<std::string> bytes) try {
  if (!bytes) return bytes.error();
  // A move of the string leaves its bytes in place: they are more than fit into the object.
  BASALT_ASSIGN_OR_RETURN(phash::Function function, phash::Function::Open(*bytes));
  const auto owned = std::make_shared<const OwnedFunction>(std::move(*bytes), std::move(function));
  return PerfectHash(std::shared_ptr<const phash::Function>(owned, &owned->function));
} catch (const std::bad_alloc&) {
  return Status(StatusCode::kResourceExhausted, "building a perfect hash function: out of memory");
}

std::string_view PerfectHash::bytes() const& noexcept { return function_->bytes(); }
uint64_t PerfectHash::size() const noexcept { return function_->size(); }
PerfectHashSeeds PerfectHash::seeds() const noexcept { return function_->seeds(); }
uint64_t PerfectHash::hash_seed() const noexcept { return function_->hash_seed(); }
std::vector<PerfectHash::LevelFigures> PerfectHash::levels() const { return function_->levels(); }

uint64_t PerfectHash::HashKey(std::string_view key) const noexcept {
  return function_->HashKey(key);
}

uint64_t PerfectHash::Index(std::string_view key) const noexcept {
  return function_->Index(function_->HashKey(key));
}

uint64_t PerfectHash::Index(uint64_t hash) const noexcept { return function_->Index(hash); }

void PerfectHash::IndexMany(std::span<const uint64_t> hashes,
                            std::span<uint64_t> indexes) const noexcept {
  function_->IndexMany(hashes, indexes);
}

void PerfectHash::IndexMany(std::span<const std::string_view> keys,
                            std::span<uint64_t> indexes) const noexcept {
  BASALT_CHECK(indexes.size() >= keys.size());
  std::array<uint64_t, kHashesAtOnce> hashes;
  for (size_t begin = 0; begin < keys.size(); begin += hashes.size()) {
    const size_t count = std::min(hashes.size(), keys.size() - begin);
    for (size_t i = 0; i < count; ++i) hashes[i] = function_->HashKey(keys[begin + i]);
    function_->IndexMany(std::span(hashes).first(count), indexes.subspan(begin, count));
  }
}

double PerfectHash::bits_per_key() const noexcept {
  return size() == 0 ? 0 : 8 * static_cast<double>(bytes().size()) / static_cast<double>(size());
}

PerfectHashBuilder::PerfectHashBuilder(PerfectHashOptions options) : options_(std::move(options)) {}
PerfectHashBuilder::~PerfectHashBuilder() = default;

Result<PerfectHash> PerfectHashBuilder::Build(std::span<const std::string_view> keys) const {
  return PerfectHash::Own(phash::FunctionBuilder(options_).Build(keys));
}

Result<PerfectHash> PerfectHashBuilder::Build(const KeySource& keys) const {
  return PerfectHash::Own(phash::FunctionBuilder(options_).Build(keys));
}

Result<PerfectHash> PerfectHashBuilder::BuildFromHashes(std::span<const uint64_t> hashes) const {
  return PerfectHash::Own(phash::FunctionBuilder(options_).BuildFromHashes(hashes));
}

}  // namespace basalt
