#include "basalt/value.h"

#include <cstring>
#include <new>

namespace basalt {
namespace {

/// A pin with one reference; the bytes follow it in the same allocation.
void FreeHeapPin(Value::Pin* pin) noexcept { ::operator delete(pin); }

}  // namespace

Value Value::CopyToHeap(std::string_view bytes) {
  void* const memory = ::operator new(sizeof(Pin) + bytes.size());
  char* const to = static_cast<char*>(memory) + sizeof(Pin);
  std::memcpy(to, bytes.data(), bytes.size());
  return Pinned(new (memory) Pin{.data = to, .release = FreeHeapPin}, bytes.size());
}

}  // namespace basalt
