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

namespace basalt {

namespace vector {
class IndexCore;
class RowFilter;
struct IndexAccess;
}  // namespace vector

/// A vector with what is kept beside it.
struct VectorItem {
  std::string id;  ///< Any bytes, up to 65,534.
  std::vector<float> vector;
  Attributes attributes{};
};

/// What is fixed when a vector index is made. Open compares what is set with what is stored.
struct VectorIndexOptions {
  /// 1 to kVectorDimensionMax. Open: 0 takes any.
  size_t dimension = 0;
  /// kL2, kInnerProduct or kCosine. Create: unset is kCosine. Open: unset takes any.
  std::optional<VectorMetric> metric{};
  /// Only kFloat32 can be stored so far.
  std::optional<VectorElement> element{};
  /// A label for what made the vectors, such as "all-MiniLM-L6-v2". Vectors of two models cannot be
  /// compared, so Open refuses another label. Open: empty takes any.
  std::string model{};
  /// Open calls it now and then with vectors read and vectors put into the graph so far.
  std::function<void(uint64_t read, uint64_t linked)> on_progress{};
};

/// Which vectors a search may return. A copy is cheap. Immutable and thread-safe.
class VectorFilter {
 public:
  /// All of them.
  VectorFilter() noexcept = default;
  /// By attributes: `lang == 'en' and (year >= 2020 or exists pinned)`; docs/vectors.md has the
  /// grammar. InvalidArgument: the expression is not readable; the message has the position.
  static Result<VectorFilter> Parse(std::string_view expression);
  /// Those with one of these ids.
  static VectorFilter Ids(std::vector<std::string> ids);
  /// Those whose id begins with `prefix`.
  static VectorFilter IdPrefix(std::string prefix);
  /// Those for which `passes` is true. Called often, from the thread that searches, outside locks.
  /// What it throws reaches the caller of Search. The search does not see what it writes.
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

/// How to search. The defaults need no tuning.
struct VectorSearchOptions {
  /// At least 1.
  size_t k = 10;
  /// Farther vectors are not returned.
  float max_distance = std::numeric_limits<float>::infinity();
  VectorFilter filter{};
  /// The share of the true nearest that should be found, above 0 up to 1. It chooses `ef`. 1 is
  /// `exact`.
  double recall = 0.95;
  /// How many candidates a walk over the graph keeps. 0: chosen by `recall`.
  size_t ef = 0;
  /// Compares all vectors that pass.
  bool exact = false;
  /// Whether hits have their attributes.
  bool with_attributes = false;
};

/// A vector that was found.
struct VectorHit {
  std::string id;
  float distance = 0;  ///< Exact, by the metric. Small is near.
  /// Large is near. Cosine: 1 - distance / 2, from 0 to 1. L2: 1 / (1 + distance), from 0 to 1.
  /// Inner product: the product.
  float score = 0;
  Attributes attributes{};  ///< With `with_attributes`.
};

/// How a search was made.
struct VectorSearchPlan {
  enum class Path : uint8_t {
    kScan = 0,          ///< Compared all vectors; there is no graph yet.
    kWalk = 1,          ///< Walked over the graph.
    kScanCodes = 2,     ///< Compared the codes of all vectors, because few pass.
    kWalkThenScan = 3,  ///< Gave up a walk that became too long.
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

/// Figures of an index at one moment.
struct VectorIndexStats {
  uint64_t vectors = 0;
  uint64_t linked = 0;      ///< Of these, in the graph.
  uint64_t removed = 0;     ///< In the graph, and not yet taken out of it.
  uint64_t unreadable = 0;  ///< Records that are no vectors of this index.
  uint64_t memory_bytes = 0;
  bool from_checkpoint = false;  ///< Opened from a checkpoint.
};

/// Vectors with ids and attributes in a keyspace of a store: durable and transactional as the store
/// is, found by nearness.
///
///     auto index = basalt::VectorIndex::Create(db.get(), "docs", {.dimension = 384}).value();
///     auto added = index->Add("doc/7", embedding, {{"lang", "en"}, {"year", 2024}});
///     auto found = index->Search(query, {.k = 10, .filter = basalt::VectorFilter::Parse(
///                                                     "lang == 'en'").value()});
///     for (const basalt::VectorHit& hit : found->hits) Use(hit.id, hit.distance);
///
/// The records in the store are the truth. What is in memory (codes, links, ids, attributes) is
/// derived: it follows every commit to the keyspace, whoever makes it.
///
/// - A search sees one moment of the store: all commits up to it, whole, and none after it. All
///   writes that had returned when the search began are among them.
/// - It returns exactly min(k, vectors that pass and lie within max_distance) hits.
/// - Below several thousand vectors a search compares all of them. Above, it walks a graph of codes
///   (HNSW) and compares full vectors, read from the store. Nothing has to be trained or optimised.
///
/// Mutators commit on their own, or are part of a transaction and take effect with it. An error
/// changes nothing. InvalidArgument: a wrong dimension, an element that is not finite, a zero
/// vector under cosine, an id that is too long, attributes that are too large.
///
/// Several indexes may be open on one keyspace at once. Thread-safe. The store must outlive the
/// index. It needs a store with transactions, snapshots, keyspaces and changes (a DB).
///
/// Cost: per vector above its record about dimension + 160 bytes for code and links, and 120 bytes
/// with its id and attributes. Adding one to the graph takes about 100 microseconds of the thread
/// that adds. docs/vectors.md has more.
class VectorIndex final {
 public:
  /// Makes an index in a keyspace of its own, called `name`. AlreadyExists: the name is taken.
  static Result<std::unique_ptr<VectorIndex>> Create(Store* store, std::string_view name,
                                                     const VectorIndexOptions& options);
  /// Opens it. Reads all records, and links those that the checkpoint does not have. NotFound:
  /// there is none of this name; InvalidArgument: it was made with other options, or for another
  /// model; Corruption: the keyspace is no vector index.
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
  /// Adds many in one commit: all or none. The store's limit of a batch applies.
  Result<Commit> AddBatch(std::span<const VectorItem> items, const WriteOptions& options = {});
  /// Replaces a vector's attributes. NotFound: there is no such id.
  Result<Commit> Update(std::string_view id, const Attributes& attributes,
                        const WriteOptions& options = {});
  Status Update(Transaction& tx, std::string_view id, const Attributes& attributes);
  /// Removes it, present or not.
  Result<Commit> Remove(std::string_view id, const WriteOptions& options = {});
  Status Remove(Transaction& tx, std::string_view id);

