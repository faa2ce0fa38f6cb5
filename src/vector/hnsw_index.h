#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/status.h"
#include "vector/code_book.h"
#include "vector/graph_audit.h"
#include "vector/graph_nodes.h"
#include "vector/graph_walk.h"
#include "vector/hnsw_checkpoint.h"
#include "vector/slot_allocator.h"

// An index over vectors that its caller stores. A search finds the nearest vectors by codes in
// memory, then asks the caller for full vectors and compares these.
//
//   HnswIndex
//   ├── CodeBook        vector -> code                 code_book.h, rotation.h
//   ├── GraphNodes      codes, links, states by slot   graph_nodes.h, slot_rows.h
//   ├── SlotAllocator   which slots are free           slot_allocator.h
//   ├── GraphWalk       search                         graph_walk.h, candidate_pool.h
//   ├── GraphInsertion  add                            graph_insertion.h
//   ├── GraphRepair     remove for good                graph_repair.h
//   ├── GraphAudit      check                          graph_audit.h
//   └── kernels         distances                      kernels.h
//
// The caller knows a vector by its slot, which Add returns, and stores which id and record belong
// to a slot. The index can be rebuilt from the vectors. The slot of a removed vector is used again
// later: a hit names the slot that RowSource was asked about, so the caller should record there
// whose vector it returned.
//
// Threads: all functions may be called at once. Searches take only a short lock for their memory.
// RowSource and filters are called outside locks and epochs.

namespace basalt::vector {

/// Full vectors, wherever they lie.
class RowSource {
 public:
  virtual ~RowSource() = default;
  /// The distances, by the metric, of the vector that is looked for from those in `slots`.
  /// Infinity: this one is not to be returned (removed meanwhile, not visible yet).
  virtual Status Distances(std::span<const uint32_t> slots, float* distances) const = 0;
};

/// Which slots a search may return.
struct SlotFilter {
  /// Slot i passes if bit i % 64 of word i / 64 is set, and never beyond the end.
  std::span<const uint64_t> bits = {};
  /// Asked instead of bits. Called often: some hundred nanoseconds are much.
  std::function<bool(uint32_t)> predicate = {};
  bool has_bits = false;

  bool IsOpen() const noexcept { return !has_bits && predicate == nullptr; }
};

struct SearchRequest {
  /// 0: as many as lie within max_distance.
  size_t k = 10;
  double max_distance = std::numeric_limits<double>::infinity();
  /// How many a walk finds by codes: more find better, and take longer. 0: 64, or k if that is
  /// more, and more yet where codes tell the nearest ones too little apart.
  size_t ef = 0;
  /// Compares all codes instead of walking.
  bool scans = false;
  SlotFilter filter = {};
};

struct SearchHit {
  uint32_t slot;
  float distance;
};

struct SearchResult {
  enum class Path : uint8_t { kWalk, kScan, kWalkThenScan };

  std::vector<SearchHit> hits;  ///< Nearest first, then by slot.
  Path path = Path::kWalk;
  size_t codes_compared = 0;
  size_t rows_compared = 0;
};

struct HnswStats {
  size_t live = 0;
  size_t removed = 0;  ///< Still in the graph, for repair to take out.
  size_t free = 0;
  size_t bytes = 0;
  double beyond_share = 0;  ///< Of coordinates added, those beyond the code book's ends.
};

class HnswIndex {
 public:
  /// Vectors of `book`'s kind; the graph's levels come from its seed.
  explicit HnswIndex(CodeBook book);
  ~HnswIndex();
  HnswIndex(const HnswIndex&) = delete;
  HnswIndex& operator=(const HnswIndex&) = delete;

  const CodeBook& book() const noexcept { return book_; }
  size_t size() const noexcept { return live_.load(std::memory_order_relaxed); }
  /// Slots are below.
  uint32_t slots() const noexcept { return nodes_.size(); }

  /// Gives the vector a slot, and finds it from now on. ResourceExhausted: no memory, or 2^30
  /// vectors.
  Result<uint32_t> Add(const float* vector);
  /// Does not find the slot's vector from now on. NotFound: the slot has none.
  Status Remove(uint32_t slot);

  /// The nearest to `query`: exactly min(k, how many pass and lie within max_distance), unless
  /// RowSource refuses some. An error is RowSource's.
  Result<SearchResult> Search(const float* query, const SearchRequest& request,
                              const RowSource& rows) const;

  /// Takes removed vectors out of the graph for good, and frees their slots and codes. Searches and
  /// Add go on beside it, but for a moment at its beginning. It costs least for each when many are
  /// removed: call it when Stats().removed is a twentieth of what is live. ResourceExhausted: no
  /// memory; what is not done is done by the next call.
  Status Repair();

  /// Hands an image of the index to `sink`, piece by piece. Everything goes on beside it, but
  /// Repair and another Save. The image has all that was added before, nothing whose Add began
  /// after the first piece, and of removals meanwhile some. `id` is bound into its checksums: of a
  /// file, say. An error is the sink's; ResourceExhausted: no memory.
  Status Save(uint64_t id, const CheckpointSink& sink);
  /// The index of such an image, with the same slots. Corruption: it is not one, or not whole;
  /// Unsupported: of a later version; ResourceExhausted: no memory.
  static Result<std::unique_ptr<HnswIndex>> Load(std::string_view image);

  /// Looks at every link. Add, Remove and Repair wait for it.
  Result<GraphAudit> Audit() const;
  HnswStats Stats() const;

 private:
  friend class HnswSearch;

  /// repair_mutex_ is held.
  void RepairLocked();
  /// After all slots were read.
  void CountSlots();

  const CodeBook book_;
  GraphNodes nodes_;
  SlotAllocator allocator_;
  mutable WalkMemories memories_;
  mutable std::mutex repair_mutex_;  ///< Held by Repair, Save and Audit.
  bool leaves_condemned_ = false;    ///< Of a repair that failed; under repair_mutex_.
  /// Shared: whoever adds or removes.
  mutable std::shared_mutex maintenance_;
  std::atomic<size_t> live_{0};
  std::atomic<size_t> removed_{0};
  std::atomic<uint64_t> coordinates_added_{0};
  std::atomic<uint64_t> coordinates_beyond_{0};
};

}  // namespace basalt::vector
