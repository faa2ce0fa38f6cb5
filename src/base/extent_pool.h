#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>

#include "base/arena.h"

// Memory for objects from half a KiB to some MiB, of any size, in huge pages. Objects of the
// system's allocator lie in small pages: one read at random costs, besides the miss of its line,
// the walk that finds its page. And it has a heap for each of some threads, each with holes of its
// own.
//
// Layout: slabs of 2 MiB from a ChunkPool, divided into extents without a gap, in units of
// kAlignment bytes:
//
//   slab        kAlignment - 8 unused | extent | extent | ... | head of 8 bytes that ends the row
//   extent      head of 8 bytes | the object, aligned to kAlignment
//   head        units, and whether it is taken | units of the extent before; 0: there is none
//
// Free extents stand in lists by size, 32 to each power of two; neighbours are never both free.
// Taking looks at a few of the list in which extents of the wanted size are, then takes the first
// of any list above. A slab that is free as a whole goes back to the ChunkPool. What does not fit a
// slab is mapped by itself.
//
// Cost: some tens of ns under one lock.

namespace basalt::base {

/// Thread-safe.
template <size_t alignment>
class AlignedExtentPool {
 public:
  static constexpr size_t kAlignment = alignment;

  explicit AlignedExtentPool(std::shared_ptr<ChunkPool> chunks);
  /// Everything has been given back.
  ~AlignedExtentPool();
  AlignedExtentPool(const AlignedExtentPool&) = delete;
  AlignedExtentPool& operator=(const AlignedExtentPool&) = delete;

  /// The process's own pool; never destroyed.
  static AlignedExtentPool* Process();
  /// Covers all of it. For the handlers of fork() alone.
  std::mutex& mutex() const noexcept { return mutex_; }

  /// Memory of at least `bytes`, aligned to kAlignment, with any contents. Null: the system has
  /// none.
  char* Take(size_t bytes) noexcept;
  /// Gives back what Take gave.
  void Give(char* object) noexcept;

  /// What an object may use, and what it takes with its head; of one that Take gave.
  static size_t UsableBytes(const char* object) noexcept;
  static size_t TakenBytes(const char* object) noexcept { return UsableBytes(object) + kHeadBytes; }

  /// Bytes of slabs that hold something.
  size_t slab_bytes() const;

 private:
  static constexpr size_t kHeadBytes = 8;
  static constexpr uint32_t kSlabUnits = ChunkPool::kSlabBytes / kAlignment - 1;
  // Of the least extent: a free one's links stand where its object was.
  static constexpr uint32_t kUnitsMin = (kHeadBytes + 2 * sizeof(void*) - 1) / kAlignment + 1;

  struct Head;
  struct Free;

  // 32 to each power of two, from 32 units on; below, one for each number.
  static constexpr size_t ListOf(uint32_t units) noexcept {
    if (units < 32) return units;
    const auto shift = static_cast<uint32_t>(std::bit_width(units)) - 6;
    return shift * 32 + (units >> shift);
  }
  static constexpr size_t kLists = ListOf(kSlabUnits) + 1;

  /// Null: there is none of `units` or more.
  Head* FindFree(uint32_t units) const noexcept;
  Head* MapSlab() noexcept;
  void LinkFree(Head* head, uint32_t units) noexcept;
  void Unlink(Head* head) noexcept;

  const std::shared_ptr<ChunkPool> chunks_;
  mutable std::mutex mutex_;
  // All below under mutex_.
  std::array<Free*, kLists> lists_{};
  std::array<uint64_t, (kLists + 63) / 64> filled_{};  // bit i: list i holds something
  size_t slabs_ = 0;
};

extern template class AlignedExtentPool<16>;
extern template class AlignedExtentPool<64>;

/// For objects, packed as the system's allocator packs them.
using ObjectPool = AlignedExtentPool<16>;
/// For arrays: aligned to a cache line.
using ExtentPool = AlignedExtentPool<64>;

/// Ends an array that lies in the process's pool; of elements that need no destruction.
struct GiveExtent {
  template <class Element>
  void operator()(Element* elements) const noexcept {
    ExtentPool::Process()->Give(reinterpret_cast<char*>(elements));
  }
};

/// Has containers keep their elements in the process's pool: large ones that come and go leave
/// holes in the system allocator's heap, which it then cannot give back.
template <class Element>
struct ExtentAllocator {
  using value_type = Element;

  ExtentAllocator() = default;
  template <class Other>
  // Containers convert allocators to those of their inner types.
  ExtentAllocator(const ExtentAllocator<Other>&) noexcept {}  // NOLINT(google-explicit-constructor)

  Element* allocate(size_t count) {
    static_assert(alignof(Element) <= ExtentPool::kAlignment);
    char* const memory = ExtentPool::Process()->Take(count * sizeof(Element));
    if (memory == nullptr) throw std::bad_alloc();
    return reinterpret_cast<Element*>(memory);
  }
  void deallocate(Element* elements, size_t) noexcept { GiveExtent()(elements); }

  friend bool operator==(ExtentAllocator, ExtentAllocator) noexcept { return true; }
};

/// `count` elements in the process's pool, initialised to their defaults. Throws std::bad_alloc.
template <class Element>
std::unique_ptr<Element[], GiveExtent> MakeExtentArray(size_t count) {
  void* const memory = ExtentAllocator<Element>().allocate(count);
  return std::unique_ptr<Element[], GiveExtent>(new (memory) Element[count]());
}

}  // namespace basalt::base
