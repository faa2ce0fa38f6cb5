#include "basalt/value.h"

#include <cstring>
#include <new>

namespace basalt {
namespace {

/// A pin with one reference; the bytes follow it in the same allocation.
void FreeHeapPin(Value::Pin* pin) noexcept { ::operator delete(pin); }

}  // namespace

Value Value::Copy(std::string_view bytes) {
  Value value;
  char* to = value.inline_;
  if (bytes.size() > kInlineBytes) {
    void* memory = ::operator new(sizeof(Pin) + bytes.size());
    to = static_cast<char*>(memory) + sizeof(Pin);
    value.pin_ = new (memory) Pin{.data = to, .release = FreeHeapPin};
  }
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  value.size_ = bytes.size();
  return value;
}

}  // namespace basalt
