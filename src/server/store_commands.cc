#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "basalt/transaction.h"
#include "base/check.h"
#include "base/key_bound.h"
#include "net/error_line.h"
#include "net/requirement.h"
#include "server/command.h"
#include "server/hub.h"
#include "server/numbers.h"
#include "server/session.h"
#include "transaction/state.h"

// BASALT.*: the Store interface over the wire, for basalt::net::RemoteStore. The commands read and
// write the keyspaces of the served database as they are, except the one of the Redis types, which
// they refuse. Errors have the form of net/error_line.h.
//
// A snapshot is named by its number in the hub's table, and 0 is the newest state. Nothing else is
// kept between commands: a range is read in blocks, each of which says where it begins, and a
// transaction sends what it has read with its commit.
//
// Bounds: a block of BASALT.RANGE by kBlockRecordsMax and kBlockBytesMax; the answer of BASALT.GET
// by kAnswerBytesMax and one value: keys beyond that are left out, and the client asks again.

namespace basalt::server {
namespace {

constexpr uint64_t kProtocolVersion = 1;
constexpr uint64_t kBlockRecordsMax = 4096;
constexpr uint64_t kBlockBytesMax = uint64_t{1} << 20;
constexpr size_t kAnswerBytesMax = size_t{16} << 20;
/// Keys that are read together.
constexpr size_t kKeysAtOnce = 128;
/// What an event loop does at most; more is done on the pool.
constexpr uint64_t kLoopRecordsMax = 1024;
constexpr size_t kLoopRequirementBytesMax = size_t{16} * 1024;

/// A command that runs. What would have to wait on an event loop runs again on the pool.
class StoreCall {
 public:
  explicit StoreCall(Call& call) : call_(call) {}

  DB& db() { return call_.hub.dataset().db(); }
  bool is_on_loop() const { return call_.view.mode() == Mode::kLoop; }
  void ToPool() { Fail({StatusCode::kWouldBlock, "the command must wait"}); }
  void Fail(const Status& status) {
    if (status.code() == StatusCode::kWouldBlock && is_on_loop()) return call_.view.Fail(status);
    call_.reply.Error(net::ErrorLineOf(status));
  }

  /// `take(value)` with what `result` holds, or its error.
  template <class T, class Take>
  void Finish(const Result<T>& result, const Take& take) {
    if (!result) return Fail(result.error());
    take(*result);
  }
  void Finish(const Status& status) {
    if (!status.ok()) return Fail(status);
    call_.reply.Ok();
  }

  Result<uint64_t> Number(size_t index) const {
    const std::string_view text = call_.arg(index);
    uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [stopped, failed] = std::from_chars(text.data(), end, number);
    if (failed == std::errc() && stopped == end && !text.empty()) return number;
    return Status(StatusCode::kInvalidArgument,
                  "argument " + std::to_string(index) + " is not a number");
  }
  /// "-": nothing.
  Result<std::optional<uint64_t>> MaybeNumber(size_t index) const {
    if (call_.arg(index) == "-") return std::optional<uint64_t>();
    BASALT_ASSIGN_OR_RETURN(const uint64_t number, Number(index));
    return std::optional(number);
  }

  /// PermissionDenied: it is the keyspace of the Redis types.
  Status CheckKeyspace(KeyspaceId keyspace) const {
    if (keyspace != call_.hub.dataset().keyspace()) return {};
    return {StatusCode::kPermissionDenied,
            "the keyspace 'redis' holds the server's data types: use the Redis commands"};
  }
  Result<KeyspaceId> Keyspace(size_t index) const {
    BASALT_ASSIGN_OR_RETURN(const uint64_t number, Number(index));
    if (number > UINT32_MAX) {
      return Status(StatusCode::kNotFound, "there is no keyspace " + std::to_string(number),
                    SubCode::kKeyspace);
    }
    const auto keyspace = static_cast<KeyspaceId>(number);
    BASALT_RETURN_IF_ERROR(CheckKeyspace(keyspace));
    return keyspace;
  }

  /// The snapshot that a read names. Null: none.
  Result<std::shared_ptr<const Snapshot>> SnapshotAt(size_t index) {
    BASALT_ASSIGN_OR_RETURN(const uint64_t number, Number(index));
    if (number == 0) return std::shared_ptr<const Snapshot>();
    return call_.hub.snapshots().Find(number);
  }

