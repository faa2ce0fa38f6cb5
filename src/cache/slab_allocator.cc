#include "cache/slab_allocator.h"

#include <algorithm>
#include <utility>

#include "base/coding.h"
#include "base/extent_pool.h"

namespace basalt::cache {
namespace {

// Of objects with memory of their own.

size_t UsableBytes(const void* object, bool is_large) noexcept {
  const auto* const bytes = static_cast<const char*>(object);
  return is_large ? base::ExtentPool::UsableBytes(bytes) : EntryHeap::UsableBytes(bytes);
}

uint64_t TakenBytes(const void* object, bool is_large) noexcept {
  const auto* const bytes = static_cast<const char*>(object);
  return is_large ? base::ExtentPool::TakenBytes(bytes) : EntryHeap::TakenBytes(bytes);
}

void* NextFree(const void* object) noexcept {
  return reinterpret_cast<void*>(base::Load<uintptr_t>(static_cast<const char*>(object)));
}

}  // namespace

SlabAllocator::SlabAllocator(MemoryBudget* budget, size_t heap_block_bytes)
    : pool_(base::ChunkPool::Process()), budget_(budget), heap_(heap_block_bytes) {}

SlabAllocator::~SlabAllocator() { ReleaseEmptySlabs(); }

uint64_t SlabAllocator::ChargedBytes(const void* object, uint8_t size_class,
                                     bool is_large) noexcept {
  return size_class == 0 ? TakenBytes(object, is_large) : ClassBytes(size_class);
}

auto SlabAllocator::SlabOf(void* object) noexcept -> Slab* {
  return reinterpret_cast<Slab*>(reinterpret_cast<uintptr_t>(object) & ~(kSlabBytes - 1));
}

void* SlabAllocator::AllocateOwn(size_t bytes) noexcept {
  return IsLarge(bytes) ? base::ExtentPool::Process()->Take(bytes) : heap_.Take(bytes);
}

void SlabAllocator::GiveOwn(void* object, bool is_large) noexcept {
  auto* const bytes = static_cast<char*>(object);
  if (is_large) return base::ExtentPool::Process()->Give(bytes);
  heap_.Give(bytes);
}

void SlabAllocator::List(Slab* slab) noexcept {
  Class& cls = classes_[slab->size_class];
  slab->previous = nullptr;
  slab->next = cls.first;
  if (cls.first != nullptr) cls.first->previous = slab;
  cls.first = slab;
}

void SlabAllocator::Unlist(Slab* slab) noexcept {
  (slab->previous == nullptr ? classes_[slab->size_class].first : slab->previous->next) =
      slab->next;
  if (slab->next != nullptr) slab->next->previous = slab->previous;
}

auto SlabAllocator::TakeSlab(uint8_t size_class) noexcept -> Slab* {
  auto* slab = reinterpret_cast<Slab*>(pool_->Take(kSlabBytes));
  if (slab == nullptr) return nullptr;
  const size_t bytes = ClassBytes(size_class);
  const auto capacity = static_cast<uint16_t>((kSlabBytes - sizeof(Slab)) / bytes);
  *slab = {.next = nullptr,
           .previous = nullptr,
           .free = nullptr,
           .bytes = static_cast<uint32_t>(bytes),
           .capacity = capacity,
           .used = 0,
           .touched = 0,
           .size_class = size_class,
           .is_closed = false};
  bytes_.fetch_add(kSlabBytes, std::memory_order_relaxed);
  classes_[size_class].free_objects += capacity;
  ++classes_[size_class].slabs;
  List(slab);
  return slab;
}

void SlabAllocator::Close(void* slab) noexcept {
  auto* const closed = static_cast<Slab*>(slab);
  Unlist(closed);
  classes_[closed->size_class].free_objects -= closed->capacity - closed->used;
  closed->is_closed = true;
  if (closed->used == 0) Return(closed);
}

void SlabAllocator::GiveSlab(Slab* slab) noexcept {
  Unlist(slab);
  classes_[slab->size_class].free_objects -= slab->capacity;
  Return(slab);
}

void SlabAllocator::Return(Slab* slab) noexcept {
  --classes_[slab->size_class].slabs;
  bytes_.fetch_sub(kSlabBytes, std::memory_order_relaxed);
  pool_->Give(reinterpret_cast<char*>(slab), kSlabBytes);
  budget_->Refund(kSlabBytes);
}

void* SlabAllocator::Allocate(size_t bytes, bool within_budget) noexcept {
  const uint8_t size_class = ClassOf(bytes);
  if (size_class == 0) {
    if (const size_t spare = FindSpare(bytes); spare != kSparesMax) {
      void* const object = spares_[spare].object;
      spares_[spare] = spares_[--spare_count_];
      return object;
    }
    // The pool may round up: what passes the budget by that is given back again.
    if (within_budget && budget_->IsWithin(bytes)) return nullptr;
    void* const object = AllocateOwn(bytes);
    if (object == nullptr) return nullptr;
    const uint64_t charge = TakenBytes(object, IsLarge(bytes));
    if (!within_budget) {
      budget_->Charge(charge);
    } else if (!budget_->TryCharge(charge)) {
      GiveOwn(object, IsLarge(bytes));
      return nullptr;
    }
    bytes_.fetch_add(charge, std::memory_order_relaxed);
    return object;
  }
  Class& cls = classes_[size_class];
  Slab* slab = cls.first;
  if (slab == nullptr) {
    if (!within_budget) {
      budget_->Charge(kSlabBytes);
    } else if (!budget_->TryCharge(kSlabBytes)) {
      return nullptr;
    }
    slab = TakeSlab(size_class);
    if (slab == nullptr) {
      budget_->Refund(kSlabBytes);
      return nullptr;
    }
  }
  void* object = slab->free;
  if (object != nullptr) {
    slab->free = NextFree(object);
  } else {
    object = slab->at(slab->touched++);
  }
  --cls.free_objects;
  if (++slab->used == slab->capacity) Unlist(slab);
  return object;
}

void SlabAllocator::Free(void* object, uint8_t size_class, bool is_large) noexcept {
  if (size_class == 0) return FreeOwn(object, is_large);
  Slab* const slab = SlabOf(object);
  base::Store(static_cast<char*>(object), reinterpret_cast<uintptr_t>(slab->free));
  slab->free = object;
  if (slab->is_closed) {
    if (--slab->used == 0) Return(slab);
    return;
  }
  Class& cls = classes_[size_class];
  ++cls.free_objects;
  if (slab->used-- == slab->capacity) List(slab);
  if (slab->used == 0 && cls.free_objects > slab->capacity) GiveSlab(slab);
}

size_t SlabAllocator::FindSpare(size_t bytes) const noexcept {
  // What is larger by more than an eighth would waste as much of the budget.
  for (size_t i = spare_count_; i-- != 0;) {
    const Spare& spare = spares_[i];
    if (spare.bytes >= bytes && spare.bytes <= bytes + bytes / 8 &&
        spare.is_large == IsLarge(bytes)) {
      return i;
    }
  }
  return kSparesMax;
}

void SlabAllocator::FreeToSpare(void* object, bool is_large) noexcept {
  if (!is_large && heap_.IsClosed(static_cast<char*>(object))) return FreeOwn(object, is_large);
  // The oldest makes way: sizes that nobody asks for any more do not stay.
  if (spare_count_ == kSparesMax) {
    FreeOwn(spares_[0].object, spares_[0].is_large);
    std::move(spares_.begin() + 1, spares_.end(), spares_.begin());
    --spare_count_;
  }
  spares_[spare_count_++] = {
      .object = object, .bytes = UsableBytes(object, is_large), .is_large = is_large};
}

bool SlabAllocator::ReleaseSpares() noexcept {
  const bool released = spare_count_ != 0;
  while (spare_count_ != 0) {
    const Spare& spare = spares_[--spare_count_];
    FreeOwn(spare.object, spare.is_large);
  }
  return released;
}

void SlabAllocator::FreeOwn(void* object, bool is_large) noexcept {
  const uint64_t charge = TakenBytes(object, is_large);
  GiveOwn(object, is_large);
  bytes_.fetch_sub(charge, std::memory_order_relaxed);
  budget_->Refund(charge);
}

bool SlabAllocator::ReleaseEmptySlabs() noexcept {
  bool released = ReleaseSpares();
  for (Class& cls : classes_) {
    for (Slab* slab = cls.first; slab != nullptr;) {
      Slab* const next = slab->next;
      if (slab->used == 0) {
        GiveSlab(slab);
        released = true;
      }
      slab = next;
    }
  }
  return released;
}

void* SlabAllocator::SparsestSlab(uint8_t but, bool movable) const noexcept {
  constexpr int kLooksMax = 8;
  Slab* sparsest = nullptr;
  uint64_t sparsest_used = UINT64_MAX;
  for (size_t c = 1; c < kClasses; ++c) {
    if (c == but) continue;
    int looks = 0;
    for (Slab* slab = classes_[c].first; slab != nullptr && looks < kLooksMax; ++looks) {
      const uint64_t used_bytes = uint64_t{slab->used} * slab->bytes;
      const bool is_movable = classes_[c].free_objects >= slab->capacity;
      if (used_bytes < sparsest_used && (is_movable || !movable)) {
        sparsest = slab;
        sparsest_used = used_bytes;
      }
      slab = slab->next;
    }
  }
  return sparsest;
}

}  // namespace basalt::cache
