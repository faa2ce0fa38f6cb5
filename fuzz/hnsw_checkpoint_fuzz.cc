#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "vector/hnsw_index.h"
#include "vector/test_reseal.h"

// Any bytes as the checkpoint of an index, once as they are and once with all checksums made right,
// so that what they protect is reached. Either they are refused with a message, or the index is
// sound, is searched, repaired and added to, and what it saves is what was read.

namespace {

using basalt::Status;
using basalt::StatusCode;
using basalt::vector::HnswIndex;

class AllAreNear : public basalt::vector::RowSource {
 public:
  Status Distances(std::span<const uint32_t> slots, float* distances) const override {
    for (size_t i = 0; i < slots.size(); ++i) distances[i] = static_cast<float>(slots[i]);
    return Status();
  }
};

void CheckImage(std::string_view image) {
  auto index = HnswIndex::Load(image);
  if (!index) {
    BASALT_CHECK(!index.error().message().empty());
    BASALT_CHECK(index.status().code() == StatusCode::kCorruption ||
                 index.status().code() == StatusCode::kUnsupported);
    return;
  }
  std::string saved;
  uint64_t id;
  std::memcpy(&id, image.data() + 16, sizeof id);
  const Status status = (*index)->Save(id, [&](std::string_view piece) {
    saved += piece;
    return Status();
  });
  BASALT_CHECK(status.ok());
  BASALT_CHECK(saved == image);
  const std::vector<float> vector((*index)->book().dimension(), 0.5F);
  for (const bool scans : {false, true}) {
    basalt::vector::SearchRequest request;
    request.scans = scans;
    const auto found = (*index)->Search(vector.data(), request, AllAreNear());
    BASALT_CHECK(found.has_value());
    BASALT_CHECK(found->hits.size() == std::min<size_t>(10, (*index)->size()));
  }
  BASALT_CHECK((*index)->Repair().ok());
  BASALT_CHECK((*index)->Add(vector.data()).has_value());
  BASALT_CHECK((*index)->Audit().value().fault.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > (1u << 20)) return 0;
  std::string image(reinterpret_cast<const char*>(data), size);
  CheckImage(image);
  basalt::vector::ResealCheckpoint(&image);
  CheckImage(image);
  return 0;
}
