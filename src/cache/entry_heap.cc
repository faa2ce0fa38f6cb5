#include "cache/entry_heap.h"

#include <sanitizer/asan_interface.h>

#include <new>

#include "base/check.h"

namespace basalt::cache {

struct EntryHeap::Block {
  Block* next = nullptr;
  Block* previous = nullptr;
  uint32_t used_units = 0;
  uint32_t tried_at_units = UINT32_MAX;  ///< What was used when it was emptied in vain.
  uint8_t fill = 0;                      ///< The list in which it stands.
  bool is_closed = false;

  static constexpr size_t kHeaderBytes = 32;
  Head* row() noexcept {
    static_assert(sizeof(Block) == kHeaderBytes);
    return reinterpret_cast<Head*>(reinterpret_cast<char*>(this) +
                                   Extents::RowOffset(kHeaderBytes));
  }
};

EntryHeap::EntryHeap(size_t block_bytes) noexcept : block_bytes_(block_bytes) {}

EntryHeap::~EntryHeap() { BASALT_CHECK(blocks_ == 0); }

auto EntryHeap::BlockOf(const Head* head) const noexcept -> Block* {
  return reinterpret_cast<Block*>(reinterpret_cast<uintptr_t>(head) & ~(block_bytes_ - 1));
}

uint32_t EntryHeap::block_units() const noexcept {
  return Extents::UnitsOf(block_bytes_, Block::kHeaderBytes);
}

void EntryHeap::List(Block* block) noexcept {
  block->fill = static_cast<uint8_t>(block->used_units * kFills / (block_units() + 1));
  block->previous = nullptr;
  block->next = fills_[block->fill];
  if (block->next != nullptr) block->next->previous = block;
  fills_[block->fill] = block;
}

void EntryHeap::Unlist(Block* block) noexcept {
  (block->previous != nullptr ? block->previous->next : fills_[block->fill]) = block->next;
  if (block->next != nullptr) block->next->previous = block->previous;
}

void EntryHeap::AddUsed(Block* block, int64_t units) noexcept {
  block->used_units = static_cast<uint32_t>(block->used_units + units);
  free_bytes_ -= static_cast<uint64_t>(units * int64_t{kAlignment});
  if (block->used_units * kFills / (block_units() + 1) == block->fill) return;
  Unlist(block);
  List(block);
}

// Gives the extent that fills it, in no list.
auto EntryHeap::TakeBlock() noexcept -> Head* {
  char* const memory = base::ChunkPool::Process()->Take(block_bytes_);
  if (memory == nullptr) return nullptr;
  auto* const block = new (memory) Block;
  newest_ = block;
  ++blocks_;
  free_bytes_ += uint64_t{block_units()} * kAlignment;
  List(block);
  return Extents::Start(reinterpret_cast<char*>(block->row()), block_units());
}

void EntryHeap::GiveBlock(Block* block) noexcept {
  --blocks_;
  if (newest_ == block) newest_ = nullptr;
  base::ChunkPool::Process()->Give(reinterpret_cast<char*>(block), block_bytes_);
}

char* EntryHeap::Take(size_t bytes) noexcept {
  if (base::IsRefusedToPools()) return nullptr;
  const uint32_t units = Extents::UnitsFor(bytes);
  Head* head = extents_.Find(units);
  if (head != nullptr) {
    extents_.Unlink(head);
  } else if (head = TakeBlock(); head == nullptr) {
    return nullptr;
  }
  constexpr size_t kFreeBytes = Extents::kHeadBytes + sizeof(Extents::Free);
  ASAN_UNPOISON_MEMORY_REGION(
      head->object(),
      std::min(units * kAlignment + kFreeBytes, head->bytes()) - Extents::kHeadBytes);
  if (Head* const rest = Extents::Split(head, units)) extents_.Link(rest);
  AddUsed(BlockOf(head), head->units());
  return head->object();
}

void EntryHeap::Give(char* object) noexcept {
  Head* head = Head::Of(object);
  BASALT_CHECK(head->is_taken());
  // So that AddressSanitizer sees a use after this; but for the links.
  constexpr size_t kSeen = sizeof(Extents::Free);
  ASAN_POISON_MEMORY_REGION(object + kSeen, UsableBytes(object) - kSeen);
  Block* const block = BlockOf(head);
  const uint32_t units = head->units();
  if (block->is_closed) {
    head->Set(units, /*is_taken=*/false);
    block->used_units -= units;
    if (block->used_units != 0) return;
    --closed_;
    if (emptied_ == block) emptied_ = nullptr;
    return GiveBlock(block);
  }
  AddUsed(block, -int64_t{units});
  head = Extents::Joined(head, [this](Head* neighbour) { extents_.Unlink(neighbour); });
  if (block->used_units != 0) return extents_.Link(head);
  Unlist(block);
  free_bytes_ -= uint64_t{block_units()} * kAlignment;
  GiveBlock(block);
}

void EntryHeap::Close(Block* block) noexcept {
  Unlist(block);
  for (Head* head = block->row(); !head->ends_row(); head = head->After()) {
    if (!head->is_taken()) extents_.Unlink(head);
  }
  free_bytes_ -= uint64_t{block_units() - block->used_units} * kAlignment;
  block->is_closed = true;
  ++closed_;
}

void EntryHeap::Reopen(Block* block) noexcept {
  --closed_;
  block->is_closed = false;
  block->tried_at_units = block->used_units;
  // Neighbours that became free meanwhile are joined.
  for (Head* head = block->row(); !head->ends_row(); head = head->After()) {
    if (head->is_taken()) continue;
    uint32_t units = head->units();
    Head* after = head->After();
    for (; !after->is_taken(); after = after->After()) units += after->units();
    head->Set(units, /*is_taken=*/false);
    after->units_before = units;
    extents_.Link(head);
  }
  free_bytes_ += uint64_t{block_units() - block->used_units} * kAlignment;
  List(block);
}

bool EntryHeap::StartEmptying(bool retires) noexcept {
  constexpr int kLooksMax = 16;
  Block* sparsest = nullptr;
  int looks = 0;
  // Not of the fullest: to move them would gain less than an eighth of what is moved, and it might
  // never end.
  const size_t fills = retires ? kFills : kFills - 1;
  for (size_t fill = 0; fill < fills && sparsest == nullptr; ++fill) {
    for (Block* block = fills_[fill]; block != nullptr && looks < kLooksMax; block = block->next) {
      ++looks;
      if (block == newest_ && !retires) continue;
      if (block->used_units >= block->tried_at_units) continue;
      if (sparsest == nullptr || block->used_units < sparsest->used_units) sparsest = block;
    }
  }
  if (sparsest == nullptr) return false;
  Close(sparsest);
  emptied_ = sparsest;
  emptied_at_ = sparsest->row();
  return true;
}

bool EntryHeap::IsClosed(const char* object) const noexcept {
  return BlockOf(Head::Of(object))->is_closed;
}

char* EntryHeap::Emptied() noexcept {
  if (emptied_ == nullptr) return nullptr;
  while (!emptied_at_->ends_row() && !emptied_at_->is_taken()) emptied_at_ = emptied_at_->After();
  return emptied_at_->ends_row() ? nullptr : emptied_at_->object();
}

void EntryHeap::SkipEmptied() noexcept { emptied_at_ = emptied_at_->After(); }

void EntryHeap::EndEmptying(bool reopens) noexcept {
  if (emptied_ == nullptr) return;
  if (reopens) Reopen(emptied_);
  emptied_ = nullptr;
}

}  // namespace basalt::cache
