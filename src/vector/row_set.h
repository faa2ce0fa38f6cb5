#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "basalt/status.h"
#include "basalt/wall_time.h"
#include "vector/hnsw_index.h"
#include "vector/slot_rows.h"
#include "vector/vector_record.h"

// What a vector index keeps in memory of its records: one row for each, and its vector or its place
// in the graph.
//
//   id -> IndexRow               ids_, the newest row of each id
//   IndexRow                  id, attributes, stamp of the record; added and removed: the commits
//                             from which and to which it is visible
//   blocks_                   256 rows each with their vectors: rows that are not in the graph yet
//   graph_, slot_rows_        the others: code and links by slot, and the row of each slot
//
// A row begins in the last block. Link moves rows of full blocks into the graph, which then has
// their codes alone. Without a graph (fewer rows than `graph_rows_min`) all stay in blocks.
//
// Versions. Commits are followed in order, each as a whole under mutex_ (class Update). A commit
// never changes a row: it adds a row and marks the one that it replaces. So a reader that has
// chosen a commit V sees the rows with added <= V < removed, and these are exactly the records that
// the store had after V. A row that is marked stays findable, in its block or by its slot, until no
// reader has an older V. It is freed when no reader that may have met it is left.
//
// A reader captures the list of blocks, compares what is in them, and then searches the graph, in
// this order. A row moves from blocks to the graph only, and is found in the graph before its block
// gives it up. So it is met at least once, and may be met twice. Moves among blocks (Pack) leave
// the old block as it is.
//
// Locks: mutex_ guards everything but what is atomic; it is held for short steps, and never while
// vectors are compared or the store is called. upkeep_mutex_ is held by those who make the graph,
// repair it or save it; nobody waits for it but Save. It is taken first.
//
// Cost: a row takes 100 bytes with its entry in ids_, and its id and attributes; in a block also
// its vector.

namespace basalt::vector {

inline constexpr uint64_t kNeverRemoved = std::numeric_limits<uint64_t>::max();

struct RowBlock;

/// A record's row. Its id and attributes lie behind it.
struct IndexRow {
  uint64_t added = 0;
  std::atomic<uint64_t> removed{kNeverRemoved};
  uint64_t stamp = 0;
  WallTime expiry = WallTime::max();
  RowBlock* block = nullptr;  ///< Null: it is in the graph. Under the mutex.
  uint32_t place = 0;         ///< In the block, or the slot. Under the mutex.
  uint32_t id_bytes = 0;
  uint32_t attribute_bytes = 0;

  std::string_view id() const noexcept { return {bytes(), id_bytes}; }
  std::string_view attributes() const noexcept { return {bytes() + id_bytes, attribute_bytes}; }
  bool IsVisible(uint64_t commit, WallTime now) const noexcept {
    return added <= commit && commit < removed.load(std::memory_order_acquire) && now < expiry;
  }

  struct Free {
    void operator()(IndexRow* row) const noexcept;
  };
  using Owner = std::unique_ptr<IndexRow, Free>;
  /// Throws std::bad_alloc.
  static Owner Make(std::string_view id, std::string_view attributes);

 private:
  IndexRow() = default;
  const char* bytes() const noexcept { return reinterpret_cast<const char*>(this + 1); }
};

inline constexpr uint32_t kBlockRows = 256;

struct RowBlock {
  explicit RowBlock(size_t dimension) : vectors(new float[kBlockRows * dimension]) {}

  bool IsFull() const noexcept { return count.load(std::memory_order_relaxed) == kBlockRows; }

  /// Rows below have their vectors.
  std::atomic<uint32_t> count{0};
  std::atomic<IndexRow*> rows[kBlockRows] = {};
  const std::unique_ptr<float[]> vectors;
  // Under the mutex.
  uint32_t held = 0;        ///< Rows that are not null.
  uint32_t linked_to = 0;   ///< Link has looked at the rows below.
  bool is_claimed = false;  ///< By Link.
};
using RowBlocks = std::vector<std::shared_ptr<RowBlock>>;

/// Rows of a checkpoint: the slot of an id, and the record that it was made of.
struct LinkedRow {
  uint32_t slot = 0;
  uint64_t stamp = 0;
};

class RowSet {
 public:
  struct Options {
    size_t graph_rows_min = 10'000;
  };

