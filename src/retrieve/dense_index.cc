#include <bit>
#include <cstring>
#include <utility>

#include "basalt/retrieve.h"
#include "basalt/vector_index.h"
#include "base/check.h"
#include "base/out_of_memory.h"

// Vectors of passages in a VectorIndex. The id of a vector is the number of its passage, 8 bytes,
// big-endian.

namespace basalt {
namespace {

std::string VectorId(NodeId passage) {
  const uint64_t number = std::byteswap(static_cast<uint64_t>(passage));
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

Result<NodeId> PassageOf(std::string_view id) {
  uint64_t number = 0;
  if (id.size() != sizeof number) {
    return Status(StatusCode::kCorruption, "a vector of a dense index belongs to no passage");
  }
  std::memcpy(&number, id.data(), sizeof number);
  return NodeId{std::byteswap(number)};
}

class VectorDenseIndex final : public DenseIndex {
 public:
  VectorDenseIndex(std::unique_ptr<VectorIndex> index, DenseIndexOptions options)
      : index_(std::move(index)), options_(std::move(options)) {}

  Result<std::vector<std::vector<float>>> Embed(std::span<const std::string> texts) override {
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    BASALT_ASSIGN_OR_RETURN(const std::vector<float> elements, options_.embed(views));
    const size_t dimension = index_->dimension();
    if (elements.size() != dimension * texts.size()) {
      return Status(StatusCode::kInvalidArgument,
                    "DenseIndexOptions::embed gave " + std::to_string(elements.size()) +
                        " elements for " + std::to_string(texts.size()) +
                        " texts; the dimension is " + std::to_string(dimension));
    }
    std::vector<std::vector<float>> vectors;
    for (auto at = elements.begin(); at != elements.end();
         at += static_cast<ptrdiff_t>(dimension)) {
      vectors.emplace_back(at, at + static_cast<ptrdiff_t>(dimension));
    }
    return vectors;
  }

  Status Put(Transaction& tx, NodeId passage, std::span<const float> vector) override {
    return index_->Add(tx, VectorId(passage), vector);
  }
  Status Remove(Transaction& tx, NodeId passage) override {
    return index_->Remove(tx, VectorId(passage));
  }

  Result<std::vector<DenseHit>> Search(std::string_view query, size_t k) override {
    const std::vector<std::string> texts = {std::string(query)};
    BASALT_ASSIGN_OR_RETURN(const auto vectors, Embed(texts));
    BASALT_ASSIGN_OR_RETURN(const VectorSearchResult found, index_->Search(vectors[0], {.k = k}));
    std::vector<DenseHit> hits;
    for (const VectorHit& hit : found.hits) {
      BASALT_ASSIGN_OR_RETURN(const NodeId passage, PassageOf(hit.id));
      hits.push_back({passage, 1 - static_cast<double>(hit.distance)});
    }
    return hits;
  }

 private:
  const std::unique_ptr<VectorIndex> index_;
  const DenseIndexOptions options_;
};

}  // namespace

Result<std::unique_ptr<DenseIndex>> OpenDenseIndex(Store* store, const DenseIndexOptions& options) {
  return base::OrOutOfMemory([&]() -> Result<std::unique_ptr<DenseIndex>> {
    if (!options.embed) {
      return Status(StatusCode::kInvalidArgument, "DenseIndexOptions::embed is missing");
    }
    BASALT_ASSIGN_OR_RETURN(
        std::unique_ptr<VectorIndex> index,
        VectorIndex::OpenOrCreate(store, options.name,
                                  {.dimension = options.dimension, .model = options.model}));
    return std::unique_ptr<DenseIndex>(new VectorDenseIndex(std::move(index), options));
  });
}

}  // namespace basalt
