#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/attributes.h"
#include "basalt/status.h"
#include "basalt/store.h"
#include "basalt/transaction.h"
#include "basalt/vector.h"

// The nearest vectors, in a keyspace of a store. Read VectorIndex first. docs/vectors.md explains
// it.

namespace basalt {

namespace vector {
class IndexCore;
class RowFilter;
struct IndexAccess;
}  // namespace vector

/// A vector with its id and attributes.
struct VectorItem {
  std::string id;  ///< Any bytes, up to 65,534.
  std::vector<float> vector;
  Attributes attributes{};
};

/// Properties that are fixed when a vector index is created. Open compares those that are set with
/// the stored ones.
struct VectorIndexOptions {
  /// 1 to kVectorDimensionMax. Open: 0 takes any.
  size_t dimension = 0;
  /// kL2, kInnerProduct or kCosine. Create: unset is kCosine. Open: unset takes any.
  std::optional<VectorMetric> metric{};
  /// Only kFloat32 can be stored so far.
  std::optional<VectorElement> element{};
  /// A label of the model that makes the vectors, such as "all-MiniLM-L6-v2". Vectors of two models
  /// cannot be compared, so Open refuses another label. Open: empty accepts any.
  std::string model{};
  /// Called periodically by Open, with the numbers of vectors read and of vectors put into the
  /// graph.
  std::function<void(uint64_t read, uint64_t linked)> on_progress{};
};

/// Selects the vectors that a search may return. A copy is cheap. Immutable and thread-safe.
class VectorFilter {
 public:
  /// All vectors.
  VectorFilter() noexcept = default;
  /// By attributes: `lang == 'en' and (year >= 2020 or exists pinned)`. docs/vectors.md has the
  /// grammar. InvalidArgument: the expression has a syntax error; the message has the position.
  static Result<VectorFilter> Parse(std::string_view expression);
  /// Vectors with one of these ids.
  static VectorFilter Ids(std::vector<std::string> ids);
  /// Vectors whose id begins with `prefix`.
  static VectorFilter IdPrefix(std::string prefix);
  /// Vectors for which `passes` is true. It is called often, on the searching thread, outside
  /// locks. An exception reaches the caller of Search. The search does not see what `passes`
  /// writes.
  static VectorFilter Where(
      std::function<bool(std::string_view id, const Attributes& attributes)> passes);

  bool passes_all() const noexcept { return filter_ == nullptr; }
  /// For the index.
  const vector::RowFilter* row_filter() const noexcept { return filter_.get(); }

 private:
  explicit VectorFilter(std::shared_ptr<const vector::RowFilter> filter) noexcept
      : filter_(std::move(filter)) {}
  std::shared_ptr<const vector::RowFilter> filter_;
};

/// Options of a search. The defaults need no tuning.
struct VectorSearchOptions {
  /// At least 1.
  size_t k = 10;
  /// Farther vectors are not returned.
  float max_distance = std::numeric_limits<float>::infinity();
  VectorFilter filter{};
  /// The share of the true nearest vectors that should be found, above 0 up to 1. It determines
  /// `ef`. 1 means `exact`.
  double recall = 0.95;
  /// The number of candidates that a graph walk keeps. 0: determined by `recall`.
  size_t ef = 0;
  /// Compares all vectors that pass the filter.
  bool exact = false;
  /// Whether hits include their attributes.
  bool with_attributes = false;
};

/// A vector that a search found.
struct VectorHit {
  std::string id;
  float distance = 0;  ///< Exact, by the metric. Small is near.
  /// Greater is nearer. Cosine: 1 - distance / 2, from 0 to 1. L2: 1 / (1 + distance), from 0 to 1.
  /// Inner product: the product.
  float score = 0;
  Attributes attributes{};  ///< With `with_attributes`.
};

/// How a search was executed.
struct VectorSearchPlan {
  enum class Path : uint8_t {
    kScan = 0,          ///< Compared all vectors; there is no graph yet.
    kWalk = 1,          ///< Walked over the graph.
    kScanCodes = 2,     ///< Compared the codes of all vectors, because few pass.
    kWalkThenScan = 3,  ///< Ended a walk that became too long, then compared codes.
    kLookUp = 4,        ///< Looked up the ids that the filter names.
    kScanStore = 5,     ///< Read all records of the store.
  };
  Path path = Path::kScan;
  uint64_t codes_compared = 0;
  uint64_t vectors_compared = 0;
};
/// For example "walk".
std::string_view VectorSearchPathName(VectorSearchPlan::Path path) noexcept;

struct VectorSearchResult {
  std::vector<VectorHit> hits;  ///< Nearest first, then by id.
  VectorSearchPlan plan;
};

/// Statistics of an index at one moment.
struct VectorIndexStats {
  uint64_t vectors = 0;
  uint64_t linked = 0;      ///< Of these, in the graph.
  uint64_t removed = 0;     ///< Removed vectors that are still in the graph.
  uint64_t unreadable = 0;  ///< Records that are not vectors of this index.
  uint64_t memory_bytes = 0;
  bool from_checkpoint = false;  ///< Opened from a checkpoint.
};

/// Nearest-neighbour search of vectors with ids and attributes. They are stored in a keyspace of a
/// store, and are as durable and transactional as the store.
///
///     auto index = basalt::VectorIndex::Create(db.get(), "docs", {.dimension = 384}).value();
///     auto added = index->Add("doc/7", embedding, {{"lang", "en"}, {"year", 2024}});
///     auto found = index->Search(query, {.k = 10, .filter = basalt::VectorFilter::Parse(
///                                                     "lang == 'en'").value()});
///     for (const basalt::VectorHit& hit : found->hits) Use(hit.id, hit.distance);
///
/// The records in the store are authoritative. The data in memory (codes, links, ids, attributes)
/// is derived from them: it follows every commit to the keyspace, whichever caller makes it.
///
/// - A search sees one moment of the store: all commits up to it, whole, and none after it. It sees
///   all writes that returned before the search began.
/// - It returns exactly min(k, vectors that pass and lie within max_distance) hits.
/// - Below several thousand vectors a search compares all of them. Above, it walks a graph of codes
///   (HNSW) and compares full vectors, read from the store. Training is not needed.
///
/// Functions that change the index commit on their own, or are part of a transaction and take
/// effect with it. An error changes nothing. InvalidArgument: a wrong dimension, an element that is
/// not finite, a zero vector under cosine, an id that is too long, attributes that are too large.
///
/// Several indexes may be open on one keyspace at once. Thread-safe. The store must outlive the
/// index. It needs a store with transactions, snapshots, keyspaces and changes (a DB).
///
/// Cost: besides its record, a vector takes about dimension + 160 bytes for code and links, and 120
/// bytes with its id and attributes. Adding one to the graph takes about 100 microseconds on the
/// adding thread. docs/vectors.md has more.
class VectorIndex final {
 public:
  /// Creates an index in a keyspace of its own, called `name`. AlreadyExists: the name is taken.
  static Result<std::unique_ptr<VectorIndex>> Create(Store* store, std::string_view name,
                                                     const VectorIndexOptions& options);
  /// Opens an index. Reads all records, and links those that the checkpoint does not have.
  /// NotFound: there is no keyspace of this name. InvalidArgument: the index was created with other
  /// options, or for another model. Corruption: the keyspace is not a vector index.
  static Result<std::unique_ptr<VectorIndex>> Open(Store* store, std::string_view name,
                                                   const VectorIndexOptions& options = {});
  static Result<std::unique_ptr<VectorIndex>> OpenOrCreate(Store* store, std::string_view name,
                                                           const VectorIndexOptions& options);
  /// Does not save a checkpoint.
  ~VectorIndex();
  VectorIndex(const VectorIndex&) = delete;
  VectorIndex& operator=(const VectorIndex&) = delete;

