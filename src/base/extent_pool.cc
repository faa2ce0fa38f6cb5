#include "base/extent_pool.h"

#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/coding.h"

namespace basalt::base {
namespace {

constexpr size_t kPageBytes = 4096;

}  // namespace

template <size_t alignment>
struct AlignedExtentPool<alignment>::Head {
  uint32_t units_and_taken;  ///< Units, then a bit. 0 units: mapped by itself, its size first.
  uint32_t units_before;

  static Head* Of(const char* object) noexcept {
    return reinterpret_cast<Head*>(const_cast<char*>(object)) - 1;
  }
  uint32_t units() const noexcept { return units_and_taken >> 1; }
  bool is_taken() const noexcept { return (units_and_taken & 1) != 0; }
  void Set(uint32_t units, bool is_taken) noexcept {
    units_and_taken = units << 1 | static_cast<uint32_t>(is_taken);
  }
  char* object() noexcept { return reinterpret_cast<char*>(this + 1); }
  Head* After(uint32_t its_units) noexcept {
    return reinterpret_cast<Head*>(reinterpret_cast<char*>(this) + its_units * kAlignment);
  }
  Head* Before() noexcept {
    return reinterpret_cast<Head*>(reinterpret_cast<char*>(this) - units_before * kAlignment);
  }
};

/// The first bytes of an object that is free.
template <size_t alignment>
struct AlignedExtentPool<alignment>::Free {
  Free* next;
  Free* previous;

