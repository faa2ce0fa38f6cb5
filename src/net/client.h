#pragma once

// src/net: RemoteStore, the Store interface over the wire. Read Client first, then remote_store.cc,
// which turns each function of Store into a command.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "basalt/client.h"
#include "basalt/snapshot.h"
#include "basalt/status.h"
#include "net/address.h"
#include "net/answer_parser.h"
#include "net/connection.h"
#include "net/request.h"

namespace basalt::net {

/// What a server has told of itself.
struct ServerFacts {
  Capabilities capabilities{};
  uint64_t request_bytes_max = 0;  ///< Of a command.
  uint64_t parts_max = 0;          ///< The same.
  std::chrono::milliseconds default_ttl{0};
};

// What a remote store's handle, iterators, snapshots and transactions share: the connections.
//
// A call takes a connection out of the pool, or makes one, sends a command, reads its answer and
// puts the connection back. A connection with an error is closed. Snapshots that are let go are
// released by the next call, in front of its command, so that nothing waits in a destructor.
//
// mutex_ guards the pool; no call to the system is made under it.
class Client {
 public:
  static Result<std::shared_ptr<Client>> Connect(Address address, const RemoteOptions& options);

  enum class Repeat : uint8_t {
    kAllowed,   ///< A read, or what does no harm when it is done twice.
    kForbidden  ///< A write.
  };
  /// Reads an answer, which is no error.
  using UseAnswer = std::function<void(AnswerReader& answer)>;

  /// Sends a command and hands out the answer. An error of the server's is the result. IoError: the
  /// answer is not what `use` reads. `use` runs while the connection is taken, possibly several
  /// times, and the last time counts.
  Status Call(const Request& request, Repeat repeat, const UseAnswer& use);

  const ServerFacts& facts() const noexcept { return facts_; }
  const std::string& name() const noexcept { return name_; }

  /// A snapshot of this client has no user any more. Any thread; waits for nobody.
  void Release(uint64_t snapshot) noexcept;

 private:
  /// What became of one attempt.
  struct Attempt {
    enum class Outcome : uint8_t {
      kAnswered,
      kNotSent,  ///< The server cannot have got the whole command.
      kLost,     ///< It may have got it.
    };
    Outcome outcome = Outcome::kAnswered;
    Status status{};
  };

  Client(Address address, const RemoteOptions& options);
  Status CheckRequest(const Request& request) const;
  Attempt Try(const Request& request, Deadline deadline, const UseAnswer& use);
  Status Exchange(Connection* connection, const Request& request, Deadline deadline,
                  const UseAnswer& use) const;
  Status ReadAnswer(AnswerReader answer, const UseAnswer& use) const;
  Result<std::unique_ptr<Connection>> Acquire(Deadline deadline);
  void PutBack(std::unique_ptr<Connection> connection) noexcept;
  Result<std::unique_ptr<Connection>> NewConnection(Deadline deadline, ServerFacts* facts) const;
  std::optional<Request> TakeReleases();

  const Address address_;
  const std::string name_;  // For messages.
  const RemoteOptions options_;
  const uint64_t fork_count_;
  ServerFacts facts_;  // Set before anybody else has the client.

  std::mutex mutex_;
  std::condition_variable is_free_;
  std::vector<std::unique_ptr<Connection>> idle_;
  uint32_t open_ = 0;  // Connections, with those that calls have.
  std::vector<uint64_t> released_;
};

/// What a Snapshot of a remote store holds. The owner comes first: that is how stores tell their
/// snapshots from those of others.
class RemoteSnapshot {
 public:
  RemoteSnapshot(std::shared_ptr<Client> client, uint64_t id) noexcept
      : client_(std::move(client)), id_(id) {}
  ~RemoteSnapshot() { client_->Release(id_); }
  RemoteSnapshot(const RemoteSnapshot&) = delete;
  RemoteSnapshot& operator=(const RemoteSnapshot&) = delete;

  const Client* client() const noexcept { return client_.get(); }
  uint64_t id() const noexcept { return id_; }

 private:
  const std::shared_ptr<Client> client_;
  const uint64_t id_;
};

/// Takes a snapshot. NotFound: `keyspace`, if it is given, is not there.
Result<Snapshot> TakeSnapshot(const std::shared_ptr<Client>& client,
                              std::optional<KeyspaceId> keyspace);
/// The number that requests name a snapshot by; 0: none. InvalidArgument: it is of another store.
Result<uint64_t> SnapshotIdOf(const Client& client, const Snapshot* snapshot);

}  // namespace basalt::net
