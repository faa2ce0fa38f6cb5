#include "base/arena.h"

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>

#include "base/check.h"
#include "base/coding.h"
#include "base/released_pages.h"
#include "base/thread_pool.h"

namespace basalt::base {
namespace {

// Maps `bytes` at a multiple of the slab size, backed by huge pages where the kernel has them.
char* MapAligned(size_t bytes) noexcept {
  const size_t mapped = bytes + ChunkPool::kSlabBytes;
  void* raw = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(raw);
  const uintptr_t address = reinterpret_cast<uintptr_t>(raw);
  const size_t before = RoundUp(address, ChunkPool::kSlabBytes) - address;
  char* const aligned = begin + before;
  const size_t after = mapped - before - bytes;
  if (before != 0) munmap(begin, before);
  if (after != 0) munmap(aligned + bytes, after);
  madvise(aligned, bytes, MADV_HUGEPAGE);  // a hint: whatever it answers, the memory is there
  return aligned;
}

// Has the kernel give memory for every page.
void Touch(char* begin, size_t bytes) noexcept {
  constexpr size_t kPageBytes = 4096;
  if (madvise(begin, bytes, MADV_POPULATE_WRITE) == 0) return;
  for (size_t at = 0; at < bytes; at += kPageBytes) static_cast<volatile char*>(begin)[at] = 0;
}

void Unmap(char* block, size_t bytes) noexcept {
  ASAN_UNPOISON_MEMORY_REGION(block, bytes);
  munmap(block, bytes);
}

size_t OrderOf(size_t bytes) noexcept {
  return static_cast<size_t>(std::countr_zero(bytes / ChunkPool::kBlockBytesMin));
}

uintptr_t SlabAddress(const char* block) noexcept {
  return reinterpret_cast<uintptr_t>(block) & ~uintptr_t{ChunkPool::kSlabBytes - 1};
}

}  // namespace

// The free blocks of a slab of which some are taken. Block i of order o lies at i * (4 KiB << o);
// its other half is i ^ 1.
struct ChunkPool::Slab {
  static constexpr size_t kUnits = kSlabBytes / kBlockBytesMin;

  char* base = nullptr;
  Slab* next = nullptr;
  Slab* previous = nullptr;
  size_t listed_order = kOrders;  // kOrders: in no list
  size_t listed_as = 0;           // which of the two lists of that order
  size_t free_pages = kUnits;     // that are not released
  ReleasedPages released;
  // Bits of order o begin at 2 * kUnits - (2 * kUnits >> o): 512, 256, ... 1 of them.
  std::array<uint64_t, 2 * kUnits / 64> free_bits{};
  std::array<uint16_t, kOrders> free_counts{};

