#include "basalt/changes.h"

#include <string>
#include <utility>

#include "basalt/store.h"
#include "base/batch_records.h"

namespace basalt {

// In log form a put's time is its expiry, and a merge's is when it was written.
Status CommittedBatch::ForEach(
    const std::function<Status(const WriteBatch::Record&)>& visit) const {
  return base::ForEachRecord(bytes_, [&](const WriteBatch::Record& record, size_t) {
    WriteBatch::Record shown = record;
    if (record.kind == RecordKind::kPut && record.ttl) {
      shown.expiry = WallTime(*record.ttl);
    }
    shown.ttl.reset();
    return visit(shown);
  });
}

Subscription& Subscription::operator=(Subscription&& other) noexcept {
  registration_ = std::move(other.registration_);
  sequence_ = std::exchange(other.sequence_, 0);
  return *this;
}
Subscription::~Subscription() = default;

namespace {

/// Whether a watch of `key` has to hear of a record.
bool Concerns(const WriteBatch::Record& record, std::string_view key, bool is_prefix) {
  if (record.kind == RecordKind::kDeleteRange) {
    if (record.key <= key && key < record.value) return true;
    return is_prefix && record.key.starts_with(key);
  }
  return is_prefix ? record.key.starts_with(key) : record.key == key;
}

}  // namespace

Result<Subscription> Store::Watch(const WatchOptions& options, WatchFunction fn) {
  return AddListener([key = std::string(options.key), keyspace = options.keyspace,
                      is_prefix = options.is_prefix,
                      fn = std::move(fn)](const CommittedBatch& batch) {
    uint64_t version = batch.first_sequence();
    static_cast<void>(batch.ForEach([&](const WriteBatch::Record& record) -> Status {
      const uint64_t its_version = version++;
      if (record.keyspace != keyspace || !Concerns(record, key, is_prefix)) return {};
      fn({.kind = record.kind,
          .key = record.key,
          .value = record.value,
          .version = its_version,
          .expiry = record.expiry});
      return {};
    }));
  });
}

}  // namespace basalt
