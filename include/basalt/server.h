#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "basalt/db.h"
#include "basalt/status.h"

// The server: a store for clients of the Redis protocol and HTTP. Read Server first. docs/server.md
// explains it.

namespace basalt::net {

/// Where a served database listens.
struct ServeOptions {
  std::string address = "127.0.0.1";  ///< An IP address; empty: not on TCP.
  uint16_t port = 0;                  ///< 0: the system chooses one.
  std::string unix_socket{};          ///< The path of a Unix socket beside TCP; empty: none.
  /// The password that clients must give. Empty: clients need none, and every client that can
  /// connect can read and delete everything. An address that other machines reach needs one.
  std::string password{};
  uint32_t threads = 1;  ///< Event loops.
};

/// Serves a database that this process has open: to RemoteStore (basalt/client.h), to clients of
/// the Redis protocol and to HTTP, as `basalt serve` does (docs/server.md). The process may go on
/// using the database itself.
///
///     auto server = basalt::net::Serve(db.get()).value();
///     std::cout << server->url() << '\n';      // redis://127.0.0.1:43817
///
/// CMake target basalt::server.
class Server {
 public:
  virtual ~Server() = default;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// The URL for RemoteStore::Connect, without a password. It names the Unix socket if the server
  /// does not listen on TCP.
  virtual std::string url() const = 0;
  /// Answers the commands that run, closes all connections, and ends its threads; at most five
  /// seconds for clients that do not read. The destructor does the same.
  virtual void Stop() = 0;

 protected:
  Server() = default;
};

/// Begins to serve. `db` must outlive the server. InvalidArgument: there is no address, or it is
/// none, or other machines reach it and there is no password; Busy or IoError: it cannot be
/// listened on.
Result<std::unique_ptr<Server>> Serve(DB* db, const ServeOptions& options = {});

}  // namespace basalt::net
