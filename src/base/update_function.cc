#include "base/update_function.h"

namespace basalt::base {

std::optional<UpdatedRecord> RecordOf(const EntryUpdate& update, const WriteOptions& options) {
  using Outcome = EntryUpdate::Outcome;
  UpdatedRecord record{.value = std::nullopt, .options = {.keyspace = options.keyspace}};
  if (update.outcome() == Outcome::kDelete) {
    if (!update.exists()) return std::nullopt;
    return record;
  }
  const bool sets_expiry = update.new_ttl() || update.new_expiry();
  if (update.outcome() == Outcome::kKeep) {
    if (!update.exists() || !sets_expiry) return std::nullopt;
    record.value = update.value();
  } else {
    record.value = update.new_value();
  }
  if (sets_expiry) {
    record.options.ttl = update.new_ttl();
    record.options.expiry = update.new_expiry();
  } else if (!update.exists()) {
    record.options.ttl = options.ttl;
    record.options.expiry = options.expiry;
  } else if (update.expiry()) {
    record.options.expiry = update.expiry();
  } else {
    record.options.ttl = std::chrono::milliseconds(0);
  }
  return record;
}

}  // namespace basalt::base