  RowSet(const IndexMetadata& metadata, const Options& options);
  ~RowSet();
  RowSet(const RowSet&) = delete;
  RowSet& operator=(const RowSet&) = delete;

  /// One commit, as a whole: nobody sees a part of it. Holds the mutex. An update that does not
  /// come to Finish, because of std::bad_alloc, leaves a set that is_broken.
  class Update {
   public:
    Update(RowSet* set, uint64_t commit) : set_(*set), lock_(set->mutex_), commit_(commit) {}
    ~Update();
    Update(const Update&) = delete;
    Update& operator=(const Update&) = delete;

    void Put(std::string_view id, const VectorRecordView& record, std::optional<WallTime> expiry);
    void Erase(std::string_view id);
    /// All ids in [begin, end); no end: all from `begin` on.
    void EraseRange(std::string_view begin, std::optional<std::string_view> end);
    void Finish() noexcept { is_finished_ = true; }

   private:
    RowSet& set_;
    const std::lock_guard<std::mutex> lock_;
    const uint64_t commit_;
    bool is_finished_ = false;
  };

  /// It does not have what the store has, and must be made anew.
  bool is_broken() const noexcept { return is_broken_.load(std::memory_order_acquire); }
  void Break() noexcept { is_broken_.store(true, std::memory_order_release); }

  /// Takes over the graph of a checkpoint, without rows. Before everything else.
  void AdoptGraph(std::unique_ptr<HnswIndex> graph);
  /// A record whose vector is in the adopted graph. False: the slot is another row's.
  bool PutLinked(std::string_view id, const VectorRecordView& record,
                 std::optional<WallTime> expiry, uint32_t slot);
  /// Removes from the adopted graph what has no row.
  void RemoveUnclaimed();

  /// Someone who reads the set: keeps rows from being freed. One thread at a time.
  class Reader {
   public:
    /// kRows: it needs no versions that are replaced already, and does not Capture.
    enum class Keeps : uint8_t { kVersions, kRows };

    explicit Reader(RowSet* set, Keeps keeps = Keeps::kVersions);
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    struct View {
      std::shared_ptr<const RowBlocks> blocks;
      uint64_t commit = 0;  ///< Rows of this commit are to be seen.
    };
    /// `sequence` is that of a snapshot, taken after the reader was made. The view is of that
    /// moment, or of the last commit that was followed if that is earlier.
    View Capture(uint64_t sequence);
    /// The same, with the rows of `ids` that there are. Nothing: commits behind the snapshot have
    /// been followed already; take another one.
    template <class Ids>
    std::optional<View> CaptureIds(uint64_t sequence, const Ids& ids,
                                   std::vector<IndexRow*>* rows) {
      const std::lock_guard lock(set_.mutex_);
      if (set_.applied_ > sequence) return std::nullopt;
      for (const auto& id : ids) {
        const auto found = set_.ids_.find(std::string_view(id));
        if (found != set_.ids_.end()) rows->push_back(found->get());
      }
      return CaptureLocked(sequence);
    }

   private:
    View CaptureLocked(uint64_t sequence);
    RowSet& set_;
    uint64_t ticket_;
  };

  /// Null: there is none. It stays as long as the set. Only by a Reader, after it has compared the
  /// rows of its blocks.
  const HnswIndex* graph() const noexcept { return graph_.load(std::memory_order_acquire); }
  /// Null: nobody's.
  IndexRow* AtSlot(uint32_t slot) const noexcept {
    if (slot >= slot_rows_size_.load(std::memory_order_acquire)) return nullptr;
    return slot_rows_[slot].load(std::memory_order_acquire);
  }

