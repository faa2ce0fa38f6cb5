#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>

// Memory that is taken by bumping a pointer, addressed by 32-bit positions, never given back one by
// one, and recycled whole.
//
// ChunkPool hands out blocks of a power of two, 4 KiB to 2 MiB, carved by halving from slabs of 2
// MiB that are aligned to their size (so that the kernel can back each by one huge page). A block
// that comes back is joined with its free other half. Slabs that are free as a whole are kept, up
// to a bound: touching fresh pages costs several times what writing a record costs. They are joined
// with their neighbours to ranges, from which larger blocks, of several slabs, are taken too. Free
// pages of slabs of which some blocks are taken go back to the system when they are more than a
// sixty-fourth of the taken ones, and more than half of the bound on kept memory. A slab loses its
// huge page with its first page that goes. Pages of the newest slab do not count, for they are
// taken next.
//
// Arena lays chunks out in one space of positions, in units of 8 bytes, 512 units a page:
//
//   slot        0        1         2       ...   K          K+1        ...
//   pages      [1,2)   [2,4)     [4,8)         [2^K,2*2^K) [2*2^K,3*2^K)      2^K pages:
//   chunk_bytes_max
//
// Slot k's size follows from k alone, so a position gives its slot by one bit scan, and the slot's
// memory by two loads: no lock, no branch, and both nearly always hit the cache. Position 0 lies in
// no slot. Who writes has a cursor, which bumps through pieces of chunks, each twice as long as the
// last one: several can write at once, each to lines of its own, and what one holds in reserve is
// no more than what it has written. A block larger than half the next slot, or above 64 KiB, gets
// memory of its own size, and one of the positions from 0xF0000000 on, which are numbers in a
// second directory.
//
// An arena with one cursor, whose blocks are all of one size, a power of two up to 4 KiB, is a
// column: it has no gaps, so that block i lies i times that size behind kFirstPosition. Its first
// chunks can be given back while it grows at the other end.

namespace basalt::base {

/// Tests set it: pools refuse what it gives true for, as if the system had no memory.
inline constinit std::atomic<bool (*)() noexcept> refuses_pools{nullptr};

inline bool IsRefusedToPools() noexcept {
  const auto refuses = refuses_pools.load(std::memory_order_relaxed);
  return refuses != nullptr && refuses();
}

/// Recycles blocks of memory. Thread-safe.
class ChunkPool : public std::enable_shared_from_this<ChunkPool> {
 public:
  static constexpr size_t kBlockBytesMin = size_t{4} << 10;
  static constexpr size_t kSlabBytes = size_t{2} << 20;

  /// Gives free memory beyond `kept_bytes_max` to the system.
  explicit ChunkPool(size_t kept_bytes_max = size_t{128} << 20);
  ~ChunkPool();
  ChunkPool(const ChunkPool&) = delete;
  ChunkPool& operator=(const ChunkPool&) = delete;

  /// The process's own pool; never destroyed.
  static const std::shared_ptr<ChunkPool>& Process();

  /// Memory of `bytes`, a power of two from kBlockBytesMin on, aligned to min(bytes, kSlabBytes),
  /// with any contents. Null: the system has none. Above kSlabBytes it may be any multiple of
  /// kBlockBytesMin.
  char* Take(size_t bytes) noexcept;
  /// The same, all zeros.
  char* TakeZeros(size_t bytes) noexcept;
  /// Gives back what Take gave, with the same `bytes`.
  void Give(char* block, size_t bytes) noexcept;

  /// When no slab is left that is wholly free: has the process's background map one and touch its
  /// pages, for a caller that will soon take one more. Of a pool that a shared_ptr owns.
  void MakeReady() noexcept;

  /// Raises (or lowers) the bound on what is kept: by those who will want again what they give.
  void KeepMore(int64_t bytes) noexcept;

  /// Covers all of it. For the handlers of fork() alone.
  std::mutex& mutex() const noexcept { return mutex_; }
  /// In a forked child, under the mutex: the job that makes a slab ready was the parent's.
  void ForgetJobOfParent() noexcept { is_making_ready_ = false; }

  /// Gives the free pages of slabs of which blocks are taken to the system.
  void ReleaseFreePages();

  /// Bytes of slabs that are mapped and wholly free.
  size_t kept_bytes() const;
  /// Bytes of these, and of slabs of which blocks are taken; not of larger blocks that are taken.
  size_t slab_bytes() const;
  /// Of them, what the system has not got back.
  size_t resident_bytes() const;