 private:
  Call& call_;
};

/// The snapshot of a read, and its options: arguments 1 and 2.
struct PointOfRead {
  std::shared_ptr<const Snapshot> snapshot;
  ReadOptions options{};
};

Result<PointOfRead> PointOf(StoreCall& store) {
  PointOfRead point;
  BASALT_ASSIGN_OR_RETURN(point.snapshot, store.SnapshotAt(1));
  BASALT_ASSIGN_OR_RETURN(point.options.keyspace, store.Keyspace(2));
  point.options.snapshot = point.snapshot.get();
  point.options.memory_only = store.is_on_loop();
  return point;
}

int64_t MillisOf(const std::optional<WallTime>& expiry) noexcept {
  return expiry ? expiry->time_since_epoch().count() : 0;
}

// Facts and snapshots

void RunStoreHello(Call& call) {
  StoreCall store(call);
  const Result<uint64_t> version = store.Number(1);
  if (!version || *version != kProtocolVersion) {
    return store.Fail({StatusCode::kUnsupported, "the server speaks version " +
                                                     std::to_string(kProtocolVersion) +
                                                     " of the protocol of Basalt's client"});
  }
  const Capabilities can = store.db().capabilities();
  const int64_t bits = (can.ordered ? 1 : 0) | (can.snapshots ? 2 : 0) |
                       (can.transactions ? 4 : 0) | (can.expiry ? 8 : 0) | (can.merges ? 16 : 0) |
                       (can.keyspaces ? 32 : 0) | (can.durable ? 64 : 0);
  Result<Transaction> tx = store.db().Begin();
  if (!tx) return store.Fail(tx.error());
  const RequestLimits& limits = call.hub.settings().request;
  call.reply.Array(4);
  call.reply.Integer(bits);
  call.reply.Integer(static_cast<int64_t>(std::min(limits.command_bytes, limits.argument_bytes)));
  call.reply.Integer(static_cast<int64_t>(limits.arguments));
  call.reply.Integer(
      transaction::TransactionAccess::StateOf(*tx)->DefaultTtl(KeyspaceId::kDefault).count());
}

/// NotFound: the keyspace that is named is not there.
Status CheckThere(StoreCall& store, size_t index) {
  BASALT_ASSIGN_OR_RETURN(const KeyspaceId keyspace, store.Keyspace(index));
  return store.db().NewIterator({.keyspace = keyspace})->status();
}

void RunStoreSnapshot(Call& call) {
  StoreCall store(call);
  if (call.count() > 1) {
    if (const Status there = CheckThere(store, 1); !there.ok()) return store.Fail(there);
  }
  Result<Snapshot> snapshot = store.db().GetSnapshot();
  if (!snapshot) return store.Fail(snapshot.error());
  const uint64_t sequence = snapshot->sequence();
  const int64_t time_ms = snapshot->time().time_since_epoch().count();
  store.Finish(call.hub.snapshots().Add(call.session.id(), std::move(*snapshot)),
               [&](uint64_t number) {
                 call.reply.Array(3);
                 call.reply.Integer(static_cast<int64_t>(number));
                 call.reply.Integer(static_cast<int64_t>(sequence));
                 call.reply.Integer(time_ms);
               });
}

void RunStoreRelease(Call& call) {
  StoreCall store(call);
  for (size_t i = 1; i < call.count(); ++i) {
    const Result<uint64_t> number = store.Number(i);
    if (!number) return store.Fail(number.error());
    call.hub.snapshots().Remove(*number);
  }
  call.reply.Ok();
}

// Reads

/// Reads keys and answers them, as many as the bounds allow. False: an event loop would have to
/// wait.
class StoreReads {
 public:
  StoreReads(StoreCall* store, std::span<const KeyspaceKey> keys, const ReadOptions& options)
      : store_(store), keys_(keys), options_(options) {}

  void Run(Reply& reply) {
    std::optional<Snapshot> own;
    if (keys_.size() > kKeysAtOnce && options_.snapshot == nullptr) {
      Result<Snapshot> taken = store_->db().GetSnapshot();
      if (!taken) return store_->Fail(taken.error());
      own.emplace(std::move(*taken));
      options_.snapshot = &*own;
    }
    while (answered_ < keys_.size() && body_.size() < kAnswerBytesMax) {
      if (Status read = ReadSome(); !read.ok()) return store_->Fail(read);
    }
    reply.Array(answered_);
    reply.Raw(body_);
  }

