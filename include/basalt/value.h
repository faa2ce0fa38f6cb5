#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "basalt/maybe.h"

// Bytes that a store or a cache returns. Read Value first.

namespace basalt {

/// Bytes returned by a store, which stay readable while this object lives. Up to kInlineBytes are
/// copied into the object. Larger values stay in the store's memory (a block, a heap buffer), and
/// the object holds one reference to it. The object may outlive the store's handle.
///
/// Move-only, 128 bytes. A move invalidates views of the moved-from object, because short values
/// lie inside it. Several threads may read it at once. It may be destroyed on any thread.
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

  /// A copy of `bytes`: inline if short, else on the heap. Throws std::bad_alloc.
  static Value Copy(std::string_view bytes) {
    if (bytes.size() > kInlineBytes) return CopyToHeap(bytes);
    return Value(bytes.data(), bytes.size());
  }

  std::string_view view() const& noexcept {
    return {pin_ == nullptr ? inline_ : pin_->data, size_};
  }
  /// Deleted for a temporary, because the view would dangle. Use `ToString()` instead.
  std::string_view view() const&& = delete;
  operator std::string_view() const& noexcept { return view(); }
  operator std::string_view() const&& = delete;

  size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  /// A copy of the bytes. May be called on a temporary.
  std::string ToString() const {
    return std::string(pin_ == nullptr ? inline_ : pin_->data, size_);
  }

  friend bool operator==(const Value& a, const Value& b) noexcept { return a.view() == b.view(); }
  friend bool operator==(const Value& a, std::string_view b) noexcept { return a.view() == b; }

  /// The memory that a pinned value refers to. Stores derive from it. `release` returns the
  /// reference and is called once, on the thread that destroys the Value.
  struct Pin {
    const char* data;
    void (*release)(Pin* pin) noexcept;
  };
  /// Takes over one reference of `pin`, whose `data` has `size` bytes. For store implementations.
  static Value Pinned(Pin* pin, size_t size) noexcept { return Value(pin, size); }

 private:
  // These are constructors, so that the functions above construct their result in place.
  Value(const char* bytes, size_t size) noexcept : size_(size), pin_(nullptr) {
    CopyShort(inline_, bytes, size);
  }
  Value(Pin* pin, size_t size) noexcept : size_(size), pin_(pin) {}
  static Value CopyToHeap(std::string_view bytes);
  /// memcpy without a call; the last 8 bytes are filled up with zeros. The addresses of its stores
  /// do not depend on the size. The size often still is on its way from memory, and a processor
  /// delays later loads until it knows the addresses of earlier stores. A reader of a word of the
  /// copy finds it in one store, so the processor can forward it. This takes a third off the time
  /// of a cache hit.
  [[gnu::always_inline]] static void CopyShort(char* to, const char* from, size_t size) noexcept {
    if (size < 8) {
      Store(to, ShortWord(from, size));
      return;
    }
    const uint64_t last = Load<uint64_t>(from + size - 8);
    for (; size > 16; size -= 16, from += 16, to += 16) {
      Store(to, Load<SixteenBytes>(from));
      asm("" : "+r"(to));  // Keeps `to` independent of the size: hits take 27 ns instead of 33.
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

/// The result of a lookup: the value, or nothing if the key is absent.
using MaybeValue = Maybe<Value>;

}  // namespace basalt
