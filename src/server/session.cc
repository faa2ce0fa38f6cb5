#include "server/session.h"

#include <utility>

namespace basalt::server {

std::string Session::name() const {
  const std::lock_guard lock(names_mutex_);
  return name_;
}

void Session::set_name(std::string name) {
  const std::lock_guard lock(names_mutex_);
  name_ = std::move(name);
}

void Session::set_library(bool is_version, std::string text) {
  const std::lock_guard lock(names_mutex_);
  (is_version ? library_version_ : library_) = std::move(text);
}

std::string Session::Describe() const {
  const Command* command = last_command_.load(std::memory_order_relaxed);
  const std::lock_guard lock(names_mutex_);
  return "id=" + std::to_string(id_) + " addr=" + address_ + " name=" + name_ +
         " db=" + std::to_string(db()) +
         " cmd=" + (command == nullptr ? "NULL" : std::string(command->name)) +
         " user=" + (user() == nullptr ? "(none)" : user()->name) + " lib-name=" + library_ +
         " lib-ver=" + library_version_ + " resp=" + std::to_string(resp_version());
}

void Session::EndMulti() {
  in_multi = false;
  multi_failed = false;
  queue.clear();
  queued_bytes = 0;
  watched.clear();
}

}  // namespace basalt::server