 private:
  Status ReadSome() {
    const auto some = keys_.subspan(answered_, std::min(kKeysAtOnce, keys_.size() - answered_));
    results_.resize(some.size());
    BASALT_RETURN_IF_ERROR(store_->db().MultiGet(some, results_, options_));
    Reply reply(&body_, SIZE_MAX);
    for (const Result<MaybeValue>& result : results_) {
      if (!result && result.code() == StatusCode::kWouldBlock) return result.error();
      if (!result) {
        reply.Error(net::ErrorLineOf(result.error()));
      } else if (*result) {
        reply.Bulk((*result)->view());
      } else {
        reply.Null();
      }
      ++answered_;
      if (body_.size() >= kAnswerBytesMax) break;
    }
    return {};
  }

  StoreCall* const store_;
  const std::span<const KeyspaceKey> keys_;
  ReadOptions options_;
  std::vector<Result<MaybeValue>> results_;
  std::string body_;
  size_t answered_ = 0;
};

void AnswerKeys(StoreCall& store, Call& call, const std::vector<KeyspaceKey>& keys,
                const ReadOptions& options) {
  if (store.is_on_loop() && keys.size() > kLoopRecordsMax) return store.ToPool();
  StoreReads(&store, keys, options).Run(call.reply);
}

void RunStoreGet(Call& call) {
  StoreCall store(call);
  const Result<PointOfRead> point = PointOf(store);
  if (!point) return store.Fail(point.error());
  std::vector<KeyspaceKey> keys;
  keys.reserve(call.count() - 3);
  for (size_t i = 3; i < call.count(); ++i) keys.push_back({point->options.keyspace, call.arg(i)});
  AnswerKeys(store, call, keys, point->options);
}

void RunStoreMGet(Call& call) {
  StoreCall store(call);
  const Result<std::shared_ptr<const Snapshot>> snapshot = store.SnapshotAt(1);
  if (!snapshot) return store.Fail(snapshot.error());
  if (call.count() % 2 != 0) {
    return store.Fail({StatusCode::kInvalidArgument, "each key needs its keyspace"});
  }
  std::vector<KeyspaceKey> keys;
  for (size_t i = 2; i < call.count(); i += 2) {
    const Result<KeyspaceId> keyspace = store.Keyspace(i);
    if (!keyspace) return store.Fail(keyspace.error());
    keys.push_back({*keyspace, call.arg(i + 1)});
  }
  AnswerKeys(store, call, keys, {.snapshot = snapshot->get(), .memory_only = store.is_on_loop()});
}

void RunStoreEntry(Call& call) {
  StoreCall store(call);
  const Result<PointOfRead> point = PointOf(store);
  if (!point) return store.Fail(point.error());
  store.Finish(store.db().GetEntry(call.arg(3), point->options),
               [&](const std::optional<Entry>& entry) {
                 if (!entry) return call.reply.NullArray();
                 call.reply.Array(3);
                 call.reply.Bulk(entry->value.view());
                 call.reply.Integer(static_cast<int64_t>(entry->version));
                 call.reply.Integer(MillisOf(entry->expiry));
               });
}

void RunStoreContains(Call& call) {
  StoreCall store(call);
  const Result<PointOfRead> point = PointOf(store);
  if (!point) return store.Fail(point.error());
  store.Finish(store.db().Contains(call.arg(3), point->options),
               [&](bool is_there) { call.reply.Integer(is_there ? 1 : 0); });
}

/// One end of a range: "[key", "(key", "-" or "+".
struct StoreBound {
  char kind = '-';
  std::string_view key{};

