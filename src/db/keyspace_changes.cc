#include <string>
#include <utility>

#include "base/check.h"
#include "base/option_value.h"
#include "db/core.h"
#include "db/edit.h"
#include "db/tree_key.h"

// Creates, finds and drops keyspaces. Each change is one edit of the manifest. Earlier writes are
// made durable first: after a power cut the manifest must not be ahead of the log.

namespace basalt::db {
namespace {

constexpr size_t kNameBytesMax = 255;

Status CheckName(std::string_view name) {
  if (!name.empty() && name.size() <= kNameBytesMax) return {};
  return Status(StatusCode::kInvalidArgument, "a keyspace's name has 1 to " +
                                                  std::to_string(kNameBytesMax) + " bytes, not " +
                                                  std::to_string(name.size()));
}

}  // namespace

Result<KeyspaceId> Core::CreateKeyspace(std::string_view name, const KeyspaceOptions& options) {
  BASALT_RETURN_IF_ERROR(CheckWritable());
  BASALT_RETURN_IF_ERROR(CheckName(name));
  BASALT_RETURN_IF_ERROR(base::CheckDurability("KeyspaceOptions::durability",
                                               options.durability.value_or(options_.durability)));
  if (options_.durability == Durability::kMemory && options.durability &&
      *options.durability != Durability::kMemory) {
    return Status(StatusCode::kInvalidArgument,
                  "KeyspaceOptions::durability: the database has no log (kMemory)");
  }
  if (options.default_ttl || options.compression) {
    return Status(StatusCode::kUnsupported,
                  std::string("KeyspaceOptions::") +
                      (options.default_ttl ? "default_ttl" : "compression") +
                      ": a database has one for all its keyspaces (DBOptions)");
  }
  BASALT_RETURN_IF_ERROR(Sync());
  const std::scoped_lock install(install_mutex_);
  const std::shared_ptr<const Keyspaces> present = State()->keyspaces;
  if (present->Find(name) != nullptr) {
    return Status(StatusCode::kAlreadyExists,
                  "there is a keyspace \"" + std::string(name) +
                      "\" already: open it with OpenKeyspace or OpenOrCreateKeyspace");
  }
  std::vector<Keyspace> entries = present->entries();
  const uint32_t id = manifest_.next_keyspace_id;
  if (id == kSharedTree) {
    return Status(StatusCode::kResourceExhausted,
                  "no number is left for another keyspace: copy the database into a new one");
  }
  entries.push_back({.id = id, .durability = options.durability, .name = std::string(name)});
  Edit edit;
  edit.keyspaces = std::make_shared<const Keyspaces>(std::move(entries));
  edit.next_keyspace_id = id + 1;
  BASALT_RETURN_IF_ERROR(InstallLocked(edit));
  return static_cast<KeyspaceId>(id);
}

Result<KeyspaceId> Core::OpenKeyspace(std::string_view name) const {
  BASALT_RETURN_IF_ERROR(CheckUsable());
  const std::shared_ptr<const ReadState> state = State();
  const Keyspace* const keyspace = state->keyspaces->Find(name);
  if (keyspace == nullptr) {
    return Status(
        StatusCode::kNotFound,
        "there is no keyspace \"" + std::string(name) + "\": create it with CreateKeyspace",
        SubCode::kKeyspace);
  }
  return static_cast<KeyspaceId>(keyspace->id);
}

Result<std::vector<KeyspaceInfo>> Core::ListKeyspaces() const {
  BASALT_RETURN_IF_ERROR(CheckUsable());
  std::vector<KeyspaceInfo> list(1);
  const std::shared_ptr<const ReadState> state = State();
  for (const Keyspace& keyspace : state->keyspaces->entries()) {
    list.push_back({.id = static_cast<KeyspaceId>(keyspace.id),
                    .name = keyspace.name,
                    .options = {.durability = keyspace.durability}});
  }
  return list;
}

std::chrono::milliseconds Core::DefaultTtl(KeyspaceId) const { return options_.default_ttl; }

Status Core::DropKeyspace(KeyspaceId keyspace) {
  BASALT_RETURN_IF_ERROR(CheckWritable());
  if (keyspace == KeyspaceId::kDefault) {
    return Status(StatusCode::kInvalidArgument,
                  "the default keyspace cannot be dropped; delete its keys (DeleteRange)");
  }
  BASALT_RETURN_IF_ERROR(Sync());
  const std::scoped_lock install(install_mutex_);
  const std::shared_ptr<const ReadState> state = State();
  BASALT_RETURN_IF_ERROR(CheckKeyspace(*state, keyspace));
  std::vector<Keyspace> entries = state->keyspaces->entries();
  std::erase_if(entries,
                [&](const Keyspace& entry) { return entry.id == static_cast<uint32_t>(keyspace); });
  Edit edit;
  edit.keyspaces = std::make_shared<const Keyspaces>(std::move(entries));
  {
    // A table that begins later is not given its records any more.
    const std::scoped_lock lock(mutex_);
    edit.dropped_keyspace = {.id = static_cast<uint32_t>(keyspace),
                             .table_number = next_table_number_};
  }
  return InstallLocked(edit);
}

}  // namespace basalt::db