  /// Nothing: there is no such id.
  Result<std::optional<VectorItem>> Get(std::string_view id) const;
  /// As the transaction sees it, with its own writes.
  Result<std::optional<VectorItem>> Get(Transaction& tx, std::string_view id) const;
  /// `result[i]` answers `ids[i]`; all of one moment.
  Result<std::vector<std::optional<VectorItem>>> MultiGet(
      std::span<const std::string_view> ids) const;

  /// The nearest vectors to `query`. InvalidArgument: `query` as of mutators; k is 0; recall is not
  /// above 0 and up to 1.
  Result<VectorSearchResult> Search(std::span<const float> query,
                                    const VectorSearchOptions& options = {}) const;

  /// Calls `visit` with each vector of one moment, by the order of ids. Stops at the first error,
  /// which is its result. Corruption: a record is no vector of this index.
  Status ForEach(const std::function<Status(const VectorItem& item)>& visit) const;
  /// The same from the id `from` on, itself included.
  Status ForEach(std::string_view from,
                 const std::function<Status(const VectorItem& item)>& visit) const;
  /// How many vectors there are.
  Result<uint64_t> Count() const;
  VectorIndexStats Stats() const;

  /// Puts all vectors into the graph, if there are enough for one, and takes removed ones out of
  /// it. Adding does this by and by; after a bulk load it makes the next searches faster.
  Status Compact();
  /// Saves codes and links in the keyspace, so that Open need not compute them again. Does nothing
  /// without a graph. The vectors themselves need no saving.
  Status SaveCheckpoint();

 private:
  friend struct vector::IndexAccess;
  explicit VectorIndex(std::unique_ptr<vector::IndexCore> core) noexcept;
  const std::unique_ptr<vector::IndexCore> core_;
};

}  // namespace basalt
