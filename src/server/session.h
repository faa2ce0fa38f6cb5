#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "server/command.h"
#include "server/peer.h"
#include "server/users.h"

namespace basalt::server {

/// A command that MULTI has queued, with its own copy of the arguments.
struct Queued {
  const Command* command;
  std::vector<std::string> args;
};

/// A key that WATCH has seen.
struct Watched {
  uint8_t db;
  std::string key;
  uint64_t version;
};

/// What a connection that speaks the Redis protocol has of its own. One thread at a time, except
/// the functions that say otherwise.
class Session {
 public:
  /// `user`: whom it begins as; null: nobody, it must authenticate.
  Session(Peer* peer, uint64_t id, std::string address, const User* user)
      : user_(user), peer_(peer), id_(id), address_(std::move(address)) {}

  Peer* peer() const noexcept { return peer_; }
  uint64_t id() const noexcept { return id_; }

  uint8_t db() const noexcept { return db_.load(std::memory_order_relaxed); }
  void set_db(uint8_t db) noexcept { db_.store(db, std::memory_order_relaxed); }
  int resp_version() const noexcept { return resp_version_.load(std::memory_order_relaxed); }
  void set_resp_version(int version) noexcept { resp_version_ = version; }
  const User* user() const noexcept { return user_.load(std::memory_order_relaxed); }
  void set_user(const User* user) noexcept { user_ = user; }
  bool is_authenticated() const noexcept { return user() != nullptr; }
  void set_last_command(const Command* command) noexcept {
    last_command_.store(command, std::memory_order_relaxed);
  }
  bool is_closing() const noexcept { return is_closing_; }
  /// Once the replies so far have been sent.
  void Close() noexcept { is_closing_ = true; }

  // Names. Any thread.
  std::string name() const;
  void set_name(std::string name);
  void set_library(bool is_version, std::string text);
  std::string Describe() const;

  // MULTI and WATCH.
  bool in_multi = false;
  bool multi_failed = false;  ///< A command could not be queued.
  std::vector<Queued> queue;
  size_t queued_bytes = 0;
  std::vector<Watched> watched;
  void EndMulti();

  // Subscriptions.
  std::set<std::string> channels;
  std::set<std::string> patterns;
  size_t subscriptions() const noexcept { return channels.size() + patterns.size(); }

 private:
  std::atomic<const User*> user_;
  bool is_closing_ = false;
  Peer* peer_;
  uint64_t id_;
  std::string address_;
  std::atomic<uint8_t> db_{0};
  std::atomic<int> resp_version_{2};
  std::atomic<const Command*> last_command_{nullptr};
  mutable std::mutex names_mutex_;
  std::string name_;
  std::string library_;
  std::string library_version_;
};

}  // namespace basalt::server