  /// Puts up to `rows_max` rows of full blocks into the graph; makes the graph when there are
  /// enough rows. Several threads may do this at once. ResourceExhausted: the rest stay in blocks.
  Status Link(size_t rows_max);
  /// Takes removed rows out of the graph, when they are many or `always`, unless someone else does.
  Status Repair(bool always);
  /// Hands out an image of the graph, then the row of each slot in it. Does nothing without a
  /// graph. `begin` says that there is one.
  Status Save(uint64_t id, const std::function<void()>& begin, const CheckpointSink& sink,
              const std::function<Status(std::string_view id, const LinkedRow& row)>& visit);

  /// Rows of the last commit; those that have expired by `now` are not counted.
  uint64_t Count(WallTime now) const;
  struct Figures {
    uint64_t rows = 0;
    uint64_t linked = 0;
    uint64_t removed = 0;
    uint64_t bytes = 0;
    uint64_t changes = 0;  ///< Rows linked or removed from the graph since the last Save.
  };
  Figures GetFigures() const;

 private:
  struct HashOfId {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the library's name
    size_t operator()(std::string_view id) const noexcept;
    size_t operator()(const IndexRow::Owner& row) const noexcept { return (*this)(row->id()); }
  };
  struct SameId {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the library's name
    static std::string_view IdOf(std::string_view id) noexcept { return id; }
    static std::string_view IdOf(const IndexRow::Owner& row) noexcept { return row->id(); }
    template <class A, class B>
    bool operator()(const A& a, const B& b) const noexcept {
      return IdOf(a) == IdOf(b);
    }
  };
  using Ids = std::unordered_set<IndexRow::Owner, HashOfId, SameId>;

  // Under mutex_.
  IndexRow::Owner MakeRow(std::string_view id, const VectorRecordView& record,
                          std::optional<WallTime> expiry, uint64_t commit) const;
  void AppendToBlock(IndexRow* row, const void* vector, RowBlock* block) const noexcept;
  RowBlock* BlockWithRoom();
  void Insert(IndexRow::Owner row);
  void Retire(Ids::iterator place, uint64_t commit);
  /// Unlinks and frees what no reader needs any more.
  void Collect() noexcept;
  void CollectSome();
  void Unlink(IndexRow* row) noexcept;
  void DropBlock(const RowBlock* block) noexcept;
  /// Joins sparse blocks.
  void Pack();
  void MoveRowsOf(const std::shared_ptr<RowBlock>& block);

  Status EnsureGraph();
  /// Null: there is none to be linked.
  std::shared_ptr<RowBlock> ClaimBlock();
  Status LinkRow(RowBlock* block, uint32_t i);

  const IndexMetadata metadata_;
  const Options options_;
  std::atomic<bool> is_broken_{false};

  mutable std::mutex mutex_;
  Ids ids_;
  uint64_t applied_ = 0;  ///< The last commit that was followed.
  std::shared_ptr<const RowBlocks> blocks_ = std::make_shared<const RowBlocks>();
  std::deque<IndexRow::Owner> retired_;  ///< Marked, by the order of commits.
  /// Unlinked, with the ticket of the first reader that cannot have met it.
  std::deque<std::pair<uint64_t, IndexRow::Owner>> unlinked_;
  std::map<uint64_t, uint64_t> readers_;  ///< Ticket, and what the reader has chosen as V.
  uint64_t next_ticket_ = 1;
  size_t expiring_ = 0;  ///< Rows of ids_ with an expiry.
  size_t linked_ = 0;
  size_t changes_ = 0;
  size_t row_bytes_ = 0;

  std::mutex upkeep_mutex_;
  std::unique_ptr<HnswIndex> owned_graph_;
  std::atomic<HnswIndex*> graph_{nullptr};
  SlotArray<std::atomic<IndexRow*>> slot_rows_;
  std::atomic<uint32_t> slot_rows_size_{0};
};

}  // namespace basalt::vector
