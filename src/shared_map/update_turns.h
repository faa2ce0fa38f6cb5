#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace basalt::shared_map {

/// Keys whose updates have a turn: an Update that met a new value each time it came to write has
/// other threads' writes of its key wait, so that it ends.
///
/// A write waits for one turn, and for a bounded time: what is computed in a turn may itself wait
/// for a write of the key, or of a key whose Update waits for this one.
///
/// Locks: all but the end of a turn is called with the writer's mutex held, so that no write gets
/// between; the mutex of this class is taken last. Cost of a write when nobody has a turn: a load.
class UpdateTurns {
 public:
  using Clock = std::chrono::steady_clock;

  /// Move-only; its end ends the turn. May outlive the lock that it began under.
  class Turn {
   public:
    Turn() noexcept = default;
    Turn(UpdateTurns* turns, std::string_view key) noexcept : turns_(turns), key_(key) {}
    Turn(Turn&& other) noexcept;
    Turn& operator=(Turn&& other) noexcept;
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { End(); }

   private:
    void End() noexcept;

    UpdateTurns* turns_ = nullptr;  // Null: it has none.
    std::string_view key_;
  };

  /// A turn of the calling thread, for which others wait no longer than `time`. None (an empty
  /// Turn) while another one has the key. `key` outlives it.
  Turn Begin(std::string_view key, Clock::duration time);
  /// Waits until another thread's turn on the key has ended, or its time; unlocks meanwhile.
  void WaitFor(std::string_view key, std::unique_lock<std::mutex>* lock) {
    if (count_.load(std::memory_order_relaxed) != 0) WaitForTurn(key, lock);
  }

 private:
  struct State {
    std::thread::id thread;
    Clock::time_point until;
    uint64_t number;
  };

  void WaitForTurn(std::string_view key, std::unique_lock<std::mutex>* lock);

  std::atomic<size_t> count_{0};  // Of turns_.
  std::mutex mutex_;              // Covers the rest.
  std::condition_variable ended_;
  std::map<std::string_view, State> turns_;
  uint64_t begun_ = 0;
};

}  // namespace basalt::shared_map
