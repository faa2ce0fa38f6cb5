#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>

#include "base/arena.h"
#include "base/extent_lists.h"

// Memory for objects from some KiB to some MiB, of any size, in huge pages. Objects of the system's
// allocator lie in small pages: one read at random costs, besides the miss of its line, the walk
// that finds its page. And it has a heap for each of some threads, each with holes of its own.
//
// Layout: slabs of 2 MiB from a ChunkPool, each with a header and then a row of extents
// (extent_lists.h). A slab that is free as a whole goes back to the ChunkPool. What does not fit a
// slab is mapped by itself.
//
// Whole pages of free extents go back to the system when they are more than a thirty-second of the
// taken ones: objects of other sizes may never fit into the holes that some leave. Those of the
// newest slab do not count, for they are taken next. What stays is less than two pages for each
// free extent.
//
// Cost: some tens of ns under one lock; while pages go back, some tens of us for a Give.

namespace basalt::base {

/// Thread-safe.
class ExtentPool {
 public:
  static constexpr size_t kAlignment = 64;

  explicit ExtentPool(std::shared_ptr<ChunkPool> chunks);
  /// Everything has been given back.
  ~ExtentPool();
  ExtentPool(const ExtentPool&) = delete;
  ExtentPool& operator=(const ExtentPool&) = delete;

  /// The process's own pool; never destroyed.
  static ExtentPool* Process();
  /// Covers all of it. For the handlers of fork() alone.
  std::mutex& mutex() const noexcept { return mutex_; }

  /// Memory of at least `bytes`, aligned to kAlignment, with any contents. Null: the system has
  /// none.
  char* Take(size_t bytes) noexcept;
  /// Gives back what Take gave.
  void Give(char* object) noexcept;

  /// What an object may use, and what it takes with its head; of one that Take gave.
  static size_t UsableBytes(const char* object) noexcept;
  static size_t TakenBytes(const char* object) noexcept {
    return UsableBytes(object) + Extents::kHeadBytes;
  }

  /// Whether free memory lies on both sides of an object that Take gave.
  bool IsBetweenFree(const char* object) const noexcept;
  /// Gives all whole pages that are free to the system.
  void ReleaseFreePages() noexcept;

  /// Bytes of slabs that hold something.
  size_t slab_bytes() const;
  /// Of them, what the system has not got back.
  size_t resident_bytes() const;

 private:
  using Extents = ExtentLists<kAlignment, ChunkPool::kSlabBytes>;
  using Head = Extents::Head;
  struct Slab;
  /// Free pages that are kept, but for the newest slab's: a share of the taken ones, and some in
  /// any case.
  static constexpr size_t kFreePagesShare = 32;
  static constexpr size_t kFreePagesMin = 512;

  // All below under mutex_.
  Head* MapSlab() noexcept;
  void Link(Head* head) noexcept;
  void Unlink(Head* head) noexcept;
  bool HoldsTooManyPages() noexcept;
  void ReleasePages() noexcept;
  /// Gives how many extents the slab has.
  int ReleasePagesOfNextSlab() noexcept;

  const std::shared_ptr<ChunkPool> chunks_;
  mutable std::mutex mutex_;
  // All below under mutex_.
  Extents extents_;
  size_t slabs_ = 0;
  Slab* next_slab_ = nullptr;  ///< In a ring of all: whose pages are released next.
  Slab* newest_ = nullptr;     ///< From which objects are being taken; null: it has gone.
  size_t free_pages_ = 0;      ///< Whole pages of free extents that are not released.
  size_t released_pages_ = 0;
  bool is_releasing_ = false;
};

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