 private:
  static constexpr size_t kOrders = 10;  // 4 KiB << order
  /// Free pages that are kept of slabs of which some blocks are taken, besides the newest slab's: a
  /// share of the taken ones, and this many in any case.
  static constexpr size_t kFreePagesShare = 64;
  static constexpr size_t kFreePagesMin = 256;
  static_assert(kBlockBytesMin << (kOrders - 1) == kSlabBytes);

  struct Slab;

  void AddReadySlab() noexcept;
  /// Of more than a slab, from what is kept. Null: nothing that is kept is as large.
  char* TakeKept(size_t bytes) noexcept;

  // All below under mutex_.
  using FreeRanges = std::map<char*, size_t>;
  char* TakeOrder(size_t order);
  void GiveOrder(char* block, size_t order);
  /// One that is wholly free. Null: no memory.
  Slab* AddSlab() noexcept;
  /// Whole slabs. Null: no range is as large.
  char* TakeFree(size_t bytes) noexcept;
  bool AddFree(char* begin, size_t bytes) noexcept;
  void Resize(FreeRanges::iterator range, size_t bytes) noexcept;
  void List(Slab* slab);
  void Unlist(Slab* slab);
  bool HoldsTooManyPages() noexcept;
  void ReleasePages(const Slab* but);

  mutable std::mutex mutex_;
  // All below under mutex_. A slab stands in the list of its largest free block: in one of the
  // first lists if it has free pages that are not released, else in one of the second.
  std::unordered_map<uintptr_t, std::unique_ptr<Slab>> slabs_;
  size_t kept_bytes_max_;
  std::array<std::array<Slab*, kOrders>, 2> lists_{};
  size_t free_pages_ = 0;  ///< Of slabs of which blocks are taken; without released ones.
  size_t released_pages_ = 0;
  Slab* newest_ = nullptr;  ///< From which blocks are being taken; null: it has gone.
  bool is_releasing_ = false;
  FreeRanges free_;  // of whole slabs, with their bytes; none touches another
  std::set<std::pair<size_t, char*>> free_by_size_;
  size_t free_bytes_ = 0;
  bool is_making_ready_ = false;
};

/// Bytes charged against one limit. Thread-safe; one relaxed atomic.
class ByteBudget {
 public:
  explicit ByteBudget(uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  /// Charges `bytes`, unless that would pass the limit and `within_limit` is set.
  bool Charge(uint64_t bytes, bool within_limit) noexcept {
    const uint64_t before = used_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    if (!within_limit || before + bytes <= limit_bytes_) return true;
    Refund(bytes);
    return false;
  }
  void Refund(uint64_t bytes) noexcept { used_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

  uint64_t used_bytes() const noexcept { return used_bytes_.load(std::memory_order_relaxed); }
  uint64_t limit_bytes() const noexcept { return limit_bytes_; }

 private:
  const uint64_t limit_bytes_;
  std::atomic<uint64_t> used_bytes_{0};
};

/// Bump allocation. Thread-safe but for cursors, each of which is one writer's at a time; `At` is
/// for any reader to whom a position was published with release. All memory returns to the pool on
/// destruction.
class Arena {
 public:
  using Position = uint32_t;
  static constexpr size_t kUnitBytes = 8;
  static constexpr uint32_t kUnitsInPage = 512;
  static constexpr size_t kOwnChunkBytes = size_t{64} << 10;
  /// Where a column begins.
  static constexpr Position kFirstPosition = 512;

  /// Position 0: none.
  struct Block {
    Position position = 0;
    char* at = nullptr;  ///< At(position)
  };
  /// What is left of the piece that a writer took.
  class Cursor {
   public:
    /// Nothing is: as at first, and when a piece is used up.
    bool is_empty() const noexcept { return units_left_ == 0; }

   private:
    friend class Arena;
    char* at_ = nullptr;  // of next_
    Position next_ = 0;
    uint32_t units_left_ = 0;
    uint32_t piece_units_ = kUnitsInPage;  // of the next one, if the chunk has as many
  };

  /// The largest chunk that a table of `budget_bytes` should take: a 64th, as a power of two.
  static size_t ChunkBytesMax(uint64_t budget_bytes) noexcept;

  /// `chunk_bytes_max`: a power of two, 4 KiB to 2 MiB. `pool` and `budget` outlive the arena.
  Arena(ChunkPool* pool, ByteBudget* budget, size_t chunk_bytes_max) noexcept;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Space for `bytes`, aligned to 8. None: the budget (if `within_limit`), the system's memory or
  /// the positions (30 GiB of chunks, 2^28 larger blocks) are used up; nothing is taken then.
  Block Allocate(Cursor* cursor, size_t bytes, bool within_limit) noexcept {
    const size_t units = (bytes + kUnitBytes - 1) / kUnitBytes;
    return units <= cursor->units_left_ ? Bump(cursor, units)
                                        : AllocateInNewPiece(cursor, units, within_limit);
  }

  /// Makes sure that a column has room for its next block. False: as for Allocate.
  bool PrepareBlock(Cursor* cursor, bool within_limit) noexcept {
    if (!cursor->is_empty()) return true;
    const std::lock_guard lock(mutex_);
    return StartPiece(cursor, 1, within_limit);
  }

  char* At(Position position) const noexcept {
    if (position >= kOwnPosition) [[unlikely]] {
      return own_chunks_.At(position - kOwnPosition).load(std::memory_order_relaxed);
    }
    // Nothing branches on where it lies: that cannot be guessed.
    const uint32_t page = position / kUnitsInPage;
    const uint32_t doublings =
        std::min(static_cast<uint32_t>(std::bit_width(page | 1)) - 1, slots_doubling_);
    const uint32_t slot = doublings + (page >> doublings) - 1;
    const uint32_t unit = position & ((kUnitsInPage << doublings) - 1);
    return chunks_.At(slot).load(std::memory_order_relaxed) + size_t{unit} * kUnitBytes;
  }

  /// Units from `position` to the end of its chunk's slot: how far a column may be walked from
  /// At(position).
  size_t ContiguousUnits(Position position) const noexcept;

  /// Gives back the chunks all of whose units lie before `position`, which nobody looks at any
  /// more. Of a column only. One thread at a time, beside the writer and readers of later
  /// positions.
  void FreeBefore(Position position) noexcept;

 private:
  static constexpr Position kOwnPosition = 0xF000'0000;
  static_assert(ChunkPool::kBlockBytesMin == kUnitsInPage * kUnitBytes);

  /// Addresses by number, in one array, which a copy twice as large replaces when it is full: a
  /// search through several would branch on the number. Relaxed loads of an address do: who has a
  /// number got it after the address was set.
  class Directory {
   public:
    Directory() noexcept : addresses_(first_.data()) {}
    [[gnu::always_inline]] std::atomic<char*>& At(uint32_t number) const noexcept {
      return addresses_.load(std::memory_order_acquire)[number];
    }
    /// Makes the place for a number, the next one. False: the budget (if `within_limit`) or memory
    /// is used up.
    bool Prepare(uint32_t number, ByteBudget* budget, bool within_limit) noexcept;
    void Free(ByteBudget* budget) noexcept;

   private:
    static constexpr uint32_t kFirst = 16;
    static constexpr uint32_t kCopies = 24;
    static constexpr size_t CountOf(uint32_t copy) noexcept { return size_t{2 * kFirst} << copy; }
    std::array<std::atomic<char*>, kFirst> first_{};
    std::atomic<std::atomic<char*>*> addresses_;
    std::array<std::atomic<char*>*, kCopies> copies_{};  // readers may still be in any of them
  };

  // Memory of its own size for one large block; the block follows this header.
  struct OwnChunk;

  static Block Bump(Cursor* cursor, size_t units) noexcept {
    const Block block{cursor->next_, cursor->at_};
    cursor->at_ += units * kUnitBytes;
    cursor->next_ += static_cast<Position>(units);
    cursor->units_left_ -= static_cast<uint32_t>(units);
    return block;
  }
  Block AllocateInNewPiece(Cursor* cursor, size_t units, bool within_limit) noexcept;
  // Under mutex_.
  Block AllocateOwnChunk(size_t units, bool within_limit) noexcept;
  bool StartPiece(Cursor* cursor, size_t units_min, bool within_limit) noexcept;
  bool StartChunk(bool within_limit) noexcept;

  uint32_t SlotPages(uint32_t slot) const noexcept;
  uint32_t SlotFirstPage(uint32_t slot) const noexcept;

  ChunkPool* const pool_;
  ByteBudget* const budget_;
  const uint32_t slots_doubling_;  // K
  const uint32_t pages_max_;       // 2^K
  Directory chunks_;               // by slot; grows under mutex_
  Directory own_chunks_;           // grows under mutex_

  std::mutex mutex_;
  Cursor chunk_;                  // what pieces are cut from; under mutex_
  uint32_t slots_used_ = 0;       // under mutex_
  uint32_t own_chunks_used_ = 0;  // under mutex_
  uint32_t slots_freed_ = 0;      // the first ones; FreeBefore's
};

}  // namespace basalt::base
