#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/arena.h"
#include "cache/entry_heap.h"
#include "cache/memory_budget.h"

namespace basalt::cache {

/// Memory for entries. Small ones come from slabs, blocks of 4 KiB that hold objects of one size
/// class each; those up to some KiB from the shard's EntryHeap; larger ones from the process's
/// ExtentPool, where they begin with a cache line.
///
/// Slab: a header of 64 bytes, then the objects. Free objects form a list through their first 8
/// bytes, whose last two are zero in an address, so that byte 6 tells a free object from an entry
/// (its size class). Slabs with free objects stand in their class's list, the others in none.
///
/// Classes: every 8 bytes to 128, every 16 to 512; rounding up wastes 3.5 bytes on the mean to 128,
/// and 7.5 above, at most 6 % of a class.
///
/// Budget: a slab is charged whole when it is taken and refunded when its last object is freed and
/// another slab of its class has room; a larger entry by what it takes of heap or pool.
///
/// A few larger ones that were freed are kept as spares for the next of about their size: a full
/// cache frees one for each that it allocates, and the pool has one lock for all shards. Spares
/// stay charged.
///
/// Not thread-safe, under the shard's lock; but for FreeOwn of large objects and bytes().
class SlabAllocator {
 public:
  static constexpr size_t kSlabBytes = size_t{4} << 10;
  static constexpr size_t kSmallBytesMax = 512;
  static constexpr size_t kClasses = 16 + 24 + 1;  ///< Class 0: memory of its own.

  explicit SlabAllocator(MemoryBudget* budget, size_t heap_block_bytes = EntryHeap::kBlockBytesMax);
  ~SlabAllocator();
  SlabAllocator(const SlabAllocator&) = delete;
  SlabAllocator& operator=(const SlabAllocator&) = delete;

  static constexpr uint8_t ClassOf(size_t bytes) noexcept {
    if (bytes > kSmallBytesMax) return 0;
    return static_cast<uint8_t>(bytes <= 128 ? (bytes + 7) / 8 : 16 + (bytes - 128 + 15) / 16);
  }
  static constexpr size_t ClassBytes(uint8_t size_class) noexcept {
    return size_class <= 16 ? size_class * size_t{8} : 128 + (size_class - 16) * size_t{16};
  }

  /// Whether an object of class 0 that is allocated now lies in the ExtentPool.
  bool IsLarge(size_t bytes) const noexcept {
    return bytes > kSmallBytesMax && !(uses_heap_ && heap_.Holds(bytes));
  }
  EntryHeap& heap() noexcept { return heap_; }
  const EntryHeap& heap() const noexcept { return heap_; }
  bool uses_heap() const noexcept { return uses_heap_; }
  /// False: its blocks are too large for the shard. What would lie there is large from now on.
  void UseHeap(bool uses) noexcept { uses_heap_ = uses; }

  /// Null: the budget (when `within_budget`) or the system has none.
  void* Allocate(size_t bytes, bool within_budget = true) noexcept;
  /// `size_class`: ClassOf(the bytes that were asked for).
  void Free(void* object, uint8_t size_class, bool is_large = false) noexcept;
  /// An object of class 0, which may become a spare.
  void FreeToSpare(void* object, bool is_large) noexcept;
  /// An object of class 0; a large one needs no lock.
  void FreeOwn(void* object, bool is_large) noexcept;

  /// What an object takes of the budget, alone or as its part of a slab.
  static uint64_t ChargedBytes(const void* object, uint8_t size_class, bool is_large) noexcept;

  /// Gives back slabs that hold nothing, and spares. True: there were some.
  bool ReleaseEmptySlabs() noexcept;
  bool ReleaseSpares() noexcept;
  bool HasSpareFor(size_t bytes) const noexcept { return FindSpare(bytes) != kSparesMax; }

  /// The slab with the fewest bytes in use of any class but `but`, to be emptied by the owner; with
  /// `movable`, of those whose objects have room in other slabs. Null: there is none.
  void* SparsestSlab(uint8_t but, bool movable) const noexcept;
  /// Takes a slab out of use: nothing more is allocated in it, and it is given back with its last
  /// object. It must have room.
  void Close(void* slab) noexcept;
  /// Calls `visit(object)` for each that is taken.
  template <class Visit>
  static void ForEachIn(void* slab, const Visit& visit);

  uint32_t free_objects(uint8_t size_class) const noexcept {
    return classes_[size_class].free_objects;
  }
  /// In slabs, of all classes.
  uint64_t free_bytes() const noexcept {
    uint64_t bytes = 0;
    for (uint8_t c = 1; c < kClasses; ++c) bytes += classes_[c].free_objects * ClassBytes(c);
    return bytes;
  }
  /// Charged now.
  uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  struct Slab;
  struct Class {
    Slab* first = nullptr;  ///< With free objects; the one to take from.
    uint32_t free_objects = 0;
    uint32_t slabs = 0;
  };

  struct Spare {
    void* object;
    size_t bytes;  ///< Usable.
    bool is_large;
  };
  static constexpr size_t kSparesMax = 4;

  static Slab* SlabOf(void* object) noexcept;
  // Of objects with memory of their own.
  void* AllocateOwn(size_t bytes) noexcept;
  void GiveOwn(void* object, bool is_large) noexcept;
  /// Its place; kSparesMax: none fits.
  size_t FindSpare(size_t bytes) const noexcept;
  Slab* TakeSlab(uint8_t size_class) noexcept;
  void GiveSlab(Slab* slab) noexcept;
  /// One that stands in no list.
  void Return(Slab* slab) noexcept;
  void List(Slab* slab) noexcept;
  void Unlist(Slab* slab) noexcept;

  const std::shared_ptr<base::ChunkPool> pool_;
  MemoryBudget* const budget_;
  EntryHeap heap_;
  bool uses_heap_ = true;
  std::array<Class, kClasses> classes_{};
  std::atomic<uint64_t> bytes_{0};
  std::array<Spare, kSparesMax> spares_;
  size_t spare_count_ = 0;
};

struct alignas(64) SlabAllocator::Slab {
  Slab* next;
  Slab* previous;
  void* free;      ///< First of the list; null: none.
  uint32_t bytes;  ///< Of an object.
  uint16_t capacity;
  uint16_t used;
  uint16_t touched;  ///< Objects beyond were never taken.
  uint8_t size_class;
  bool is_closed;

  char* at(size_t i) noexcept { return reinterpret_cast<char*>(this + 1) + i * bytes; }
};

template <class Visit>
void SlabAllocator::ForEachIn(void* slab, const Visit& visit) {
  constexpr size_t kClassOffset = 6;
  auto* const s = static_cast<Slab*>(slab);
  for (size_t i = 0; i < s->touched; ++i) {
    if (s->at(i)[kClassOffset] != 0) visit(s->at(i));
  }
}

}  // namespace basalt::cache