  static std::optional<StoreBound> Parse(std::string_view text) {
    if (text == "-" || text == "+") return StoreBound{text.front()};
    if (!text.starts_with('[') && !text.starts_with('(')) return std::nullopt;
    return StoreBound{text.front(), text.substr(1)};
  }
};

/// A block of records that BASALT.RANGE is about.
struct StoreBlock {
  bool is_forward = true;
  std::optional<std::string> lower{};
  std::optional<std::string> upper{};
  bool is_empty = false;
  uint64_t records = 0;
  uint64_t bytes = 0;
  bool keys_only = false;
};

Result<StoreBlock> BlockOf(const StoreCall& store, const Call& call) {
  const auto bad = [](const char* what) { return Status(StatusCode::kInvalidArgument, what); };
  StoreBlock block;
  block.is_forward = call.Is(3, "forward");
  if (!block.is_forward && !call.Is(3, "backward")) return bad("FORWARD or BACKWARD is missing");
  const std::optional<StoreBound> begin = StoreBound::Parse(call.arg(4));
  const std::optional<StoreBound> end = StoreBound::Parse(call.arg(5));
  if (!begin || !end) return bad("a bound is [key, (key, - or +");
  block.is_empty = begin->kind == '+' || end->kind == '-';
  if (begin->kind == '[') block.lower = begin->key;
  if (begin->kind == '(') block.lower = base::KeyBehind(begin->key);
  if (end->kind == '[') block.upper = base::KeyBehind(end->key);
  if (end->kind == '(') block.upper = end->key;
  block.is_empty = block.is_empty || (block.lower && block.upper && *block.lower >= *block.upper);
  BASALT_ASSIGN_OR_RETURN(block.records, store.Number(6));
  BASALT_ASSIGN_OR_RETURN(block.bytes, store.Number(7));
  block.records = std::clamp<uint64_t>(block.records, 1, kBlockRecordsMax);
  block.bytes = std::min(block.bytes, kBlockBytesMax);
  block.keys_only = call.count() > 8;
  if (block.keys_only && !call.Is(8, "keys")) return bad("KEYS is the only option");
  return block;
}

void AnswerBlock(StoreCall& store, Call& call, const PointOfRead& point, const StoreBlock& block) {
  const std::unique_ptr<Iterator> it = store.db().NewIterator({.snapshot = point.options.snapshot,
                                                               .keyspace = point.options.keyspace,
                                                               .lower = block.lower,
                                                               .upper = block.upper,
                                                               .keys_only = block.keys_only});
  std::string body;
  Reply records(&body, SIZE_MAX);
  uint64_t count = 0;
  const auto is_full = [&] {
    return count == block.records || (count > 0 && body.size() >= block.bytes);
  };
  if (!block.is_empty) block.is_forward ? it->SeekToFirst() : it->SeekToLast();
  for (; it->Valid() && !is_full(); block.is_forward ? it->Next() : it->Prev()) {
    records.Bulk(it->key());
    records.Bulk(it->value());
    records.Integer(MillisOf(it->expiry()));
    ++count;
  }
  if (!it->status().ok() && count == 0) return store.Fail(it->status());
  call.reply.Array(2);
  call.reply.Array(count * 3);
  call.reply.Raw(body);
  if (!it->status().ok()) return call.reply.Error(net::ErrorLineOf(it->status()));
  call.reply.Integer(it->Valid() ? 1 : 0);
}

void RunStoreRange(Call& call) {
  StoreCall store(call);
  const Result<PointOfRead> point = PointOf(store);
  if (!point) return store.Fail(point.error());
  const Result<StoreBlock> block = BlockOf(store, call);
  if (!block) return store.Fail(block.error());
  if (store.is_on_loop() &&
      (block->records > kLoopRecordsMax || !call.hub.dataset().iterates_in_memory())) {
    return store.ToPool();
  }
  AnswerBlock(store, call, *point, *block);
}

// Writes

/// A write: what it changes, and what it asks of the store.
struct StoreWrite {
  std::shared_ptr<const Snapshot> snapshot;
  WriteOptions options{};
  WriteBatch batch;  // With its conditions.
  std::string_view requirements;
};

void AddCondition(const net::Requirement& asked, WriteBatch* batch) {
  using Kind = net::Requirement::Kind;
  if (asked.kind == Kind::kAbsent) batch->RequireAbsent(asked.key, asked.keyspace);
  if (asked.kind == Kind::kPresent) batch->RequirePresent(asked.key, asked.keyspace);
  if (asked.kind == Kind::kUnchanged) {
    batch->RequireUnchanged(asked.key, asked.number, asked.keyspace);
  }
}

void AddRead(const net::Requirement& asked, transaction::ReadSet* reads) {
  using Kind = net::Requirement::Kind;
  const auto keyspace = static_cast<uint32_t>(asked.keyspace);
  if (asked.kind == Kind::kReadKey) reads->AddKey(keyspace, asked.key);
  if (asked.kind == Kind::kReadRange) reads->AddRange(keyspace, asked.key, asked.end);
  if (asked.kind == Kind::kReadTail) reads->AddRange(keyspace, asked.key, std::nullopt);
  if (asked.kind == Kind::kExpiry) reads->AddExpiry(asked.number);
}

Result<StoreWrite> WriteOf(StoreCall& store, const Call& call) {
  StoreWrite write;
  BASALT_ASSIGN_OR_RETURN(write.snapshot, store.SnapshotAt(1));
  BASALT_ASSIGN_OR_RETURN(const std::optional<uint64_t> level, store.MaybeNumber(2));
  if (level) {
    if (*level > static_cast<uint64_t>(Durability::kPower)) {
      return Status(StatusCode::kInvalidArgument, "there is no such level of durability");
    }
    write.options.durability = static_cast<Durability>(*level);
  }
  write.options.may_wait = !store.is_on_loop();
  BASALT_ASSIGN_OR_RETURN(write.batch, WriteBatch::Parse(call.arg(3)));
  BASALT_RETURN_IF_ERROR(write.batch.ForEach(
      [&](const WriteBatch::Record& record) { return store.CheckKeyspace(record.keyspace); }));
  write.requirements = call.arg(4);
  BASALT_RETURN_IF_ERROR(
      net::ForEachRequirement(write.requirements, [&](const net::Requirement& asked) -> Status {
        if (asked.kind >= net::Requirement::Kind::kReadKey && write.snapshot == nullptr) {
          return {StatusCode::kInvalidArgument, "what was read needs the snapshot of the reads"};
        }
        AddCondition(asked, &write.batch);
        return store.CheckKeyspace(asked.keyspace);
      }));
  return write;
}

/// A commit of a transaction whose reads the client has made.
Result<Commit> CommitTransaction(StoreCall& store, const StoreWrite& write, uint64_t memory_limit) {
  BASALT_ASSIGN_OR_RETURN(Transaction tx, store.db().Begin({.memory_limit = memory_limit}));
  transaction::State* const state = transaction::TransactionAccess::StateOf(tx);
  BASALT_RETURN_IF_ERROR(state->ReadAt(
      Snapshot(write.snapshot->state(), write.snapshot->sequence(), write.snapshot->time())));
  BASALT_RETURN_IF_ERROR(
      net::ForEachRequirement(write.requirements, [&](const net::Requirement& asked) {
        AddRead(asked, state->reads());
        return Status();
      }));
  BASALT_RETURN_IF_ERROR(tx.Write(write.batch));
  return tx.Commit(write.options);
}

void RunStoreWrite(Call& call) {
  StoreCall store(call);
  if (store.is_on_loop() && call.arg(4).size() > kLoopRequirementBytesMax) return store.ToPool();
  const Result<StoreWrite> write = WriteOf(store, call);
  if (!write) return store.Fail(write.error());
  // Room for the reads and the batch of the largest request, each of which may take half.
  const uint64_t memory_limit = 8 * call.hub.settings().request.command_bytes;
  const Result<Commit> written = write->snapshot == nullptr
                                     ? store.db().Write(write->batch, write->options)
                                     : CommitTransaction(store, *write, memory_limit);
  store.Finish(written, [&](const Commit& commit) {
    call.reply.Array(2);
    call.reply.Integer(static_cast<int64_t>(commit.sequence));
    call.reply.Integer(static_cast<int64_t>(commit.lsn));
  });
}

void RunStoreSync(Call& call) {
  StoreCall store(call);
  if (call.count() == 1) return store.Finish(store.db().Sync());
  const Result<uint64_t> lsn = store.Number(1);
  store.Finish(lsn ? store.db().WaitDurable(*lsn) : lsn.error());
}

// Keyspaces

Result<KeyspaceId> CreateKeyspace(StoreCall& store, const Call& call) {
  KeyspaceOptions options;
  BASALT_ASSIGN_OR_RETURN(const std::optional<uint64_t> level, store.MaybeNumber(3));
  BASALT_ASSIGN_OR_RETURN(const std::optional<uint64_t> ttl_ms, store.MaybeNumber(4));
  BASALT_ASSIGN_OR_RETURN(const std::optional<uint64_t> compression, store.MaybeNumber(5));
  if ((level && *level > static_cast<uint64_t>(Durability::kPower)) ||
      (compression && *compression > static_cast<uint64_t>(Compression::kLz4ThenZstd)) ||
      (ttl_ms && *ttl_ms > INT64_MAX)) {
    return Status(StatusCode::kInvalidArgument, "an option of the keyspace is out of range");
  }
  if (level) options.durability = static_cast<Durability>(*level);
  if (ttl_ms) options.default_ttl = std::chrono::milliseconds(static_cast<int64_t>(*ttl_ms));
  if (compression) options.compression = static_cast<Compression>(*compression);
  return store.db().CreateKeyspace(call.arg(2), options);
}

Result<KeyspaceId> OpenKeyspace(StoreCall& store, const Call& call) {
  BASALT_ASSIGN_OR_RETURN(const KeyspaceId keyspace, store.db().OpenKeyspace(call.arg(2)));
  BASALT_RETURN_IF_ERROR(store.CheckKeyspace(keyspace));
  return keyspace;
}

void ListKeyspaces(StoreCall& store, Call& call) {
  store.Finish(store.db().ListKeyspaces(), [&](std::vector<KeyspaceInfo> all) {
    std::erase_if(all,
                  [&](const KeyspaceInfo& info) { return !store.CheckKeyspace(info.id).ok(); });
    call.reply.Array(all.size() * 4);
    for (const KeyspaceInfo& info : all) {
      call.reply.Integer(static_cast<int64_t>(info.id));
      call.reply.Bulk(info.name);
      call.reply.Integer(info.options.durability ? static_cast<int64_t>(*info.options.durability)
                                                 : -1);
      call.reply.Integer(info.options.default_ttl ? info.options.default_ttl->count() : -1);
    }
  });
}

Status DropKeyspace(StoreCall& store) {
  BASALT_ASSIGN_OR_RETURN(const KeyspaceId keyspace, store.Keyspace(2));
  return store.db().DropKeyspace(keyspace);
}

void RunStoreKeyspace(Call& call) {
  StoreCall store(call);
  const auto answer = [&](KeyspaceId id) { call.reply.Integer(static_cast<int64_t>(id)); };
  if (call.Is(1, "list") && call.count() == 2) return ListKeyspaces(store, call);
  if (call.Is(1, "open") && call.count() == 3)
    return store.Finish(OpenKeyspace(store, call), answer);
  if (call.Is(1, "create") && call.count() == 6) {
    return store.Finish(CreateKeyspace(store, call), answer);
  }
  if (call.Is(1, "drop") && call.count() == 3) return store.Finish(DropKeyspace(store));
  UnknownSubcommand(call);
}

// Their keys are those of the whole database: who is limited to some keys may not use them.
constexpr uint32_t kRead = kReadOnly | kNoMulti | kAdmin;
constexpr uint32_t kChange = kWrite | kNoMulti | kAdmin;

constexpr Command kStoreCommands[] = {
    {"basalt.hello", "version", 2, kRead | kFast, 0, 0, 0, Group::kStore,
     "Returns the features and limits of the store, for clients of the Store interface.",
     RunStoreHello},
    {"basalt.snapshot", "[keyspace]", -1, kRead | kFast, 0, 0, 0, Group::kStore,
     "Takes a snapshot, which this connection holds.", RunStoreSnapshot},
    {"basalt.release", "snapshot [snapshot ...]", -2, kRead | kFast, 0, 0, 0, Group::kStore,
     "Releases snapshots.", RunStoreRelease},
    {"basalt.get", "snapshot keyspace key [key ...]", -4, kRead | kFast, 0, 0, 0, Group::kStore,
     "Reads values of one keyspace, all of one moment.", RunStoreGet},
    {"basalt.mget", "snapshot keyspace key [keyspace key ...]", -4, kRead | kFast, 0, 0, 0,
     Group::kStore, "Reads values of several keyspaces, all of one moment.", RunStoreMGet},
    {"basalt.entry", "snapshot keyspace key", 4, kRead | kFast, 0, 0, 0, Group::kStore,
     "Reads a value with its version and expiry.", RunStoreEntry},
    {"basalt.contains", "snapshot keyspace key", 4, kRead | kFast, 0, 0, 0, Group::kStore,
     "Returns whether a key is present.", RunStoreContains},
    {"basalt.range", "snapshot keyspace FORWARD|BACKWARD begin end records bytes [KEYS]", -8, kRead,
     0, 0, 0, Group::kStore, "Reads a block of consecutive records.", RunStoreRange},
    {"basalt.write", "snapshot durability batch requirements", 5, kChange, 0, 0, 0, Group::kStore,
     "Applies a batch if its conditions hold and what its transaction has read is unchanged.",
     RunStoreWrite},
    {"basalt.sync", "[lsn]", -1, kRead | kSlow, 0, 0, 0, Group::kStore,
     "Makes all writes, or those up to a log record, survive a power cut.", RunStoreSync},
    {"basalt.keyspace", "LIST | OPEN name | CREATE name durability ttl compression | DROP keyspace",
     -2, kChange | kSlow, 0, 0, 0, Group::kStore, "Lists, opens, makes or removes keyspaces.",
     RunStoreKeyspace},
};

}  // namespace

std::span<const Command> StoreCommands() { return kStoreCommands; }

}  // namespace basalt::server