  static_assert(kBlockBytesMin == ReleasedPages::kPageBytes && kUnits == ReleasedPages::kPages);
  static ReleasedPages::Range PagesOf(size_t order, size_t block) noexcept {
    return {block << order, (block + 1) << order};
  }
  static size_t BitOf(size_t order, size_t block) noexcept {
    return 2 * kUnits - (2 * kUnits >> order) + block;
  }
  bool IsFree(size_t order, size_t block) const noexcept {
    const size_t bit = BitOf(order, block);
    return (free_bits[bit / 64] >> (bit % 64) & 1) != 0;
  }
  void SetFree(size_t order, size_t block) noexcept {
    const size_t bit = BitOf(order, block);
    free_bits[bit / 64] |= uint64_t{1} << (bit % 64);
    ++free_counts[order];
  }
  void SetTaken(size_t order, size_t block) noexcept {
    const size_t bit = BitOf(order, block);
    free_bits[bit / 64] &= ~(uint64_t{1} << (bit % 64));
    --free_counts[order];
  }
  bool IsReleased(size_t order, size_t block) const noexcept {
    const ReleasedPages::Range pages = PagesOf(order, block);
    return released.CountIn(pages) == pages.count();
  }
  struct FreeBlock {
    size_t order;
    size_t block;
  };
  /// The smallest free block of at least this order, which there is; one that is not wholly
  /// released, if there is any.
  FreeBlock FindFree(size_t order) const noexcept {
    for (const bool may_be_released : {free_pages == 0, true}) {
      for (size_t at = order; at < kOrders; ++at) {
        for (size_t block = 0, left = free_counts[at]; left != 0; ++block) {
          if (!IsFree(at, block)) continue;
          if (may_be_released || !IsReleased(at, block)) return {at, block};
          --left;
        }
      }
    }
    BASALT_CHECK(false);
    return {};
  }
  /// Makes a free block a taken one of `order`, with the halves that it does not need free.
  size_t Split(FreeBlock from, size_t order) noexcept {
    auto [at, block] = from;
    SetTaken(at, block);
    while (at > order) {
      --at;
      block *= 2;
      if (IsReleased(at, block) && !IsReleased(at, block + 1)) ++block;
      SetFree(at, block ^ 1);
    }
    return block;
  }
  /// kOrders: nothing is free.
  size_t LargestFreeOrder() const noexcept {
    for (size_t order = kOrders; order-- > 0;) {
      if (free_counts[order] != 0) return order;
    }
    return kOrders;
  }
};

ChunkPool::ChunkPool(size_t kept_bytes_max) : kept_bytes_max_(kept_bytes_max) {}

ChunkPool::~ChunkPool() {
  BASALT_CHECK(slabs_.empty());  // else a block outlives its pool
  for (const auto& [begin, bytes] : free_) Unmap(begin, bytes);
}

const std::shared_ptr<ChunkPool>& ChunkPool::Process() {
  // Who takes much says how much is worth keeping.
  static const auto* const kPool =
      new std::shared_ptr<ChunkPool>(std::make_shared<ChunkPool>(kSlabBytes));
  return *kPool;
}

char* ChunkPool::Take(size_t bytes) noexcept {
  if (IsRefusedToPools()) return nullptr;
  if (bytes > kSlabBytes) {
    char* const kept = TakeKept(bytes);
    return kept != nullptr ? kept : MapAligned(bytes);
  }
  BASALT_CHECK(std::has_single_bit(bytes) && bytes >= kBlockBytesMin);
  const std::lock_guard lock(mutex_);
  char* const block = TakeOrder(OrderOf(bytes));
  if (block != nullptr) ASAN_UNPOISON_MEMORY_REGION(block, bytes);
  return block;
}

char* ChunkPool::TakeZeros(size_t bytes) noexcept {
  if (bytes > kSlabBytes && IsRefusedToPools()) return nullptr;
  char* const block = bytes > kSlabBytes ? TakeKept(bytes) : Take(bytes);
  if (block == nullptr) return bytes > kSlabBytes ? MapAligned(bytes) : nullptr;
  std::memset(block, 0, bytes);
  return block;
}

char* ChunkPool::TakeKept(size_t bytes) noexcept {
  if (bytes % kSlabBytes != 0) return nullptr;
  const std::lock_guard lock(mutex_);
  char* const block = TakeFree(bytes);
  if (block != nullptr) ASAN_UNPOISON_MEMORY_REGION(block, bytes);
  return block;
}

void ChunkPool::Give(char* block, size_t bytes) noexcept {
  if (bytes <= kSlabBytes) {
    const std::lock_guard lock(mutex_);
    ASAN_POISON_MEMORY_REGION(block, bytes);  // so that AddressSanitizer sees a use after this
    return GiveOrder(block, OrderOf(bytes));
  }
  if (bytes % kSlabBytes == 0) {
    const std::lock_guard lock(mutex_);
    ASAN_POISON_MEMORY_REGION(block, bytes);
    if (AddFree(block, bytes)) return;
  }
  Unmap(block, bytes);  // Takes its time, beside the others.
}

void ChunkPool::MakeReady() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (is_making_ready_ || free_bytes_ != 0 || kept_bytes_max_ < kSlabBytes) return;
    is_making_ready_ = true;
  }
  bool is_scheduled = false;
  try {
    if (const Result<ThreadPool*> threads = ThreadPool::Shared(1)) {
      (*threads)->Schedule([weak = weak_from_this()] {
        if (const std::shared_ptr<ChunkPool> pool = weak.lock()) pool->AddReadySlab();
      });
      is_scheduled = true;
    }
  } catch (const std::bad_alloc&) {
    is_scheduled = false;  // whoever takes the slab touches it
  }
  if (is_scheduled) return;
  const std::lock_guard lock(mutex_);
  is_making_ready_ = false;
}

