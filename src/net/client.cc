#include "net/client.h"

#include <algorithm>
#include <new>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/fork_count.h"
#include "base/out_of_memory.h"
#include "net/error_line.h"

namespace basalt::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kAttempts = 5;
constexpr milliseconds kFirstPause{20};  // Before the second attempt; it doubles with each.
constexpr uint64_t kProtocolVersion = 1;
constexpr std::string_view kDefaultUser = "default";

enum CapabilityBit : uint64_t {
  kOrdered = 1,
  kSnapshots = 2,
  kTransactions = 4,
  kExpiry = 8,
  kMerges = 16,
  kKeyspaces = 32,
  kDurable = 64,
};

Capabilities CapabilitiesOf(uint64_t bits) noexcept {
  return {.ordered = (bits & kOrdered) != 0,
          .snapshots = (bits & kSnapshots) != 0,
          .transactions = (bits & kTransactions) != 0,
          .expiry = (bits & kExpiry) != 0,
          .merges = (bits & kMerges) != 0,
          .keyspaces = (bits & kKeyspaces) != 0,
          .durable = (bits & kDurable) != 0};
}

bool MayComeBack(const Status& status) noexcept {
  return status.code() == StatusCode::kUnavailable;
}

Status Unknown(const std::string& server, const Status& why) {
  return {StatusCode::kUnavailable,
          "the answer of " + server +
              " to a write was lost: whether the write took effect is not known, and it was not "
              "repeated (" +
              std::string(why.message()) + ")"};
}

}  // namespace

Client::Client(Address address, const RemoteOptions& options)
    : address_(std::move(address)),
      name_(address_.ToString()),
      options_(options),
      fork_count_(base::ForkCount()) {}

Result<std::shared_ptr<Client>> Client::Connect(Address address, const RemoteOptions& options) {
  if (options.timeout < milliseconds(1) || options.connections == 0) {
    return Status(StatusCode::kInvalidArgument,
                  "RemoteOptions: timeout and connections must be above zero");
  }
  std::shared_ptr<Client> client(new Client(std::move(address), options));
  BASALT_ASSIGN_OR_RETURN(
      std::unique_ptr<Connection> connection,
      client->NewConnection(steady_clock::now() + options.timeout, &client->facts_));
  client->open_ = 1;
  client->PutBack(std::move(connection));
  return client;
}

Result<std::unique_ptr<Connection>> Client::NewConnection(Deadline deadline,
                                                          ServerFacts* facts) const {
  BASALT_ASSIGN_OR_RETURN(std::unique_ptr<Connection> connection,
                          Connection::Connect(address_, deadline));
  if (!address_.password.empty()) {
    Request auth("AUTH");
    auth.Add(address_.user.empty() ? kDefaultUser : std::string_view(address_.user));
    auth.Add(address_.password);
    BASALT_RETURN_IF_ERROR(
        Exchange(connection.get(), auth, deadline, [](AnswerReader& answer) { answer.Simple(); }));
  }
  Request hello("BASALT.HELLO");
  hello.Add(kProtocolVersion);
  ServerFacts told;
  BASALT_RETURN_IF_ERROR(Exchange(connection.get(), hello, deadline, [&](AnswerReader& answer) {
    answer.Array();
    told.capabilities = CapabilitiesOf(static_cast<uint64_t>(answer.Integer()));
    told.request_bytes_max = static_cast<uint64_t>(answer.Integer());
    told.parts_max = static_cast<uint64_t>(answer.Integer());
    told.default_ttl = milliseconds(answer.Integer());
  }));
  if (facts != nullptr) *facts = told;
  return connection;
}

Result<std::unique_ptr<Connection>> Client::Acquire(Deadline deadline) {
  while (true) {
    std::unique_ptr<Connection> connection;
    {
      std::unique_lock lock(mutex_);
      const bool is_free = is_free_.wait_until(
          lock, deadline, [&] { return !idle_.empty() || open_ < options_.connections; });
      if (!is_free) {
        return Status(StatusCode::kDeadlineExceeded, "wait for a connection to " + name_ +
                                                         ": other calls use all " +
                                                         std::to_string(options_.connections));
      }
      if (idle_.empty()) {
        ++open_;
      } else {
        connection = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    if (connection != nullptr) {
      // The server may have been restarted since the last call.
      if (connection->IsIdle()) return connection;
      PutBack(nullptr);
      continue;
    }
    Result<std::unique_ptr<Connection>> made =
        base::OrOutOfMemory([&] { return NewConnection(deadline, nullptr); });
    if (!made) PutBack(nullptr);
    return made;
  }
}

/// Null: one was closed.
void Client::PutBack(std::unique_ptr<Connection> connection) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (connection != nullptr) {
      try {
        idle_.push_back(std::move(connection));
      } catch (const std::bad_alloc&) {
        --open_;
      }
    } else {
      --open_;
    }
  }
  is_free_.notify_one();
}

void Client::Release(uint64_t snapshot) noexcept {
  // If there is no memory, the server releases the snapshot after a time without use.
  (void)base::OrOutOfMemory([&] {
    const std::lock_guard lock(mutex_);
    released_.push_back(snapshot);
    return Status();
  });
}

