#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "server/dataset.h"
#include "server/notifications.h"
#include "server/peer.h"
#include "server/pub_sub.h"
#include "server/resp_parser.h"
#ifdef BASALT_LUA
#include "server/scripts.h"
#endif
#include "server/snapshot_table.h"
#include "server/users.h"
#include "server/waiting_clients.h"

namespace basalt::server {

/// What an operator sets.
struct Settings {
  Users users = Users::WithPassword({});
  RequestLimits request{};
  size_t output_bytes = size_t{256} << 20;  ///< That one client may leave unread.
  size_t queued_bytes = size_t{64} << 20;   ///< Of the commands between MULTI and EXEC.
  uint32_t clients = 10'000;
  /// How long a client may read nothing of a response that is made while it is sent.
  std::chrono::milliseconds stream_patience = std::chrono::minutes(5);
  bool is_power_durable = false;
  bool allows_scripts = true;
#ifdef BASALT_LUA
  ScriptLimits script{};
#endif
};

/// Counters since the start, for INFO and /metrics.
struct Counters {
  std::atomic<uint64_t> commands{0};
  std::atomic<uint64_t> pipelines{0};  ///< Transactions of several commands of a pipeline.
  std::atomic<uint64_t> errors{0};
  std::atomic<uint64_t> conflicts{0};      ///< Transactions that ran again.
  std::atomic<uint64_t> pool_commands{0};  ///< Commands that left their event loop.
  std::atomic<uint64_t> http_requests{0};
  std::atomic<uint64_t> connections{0};  ///< Accepted.
  std::atomic<uint64_t> refused{0};      ///< Connections above the limit.
  std::atomic<uint64_t> swept{0};        ///< Expired collections whose elements were removed.
};

/// What all connections of a server share. Thread-safe.
class Hub {
 public:
  Hub(Dataset* dataset, Settings settings)
      : dataset_(dataset),
        settings_(std::move(settings)),
        clients_max_(settings_.clients),
        started_(std::chrono::steady_clock::now())
#ifdef BASALT_LUA
        ,
        scripts_(settings_.script)
#endif
  {
  }

  Dataset& dataset() noexcept { return *dataset_; }
  const Settings& settings() const noexcept { return settings_; }
  PubSub& pub_sub() noexcept { return pub_sub_; }
  WaitingClients& waiting() noexcept { return waiting_; }
  SnapshotTable& snapshots() noexcept { return snapshots_; }
  Notifications& notifications() noexcept { return notifications_; }
  Counters& counters() noexcept { return counters_; }
#ifdef BASALT_LUA
  Scripts& scripts() noexcept { return scripts_; }
#endif
  /// Held by a transaction that has conflicted several times, so that such run one after another.
  std::mutex& turn() noexcept { return turn_; }
  uint16_t port() const noexcept { return port_.load(); }
  void set_port(uint16_t port) noexcept { port_ = port; }
  uint64_t uptime_seconds() const;

  // Connections.
  uint32_t clients_max() const noexcept { return clients_max_.load(); }
  void set_clients_max(uint32_t clients) noexcept { clients_max_ = clients; }
  uint64_t NewClientId() noexcept { return next_client_id_.fetch_add(1); }
  void AddClient(uint64_t id, const std::shared_ptr<Peer>& peer);
  void RemoveClient(uint64_t id);
  size_t CountClients() const;
  std::vector<std::shared_ptr<Peer>> Clients() const;

  /// Whether a shutdown has begun.
  bool is_stopping() const noexcept { return is_stopping_.load(); }
  void Stop() noexcept { is_stopping_ = true; }

 private:
  Dataset* dataset_;
  const Settings settings_;
  std::atomic<uint32_t> clients_max_;
  std::atomic<uint16_t> port_{0};
  std::chrono::steady_clock::time_point started_;
  PubSub pub_sub_;
  WaitingClients waiting_;
  SnapshotTable snapshots_;
  Notifications notifications_;
  Counters counters_;
#ifdef BASALT_LUA
  Scripts scripts_;
#endif
  std::mutex turn_;
  std::atomic<bool> is_stopping_{false};
  std::atomic<uint64_t> next_client_id_{1};
  mutable std::mutex clients_mutex_;
  std::map<uint64_t, std::weak_ptr<Peer>> clients_;
};

}  // namespace basalt::server
