#include "table/bloom_filter.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/coding.h"

namespace basalt::table {
namespace {

constexpr uint64_t kBitsPerKey = 10;
constexpr uint64_t kLineBits = 512;
constexpr uint32_t kBlockedBloom = 1;

}  // namespace

BloomFilter BloomFilter::Allocate(uint64_t section_bytes) {
  BloomFilter filter;
  filter.count_ = section_bytes / sizeof(Line);
  filter.lines_ = base::MakeExtentArray<Line>(filter.count_);
  return filter;
}

BloomFilter BloomFilter::Build(std::span<const uint64_t> hashes) {
  const uint64_t lines =
      std::max<uint64_t>(1, (hashes.size() * kBitsPerKey + kLineBits - 1) / kLineBits);
  BloomFilter filter = Allocate((lines + 1) * sizeof(Line));
  char* const header = filter.bytes().data();
  base::Store<uint32_t>(header, kBlockedBloom);
  base::Store<uint32_t>(header + 4, kProbes);
  base::Store<uint64_t>(header + 8, lines);
  for (const uint64_t hash : hashes) {
    uint32_t* const words = filter.lines_[LineOf(hash, filter.count_)].words;
    auto product = static_cast<uint32_t>(hash);
    for (int i = 0; i < kProbes; ++i) {
      product *= kMultiplier;
      words[product >> 28] |= uint32_t{1} << (product >> 23 & 31);
    }
  }
  return filter;
}

Status BloomFilter::Validate() const {
  if (count_ < 2) return Status(StatusCode::kCorruption, "the filter is shorter than two lines");
  const char* const header = bytes().data();
  const auto kind = base::Load<uint32_t>(header);
  const auto probes = base::Load<uint32_t>(header + 4);
  if (kind != kBlockedBloom || probes != kProbes) {
    return Status(StatusCode::kUnsupported,
                  "the filter is of kind " + std::to_string(kind) + " with " +
                      std::to_string(probes) +
                      " probes, which this version cannot read; open it with the version that "
                      "wrote it");
  }
  if (base::Load<uint64_t>(header + 8) != count_ - 1) {
    return Status(StatusCode::kCorruption, "the filter's size is not what its header says");
  }
  return Status();
}

}  // namespace basalt::table
