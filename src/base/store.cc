#include "basalt/store.h"

#include <string>

#include "base/check.h"
#include "base/multi_get_lengths.h"
#include "base/out_of_memory.h"

namespace basalt {

Status base::CheckMultiGetLengths(size_t keys, size_t results) {
  if (keys == results) return {};
  return base::ErrorThatSays(StatusCode::kInvalidArgument, [&] {
    return "MultiGet: " + std::to_string(keys) + " keys, but room for " + std::to_string(results) +
           " results";
  });
}

Status Store::MultiGet(std::span<const std::string_view> keys,
                       std::span<Result<MaybeValue>> results, const ReadOptions& options) const {
  BASALT_RETURN_IF_ERROR(base::CheckMultiGetLengths(keys.size(), results.size()));
  return DoMultiGet(keys, results, options);
}

Status Store::MultiGet(std::span<const KeyspaceKey> keys, std::span<Result<MaybeValue>> results,
                       const ReadOptions& options) const {
  BASALT_RETURN_IF_ERROR(base::CheckMultiGetLengths(keys.size(), results.size()));
  return DoMultiGetOfKeyspaces(keys, results, options);
}

Result<KeyspaceId> Store::OpenOrCreateKeyspace(std::string_view name,
                                               const KeyspaceOptions& options) {
  while (true) {
    Result<KeyspaceId> opened = OpenKeyspace(name);
    if (opened || opened.error().code() != StatusCode::kNotFound) return opened;
    Result<KeyspaceId> created = CreateKeyspace(name, options);
    // Another thread may have created it meanwhile.
    if (created || created.error().code() != StatusCode::kAlreadyExists) return created;
  }
}

namespace {

Status WithoutChanges() noexcept {
  return Status(StatusCode::kUnsupported, "this store's changes cannot be followed");
}

}  // namespace

Result<Subscription> Store::DoAddListener(CommitListener) { return WithoutChanges(); }
Result<std::unique_ptr<ChangeReader>> Store::Changes(uint64_t) const { return WithoutChanges(); }

}  // namespace basalt
