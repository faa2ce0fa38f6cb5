#include "server/scripts.h"

#include <algorithm>
#include <utility>

namespace basalt::server {

Scripts::Text Scripts::Find(std::string_view sha1) const {
  const std::lock_guard lock(mutex_);
  const auto found = texts_.find(std::string(sha1));
  return found == texts_.end() ? nullptr : found->second;
}

void Scripts::Add(std::string_view sha1, std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (!texts_.try_emplace(std::string(sha1), std::make_shared<const std::string>(text)).second) {
    return;
  }
  order_.emplace_back(sha1);
  text_bytes_ += text.size();
  while (order_.size() > 1 && (order_.size() > kScriptsMax || text_bytes_ > kTextBytesMax)) {
    const auto oldest = texts_.find(order_.front());
    text_bytes_ -= oldest->second->size();
    texts_.erase(oldest);
    order_.pop_front();
  }
}

void Scripts::Clear() {
  const std::lock_guard lock(mutex_);
  texts_.clear();
  order_.clear();
  text_bytes_ = 0;
  idle_.clear();
}

size_t Scripts::count() const {
  const std::lock_guard lock(mutex_);
  return texts_.size();
}

Scripts::Lease Scripts::Borrow() {
  std::unique_ptr<ScriptInterpreter> interpreter;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      interpreter = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (interpreter == nullptr) interpreter = ScriptInterpreter::Create(limits_);
  if (interpreter != nullptr) {
    const std::lock_guard lock(mutex_);
    running_.push_back(interpreter.get());
  }
  return {this, std::move(interpreter)};
}

void Scripts::Release(std::unique_ptr<ScriptInterpreter> interpreter) {
  if (interpreter == nullptr) return;
  const std::lock_guard lock(mutex_);
  std::erase(running_, interpreter.get());
  if (!interpreter->is_worn() && idle_.size() < kIdleMax) idle_.push_back(std::move(interpreter));
}

bool Scripts::KillRunning() {
  const std::lock_guard lock(mutex_);
  for (ScriptInterpreter* interpreter : running_) interpreter->Kill();
  return !running_.empty();
}

}  // namespace basalt::server
