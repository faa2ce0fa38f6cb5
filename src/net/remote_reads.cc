#include "net/remote_reads.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/visible_iterator.h"
#include "net/error_line.h"
#include "net/remote_iterator.h"

namespace basalt::net {
namespace {

/// Of one request of ReadValues; more go in several, which share a snapshot.
constexpr size_t kKeysMax = 4096;
constexpr size_t kKeyBytesMax = size_t{1} << 20;

Result<uint64_t> PrepareRead(const Client& client, const ReadOptions& options) {
  if (options.memory_only) return MustWait(client);
  return SnapshotIdOf(client, options.snapshot);
}

Result<MaybeValue> ValueFrom(AnswerReader& answer, const std::string& server) {
  if (answer.IsError()) return StatusOf(answer.Error(), server);
  if (answer.IsNull()) {
    answer.Null();
    return MaybeValue();
  }
  return MaybeValue(Value::Copy(answer.Bytes()));
}

/// Reads values in as many requests as it takes.
class ManyReads {
 public:
  ManyReads(std::shared_ptr<Client> client, std::span<const KeyspaceKey> keys,
            std::span<Result<MaybeValue>> results)
      : client_(std::move(client)), keys_(keys), results_(results) {
    is_one_keyspace_ = std::ranges::all_of(
        keys, [&](const KeyspaceKey& key) { return key.keyspace == keys.front().keyspace; });
  }

  Status Run(uint64_t snapshot) {
    size_t done = 0;
    while (done < keys_.size()) {
      const size_t end = EndOfRequest(done);
      // What does not fit one request must be of one moment all the same.
      if (end < keys_.size() && snapshot == 0) {
        BASALT_RETURN_IF_ERROR(TakeOwnSnapshot(&snapshot));
      }
      BASALT_ASSIGN_OR_RETURN(const size_t answered, Ask(done, end, snapshot));
      done += answered;
      if (done == end || snapshot != 0) continue;
      BASALT_RETURN_IF_ERROR(TakeOwnSnapshot(&snapshot));
      done = 0;
    }
    return {};
  }

 private:
  Status TakeOwnSnapshot(uint64_t* id) {
    BASALT_ASSIGN_OR_RETURN(Snapshot taken, TakeSnapshot(client_, std::nullopt));
    own_.emplace(std::move(taken));
    BASALT_ASSIGN_OR_RETURN(*id, SnapshotIdOf(*client_, &*own_));
    return {};
  }

  size_t EndOfRequest(size_t begin) const noexcept {
    size_t bytes = 0;
    size_t end = begin;
    for (; end < keys_.size() && end - begin < kKeysMax && bytes < kKeyBytesMax; ++end) {
      bytes += keys_[end].key.size();
    }
    return end;
  }

  /// How many of the keys have been answered: the server leaves out those for which the answer
  /// would grow too large. At least one.
  Result<size_t> Ask(size_t begin, size_t end, uint64_t snapshot) {
    Request request(is_one_keyspace_ ? "BASALT.GET" : "BASALT.MGET");
    request.Add(snapshot);
    if (is_one_keyspace_) request.Add(static_cast<uint64_t>(keys_[begin].keyspace));
    for (size_t i = begin; i < end; ++i) {
      if (!is_one_keyspace_) request.Add(static_cast<uint64_t>(keys_[i].keyspace));
      request.Add(keys_[i].key);
    }
    size_t answered = 0;
    BASALT_RETURN_IF_ERROR(
        client_->Call(request, Client::Repeat::kAllowed, [&](AnswerReader& answer) {
          answered = std::min<uint64_t>(answer.Array(), end - begin);
          for (size_t i = begin; i < begin + answered; ++i) {
            results_[i] = ValueFrom(answer, client_->name());
          }
        }));
    if (answered > 0) return answered;
    return Status(StatusCode::kIoError, client_->name() + " answers none of the keys");
  }

  const std::shared_ptr<Client> client_;
  const std::span<const KeyspaceKey> keys_;
  const std::span<Result<MaybeValue>> results_;
  bool is_one_keyspace_ = true;
  std::optional<Snapshot> own_;
};

}  // namespace

Status MustWait(const Client& client) {
  return {StatusCode::kWouldBlock, client.name() + " is remote: every call waits for its answer"};
}

Result<MaybeValue> ReadValue(Client& client, std::string_view key, const ReadOptions& options) {
  BASALT_ASSIGN_OR_RETURN(const uint64_t snapshot, PrepareRead(client, options));
  Request request("BASALT.GET");
  request.Add(snapshot).Add(static_cast<uint64_t>(options.keyspace)).Add(key);
  Result<MaybeValue> value;
  BASALT_RETURN_IF_ERROR(client.Call(request, Client::Repeat::kAllowed, [&](AnswerReader& answer) {
    answer.Array();
    value = ValueFrom(answer, client.name());
  }));
  return value;
}

Result<std::optional<Entry>> ReadEntry(Client& client, std::string_view key,
                                       const ReadOptions& options) {
  BASALT_ASSIGN_OR_RETURN(const uint64_t snapshot, PrepareRead(client, options));
  Request request("BASALT.ENTRY");
  request.Add(snapshot).Add(static_cast<uint64_t>(options.keyspace)).Add(key);
  std::optional<Entry> entry;
  BASALT_RETURN_IF_ERROR(client.Call(request, Client::Repeat::kAllowed, [&](AnswerReader& answer) {
    entry.reset();
    if (answer.IsNull()) return answer.Null();
    answer.Array();
    entry.emplace();
    entry->value = Value::Copy(answer.Bytes());
    entry->version = static_cast<uint64_t>(answer.Integer());
    const int64_t expiry_ms = answer.Integer();
    if (expiry_ms != 0) entry->expiry = WallTime(std::chrono::milliseconds(expiry_ms));
  }));
  return entry;
}

Status ReadValues(const std::shared_ptr<Client>& client, std::span<const KeyspaceKey> keys,
                  std::span<Result<MaybeValue>> results, const ReadOptions& options) {
  if (keys.empty()) return {};
  const Result<uint64_t> snapshot = PrepareRead(*client, options);
  const Status read = snapshot ? ManyReads(client, keys, results).Run(*snapshot) : snapshot.error();
  if (read.ok()) return {};
  for (Result<MaybeValue>& result : results) result = read;
  return {};
}

Status ReadValues(const std::shared_ptr<Client>& client, std::span<const std::string_view> keys,
                  std::span<Result<MaybeValue>> results, const ReadOptions& options) {
  std::vector<KeyspaceKey> named;
  named.reserve(keys.size());
  for (const std::string_view key : keys) named.push_back({options.keyspace, key});
  return ReadValues(client, named, results, options);
}

std::unique_ptr<Iterator> NewRemoteIterator(const std::shared_ptr<Client>& client,
                                            const ReadOptions& options) {
  if (Status bounds = base::CheckBounds(options); !bounds.ok()) {
    return base::NewErrorIterator(std::move(bounds));
  }
  const Result<uint64_t> given = PrepareRead(*client, options);
  if (!given) return base::NewErrorIterator(given.error());
  if (options.snapshot != nullptr) {
    return std::make_unique<RemoteIterator>(client, options, options.snapshot->state(), *given);
  }
  const Result<Snapshot> taken = TakeSnapshot(client, options.keyspace);
  if (!taken) return base::NewErrorIterator(taken.error());
  const Result<uint64_t> id = SnapshotIdOf(*client, &*taken);
  if (!id) return base::NewErrorIterator(id.error());
  return std::make_unique<RemoteIterator>(client, options, taken->state(), *id);
}

}  // namespace basalt::net