void ChunkPool::AddReadySlab() noexcept {
  char* const base = MapAligned(kSlabBytes);
  if (base != nullptr) Touch(base, kSlabBytes);
  const std::lock_guard lock(mutex_);
  is_making_ready_ = false;
  if (base != nullptr && !AddFree(base, kSlabBytes)) Unmap(base, kSlabBytes);
}

void ChunkPool::KeepMore(int64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  kept_bytes_max_ += static_cast<size_t>(bytes);  // Modulo 2^64: also downwards.
  while (free_bytes_ > kept_bytes_max_) {
    const size_t excess = RoundUp(free_bytes_ - kept_bytes_max_, kSlabBytes);
    const size_t unmapped = std::min(excess, free_by_size_.begin()->first);
    Unmap(TakeFree(unmapped), unmapped);
  }
}

// One slab after the other, so that nobody waits for all of them.
void ChunkPool::ReleaseFreePages() {
  for (size_t slabs = slab_bytes() / kSlabBytes; slabs != 0; --slabs) {
    const std::lock_guard lock(mutex_);
    if (free_pages_ == 0) return;
    ReleasePages(/*but=*/nullptr);
  }
}

size_t ChunkPool::kept_bytes() const {
  const std::lock_guard lock(mutex_);
  return free_bytes_;
}

size_t ChunkPool::slab_bytes() const {
  const std::lock_guard lock(mutex_);
  return slabs_.size() * kSlabBytes + free_bytes_;
}

size_t ChunkPool::resident_bytes() const {
  const std::lock_guard lock(mutex_);
  return slabs_.size() * kSlabBytes + free_bytes_ - released_pages_ * ReleasedPages::kPageBytes;
}

char* ChunkPool::TakeOrder(size_t order) {
  // The slab whose largest free block is smallest, so that whole slabs stay whole; if there are
  // any, of those that have free pages.
  Slab* slab = nullptr;
  for (const auto& lists : lists_) {
    for (size_t i = order; i < kOrders && slab == nullptr; ++i) slab = lists[i];
  }
  if (slab == nullptr) slab = AddSlab();
  if (slab == nullptr) return nullptr;

  Unlist(slab);
  const size_t block = slab->Split(slab->FindFree(order), order);
  const ReleasedPages::Range pages = Slab::PagesOf(order, block);
  const size_t touched = slab->released.Touch(pages);
  released_pages_ -= touched;
  slab->free_pages -= pages.count() - touched;
  free_pages_ -= pages.count() - touched;
  List(slab);
  return slab->base + block * (kBlockBytesMin << order);
}

void ChunkPool::GiveOrder(char* given, size_t order) {
  const auto found = slabs_.find(SlabAddress(given));
  BASALT_CHECK(found != slabs_.end());
  Slab* const slab = found->second.get();
  size_t block = static_cast<size_t>(given - slab->base) / (kBlockBytesMin << order);

  Unlist(slab);
  BASALT_CHECK(!slab->IsFree(order, block));
  const size_t pages = Slab::PagesOf(order, block).count();
  slab->free_pages += pages;
  free_pages_ += pages;
  while (order + 1 < kOrders && slab->IsFree(order, block ^ 1)) {
    slab->SetTaken(order, block ^ 1);
    block /= 2;
    ++order;
  }
  slab->SetFree(order, block);
  if (order + 1 == kOrders) {
    char* const base = slab->base;
    free_pages_ -= slab->free_pages;
    released_pages_ -= slab->released.count();
    slab->released.Forget(base);
    if (newest_ == slab) newest_ = nullptr;
    slabs_.erase(found);
    if (!AddFree(base, kSlabBytes)) Unmap(base, kSlabBytes);
    return;
  }
  List(slab);
  if (HoldsTooManyPages()) ReleasePages(/*but=*/newest_);
}

