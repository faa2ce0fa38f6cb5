#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace basalt::base {

/// Divides pieces of memory into extents of any size, in units of `alignment` bytes, and keeps
/// lists of the free ones. For ExtentPool and the cache's EntryHeap, which say where pieces come
/// from.
///
///   piece    header of its owner | extent | extent | ... | head of 8 bytes that ends the row
///   extent   head of 8 bytes | the object, aligned to `alignment`
///   head     units, and whether it is taken | units of the extent before; 0: there is none
///
/// There is no gap between extents. Free extents stand in lists by size, 32 to each power of two;
/// their links lie where their object was. Neighbours are never both free, if the owner calls
/// Joined. Finding one looks at a few extents of the wanted size's list, then takes the first of
/// any list above.
///
/// Not thread-safe. Each operation touches the heads of the extent and of its neighbours.
template <size_t alignment, size_t piece_bytes_max>
class ExtentLists {
 public:
  static constexpr size_t kHeadBytes = 8;

  struct Head {
    uint32_t units_and_taken;  ///< Units, then a bit.
    uint32_t units_before;

    static Head* Of(const char* object) noexcept {
      return reinterpret_cast<Head*>(const_cast<char*>(object)) - 1;
    }
    uint32_t units() const noexcept { return units_and_taken >> 1; }
    size_t bytes() const noexcept { return units() * alignment; }
    bool is_taken() const noexcept { return (units_and_taken & 1) != 0; }
    void Set(uint32_t units, bool is_taken) noexcept {
      units_and_taken = units << 1 | static_cast<uint32_t>(is_taken);
    }
    char* object() noexcept { return reinterpret_cast<char*>(this + 1); }
    Head* After(uint32_t its_units) noexcept {
      return reinterpret_cast<Head*>(reinterpret_cast<char*>(this) + its_units * alignment);
    }
    Head* After() noexcept { return After(units()); }
    Head* Before() noexcept {
      return reinterpret_cast<Head*>(reinterpret_cast<char*>(this) - units_before * alignment);
    }
    bool ends_row() const noexcept { return units() == 0; }
  };
  static_assert(sizeof(Head) == kHeadBytes);

  /// The first bytes of an object that is free.
  struct Free {
    Free* next;
    Free* previous;

    static Free* Of(Head* head) noexcept { return reinterpret_cast<Free*>(head->object()); }
    Head* head() noexcept { return Head::Of(reinterpret_cast<char*>(this)); }
  };

  /// Of the least extent: a free one has links.
  static constexpr uint32_t kUnitsMin = (kHeadBytes + sizeof(Free) - 1) / alignment + 1;

  /// Where the row begins in a piece whose owner has a header of `header_bytes`.
  static constexpr size_t RowOffset(size_t header_bytes) noexcept {
    return (header_bytes + kHeadBytes + alignment - 1) / alignment * alignment - kHeadBytes;
  }
  /// Units of all extents of a piece.
  static constexpr uint32_t UnitsOf(size_t piece_bytes, size_t header_bytes) noexcept {
    return static_cast<uint32_t>((piece_bytes - RowOffset(header_bytes) - kHeadBytes) / alignment);
  }
  static constexpr uint32_t UnitsFor(size_t object_bytes) noexcept {
    const size_t units = (object_bytes + kHeadBytes + alignment - 1) / alignment;
    return units < kUnitsMin ? kUnitsMin : static_cast<uint32_t>(units);
  }
  static size_t UsableBytes(const char* object) noexcept {
    return Head::Of(object)->bytes() - kHeadBytes;
  }

  /// Makes a row of one free extent, which is in no list.
  static Head* Start(char* row, uint32_t units) noexcept {
    Head* const whole = reinterpret_cast<Head*>(row);
    whole->Set(units, /*is_taken=*/false);
    whole->units_before = 0;
    Head* const end = whole->After(units);
    end->Set(0, /*is_taken=*/true);
    end->units_before = units;
    return whole;
  }

  /// Null: there is none of `units` or more.
  Head* Find(uint32_t units) const noexcept {
    constexpr int kLooksMax = 2;
    const size_t own = ListOf(units);
    int looks = 0;
    for (Free* free = lists_[own]; free != nullptr && looks < kLooksMax;
         free = free->next, ++looks) {
      if (free->head()->units() >= units) return free->head();
    }
    const size_t first = own + 1;
    for (size_t word = first / 64; word < filled_.size(); ++word) {
      uint64_t bits = filled_[word];
      if (word == first / 64) bits &= ~uint64_t{0} << (first % 64);
      if (bits != 0) return lists_[word * 64 + static_cast<size_t>(std::countr_zero(bits))]->head();
    }
    return nullptr;
  }

  void Link(Head* head) noexcept {
    const size_t list = ListOf(head->units());
    Free* const free = Free::Of(head);
    free->previous = nullptr;
    free->next = lists_[list];
    if (free->next != nullptr) free->next->previous = free;
    lists_[list] = free;
    filled_[list / 64] |= uint64_t{1} << (list % 64);
  }

  void Unlink(Head* head) noexcept {
    const size_t list = ListOf(head->units());
    Free* const free = Free::Of(head);
    if (free->next != nullptr) free->next->previous = free->previous;
    (free->previous != nullptr ? free->previous->next : lists_[list]) = free->next;
    if (lists_[list] == nullptr) filled_[list / 64] &= ~(uint64_t{1} << (list % 64));
  }

  /// Makes a free extent, which is in no list, a taken one of `units`. Gives what is left, in no
  /// list; null: nothing, or too little for links, which stays with the object.
  static Head* Split(Head* head, uint32_t units) noexcept {
    const uint32_t rest_units = head->units() - units;
    if (rest_units < kUnitsMin) {
      head->Set(head->units(), /*is_taken=*/true);
      return nullptr;
    }
    Head* const rest = head->After(units);
    rest->Set(rest_units, /*is_taken=*/false);
    rest->units_before = units;
    rest->After(rest_units)->units_before = rest_units;
    head->Set(units, /*is_taken=*/true);
    return rest;
  }

  /// Makes a taken extent a free one, with its free neighbours, for each of which it calls
  /// `unlink(head)`. Gives it, in no list.
  template <class UnlinkOne>
  static Head* Joined(Head* head, const UnlinkOne& unlink) noexcept {
    uint32_t units = head->units();
    if (Head* const after = head->After(); !after->is_taken()) {
      unlink(after);
      units += after->units();
    }
    if (head->units_before != 0 && !head->Before()->is_taken()) {
      Head* const before = head->Before();
      unlink(before);
      units += before->units();
      head = before;
    }
    head->Set(units, /*is_taken=*/false);
    head->After()->units_before = units;
    return head;
  }

 private:
  // 32 to each power of two, from 32 units on; below, one for each number.
  static constexpr size_t ListOf(uint32_t units) noexcept {
    if (units < 32) return units;
    const auto shift = static_cast<uint32_t>(std::bit_width(units)) - 6;
    return shift * 32 + (units >> shift);
  }
  static constexpr size_t kLists = ListOf(piece_bytes_max / alignment) + 1;

  std::array<Free*, kLists> lists_{};
  std::array<uint64_t, (kLists + 63) / 64> filled_{};  ///< Bit i: list i holds something.
};

}  // namespace basalt::base
