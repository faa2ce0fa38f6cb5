#include "memtable/keyspaces.h"

#include <algorithm>

#include "base/check.h"
#include "base/option_value.h"

namespace basalt::memtable {
namespace {

constexpr size_t kKeyspaceNameBytesMax = 255;

}  // namespace

const Keyspaces::Keyspace* Keyspaces::Find(uint32_t id) const noexcept {
  const auto at = std::ranges::lower_bound(entries_, id, {}, &Keyspace::id);
  return at != entries_.end() && at->id == id ? &*at : nullptr;
}

const Keyspaces::Keyspace* Keyspaces::Find(std::string_view name) const noexcept {
  const auto at = std::ranges::find(entries_, name, &Keyspace::name);
  return at != entries_.end() ? &*at : nullptr;
}

std::chrono::milliseconds Keyspaces::DefaultTtl(uint32_t id) const noexcept {
  const Keyspace* const keyspace = id == 0 ? nullptr : Find(id);
  if (keyspace == nullptr) return std::chrono::milliseconds(0);
  return keyspace->options.default_ttl.value_or(std::chrono::milliseconds(0));
}

Status NoSuchKeyspace(uint32_t id) {
  return Status(StatusCode::kNotFound,
                "there is no keyspace " + std::to_string(id) +
                    " in this memtable: it was never created (CreateKeyspace), or it was dropped",
                SubCode::kKeyspace);
}

Status CheckNewKeyspace(std::string_view name, const KeyspaceOptions& options) {
  if (name.empty() || name.size() > kKeyspaceNameBytesMax) {
    return Status(StatusCode::kInvalidArgument,
                  "create a keyspace of a memtable: the name has " + std::to_string(name.size()) +
                      " bytes, and must have 1 to " + std::to_string(kKeyspaceNameBytesMax));
  }
  if (options.default_ttl && options.default_ttl->count() < 0) {
    return Status(StatusCode::kInvalidArgument,
                  "KeyspaceOptions::default_ttl is " +
                      std::to_string(options.default_ttl->count()) +
                      " ms: give a positive one, or zero for records that never expire");
  }
  if (options.compression) {
    return Status(StatusCode::kUnsupported,
                  "KeyspaceOptions::compression: a memtable does not compress");
  }
  return base::CheckDurability("KeyspaceOptions::durability",
                               options.durability.value_or(Durability::kProcess));
}

}  // namespace basalt::memtable
