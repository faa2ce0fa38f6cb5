#include "table/filter_pages.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "table/block_ref.h"
#include "table/part_key.h"
#include "table/table_format.h"

namespace basalt::table {

FilterPages::FilterPages(const BloomFilter& filter, uint64_t file_id, uint64_t offset)
    : file_id_(file_id),
      offset_(offset),
      lines_(filter.bytes().size() / sizeof(BloomFilter::Line)) {
  const std::string_view bytes = filter.bytes();
  for (size_t at = 0; at < bytes.size(); at += kPageBytes) {
    checksums_.push_back(base::Checksum(file_id, offset + at, bytes.substr(at, kPageBytes)));
  }
}

Result<Value> FilterPages::Load(const io::File& file, uint64_t page, Cache* cache) const {
  const uint64_t begin = page * kPageBytes;
  const size_t size = std::min<uint64_t>(kPageBytes, lines_ * sizeof(BloomFilter::Line) - begin);
  std::optional<CacheAllocation> in_cache;
  Value own;
  char* bytes = nullptr;
  if (auto allocation = cache->Allocate(PartKey::OfFilterPage(file_id_, page).view(), size)) {
    bytes = in_cache.emplace(std::move(*allocation)).bytes().data();
  } else {
    own = AllocateBlockMemory(size, &bytes);
  }
  BASALT_RETURN_IF_ERROR(file.ReadExactAt(offset_ + begin, {bytes, size}));
  if (checksums_[page] != base::Checksum(file_id_, offset_ + begin, {bytes, size})) {
    return TableError(StatusCode::kCorruption, file.path(), "filter page", offset_ + begin,
                      "its checksum is wrong");
  }
  return in_cache ? std::move(*in_cache).Publish() : std::move(own);
}

}  // namespace basalt::table
