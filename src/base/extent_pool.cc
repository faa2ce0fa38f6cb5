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

struct ExtentPool::Head {
  uint32_t units;  ///< 0: of what was mapped by itself; its size stands before the head.
  uint32_t units_before;
  uint32_t is_taken;
  uint32_t zero;

  static Head* Of(const char* object) noexcept {
    return reinterpret_cast<Head*>(const_cast<char*>(object)) - 1;
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
struct ExtentPool::Free {
  Free* next;
  Free* previous;

  static Free* Of(Head* head) noexcept { return reinterpret_cast<Free*>(head->object()); }
  Head* head() noexcept { return Head::Of(reinterpret_cast<char*>(this)); }
};

ExtentPool::ExtentPool(std::shared_ptr<ChunkPool> chunks) : chunks_(std::move(chunks)) {
  static_assert(sizeof(Head) == kHeadBytes);
}

ExtentPool::~ExtentPool() { BASALT_CHECK(slabs_ == 0); }

ExtentPool* ExtentPool::Process() {
  static auto* const kPool = new ExtentPool(ChunkPool::Process());
  return kPool;
}

size_t ExtentPool::UsableBytes(const char* object) noexcept {
  const Head& head = *Head::Of(object);
  if (head.units != 0) return head.units * kAlignment - kHeadBytes;
  return Load<uint64_t>(object - kAlignment) - kAlignment;
}

// Eight to each power of two, from 8 units on; below, one for each number.
size_t ExtentPool::ListOf(uint32_t units) noexcept {
  if (units < 8) return units;
  const auto shift = static_cast<uint32_t>(std::bit_width(units)) - 4;
  return shift * 8 + (units >> shift);
}

ExtentPool::Head* ExtentPool::FindFree(uint32_t units) const noexcept {
  constexpr int kLooksMax = 8;
  const size_t own = ListOf(units);
  int looks = 0;
  for (Free* free = lists_[own]; free != nullptr && looks < kLooksMax; free = free->next, ++looks) {
    if (free->head()->units >= units) return free->head();
  }
  const size_t first = own + 1;
  for (size_t word = first / 64; word < filled_.size(); ++word) {
    uint64_t bits = filled_[word];
    if (word == first / 64) bits &= ~uint64_t{0} << (first % 64);
    if (bits != 0) return lists_[word * 64 + static_cast<size_t>(std::countr_zero(bits))]->head();
  }
  return nullptr;
}

void ExtentPool::Link(Head* head) noexcept {
  const size_t list = ListOf(head->units);
  head->is_taken = 0;
  Free* const free = Free::Of(head);
  free->previous = nullptr;
  free->next = lists_[list];
  if (free->next != nullptr) free->next->previous = free;
  lists_[list] = free;
  filled_[list / 64] |= uint64_t{1} << (list % 64);
}

void ExtentPool::Unlink(Head* head) noexcept {
  const size_t list = ListOf(head->units);
  Free* const free = Free::Of(head);
  if (free->next != nullptr) free->next->previous = free->previous;
  (free->previous != nullptr ? free->previous->next : lists_[list]) = free->next;
  if (lists_[list] == nullptr) filled_[list / 64] &= ~(uint64_t{1} << (list % 64));
}

// Gives the extent that fills it, in no list.
ExtentPool::Head* ExtentPool::MapSlab() noexcept {
  char* const slab = chunks_->Take(ChunkPool::kSlabBytes);
  if (slab == nullptr) return nullptr;
  ++slabs_;
  Head* const whole = Head::Of(slab + kAlignment);
  *whole = {.units = kSlabUnits, .units_before = 0, .is_taken = 0, .zero = 0};
  *whole->After(kSlabUnits) = {.units = 0, .units_before = kSlabUnits, .is_taken = 1, .zero = 0};
  return whole;
}

char* ExtentPool::Take(size_t bytes) noexcept {
  if (bytes > kSlabUnits * kAlignment - kHeadBytes) {
    if (bytes > SIZE_MAX / 2) return nullptr;
    const size_t mapped =
        std::max(RoundUp(bytes + kAlignment, kPageBytes), ChunkPool::kSlabBytes + kPageBytes);
    char* const memory = chunks_->Take(mapped);
    if (memory == nullptr) return nullptr;
    Store<uint64_t>(memory, mapped);
    char* const object = memory + kAlignment;
    *Head::Of(object) = {.units = 0, .units_before = 0, .is_taken = 1, .zero = 0};
    return object;
  }
  const auto units = static_cast<uint32_t>((bytes + kHeadBytes + kAlignment - 1) / kAlignment);
  const std::lock_guard lock(mutex_);
  Head* head = FindFree(units);
  if (head != nullptr) {
    Unlink(head);
  } else if (head = MapSlab(); head == nullptr) {
    return nullptr;
  }
  if (head->units > units) {
    Head* const rest = head->After(units);
    ASAN_UNPOISON_MEMORY_REGION(rest, kAlignment);
    *rest = {.units = head->units - units, .units_before = units, .is_taken = 0, .zero = 0};
    head->After(head->units)->units_before = rest->units;
    head->units = units;
    Link(rest);
  }
  head->is_taken = 1;
  ASAN_UNPOISON_MEMORY_REGION(head->object(), UsableBytes(head->object()));
  return head->object();
}

void ExtentPool::Give(char* object) noexcept {
  Head* head = Head::Of(object);
  BASALT_CHECK(head->is_taken == 1);
  if (head->units == 0) {
    char* const memory = object - kAlignment;
    return chunks_->Give(memory, Load<uint64_t>(memory));
  }
  {
    const std::lock_guard lock(mutex_);
    // So that AddressSanitizer sees a use after this; but for the links.
    constexpr size_t kSeen = sizeof(Free);
    ASAN_POISON_MEMORY_REGION(object + kSeen, UsableBytes(object) - kSeen);
    if (Head* const after = head->After(head->units); after->is_taken == 0) {
      Unlink(after);
      head->units += after->units;
    }
    if (head->units_before != 0 && head->Before()->is_taken == 0) {
      Head* const before = head->Before();
      Unlink(before);
      before->units += head->units;
      head = before;
    }
    head->After(head->units)->units_before = head->units;
    if (head->units != kSlabUnits) return Link(head);
    --slabs_;
  }
  chunks_->Give(head->object() - kAlignment, ChunkPool::kSlabBytes);
}

size_t ExtentPool::slab_bytes() const {
  const std::lock_guard lock(mutex_);
  return slabs_ * ChunkPool::kSlabBytes;
}

}  // namespace basalt::base
