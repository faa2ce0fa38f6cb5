#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/options.h"
#include "basalt/status.h"
#include "basalt/store.h"

// The client of a server: the server's database as a Store. Read RemoteStore first. docs/client.md
// explains it.

namespace basalt::net {

class Client;

/// How a remote store is used. The defaults need no tuning.
struct RemoteOptions {
  /// For one call, with connecting and repeating; at least 1 ms.
  std::chrono::milliseconds timeout{std::chrono::seconds(10)};
  /// At most so many connections, at least 1; calls of more threads wait for one another.
  uint32_t connections = 16;
};

/// A store that a server has (`basalt serve`, or basalt::Serve): the interface of Store over TCP or
/// a Unix socket. It reads and writes the server's database itself: its default keyspace and those
/// that users have made. The keyspace of the server's Redis data types is not reachable.
///
///     auto store = basalt::net::RemoteStore::Connect("redis://127.0.0.1:6379").value();
///     basalt::Status s = store->Put("user/42", "Ada");
///
/// Errors have the code and sub-code that the server's store gave. Others are:
///
///   - Unavailable: the server cannot be reached. A read is repeated a few times before. A write is
///     repeated only if the server cannot have received it. If the answer to a write is lost, the
///     write is not repeated, and the message says that its outcome is not known.
///   - DeadlineExceeded: no answer to a read within the timeout.
///   - OutOfRange: a snapshot is gone. The server keeps it as long as the connection that took it,
///     and five minutes after its last use. An iterator or transaction without reads or moves for
///     that long ends with this error.
///   - ResourceExhausted (BatchTooLarge): the request is larger than the server takes; (Pins): too
///     many snapshots are open.
///
/// Differences to a local store: ReadOptions::memory_only and WriteOptions::may_wait = false answer
/// WouldBlock. An iterator of a keyspace that is dropped ends with NotFound. Changes and listeners
/// are Unsupported. An iterator holds a snapshot on the server.
///
/// Thread-safe. Each call uses one connection for its duration. Iterators, snapshots and
/// transactions outlive the handle. A handle is FailedPrecondition in a forked child.
///
/// Cost: one round trip a call; MultiGet needs one for up to 4,096 keys, and Update needs two. An
/// iterator needs one when it is made, one a seek, and one a block of up to 4,096 records or 1 MiB.
/// A transaction needs one before its first read, one a read, and one for its commit.
class RemoteStore final : public Store {
 public:
  /// `url`: "redis://[[user]:password@]host[:port]" or "unix:///path/of/socket". Connects at once.
  /// InvalidArgument: URL or options; Unavailable; PermissionDenied: the password is wrong or
  /// missing; Unsupported: the server is no server of Basalt.
  static Result<std::unique_ptr<RemoteStore>> Connect(std::string_view url,
                                                      const RemoteOptions& options = {});
  ~RemoteStore() override;

  /// Of the server's store, without changes.
  Capabilities capabilities() const noexcept override;
  Status Sync() override;
  Status WaitDurable(uint64_t lsn) override;
  Result<KeyspaceId> OpenKeyspace(std::string_view name) const override;
  Result<std::vector<KeyspaceInfo>> ListKeyspaces() const override;
  Status DropKeyspace(KeyspaceId keyspace) override;

  /// The server's address, without a password.
  std::string address() const;
  /// The server's figures, as INFO has them.
  Result<std::string> Info() const;

 private:
  explicit RemoteStore(std::shared_ptr<Client> client) noexcept;

  Result<MaybeValue> DoGet(std::string_view key, const ReadOptions& options) const override;
  Result<std::optional<Entry>> DoGetEntry(std::string_view key,
                                          const ReadOptions& options) const override;
  Result<bool> DoContains(std::string_view key, const ReadOptions& options) const override;
  Status DoMultiGet(std::span<const std::string_view> keys, std::span<Result<MaybeValue>> results,
                    const ReadOptions& options) const override;
  Status DoMultiGetOfKeyspaces(std::span<const KeyspaceKey> keys,
                               std::span<Result<MaybeValue>> results,
                               const ReadOptions& options) const override;
  std::unique_ptr<Iterator> DoNewIterator(const ReadOptions& options) const override;
  Result<Snapshot> DoGetSnapshot() const override;
  Result<Commit> DoPut(std::string_view key, std::string_view value,
                       const WriteOptions& options) override;
  Result<std::optional<Commit>> DoPutIfAbsent(std::string_view key, std::string_view value,
                                              const WriteOptions& options) override;
  Result<Commit> DoDelete(std::string_view key, const WriteOptions& options) override;
  Result<Commit> DoDeleteRange(std::string_view begin, std::string_view end,
                               const WriteOptions& options) override;
  Result<Commit> DoMerge(std::string_view key, MergeOperator op, std::string_view operand,
                         const WriteOptions& options) override;
  Result<Commit> DoWrite(const WriteBatch& batch, const WriteOptions& options) override;
  Result<Commit> DoUpdate(std::string_view key, const UpdateFunction& fn,
                          const WriteOptions& options) override;
  Result<Transaction> DoBegin(const TransactionOptions& options) override;
  Result<KeyspaceId> DoCreateKeyspace(std::string_view name,
                                      const KeyspaceOptions& options) override;

  const std::shared_ptr<Client> client_;
};

}  // namespace basalt::net
