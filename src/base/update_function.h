#pragma once

#include <chrono>
#include <exception>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "basalt/status.h"
#include "basalt/store.h"
#include "basalt/write_batch.h"

// What the functions named Update of all stores share.

namespace basalt::base {

/// `update(fn)`, which answers a Status or a Result. What `fn` throws passes by all handlers on the
/// way and reaches the caller as it is, a bad_alloc included.
template <class Update>
auto UpdateThatMayThrow(const UpdateFunction& fn, const Update& update)
    -> std::invoke_result_t<const Update&, const UpdateFunction&> {
  std::exception_ptr thrown;
  const UpdateFunction guarded = [&](EntryUpdate& entry) -> Status {
    try {
      return fn(entry);
    } catch (...) {
      thrown = std::current_exception();
      return Status(StatusCode::kCancelled, "the update function threw");
    }
  };
  auto updated = update(guarded);
  if (thrown != nullptr) std::rethrow_exception(thrown);
  return updated;
}

/// The record that an update function has asked for.
struct UpdatedRecord {
  std::optional<std::string_view> value;  ///< Nothing: the key is deleted. A view into the update.
  RecordOptions options;
};

/// Nothing: all stays as it is. `options`: those of the call, whose ttl and expiry are for a key
/// that was absent.
std::optional<UpdatedRecord> RecordOf(const EntryUpdate& update, const WriteOptions& options);

/// InvalidArgument: options of a write that puts nothing name a time to live.
inline Status RefuseExpiry(const WriteOptions& options) {
  if (!options.ttl && !options.expiry) return {};
  return Status(StatusCode::kInvalidArgument,
                "WriteOptions::ttl and expiry: only what puts or merges one key has them; the "
                "records of a batch name their own");
}

}  // namespace basalt::base
