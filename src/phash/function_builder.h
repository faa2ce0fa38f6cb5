#pragma once

// src/phash: builds and reads minimal perfect hash functions. Read this builder first; lookups are
// in basalt/perfect_hash.h.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/perfect_hash.h"
#include "base/seeded_hash.h"

namespace basalt::phash {

/// Builds the serialised form of a function: the first level from the keys, in as many walks as the
/// memory budget asks for, each further level from what the one before could not place, and a table
/// of the last few.
class FunctionBuilder {
 public:
  using HashFunction = uint64_t (*)(std::string_view key, const base::SeededHash& hash);

  /// `hash` is another function only in tests.
  explicit FunctionBuilder(const PerfectHashOptions& options, HashFunction hash = &HashOf);

  Result<std::string> Build(std::span<const std::string_view> keys);
  Result<std::string> Build(const KeySource& keys);
  Result<std::string> BuildFromHashes(std::span<const uint64_t> hashes);

 private:
  class Input;
  class KeyInput;
  class SpanInput;
  class SourceInput;
  class HashInput;

  static uint64_t HashOf(std::string_view key, const base::SeededHash& hash) { return hash(key); }
  Result<std::string> BuildFrom(Input* input);
  /// `repeated` gets the hashes that were there twice; the result is of no use then.
  Result<std::string> TryBuild(Input* input, std::vector<uint64_t>* repeated);
  Result<uint64_t> Passes(uint64_t keys, uint64_t bytes_a_key) const;
  bool Report(PerfectHashProgress::Stage stage, uint64_t done, uint64_t total) const;

  PerfectHashOptions options_;
  HashFunction hash_;
};

}  // namespace basalt::phash