std::optional<Request> Client::TakeReleases() {
  const std::lock_guard lock(mutex_);
  if (released_.empty()) return std::nullopt;
  Request release("BASALT.RELEASE");
  for (const uint64_t id : released_) release.Add(id);
  released_.clear();
  return release;
}

Status Client::ReadAnswer(AnswerReader answer, const UseAnswer& use) const {
  if (answer.IsError()) return StatusOf(answer.Error(), name_);
  use(answer);
  if (answer.ok() && answer.AtEnd()) return {};
  return {StatusCode::kIoError,
          name_ +
              " gives an answer in an unexpected form; check that a Basalt server of this "
              "version is there"};
}

Status Client::Exchange(Connection* connection, const Request& request, Deadline deadline,
                        const UseAnswer& use) const {
  BASALT_RETURN_IF_ERROR(connection->Send(request.bytes(), deadline));
  BASALT_RETURN_IF_ERROR(connection->Receive(deadline));
  return ReadAnswer(connection->answer(), use);
}

Client::Attempt Client::Try(const Request& request, Deadline deadline, const UseAnswer& use) {
  using Outcome = Attempt::Outcome;
  Result<std::unique_ptr<Connection>> acquired = Acquire(deadline);
  if (!acquired) return {Outcome::kNotSent, acquired.error()};
  std::unique_ptr<Connection> connection = *std::move(acquired);
  const std::optional<Request> release = TakeReleases();
  Status status;
  if (release) status = connection->Send(release->bytes(), deadline);
  if (status.ok()) status = connection->Send(request.bytes(), deadline);
  if (!status.ok()) {
    PutBack(nullptr);
    return {Outcome::kNotSent, status};
  }
  if (release) status = connection->Receive(deadline);
  if (status.ok()) status = connection->Receive(deadline);
  if (!status.ok()) {
    PutBack(nullptr);
    return {Outcome::kLost, status};
  }
  status = ReadAnswer(connection->answer(), use);
  PutBack(std::move(connection));
  return {Outcome::kAnswered, status};
}

Status Client::CheckRequest(const Request& request) const {
  if (fork_count_ != base::ForkCount()) {
    return {StatusCode::kFailedPrecondition,
            "use " + name_ + ": the handle belongs to the parent process; connect again",
            SubCode::kForked};
  }
  if (request.size() <= facts_.request_bytes_max && request.parts() <= facts_.parts_max) return {};
  return {StatusCode::kResourceExhausted,
          "a request of " + std::to_string(request.size()) + " bytes and " +
              std::to_string(request.parts()) + " parts: " + name_ + " takes at most " +
              std::to_string(facts_.request_bytes_max) + " bytes and " +
              std::to_string(facts_.parts_max) + " parts; split it",
          SubCode::kBatchTooLarge};
}

Status Client::Call(const Request& request, Repeat repeat, const UseAnswer& use) {
  BASALT_RETURN_IF_ERROR(CheckRequest(request));
  const Deadline deadline = steady_clock::now() + options_.timeout;
  milliseconds pause = kFirstPause;
  for (int attempt = 1;; ++attempt, pause *= 2) {
    const Attempt tried = Try(request, deadline, use);
    if (tried.outcome == Attempt::Outcome::kAnswered) return tried.status;
    if (tried.outcome == Attempt::Outcome::kLost && repeat == Repeat::kForbidden) {
      return Unknown(name_, tried.status);
    }
    if (!MayComeBack(tried.status) || attempt == kAttempts ||
        steady_clock::now() + pause >= deadline) {
      return tried.status;
    }
    std::this_thread::sleep_for(pause);
  }
}

Result<Snapshot> TakeSnapshot(const std::shared_ptr<Client>& client,
                              std::optional<KeyspaceId> keyspace) {
  Request request("BASALT.SNAPSHOT");
  if (keyspace) request.Add(static_cast<uint64_t>(*keyspace));
  uint64_t id = 0;
  uint64_t sequence = 0;
  int64_t time_ms = 0;
  // When it is taken twice, the server lets the first one go with its connection.
  BASALT_RETURN_IF_ERROR(client->Call(request, Client::Repeat::kAllowed, [&](AnswerReader& answer) {
    answer.Array();
    id = static_cast<uint64_t>(answer.Integer());
    sequence = static_cast<uint64_t>(answer.Integer());
    time_ms = answer.Integer();
  }));
  return Snapshot(std::make_shared<const RemoteSnapshot>(client, id), sequence,
                  WallTime(milliseconds(time_ms)));
}

Result<uint64_t> SnapshotIdOf(const Client& client, const Snapshot* snapshot) {
  if (snapshot == nullptr) return uint64_t{0};
  const auto* const state = static_cast<const RemoteSnapshot*>(snapshot->state().get());
  if (state == nullptr || state->client() != &client) {
    return Status(StatusCode::kInvalidArgument,
                  "read from " + client.name() +
                      ": the snapshot is of another store; take one from this store");
  }
  return state->id();
}

}  // namespace basalt::net
