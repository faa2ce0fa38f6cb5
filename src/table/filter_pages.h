#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "basalt/cache.h"
#include "basalt/status.h"
#include "basalt/value.h"
#include "io/file_system.h"
#include "table/bloom_filter.h"

namespace basalt::table {

/// A table's filter that is not kept in memory: it is read in pages of 4 KiB, through the cache. Of
/// each page a checksum is kept, 8 bytes for some 3,200 keys, made when the whole filter was read
/// and checked. A lookup needs one page. Immutable, so thread-safe.
class FilterPages {
 public:
  static constexpr size_t kPageBytes = 4096;

  FilterPages() noexcept = default;
  /// Of a filter that was found right and lies at `offset` of the file.
  FilterPages(const BloomFilter& filter, uint64_t file_id, uint64_t offset);

  bool empty() const noexcept { return checksums_.empty(); }
  size_t memory_bytes() const noexcept { return checksums_.size() * sizeof(uint64_t); }

  /// The page that knows of a key with this hash.
  uint64_t PageOf(uint64_t hash) const noexcept {
    return BloomFilter::LineOf(hash, lines_) / kPageLines;
  }
  /// False: no key with this hash was added. `page`: the bytes of PageOf(hash).
  bool MayContain(std::string_view page, uint64_t hash) const noexcept {
    const uint64_t line = BloomFilter::LineOf(hash, lines_) % kPageLines;
    return BloomFilter::MayContain(page.data() + line * sizeof(BloomFilter::Line), hash);
  }
  /// Reads a page into the cache, or into memory of its own where that has no room for it.
  /// Corruption: it is not what it was. Errors name file and offset.
  Result<Value> Load(const io::File& file, uint64_t page, Cache* cache) const;

 private:
  static constexpr uint64_t kPageLines = kPageBytes / sizeof(BloomFilter::Line);

  uint64_t file_id_ = 0;
  uint64_t offset_ = 0;
  uint64_t lines_ = 0;  // with line 0
  std::vector<uint64_t> checksums_;
};

}  // namespace basalt::table
