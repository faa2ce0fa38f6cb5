#include "transaction/state.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/key_bound.h"
#include "base/multi_get_lengths.h"
#include "base/update_function.h"
#include "base/visible_iterator.h"
#include "base/wall_time_millis.h"

namespace basalt::transaction {
namespace {

/// Whether what has this expiry is there at `now_ms`.
bool IsLive(const std::optional<WallTime>& expiry, uint64_t now_ms) noexcept {
  return !expiry || base::MillisOf(expiry) > now_ms;
}

}  // namespace

State::State(std::shared_ptr<Backend> backend, const TransactionOptions& options)
    : backend_(std::move(backend)),
      memory_limit_(options.memory_limit),
      reads_(options.memory_limit / 2),
      own_([this](KeyspaceId keyspace) { return backend_->DefaultTtl(keyspace); }),
      iterators_(std::make_shared<LiveIterators>()) {}

State::~State() {
  for (OwnIterator* iterator : *iterators_) {
    iterator->Finish(Status(StatusCode::kFailedPrecondition, "the transaction has ended"));
  }
}

// Reads

Result<ReadOptions> State::AtSnapshot(const ReadOptions& options) {
  if (options.snapshot != nullptr) {
    return Status(
        StatusCode::kInvalidArgument,
        "ReadOptions::snapshot: a transaction reads from its own snapshot; leave it null");
  }
  if (!snapshot_) {
    BASALT_ASSIGN_OR_RETURN(Snapshot snapshot, backend_->GetSnapshot());
    snapshot_.emplace(std::move(snapshot));
  }
  ReadOptions at = options;
  at.snapshot = &*snapshot_;
  return at;
}

Status State::ReadAt(Snapshot snapshot) {
  // The store prepares for the commit when it is asked for a snapshot.
  BASALT_RETURN_IF_ERROR(backend_->GetSnapshot().status());
  snapshot_.emplace(std::move(snapshot));
  return {};
}

uint64_t State::now_ms() const noexcept {
  return static_cast<uint64_t>(snapshot_->time().time_since_epoch().count());
}

const OwnState* State::OwnOf(std::string_view key, KeyspaceId keyspace) {
  static const OwnState deleted;
  if (own_.empty()) return nullptr;
  const OwnWrites::OfKeyspace* const own = own_.Of(keyspace, now_ms());
  if (own == nullptr) return nullptr;
  const auto found = own->keys.find(key);
  if (found != own->keys.end()) return &found->second;
  return own->IsInDeletedRange(key) ? &deleted : nullptr;
}

Result<std::optional<Entry>> State::Combine(const OwnState& own,
                                            std::optional<Entry> stored) const {
  if (own.kind == OwnState::Kind::kDeleted) return std::optional<Entry>();
  Entry made;
  if (own.merges.empty()) {
    made.value = Value::Copy(own.value);
    made.expiry = own.expiry;
  } else {
    std::optional<std::string_view> present;
    if (stored) present = stored->value.view();
    BASALT_ASSIGN_OR_RETURN(
        const base::MergedValue merged,
        own.Merged(present, stored ? base::MillisOf(stored->expiry) : 0, now_ms()));
    made.value = Value::Copy(merged.value);
    if (merged.expiry_ms != 0) {
      made.expiry = WallTime(std::chrono::milliseconds(static_cast<int64_t>(merged.expiry_ms)));
    }
  }
  if (!IsLive(made.expiry, now_ms())) return std::optional<Entry>();
  return std::optional<Entry>(std::move(made));
}

Result<std::optional<Entry>> State::GetEntry(std::string_view key, const ReadOptions& options) {
  BASALT_ASSIGN_OR_RETURN(const ReadOptions at, AtSnapshot(options));
  const OwnState* const own = OwnOf(key, options.keyspace);
  std::optional<Entry> stored;
  if (own == nullptr || own->kind == OwnState::Kind::kMerges) {
    if (options.track) reads_.AddKey(static_cast<uint32_t>(options.keyspace), key);
    BASALT_ASSIGN_OR_RETURN(stored, backend_->GetEntry(key, at));
    if (stored && options.track) reads_.AddExpiry(base::MillisOf(stored->expiry));
  }
  if (own == nullptr) return stored;
  return Combine(*own, std::move(stored));
}

Result<MaybeValue> State::Get(std::string_view key, const ReadOptions& options) {
  BASALT_ASSIGN_OR_RETURN(std::optional<Entry> entry, GetEntry(key, options));
  if (!entry) return MaybeValue();
  return MaybeValue(std::move(entry->value));
}

Status State::MultiGet(std::span<const std::string_view> keys,
                       std::span<Result<MaybeValue>> results, const ReadOptions& options) {
  BASALT_RETURN_IF_ERROR(base::CheckMultiGetLengths(keys.size(), results.size()));
  for (size_t i = 0; i < keys.size(); ++i) results[i] = Get(keys[i], options);
  return {};
}

OwnIterator::Overlay State::OverlayOf(const ReadOptions& options) {
  OwnIterator::Overlay overlay;
  if (own_.empty()) return overlay;
  const OwnWrites::OfKeyspace* const own = own_.Of(options.keyspace, now_ms());
  if (own == nullptr) return overlay;
  std::optional<std::string> end;
  if (options.prefix) {
    end = base::PrefixEnd(*options.prefix);
  } else if (options.upper) {
    end = std::string(*options.upper);
  }
  const std::string_view begin = options.prefix.value_or(options.lower.value_or(""));
  for (auto at = own->keys.lower_bound(begin); at != own->keys.end() && (!end || at->first < *end);
       ++at) {
    overlay.own.push_back({at->first, at->second});
  }
  overlay.deleted = own->deleted;
  return overlay;
}

std::unique_ptr<Iterator> State::NewIterator(const ReadOptions& options) {
  Result<ReadOptions> at = AtSnapshot(options);
  if (!at) return base::NewErrorIterator(at.error());
  OwnIterator::Overlay overlay = OverlayOf(options);
  std::unique_ptr<Iterator> stored = backend_->NewIterator(*at);
  if (!options.track && overlay.own.empty() && overlay.deleted.empty()) return stored;
  return std::make_unique<OwnIterator>(std::move(stored), options, std::move(overlay), now_ms(),
                                       options.track ? &reads_ : nullptr, iterators_);
}

// Writes

Status State::Append(const WriteBatch& batch) {
  BASALT_RETURN_IF_ERROR(batch.status());
  if (own_.memory_bytes() + batch.byte_size() > memory_limit_ / 2) {
    return Status(StatusCode::kResourceExhausted,
                  "a transaction's writes would take more than half of "
                  "TransactionOptions::memory_limit (" +
                      std::to_string(memory_limit_) +
                      " bytes): commit in smaller parts, or raise it",
                  SubCode::kBatchTooLarge);
  }
  return own_.Append(batch);
}

Status State::Update(std::string_view key, const UpdateFunction& fn, const WriteOptions& options) {
  BASALT_ASSIGN_OR_RETURN(const std::optional<Entry> present,
                          GetEntry(key, {.keyspace = options.keyspace}));
  std::optional<std::string_view> value;
  if (present) value = present->value.view();
  EntryUpdate update(value, present ? present->version : 0,
                     present ? present->expiry : std::nullopt);
  BASALT_RETURN_IF_ERROR(fn(update));
  const std::optional<base::UpdatedRecord> changed = base::RecordOf(update, options);
  if (!changed) return {};
  return AddToBatch([&](WriteBatch* batch) {
    if (!changed->value) return batch->Delete(key, options.keyspace);
    batch->Put(key, *changed->value, changed->options);
  });
}

Transaction::Savepoint State::SetSavepoint() {
  savepoints_.push_back({savepoints_made_, own_.mark()});
  return static_cast<Transaction::Savepoint>(savepoints_made_++);
}

Status State::RollbackTo(Transaction::Savepoint savepoint) {
  const auto number = static_cast<uint64_t>(savepoint);
  const auto found = std::ranges::find(savepoints_, number, &Point::number);
  if (found == savepoints_.end()) {
    return Status(StatusCode::kInvalidArgument,
                  "roll back to a savepoint: this transaction does not have it (any more)");
  }
  own_.TruncateTo(found->mark);
  savepoints_.erase(std::next(found), savepoints_.end());
  return {};
}

Result<basalt::Commit> State::Commit(const WriteOptions& options) {
  if (options.keyspace != KeyspaceId::kDefault || options.ttl || options.expiry) {
    return Status(StatusCode::kInvalidArgument,
                  "Transaction::Commit: of WriteOptions only durability and may_wait belong to a "
                  "commit; records name their own keyspace and ttl");
  }
  for (OwnIterator* iterator : *iterators_) iterator->TellReads();
  if (reads_.is_incomplete()) {
    return Status(StatusCode::kResourceExhausted,
                  "Transaction::Commit: there was no memory to remember what was read",
                  SubCode::kMemory);
  }
  reads_.Normalise();
  return backend_->CommitIfUnchanged(&reads_, snapshot_ ? &*snapshot_ : nullptr, own_.batch(),
                                     options);
}

}  // namespace basalt::transaction
