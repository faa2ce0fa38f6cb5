#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/deterministic_scheduler.h"
#include "base/random.h"

// For tests: a ScheduledAtomic whose stores wait in a buffer of their thread, as those of x86 do
// (P. Sewell and others, "x86-TSO: A Rigorous and Usable Programmer's Model for x86
// Multiprocessors", 2010). A thread sees its own stores at once; others see them, in their order,
// at some later step, which chance decides. Read-modify-writes, and stores that are sequentially
// consistent, wait until the thread's buffer is empty.
//
// So a test meets what DeterministicScheduler alone does not: a load that comes before an older
// store of the same thread.

namespace basalt::base {

/// The buffers of the threads of one run. All members by the thread that has the turn.
class StoreBuffers {
 public:
  static constexpr size_t kNoThread = SIZE_MAX;

  /// Before a run of bodies, each of which says which thread it is.
  static void Begin(size_t threads) {
    buffers = std::vector<std::deque<std::function<void()>>>(threads);
    drained_once_in = 0;
    thread = kNoThread;
  }
  /// The same; stores become visible by chance. (Else only where the thread or the test says so.)
  static void Begin(size_t threads, uint64_t seed) {
    Begin(threads);
    random = Random(seed);
    drained_once_in = uint64_t{4} << (2 * random.Below(6));
  }
  static void Be(size_t its_thread) { thread = its_thread; }

  /// What the thread stores last is applied last.
  static void Add(std::function<void()> store) {
    if (thread == kNoThread) return store();
    buffers[thread].push_back(std::move(store));
  }
  static void DrainOwn() {
    if (thread != kNoThread) Drain(&buffers[thread]);
  }
  static void DrainAll() {
    for (auto& buffer : buffers) Drain(&buffer);
  }
  /// The oldest `count` of the thread.
  static void DrainOwn(size_t count) {
    for (; count != 0 && !buffers[thread].empty(); --count) ApplyFirst(&buffers[thread]);
  }
  static size_t present_thread() { return thread; }

  /// Called before each step of a thread that is not scheduled, but not within itself: there a test
  /// that needs no scheduler may act as another thread.
  static inline std::function<void()> at_step;
  static void Step() {
    DeterministicScheduler::Point();
    MayDrainOne();
    if (!at_step) return;
    const auto hook = std::exchange(at_step, nullptr);
    const size_t present = thread;
    hook();
    thread = present;
    at_step = hook;
  }

 private:
  /// Now and then one store becomes visible: how often, the seed of the run says.
  static void MayDrainOne() {
    if (drained_once_in == 0 || !random.OneIn(drained_once_in)) return;
    auto& buffer = buffers[random.Below(buffers.size())];
    if (!buffer.empty()) ApplyFirst(&buffer);
  }
  static void ApplyFirst(std::deque<std::function<void()>>* buffer) {
    const std::function<void()> store = std::move(buffer->front());
    buffer->pop_front();
    store();
  }
  static void Drain(std::deque<std::function<void()>>* buffer) {
    while (!buffer->empty()) ApplyFirst(buffer);
  }

  static inline std::vector<std::deque<std::function<void()>>> buffers;
  static inline Random random{0};
  static inline uint64_t drained_once_in = 0;
  static inline thread_local size_t thread = kNoThread;
};

/// Stores of two threads must not wait at once (read-modify-writes may come at any time).
template <class T>
class BufferedAtomic {
 public:
  constexpr BufferedAtomic() noexcept = default;
  constexpr BufferedAtomic(T value) noexcept : value_(value) {}

  T load(std::memory_order /*order*/ = std::memory_order_seq_cst) const noexcept {
    // Else a scan over many places that nobody uses would be most of a run.
    if (is_used_) StoreBuffers::Step();
    return IsBufferedByThread() ? buffered_ : value_;
  }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    is_used_ = true;
    StoreBuffers::Step();
    if (order == std::memory_order_seq_cst) {
      StoreBuffers::DrainOwn();
      value_ = value;
      return;
    }
    BASALT_CHECK(buffered_count_ == 0 || IsBufferedByThread());
    buffered_ = value;
    buffered_by_ = StoreBuffers::present_thread();
    ++buffered_count_;
    StoreBuffers::Add([this, value] {
      value_ = value;
      --buffered_count_;
    });
  }
  T exchange(T value, std::memory_order /*order*/ = std::memory_order_seq_cst) noexcept {
    return Modify([value](T) { return value; });
  }
  T fetch_add(T value, std::memory_order /*order*/ = std::memory_order_seq_cst) noexcept {
    return Modify([value](T before) { return before + value; });
  }
  T fetch_sub(T value, std::memory_order /*order*/ = std::memory_order_seq_cst) noexcept {
    return Modify([value](T before) { return before - value; });
  }
  template <class... Orders>
  bool compare_exchange_strong(T& expected, T value, Orders... /*orders*/) noexcept {
    const T wanted = expected;
    expected = Modify([=](T before) { return before == wanted ? value : before; });
    return expected == wanted;
  }
  template <class... Orders>
  bool compare_exchange_weak(T& expected, T value, Orders... orders) noexcept {
    return compare_exchange_strong(expected, value, orders...);
  }

 private:
  template <class Change>
  T Modify(const Change& change) noexcept {
    is_used_ = true;
    StoreBuffers::Step();
    StoreBuffers::DrainOwn();
    return std::exchange(value_, change(value_));
  }
  bool IsBufferedByThread() const noexcept {
    return buffered_count_ != 0 && buffered_by_ == StoreBuffers::present_thread();
  }

  T value_{};
  bool is_used_ = false;  // somebody has stored
  T buffered_{};
  size_t buffered_by_ = StoreBuffers::kNoThread;
  size_t buffered_count_ = 0;
};

}  // namespace basalt::base