// Once there are too many, half of them go, in steps: else each Give after that would release what
// the next Take fills again.
bool ChunkPool::HoldsTooManyPages() noexcept {
  const size_t taken_pages = slabs_.size() * Slab::kUnits - free_pages_ - released_pages_;
  const size_t kept_pages_max = kept_bytes_max_ / 2 / ReleasedPages::kPageBytes;
  const size_t pages_max = std::max({taken_pages / kFreePagesShare, kFreePagesMin, kept_pages_max});
  const size_t next_pages = newest_ == nullptr ? 0 : newest_->free_pages;
  is_releasing_ = free_pages_ - next_pages > (is_releasing_ ? pages_max / 2 : pages_max);
  return is_releasing_;
}

// Of the slab with the largest free block: it is the last from which blocks are taken.
void ChunkPool::ReleasePages(const Slab* but) {
  Slab* slab = nullptr;
  for (size_t order = kOrders; order-- > 0 && slab == nullptr;) {
    slab = lists_[0][order];
    if (slab != nullptr && slab == but) slab = slab->next;
  }
  Unlist(slab);
  for (size_t order = 0; order < kOrders; ++order) {
    for (size_t block = 0, left = slab->free_counts[order]; left != 0; ++block) {
      if (!slab->IsFree(order, block)) continue;
      --left;
      released_pages_ += slab->released.Release(slab->base, Slab::PagesOf(order, block));
    }
  }
  free_pages_ -= slab->free_pages;
  slab->free_pages = 0;
  List(slab);
}

ChunkPool::Slab* ChunkPool::AddSlab() noexcept {
  char* base = TakeFree(kSlabBytes);
  if (base == nullptr) base = MapAligned(kSlabBytes);
  if (base == nullptr) return nullptr;
  try {
    auto slab = std::make_unique<Slab>();
    slab->base = base;
    slab->SetFree(kOrders - 1, 0);
    Slab* const listed = slab.get();
    slabs_.emplace(reinterpret_cast<uintptr_t>(base), std::move(slab));
    free_pages_ += listed->free_pages;
    newest_ = listed;
    List(listed);
    return listed;
  } catch (const std::bad_alloc&) {
    Unmap(base, kSlabBytes);
    return nullptr;
  }
}

// From the end of the smallest range that is as large, so that the large ones last.
char* ChunkPool::TakeFree(size_t bytes) noexcept {
  const auto found = free_by_size_.lower_bound({bytes, nullptr});
  if (found == free_by_size_.end()) return nullptr;
  const auto range = free_.find(found->second);
  char* const taken = range->first + (range->second - bytes);
  if (range->second == bytes) {
    free_by_size_.erase(found);
    free_.erase(range);
  } else {
    Resize(range, range->second - bytes);
  }
  free_bytes_ -= bytes;
  return taken;
}

// Joins it with the ranges that it touches. False: it would be too much to keep, or there is no
// memory to describe it.
bool ChunkPool::AddFree(char* begin, size_t bytes) noexcept {
  if (free_bytes_ + bytes > kept_bytes_max_) return false;
  const auto after = free_.lower_bound(begin);
  const auto before = after != free_.begin() ? std::prev(after) : free_.end();
  const bool touches_before = before != free_.end() && before->first + before->second == begin;
  const bool touches_after = after != free_.end() && after->first == begin + bytes;
  if (!touches_before && !touches_after) {
    try {
      const auto range = free_.emplace(begin, bytes).first;
      try {
        free_by_size_.emplace(bytes, begin);
      } catch (const std::bad_alloc&) {
        free_.erase(range);
        throw;
      }
    } catch (const std::bad_alloc&) {
      return false;
    }
  } else if (touches_before) {
    size_t joined = before->second + bytes;
    if (touches_after) {
      joined += after->second;
      free_by_size_.erase({after->second, after->first});
      free_.erase(after);
    }
    Resize(before, joined);
  } else {
    const size_t joined = bytes + after->second;
    auto by_size = free_by_size_.extract({after->second, after->first});
    auto by_address = free_.extract(after);
    by_address.key() = begin;
    by_address.mapped() = joined;
    by_size.value() = {joined, begin};
    free_.insert(std::move(by_address));
    free_by_size_.insert(std::move(by_size));
  }
  free_bytes_ += bytes;
  return true;
}

