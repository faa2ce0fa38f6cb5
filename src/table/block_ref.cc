#include "table/block_ref.h"

#include <new>
#include <utility>

namespace basalt::table {
namespace {

void FreeMemory(Value::Pin* pin) noexcept { ::operator delete(pin); }

}  // namespace

BlockRef::BlockRef(Value memory) noexcept
    : memory_(std::move(memory)), block_(View(memory_.view())) {}

Value AllocateBlockMemory(size_t size, char** bytes) {
  void* const memory = ::operator new(sizeof(Value::Pin) + size);
  *bytes = static_cast<char*>(memory) + sizeof(Value::Pin);
  return Value::Pinned(new (memory) Value::Pin{.data = *bytes, .release = FreeMemory}, size);
}

}  // namespace basalt::table
