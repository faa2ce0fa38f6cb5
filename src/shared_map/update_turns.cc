#include "shared_map/update_turns.h"

#include <utility>

namespace basalt::shared_map {

UpdateTurns::Turn::Turn(Turn&& other) noexcept
    : turns_(std::exchange(other.turns_, nullptr)), key_(other.key_) {}

UpdateTurns::Turn& UpdateTurns::Turn::operator=(Turn&& other) noexcept {
  if (this == &other) return *this;
  End();
  turns_ = std::exchange(other.turns_, nullptr);
  key_ = other.key_;
  return *this;
}

void UpdateTurns::Turn::End() noexcept {
  if (turns_ == nullptr) return;
  {
    const std::lock_guard guard(turns_->mutex_);
    turns_->turns_.erase(key_);
    turns_->count_.store(turns_->turns_.size(), std::memory_order_relaxed);
  }
  turns_->ended_.notify_all();
  turns_ = nullptr;
}

UpdateTurns::Turn UpdateTurns::Begin(std::string_view key, Clock::duration time) {
  const std::lock_guard guard(mutex_);
  const auto [at, is_new] = turns_.try_emplace(
      key, State{.thread = std::this_thread::get_id(), .until = Clock::now() + time, .number = 0});
  if (!is_new) return {};
  at->second.number = ++begun_;
  count_.store(turns_.size(), std::memory_order_relaxed);
  return {this, key};
}

void UpdateTurns::WaitForTurn(std::string_view key, std::unique_lock<std::mutex>* lock) {
  std::unique_lock own(mutex_);
  const auto at = turns_.find(key);
  if (at == turns_.end() || at->second.thread == std::this_thread::get_id()) return;
  const State waited_for = at->second;
  lock->unlock();
  ended_.wait_until(own, waited_for.until, [&] {
    const auto now = turns_.find(key);
    return now == turns_.end() || now->second.number != waited_for.number;
  });
  own.unlock();
  lock->lock();
}

}  // namespace basalt::shared_map
