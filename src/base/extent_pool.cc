#include "base/extent_pool.h"

#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/coding.h"
#include "base/released_pages.h"

namespace basalt::base {
namespace {

constexpr size_t kPageBytes = ReleasedPages::kPageBytes;

}  // namespace

struct ExtentPool::Slab {
  Slab* next;
  Slab* previous;
  size_t free_pages;  ///< Its part of the pool's.
  ReleasedPages released;

  static constexpr size_t kBytes = ChunkPool::kSlabBytes;
  static Slab* Of(const Head* head) noexcept {
    return reinterpret_cast<Slab*>(reinterpret_cast<uintptr_t>(head) & ~(kBytes - 1));
  }
  char* begin() noexcept { return reinterpret_cast<char*>(this); }
  size_t OffsetOf(const Head* head) const noexcept {
    return reinterpret_cast<uintptr_t>(head) - reinterpret_cast<uintptr_t>(this);
  }
  inline Head* row() noexcept;
  /// Pages of a free extent behind its links.
  ReleasedPages::Range FreePagesOf(const Head* head) const noexcept {
    const size_t offset = OffsetOf(head);
    return ReleasedPages::Within(offset + Extents::kHeadBytes + sizeof(Extents::Free),
                                 offset + head->bytes());
  }
  size_t FreePagesNotReleased(const Head* head) const noexcept {
    const ReleasedPages::Range pages = FreePagesOf(head);
    return pages.count() - released.CountIn(pages);
  }
};

namespace {

constexpr size_t kSlabHeaderBytes = 2 * sizeof(void*) + sizeof(size_t) + sizeof(ReleasedPages);

}  // namespace

auto ExtentPool::Slab::row() noexcept -> Head* {
  static_assert(sizeof(Slab) == kSlabHeaderBytes);
  return reinterpret_cast<Head*>(begin() + Extents::RowOffset(kSlabHeaderBytes));
}

ExtentPool::ExtentPool(std::shared_ptr<ChunkPool> chunks) : chunks_(std::move(chunks)) {}

ExtentPool::~ExtentPool() { BASALT_CHECK(slabs_ == 0); }

ExtentPool* ExtentPool::Process() {
  static auto* const kPool = new ExtentPool(ChunkPool::Process());
  return kPool;
}

// An object that is mapped by itself has a head of 0 units, and before that its size.
size_t ExtentPool::UsableBytes(const char* object) noexcept {
  if (!Head::Of(object)->ends_row()) return Extents::UsableBytes(object);
  return Load<uint64_t>(object - kAlignment) - kAlignment;
}

void ExtentPool::Link(Head* head) noexcept {
  extents_.Link(head);
  Slab* const slab = Slab::Of(head);
  const size_t pages = slab->FreePagesNotReleased(head);
  slab->free_pages += pages;
  free_pages_ += pages;
}

void ExtentPool::Unlink(Head* head) noexcept {
  extents_.Unlink(head);
  Slab* const slab = Slab::Of(head);
  const size_t pages = slab->FreePagesNotReleased(head);
  slab->free_pages -= pages;
  free_pages_ -= pages;
}

// Gives the extent that fills it, in no list.
auto ExtentPool::MapSlab() noexcept -> Head* {
  char* const memory = chunks_->Take(ChunkPool::kSlabBytes);
  if (memory == nullptr) return nullptr;
  ++slabs_;
  auto* const slab = new (memory) Slab{};
  newest_ = slab;
  if (next_slab_ == nullptr) {
    slab->next = slab->previous = next_slab_ = slab;
  } else {
    slab->next = next_slab_;
    slab->previous = next_slab_->previous;
    slab->previous->next = slab->next->previous = slab;
  }
  return Extents::Start(reinterpret_cast<char*>(slab->row()),
                        Extents::UnitsOf(ChunkPool::kSlabBytes, kSlabHeaderBytes));
}

char* ExtentPool::Take(size_t bytes) noexcept {
  constexpr size_t kUnitsMax = Extents::UnitsOf(ChunkPool::kSlabBytes, kSlabHeaderBytes);
  if (IsRefusedToPools()) return nullptr;
  if (bytes > kUnitsMax * kAlignment - Extents::kHeadBytes) {
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
  const uint32_t units = Extents::UnitsFor(bytes);
  const std::lock_guard lock(mutex_);
  Head* head = extents_.Find(units);
  if (head != nullptr) {
    Unlink(head);
  } else {
    head = MapSlab();
    if (head == nullptr) return nullptr;
    if (HoldsTooManyPages()) ReleasePages();
  }
  constexpr size_t kFreeBytes = Extents::kHeadBytes + sizeof(Extents::Free);
  ASAN_UNPOISON_MEMORY_REGION(
      head->object(),
      std::min(units * kAlignment + kFreeBytes, head->bytes()) - Extents::kHeadBytes);
  Head* const rest = Extents::Split(head, units);
  if (released_pages_ != 0) {
    Slab& slab = *Slab::Of(head);
    const size_t begin = slab.OffsetOf(head);
    const size_t end = begin + head->bytes() + (rest == nullptr ? 0 : kFreeBytes);
    released_pages_ -= slab.released.Touch({begin / kPageBytes, (end - 1) / kPageBytes + 1});
  }
  if (rest != nullptr) Link(rest);
  return head->object();
}

void ExtentPool::Give(char* object) noexcept {
  Head* head = Head::Of(object);
  BASALT_CHECK(head->is_taken());
  if (head->ends_row()) {
    char* const memory = object - kAlignment;
    return chunks_->Give(memory, Load<uint64_t>(memory));
  }
  Slab* slab = nullptr;
  {
    const std::lock_guard lock(mutex_);
    // So that AddressSanitizer sees a use after this; but for the links.
    constexpr size_t kSeen = sizeof(Extents::Free);
    ASAN_POISON_MEMORY_REGION(object + kSeen, UsableBytes(object) - kSeen);
    head = Extents::Joined(head, [this](Head* neighbour) { Unlink(neighbour); });
    slab = Slab::Of(head);
    if (!head->After()->ends_row() || head->units_before != 0) {
      Link(head);
      if (HoldsTooManyPages()) ReleasePages();
      return;
    }
    --slabs_;
    slab->previous->next = slab->next;
    slab->next->previous = slab->previous;
    if (next_slab_ == slab) next_slab_ = slabs_ == 0 ? nullptr : slab->next;
    if (newest_ == slab) newest_ = nullptr;
    released_pages_ -= slab->released.count();
  }
  slab->released.Forget(slab->begin());
  chunks_->Give(slab->begin(), ChunkPool::kSlabBytes);
}

// Once there are too many, half of them go, in steps: else each Give after that would release what
// the next Take fills again.
bool ExtentPool::HoldsTooManyPages() noexcept {
  const size_t taken_pages = slabs_ * ReleasedPages::kPages - free_pages_ - released_pages_;
  const size_t pages_max = std::max(taken_pages / kFreePagesShare, kFreePagesMin);
  const size_t next_pages = newest_ == nullptr ? 0 : newest_->free_pages;
  is_releasing_ = free_pages_ - next_pages > (is_releasing_ ? pages_max / 2 : pages_max);
  return is_releasing_;
}

// Of the next slabs: of some extents, or until that was worth a Give.
void ExtentPool::ReleasePages() noexcept {
  constexpr int kExtentsMax = 256;
  constexpr size_t kEnoughPages = 64;
  const size_t free_pages = free_pages_;
  int extents = 0;
  for (size_t slabs = slabs_;
       slabs != 0 && free_pages - free_pages_ < kEnoughPages && extents < kExtentsMax; --slabs) {
    if (next_slab_ == newest_) next_slab_ = next_slab_->next;
    extents += ReleasePagesOfNextSlab();
  }
}

int ExtentPool::ReleasePagesOfNextSlab() noexcept {
  Slab* const slab = next_slab_;
  next_slab_ = slab->next;
  int extents = 0;
  size_t released = 0;
  for (Head* head = slab->row(); !head->ends_row(); head = head->After()) {
    ++extents;
    if (head->is_taken()) continue;
    released += slab->released.Release(slab->begin(), slab->FreePagesOf(head));
  }
  slab->free_pages -= released;
  free_pages_ -= released;
  released_pages_ += released;
  return extents;
}

bool ExtentPool::IsBetweenFree(const char* object) const noexcept {
  Head* const head = Head::Of(object);
  if (head->ends_row()) return false;
  const std::lock_guard lock(mutex_);
  return head->units_before != 0 && !head->Before()->is_taken() && !head->After()->is_taken();
}

// One slab after the other: a pool may have many.
void ExtentPool::ReleaseFreePages() noexcept {
  for (size_t slabs = slab_bytes() / ChunkPool::kSlabBytes; slabs != 0; --slabs) {
    const std::lock_guard lock(mutex_);
    if (free_pages_ == 0) return;
    ReleasePagesOfNextSlab();
  }
}

size_t ExtentPool::slab_bytes() const {
  const std::lock_guard lock(mutex_);
  return slabs_ * ChunkPool::kSlabBytes;
}

size_t ExtentPool::resident_bytes() const {
  const std::lock_guard lock(mutex_);
  return slabs_ * ChunkPool::kSlabBytes - released_pages_ * kPageBytes;
}

}  // namespace basalt::base