void ChunkPool::Resize(FreeRanges::iterator range, size_t bytes) noexcept {
  auto node = free_by_size_.extract({range->second, range->first});
  node.value().first = bytes;
  free_by_size_.insert(std::move(node));
  range->second = bytes;
}

void ChunkPool::List(Slab* slab) {
  const size_t order = slab->LargestFreeOrder();
  slab->listed_order = order;
  if (order == kOrders) return;
  slab->listed_as = slab->free_pages != 0 ? 0 : 1;
  Slab*& first = lists_[slab->listed_as][order];
  slab->previous = nullptr;
  slab->next = first;
  if (slab->next != nullptr) slab->next->previous = slab;
  first = slab;
}

void ChunkPool::Unlist(Slab* slab) {
  const size_t order = slab->listed_order;
  if (order == kOrders) return;
  if (slab->next != nullptr) slab->next->previous = slab->previous;
  (slab->previous != nullptr ? slab->previous->next : lists_[slab->listed_as][order]) = slab->next;
}

struct alignas(Arena::kUnitBytes) Arena::OwnChunk {
  uint64_t bytes;  // with this header
};

bool Arena::Directory::Prepare(uint32_t number, ByteBudget* budget, bool within_limit) noexcept {
  if (number < kFirst || !std::has_single_bit(number)) return true;
  const auto copy = static_cast<uint32_t>(std::countr_zero(number / kFirst));
  if (copies_[copy] != nullptr) return true;
  const size_t bytes = CountOf(copy) * sizeof(std::atomic<char*>);
  if (!budget->Charge(bytes, within_limit)) return false;
  auto* const addresses = new (std::nothrow) std::atomic<char*>[CountOf(copy)]();
  if (addresses == nullptr) {
    budget->Refund(bytes);
    return false;
  }
  for (uint32_t i = 0; i < number; ++i) {
    addresses[i].store(At(i).load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
  copies_[copy] = addresses;
  addresses_.store(addresses, std::memory_order_release);
  return true;
}

void Arena::Directory::Free(ByteBudget* budget) noexcept {
  for (uint32_t copy = 0; copy < kCopies && copies_[copy] != nullptr; ++copy) {
    delete[] copies_[copy];
    budget->Refund(CountOf(copy) * sizeof(std::atomic<char*>));
  }
}

size_t Arena::ChunkBytesMax(uint64_t budget_bytes) noexcept {
  return std::bit_floor(
      std::clamp<uint64_t>(budget_bytes / 64, ChunkPool::kBlockBytesMin, ChunkPool::kSlabBytes));
}

Arena::Arena(ChunkPool* pool, ByteBudget* budget, size_t chunk_bytes_max) noexcept
    : pool_(pool),
      budget_(budget),
      slots_doubling_(static_cast<uint32_t>(OrderOf(chunk_bytes_max))),
      pages_max_(uint32_t{1} << slots_doubling_) {
  BASALT_CHECK(std::has_single_bit(chunk_bytes_max) &&
               chunk_bytes_max >= ChunkPool::kBlockBytesMin &&
               chunk_bytes_max <= ChunkPool::kSlabBytes);
}

Arena::~Arena() {
  for (uint32_t slot = slots_freed_; slot < slots_used_; ++slot) {
    const size_t bytes = size_t{SlotPages(slot)} * ChunkPool::kBlockBytesMin;
    pool_->Give(chunks_.At(slot).load(std::memory_order_relaxed), bytes);
    budget_->Refund(bytes);
  }
  for (uint32_t number = 0; number < own_chunks_used_; ++number) {
    char* const block = own_chunks_.At(number).load(std::memory_order_relaxed);
    auto* const own = reinterpret_cast<OwnChunk*>(block) - 1;
    budget_->Refund(own->bytes);
    ::operator delete(own);
  }
  chunks_.Free(budget_);
  own_chunks_.Free(budget_);
}

size_t Arena::ContiguousUnits(Position position) const noexcept {
  const uint32_t page = position / kUnitsInPage;
  const uint32_t pages = page < pages_max_ ? std::bit_floor(page) : pages_max_;
  // Slots of a size begin at multiples of that size.
  const size_t units = size_t{pages} * kUnitsInPage;
  return units - position % units;
}

void Arena::FreeBefore(Position position) noexcept {
  for (;; ++slots_freed_) {
    const uint64_t pages_end = uint64_t{SlotFirstPage(slots_freed_)} + SlotPages(slots_freed_);
    if (pages_end * kUnitsInPage > position) return;
    const size_t bytes = size_t{SlotPages(slots_freed_)} * ChunkPool::kBlockBytesMin;
    pool_->Give(chunks_.At(slots_freed_).load(std::memory_order_relaxed), bytes);
    budget_->Refund(bytes);
  }
}

Arena::Block Arena::AllocateInNewPiece(Cursor* cursor, size_t units, bool within_limit) noexcept {
  const std::lock_guard lock(mutex_);
  const size_t slot_units = size_t{SlotPages(slots_used_)} * kUnitsInPage;
  if (units * kUnitBytes > kOwnChunkBytes || units > slot_units / 2) {
    return AllocateOwnChunk(units, within_limit);
  }
  return StartPiece(cursor, units, within_limit) ? Bump(cursor, units) : Block{};
}

Arena::Block Arena::AllocateOwnChunk(size_t units, bool within_limit) noexcept {
  if (own_chunks_used_ == ~kOwnPosition + 1) return {};
  if (!own_chunks_.Prepare(own_chunks_used_, budget_, within_limit)) return {};
  const uint64_t bytes = sizeof(OwnChunk) + units * kUnitBytes;
  if (!budget_->Charge(bytes, within_limit)) return {};
  void* const memory = ::operator new(bytes, std::nothrow);
  if (memory == nullptr) {
    budget_->Refund(bytes);
    return {};
  }
  auto* const own = new (memory) OwnChunk{.bytes = bytes};
  char* const block = reinterpret_cast<char*>(own + 1);
  own_chunks_.At(own_chunks_used_).store(block, std::memory_order_relaxed);
  return {kOwnPosition + own_chunks_used_++, block};
}

bool Arena::StartPiece(Cursor* cursor, size_t units_min, bool within_limit) noexcept {
  if (chunk_.units_left_ < units_min && !StartChunk(within_limit)) return false;
  const size_t wanted = std::max<size_t>(cursor->piece_units_, units_min);
  const size_t units = std::min<size_t>(wanted, chunk_.units_left_);
  const Block piece = Bump(&chunk_, units);
  cursor->at_ = piece.at;
  cursor->next_ = piece.position;
  cursor->units_left_ = static_cast<uint32_t>(units);
  cursor->piece_units_ = std::min(2 * cursor->piece_units_, pages_max_ * kUnitsInPage);
  return true;
}

bool Arena::StartChunk(bool within_limit) noexcept {
  const uint32_t slot = slots_used_;
  if (SlotFirstPage(slot) + SlotPages(slot) > kOwnPosition / kUnitsInPage) return false;
  if (!chunks_.Prepare(slot, budget_, within_limit)) return false;
  const size_t bytes = size_t{SlotPages(slot)} * ChunkPool::kBlockBytesMin;
  if (!budget_->Charge(bytes, within_limit)) return false;
  char* const chunk = pool_->Take(bytes);
  if (chunk == nullptr) {
    budget_->Refund(bytes);
    return false;
  }
  chunks_.At(slot).store(chunk, std::memory_order_relaxed);
  ++slots_used_;
  if (bytes == ChunkPool::kSlabBytes) pool_->MakeReady();
  chunk_.at_ = chunk;
  chunk_.next_ = SlotFirstPage(slot) * kUnitsInPage;
  chunk_.units_left_ = static_cast<uint32_t>(bytes / kUnitBytes);
  return true;
}

uint32_t Arena::SlotPages(uint32_t slot) const noexcept {
  return slot < slots_doubling_ ? uint32_t{1} << slot : pages_max_;
}

uint32_t Arena::SlotFirstPage(uint32_t slot) const noexcept {
  return slot < slots_doubling_ ? uint32_t{1} << slot
                                : (slot - slots_doubling_ + 1) << slots_doubling_;
}

}  // namespace basalt::base
