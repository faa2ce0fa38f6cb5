#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "basalt/maybe.h"

namespace basalt {

/// Bytes that a store handed out, and the right to keep reading them. Up to kInlineBytes they lie
/// in the object; larger ones stay where the store has them (a block, a heap buffer) and are pinned
/// by one reference until this object is destroyed, which may outlive the store's handle.
///
/// Move-only, 128 bytes. A move invalidates views into the moved-from object, because short values
/// lie inside it. Reading from several threads at once is fine; destruction may happen on any
/// thread.
class Value {
 public:
  static constexpr size_t kInlineBytes = 112;

  /// Empty.
  Value() noexcept : size_(0), pin_(nullptr) {}
  Value(Value&& other) noexcept { MoveFrom(other); }
  Value& operator=(Value&& other) noexcept {
    if (this != &other) {
      Reset();
      MoveFrom(other);
    }
    return *this;
  }
  Value(const Value&) = delete;
  Value& operator=(const Value&) = delete;
  ~Value() { Reset(); }

  /// A copy of `bytes` that owns itself: inline when short, else on the heap. Throws
  /// std::bad_alloc.
  static Value Copy(std::string_view bytes) {
    if (bytes.size() > kInlineBytes) return CopyToHeap(bytes);
    return Value(bytes.data(), bytes.size());
  }

  std::string_view view() const& noexcept {
    return {pin_ == nullptr ? inline_ : pin_->data, size_};
  }
  /// A temporary cannot leave a dangling view; `ToString()` is the way on a temporary.
  std::string_view view() const&& = delete;
  operator std::string_view() const& noexcept { return view(); }
  operator std::string_view() const&& = delete;

  size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  /// A copy of the bytes; may be called on a temporary.
  std::string ToString() const {
    return std::string(pin_ == nullptr ? inline_ : pin_->data, size_);
  }

  friend bool operator==(const Value& a, const Value& b) noexcept { return a.view() == b.view(); }
  friend bool operator==(const Value& a, std::string_view b) noexcept { return a.view() == b; }

  /// What a pinned value holds on to. Stores derive from it; `release` gives the reference back and
  /// is called once, on the thread that destroys the Value.
  struct Pin {
    const char* data;
    void (*release)(Pin* pin) noexcept;
  };
  /// Takes over one reference of `pin`, whose `data` has `size` bytes. For store implementations.
  static Value Pinned(Pin* pin, size_t size) noexcept { return Value(pin, size); }

 private:
  // Constructors, so that the functions above make their result in its place.
  Value(const char* bytes, size_t size) noexcept : size_(size), pin_(nullptr) {
    CopyShort(inline_, bytes, size);
  }
  Value(Pin* pin, size_t size) noexcept : size_(size), pin_(pin) {}
  static Value CopyToHeap(std::string_view bytes);
  /// memcpy without a call, which fills the last eight bytes up with zeros. Where it stores does
  /// not depend on the size: that is often still on its way from memory, and until a processor
  /// knows where a store goes it holds back much of what loads after it. And whoever reads a word
  /// of the copy finds it in one store, so that it is forwarded to them.
  [[gnu::always_inline]] static void CopyShort(char* to, const char* from, size_t size) noexcept {
    if (size < 8) {
      Store(to, ShortWord(from, size));
      return;
    }
    const uint64_t last = Load<uint64_t>(from + size - 8);
    for (; size > 16; size -= 16, from += 16, to += 16) {
      Store(to, Load<SixteenBytes>(from));
      asm("" : "+r"(to));  // Or it is computed from the size after all.
    }
    if (size > 8) {
      Store(to, Load<uint64_t>(from));
      to += 8;
      size -= 8;
    }
    Store(to, last >> (64 - 8 * size));
  }
  /// Less than 8 bytes and zeros.
  static uint64_t ShortWord(const char* from, size_t size) noexcept {
    if (size >= 4) {
      const uint64_t last = Load<uint32_t>(from + size - 4);
      return Load<uint32_t>(from) | last << (8 * size - 32);
    }
    if (size >= 2) {
      const uint64_t last = Load<uint16_t>(from + size - 2);
      return Load<uint16_t>(from) | last << (8 * size - 16);
    }
    return size == 0 ? 0 : Load<uint8_t>(from);
  }
  using SixteenBytes [[gnu::vector_size(16)]] = char;
  template <class Word>
  static Word Load(const char* from) noexcept {
    Word word;
    __builtin_memcpy(&word, from, sizeof word);
    return word;
  }
  template <class Word>
  static void Store(char* to, Word word) noexcept {
    __builtin_memcpy(to, &word, sizeof word);
  }
  void Reset() noexcept {
    if (pin_ != nullptr) pin_->release(pin_);
  }
  void MoveFrom(Value& other) noexcept {
    size_ = other.size_;
    pin_ = other.pin_;
    if (pin_ == nullptr) {
      CopyShort(inline_, other.inline_, size_);
    } else {
      other.pin_ = nullptr;
    }
    other.size_ = 0;
  }

  alignas(8) char inline_[kInlineBytes];
  size_t size_;
  Pin* pin_;
};
static_assert(sizeof(Value) == 128);

/// What a lookup gives: the value, or nothing when the key is absent.
using MaybeValue = Maybe<Value>;

}  // namespace basalt
