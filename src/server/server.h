#pragma once

// src/server: the Redis protocol and HTTP over a store. Read Server first, then Executor
// (executor.h), which runs the commands of the command table.

#include <cstdint>
#include <memory>
#include <string>

#include "basalt/db.h"
#include "basalt/status.h"
#include "server/hub.h"

namespace basalt::server {

// The server of `basalt serve`: the Redis protocol and HTTP on one port, on a database. Read first:
// encoding.h (how data lies in the store), view.h (one command's transaction), executor.h (how a
// command runs), connection.h (what a connection does on its event loop).

struct ServerOptions {
  std::string address = "127.0.0.1";
  uint16_t port = 6379;  ///< 0: the system chooses one.
  bool listens_on_tcp = true;
  std::string unix_socket{};  ///< Empty: none.
  uint32_t threads = 0;       ///< Event loops. 0: one for each processor but one.
  Settings settings{};

  /// Whether other machines can connect: the address is not a loopback address.
  bool IsReachedByOthers() const;
};

/// Serves a database until Stop. The database outlives it. Meanwhile the lock file of the database
/// has the server's URL, so that others that try to open the database are told. Functions of one
/// thread at a time.
class Server {
 public:
  /// Listens and starts its threads. InvalidArgument: an address that is none; IoError: it cannot
  /// be listened on.
  static Result<std::unique_ptr<Server>> Start(DB* db, const ServerOptions& options);
  /// Stops.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// The port that it listens on; 0: it does not listen on TCP.
  uint16_t port() const noexcept;
  /// Of the TCP port; of the Unix socket if there is no port.
  std::string url() const;
  Hub& hub() noexcept;

  /// Accepts no more connections, answers the commands that run, closes all connections and ends
  /// its threads. Clients that do not read their replies get five seconds.
  void Stop();

 private:
  class Loops;
  explicit Server(std::unique_ptr<Loops> loops);
  std::unique_ptr<Loops> loops_;
};

}  // namespace basalt::server