  static Free* Of(Head* head) noexcept { return reinterpret_cast<Free*>(head->object()); }
  Head* head() noexcept { return Head::Of(reinterpret_cast<char*>(this)); }
};

template <size_t alignment>
AlignedExtentPool<alignment>::AlignedExtentPool(std::shared_ptr<ChunkPool> chunks)
    : chunks_(std::move(chunks)) {
  static_assert(sizeof(Head) == kHeadBytes);
  static_assert(kUnitsMin * kAlignment >= kHeadBytes + sizeof(Free));
}

template <size_t alignment>
AlignedExtentPool<alignment>::~AlignedExtentPool() {
  BASALT_CHECK(slabs_ == 0);
}

template <size_t alignment>
auto AlignedExtentPool<alignment>::Process() -> AlignedExtentPool* {
  static auto* const kPool = new AlignedExtentPool(ChunkPool::Process());
  return kPool;
}

template <size_t alignment>
size_t AlignedExtentPool<alignment>::UsableBytes(const char* object) noexcept {
  const Head& head = *Head::Of(object);
  if (head.units() != 0) return head.units() * kAlignment - kHeadBytes;
  return Load<uint64_t>(object - kAlignment) - kAlignment;
}

template <size_t alignment>
auto AlignedExtentPool<alignment>::FindFree(uint32_t units) const noexcept -> Head* {
  constexpr int kLooksMax = 2;
  const size_t own = ListOf(units);
  int looks = 0;
  for (Free* free = lists_[own]; free != nullptr && looks < kLooksMax; free = free->next, ++looks) {
    if (free->head()->units() >= units) return free->head();
  }
  const size_t first = own + 1;
  for (size_t word = first / 64; word < filled_.size(); ++word) {
    uint64_t bits = filled_[word];
    if (word == first / 64) bits &= ~uint64_t{0} << (first % 64);
    if (bits != 0) return lists_[word * 64 + static_cast<size_t>(std::countr_zero(bits))]->head();
  }
  return nullptr;
}

template <size_t alignment>
void AlignedExtentPool<alignment>::LinkFree(Head* head, uint32_t units) noexcept {
  const size_t list = ListOf(units);
  head->Set(units, /*is_taken=*/false);
  Free* const free = Free::Of(head);
  free->previous = nullptr;
  free->next = lists_[list];
  if (free->next != nullptr) free->next->previous = free;
  lists_[list] = free;
  filled_[list / 64] |= uint64_t{1} << (list % 64);
}

template <size_t alignment>
void AlignedExtentPool<alignment>::Unlink(Head* head) noexcept {
  const size_t list = ListOf(head->units());
  Free* const free = Free::Of(head);
  if (free->next != nullptr) free->next->previous = free->previous;
  (free->previous != nullptr ? free->previous->next : lists_[list]) = free->next;
  if (lists_[list] == nullptr) filled_[list / 64] &= ~(uint64_t{1} << (list % 64));
}

// Gives the extent that fills it, in no list.
template <size_t alignment>
auto AlignedExtentPool<alignment>::MapSlab() noexcept -> Head* {
  char* const slab = chunks_->Take(ChunkPool::kSlabBytes);
  if (slab == nullptr) return nullptr;
  ++slabs_;
  Head* const whole = Head::Of(slab + kAlignment);
  whole->Set(kSlabUnits, /*is_taken=*/false);
  whole->units_before = 0;
  Head* const end = whole->After(kSlabUnits);
  end->Set(0, /*is_taken=*/true);
  end->units_before = kSlabUnits;
  return whole;
}

template <size_t alignment>
char* AlignedExtentPool<alignment>::Take(size_t bytes) noexcept {
  if (IsRefusedToPools()) return nullptr;
  if (bytes > kSlabUnits * kAlignment - kHeadBytes) {
    if (bytes > SIZE_MAX / 2) return nullptr;
    const size_t mapped =
        std::max(RoundUp(bytes + kAlignment, kPageBytes), ChunkPool::kSlabBytes + kPageBytes);
    char* const memory = chunks_->Take(mapped);
    if (memory == nullptr) return nullptr;
    Store<uint64_t>(memory, mapped);
    char* const object = memory + kAlignment;
    Head::Of(object)->Set(0, /*is_taken=*/true);
    return object;
  }
  auto units = static_cast<uint32_t>((bytes + kHeadBytes + kAlignment - 1) / kAlignment);
  units = std::max(units, kUnitsMin);
  const std::lock_guard lock(mutex_);
  Head* head = FindFree(units);
  if (head != nullptr) {
    Unlink(head);
  } else if (head = MapSlab(); head == nullptr) {
    return nullptr;
  }
  // A rest too small for its links stays with the object.
  if (const uint32_t rest_units = head->units() - units; rest_units < kUnitsMin) {
    units = head->units();
  } else {
    Head* const rest = head->After(units);
    ASAN_UNPOISON_MEMORY_REGION(rest, kHeadBytes + sizeof(Free));
    rest->units_before = units;
    rest->After(rest_units)->units_before = rest_units;
    LinkFree(rest, rest_units);
  }
  head->Set(units, /*is_taken=*/true);
  ASAN_UNPOISON_MEMORY_REGION(head->object(), UsableBytes(head->object()));
  return head->object();
}

template <size_t alignment>
void AlignedExtentPool<alignment>::Give(char* object) noexcept {
  Head* head = Head::Of(object);
  BASALT_CHECK(head->is_taken());
  if (head->units() == 0) {
    char* const memory = object - kAlignment;
    return chunks_->Give(memory, Load<uint64_t>(memory));
  }
  {
    const std::lock_guard lock(mutex_);
    // So that AddressSanitizer sees a use after this; but for the links.
    constexpr size_t kSeen = sizeof(Free);
    ASAN_POISON_MEMORY_REGION(object + kSeen, UsableBytes(object) - kSeen);
    uint32_t units = head->units();
    if (Head* const after = head->After(units); !after->is_taken()) {
      Unlink(after);
      units += after->units();
    }
    if (head->units_before != 0 && !head->Before()->is_taken()) {
      Head* const before = head->Before();
      Unlink(before);
      units += before->units();
      head = before;
    }
    head->After(units)->units_before = units;
    if (units != kSlabUnits) return LinkFree(head, units);
    --slabs_;
  }
  chunks_->Give(head->object() - kAlignment, ChunkPool::kSlabBytes);
}

template <size_t alignment>
size_t AlignedExtentPool<alignment>::slab_bytes() const {
  const std::lock_guard lock(mutex_);
  return slabs_ * ChunkPool::kSlabBytes;
}

template class AlignedExtentPool<16>;
template class AlignedExtentPool<64>;

}  // namespace basalt::base