  VectorMetric metric() const noexcept;
  VectorElement element() const noexcept;
  size_t dimension() const noexcept;
  const std::string& model() const noexcept;
  KeyspaceId keyspace() const noexcept;

  /// Adds a vector, or replaces the one with this id.
  Result<Commit> Add(std::string_view id, std::span<const float> vector,
                     const Attributes& attributes = {}, const WriteOptions& options = {});
  Status Add(Transaction& tx, std::string_view id, std::span<const float> vector,
             const Attributes& attributes = {});
  /// Adds many vectors in one commit: all or none. The store's limit of a batch applies.
  Result<Commit> AddBatch(std::span<const VectorItem> items, const WriteOptions& options = {});
  /// Replaces a vector's attributes. NotFound: the id is absent.
  Result<Commit> Update(std::string_view id, const Attributes& attributes,
                        const WriteOptions& options = {});
  Status Update(Transaction& tx, std::string_view id, const Attributes& attributes);
  /// Removes the vector. It may be absent.
  Result<Commit> Remove(std::string_view id, const WriteOptions& options = {});
  Status Remove(Transaction& tx, std::string_view id);

  /// Nothing: the id is absent.
  Result<std::optional<VectorItem>> Get(std::string_view id) const;
  /// As the transaction sees it, with its own writes.
  Result<std::optional<VectorItem>> Get(Transaction& tx, std::string_view id) const;
  /// `result[i]` is the answer for `ids[i]`. All are read at one moment.
  Result<std::vector<std::optional<VectorItem>>> MultiGet(
      std::span<const std::string_view> ids) const;

  /// The vectors nearest to `query`. InvalidArgument: `query` is not a valid vector (see above), k
  /// is 0, or recall is not above 0 and up to 1.
  Result<VectorSearchResult> Search(std::span<const float> query,
                                    const VectorSearchOptions& options = {}) const;

  /// Calls `visit` with each vector of one moment, ordered by id. Stops at the first error and
  /// returns it. Corruption: a record is not a vector of this index.
  Status ForEach(const std::function<Status(const VectorItem& item)>& visit) const;
  /// The same, from the id `from` on, inclusive.
  Status ForEach(std::string_view from,
                 const std::function<Status(const VectorItem& item)>& visit) const;
  /// The number of vectors.
  Result<uint64_t> Count() const;
  VectorIndexStats Stats() const;

  /// Puts all vectors into the graph, if there are enough for one, and removes deleted ones from
  /// it. Adding does this gradually. After a bulk load, calling it makes the next searches faster.
  Status Compact();
  /// Saves codes and links in the keyspace, so that Open does not have to compute them again. Does
  /// nothing without a graph. The vectors themselves need no saving.
  Status SaveCheckpoint();

 private:
  friend struct vector::IndexAccess;
  explicit VectorIndex(std::unique_ptr<vector::IndexCore> core) noexcept;
  const std::unique_ptr<vector::IndexCore> core_;
};

}  // namespace basalt
