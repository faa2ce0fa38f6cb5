#include "vector/graph_nodes.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"

namespace basalt::vector {

GraphNodes::GraphNodes(size_t code_bytes, uint64_t seed)
    : seed_(seed), functions_(&ProcessorKernels().codes), codes_(code_bytes) {}

size_t GraphNodes::bytes() const noexcept {
  return codes_.bytes() + base_links_.bytes() + infos_.bytes() + upper_links_.bytes() +
         special_.bytes();
}

uint32_t GraphNodes::LevelOf(uint32_t slot) const noexcept {
  // Four bits that are zero: one in 16.
  const uint64_t hash = base::Hash({reinterpret_cast<const char*>(&slot), sizeof slot}, seed_);
  return std::min(static_cast<uint32_t>(std::countr_zero(hash | uint64_t{1} << 63)) / 4,
                  kLevelsMax - 1);
}

void GraphNodes::Grow(uint32_t size) {
  const uint32_t old_size = this->size();
  if (size <= old_size) return;
  uint32_t upper_size = upper_size_;
  for (uint32_t slot = old_size; slot < size; ++slot) upper_size += LevelOf(slot);
  codes_.Grow(size);
  base_links_.Grow(size);
  infos_.Grow(size);
  upper_links_.Grow(upper_size);
  special_.Grow((size + 63) / 64);
  for (uint32_t slot = old_size; slot < size; ++slot) {
    infos_[slot].upper.store(upper_size_, std::memory_order_relaxed);
    upper_size_ += LevelOf(slot);
  }
  size_.store(size, std::memory_order_release);
}

void GraphNodes::Distances(const uint8_t* code, std::span<const uint32_t> slots,
                           uint32_t* distances) const noexcept {
  constexpr size_t kAtOnce = 64;
  const uint8_t* rows[kAtOnce];
  for (size_t begin = 0; begin < slots.size(); begin += kAtOnce) {
    const size_t count = std::min(kAtOnce, slots.size() - begin);
    for (size_t i = 0; i < count; ++i) rows[i] = Code(slots[begin + i]);
    functions_->to_each(code, rows, count, code_bytes(), distances + begin);
  }
}

}  // namespace basalt::vector
