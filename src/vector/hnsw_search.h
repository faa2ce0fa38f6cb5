#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "vector/hnsw_index.h"

// One search of an index: which way it goes, and what it does with what it finds.
//
// Ways. A walk over the graph costs about the same at any number of rows, but more the fewer pass:
// it goes through those that do not. A scan compares the codes of all rows that pass, in the order
// in which they lie. The cheaper one is taken, by the costs below. A walk that visits more than was
// expected, as with a filter that has to do with where vectors lie, gives up for the scan. So does
// one that finds fewer than there are.
//
// What either finds is taken in the order of the codes' distances, and full vectors are compared,
// some at a time, until the next one's codes say that it can as good as never come among the
// nearest k.

namespace basalt::vector {

class HnswSearch {
 public:
  HnswSearch(const HnswIndex& index, const float* query, const SearchRequest& request,
             const RowSource& rows);

  Result<SearchResult> Run();

 private:
  struct Found {
    uint32_t distance;  ///< Of codes.
    uint32_t slot;

    friend auto operator<=>(const Found&, const Found&) = default;
  };

  /// Those that pass, or about as many.
  size_t CountPassing() const;
  bool ScansRather(size_t passing) const noexcept;
  /// False: it gave up, or there is nothing to walk over.
  bool WalkOnce(size_t ef, size_t visited_max);
  Status Walk(size_t passing);
  Status Scan();
  void ScanGranule(uint32_t begin, uint32_t end);
  void Offer(uint32_t distance, uint32_t slot);

  bool PassesFilter(uint32_t slot) const;
  /// A slot that is there and passes.
  bool Passes(uint32_t slot) const;
  /// A node one of whose slots is there and passes.
  bool NodePasses(uint32_t node) const;
  void CollectRing(uint32_t node, std::vector<uint32_t>* slots) const;

  /// Compares full vectors of what was found, nearest codes first.
  Status Rerank();
  double WorstHit() const noexcept;
  /// Whether a vector whose code is so far may come before the hits there are.
  bool MayMissNearer(uint32_t code_distance) const noexcept;
  void AddHit(uint32_t slot, float distance);

  const HnswIndex& index_;
  const GraphNodes& nodes_;
  const SearchRequest& request_;
  const RowSource& rows_;
  WalkMemories::Handle memory_;
  CodeBook::Query query_;
  size_t k_;
  size_t found_max_;  ///< A scan keeps so many.
  std::vector<Found> found_;
  SearchResult result_;
};

}  // namespace basalt::vector
