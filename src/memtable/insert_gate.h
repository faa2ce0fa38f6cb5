#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <thread>

// Lets any number of threads insert into an index at once, and keeps them out while its words move.
//
// Layout
//
//   gate ...... a number that grows when it is closed and when it is opened: closed while it is
//   odd.
//               Loaded by all, written when words move
//   Place ..... of a thread: the gate that it visits, or null; on a line that only this thread
//               writes. One place serves all gates, of which a thread visits one at a time
//
// Who comes stores the gate in its place, and is inside when a look at the number then tells that
// the gate is open. Who closes the gate stores the next number, then waits for each place that
// names the gate. Between its store and its look each of them has a full fence, so that one of the
// two sees the other: the visitor waits outside, or the closer for the visitor to leave. Nobody
// waits inside, so closing ends.
//
// A visitor may search first, when it will need a fence for other reasons anyway, and look at the
// number afterwards. Its place may have been seen by nobody until then, so the number has to be the
// same as it was before the search: nothing has moved since.
//
// Cost. A visitor: two stores to its own line, two loads of one that is seldom written, and the
// fence.

namespace basalt::memtable {

/// `Atomic` is std::atomic, or a stand-in that lets a test decide how threads interleave.
template <template <class> class Atomic = std::atomic>
class BasicInsertGate {
 public:
  /// Of one thread at a time.
  class Place {
    friend class BasicInsertGate;
    Atomic<const BasicInsertGate*> visited_{nullptr};
  };

  /// From its beginning to the end of the scope.
  class Visit {
   public:
    Visit(const BasicInsertGate& gate, Place* place) noexcept : gate_(gate), place_(place) {
      Begin();
    }
    ~Visit() { Leave(); }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

    /// Waits until it is inside.
    void Enter() noexcept {
      for (;; BeginAgain()) {
        Fence();
        number_ = gate_.number_.load(std::memory_order_seq_cst);
        if (!IsClosed(number_)) return;
      }
    }
    /// Whether it is inside, and nothing has moved since it began, provided that a sequentially
    /// consistent read-modify-write, of whatever, stands between the beginning and this call.
    bool IsInside() noexcept {
#if !defined(__x86_64__) || defined(__SANITIZE_THREAD__)
      Fence();  // There, a locked instruction is one.
#endif
      return gate_.number_.load(std::memory_order_seq_cst) == number_ && !IsClosed(number_);
    }
    /// Leaves, and comes back when the gate is open.
    void BeginAgain() noexcept {
      Leave();
      WaitUntil([this] { return !IsClosed(gate_.number_.load(std::memory_order_acquire)); });
      Begin();
    }

   private:
    void Begin() noexcept {
      place_->visited_.store(&gate_, std::memory_order_release);
      number_ = gate_.number_.load(std::memory_order_acquire);
    }
    void Leave() noexcept { place_->visited_.store(nullptr, std::memory_order_release); }
    void Fence() noexcept { place_->visited_.exchange(&gate_, std::memory_order_seq_cst); }

    const BasicInsertGate& gate_;
    Place* const place_;
    uint32_t number_;
  };

  /// When it returns, none of those with these places is inside, and none will be before Open. One
  /// thread at a time, which does not visit it.
  void Close(std::span<Place* const> places) noexcept {
    number_.fetch_add(1, std::memory_order_seq_cst);
    for (const Place* const place : places) {
      WaitUntil([&] { return place->visited_.load(std::memory_order_seq_cst) != this; });
    }
  }
  /// What was moved can be seen by those who begin a visit now.
  void Open() noexcept { number_.fetch_add(1, std::memory_order_seq_cst); }

 private:
  static bool IsClosed(uint32_t number) noexcept { return (number & 1) != 0; }
  template <class Condition>
  static void WaitUntil(const Condition& condition) noexcept {
    constexpr int kSpinsMax = 128;
    for (int spins = 0; !condition(); ++spins) {
      if (spins > kSpinsMax) std::this_thread::yield();
    }
  }

  Atomic<uint32_t> number_{0};
};

using InsertGate = BasicInsertGate<>;

}  // namespace basalt::memtable
