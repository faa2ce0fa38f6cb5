#include "tools/basalt/keyspace.h"

#include <vector>

#include "tools/basalt/exit_code.h"
#include "tools/basalt/text_format.h"

namespace basalt::tools {

Result<KeyspaceId> FindKeyspace(const Store& store, const std::optional<std::string>& name) {
  if (!name || name->empty()) return KeyspaceId::kDefault;
  return store.OpenKeyspace(*name);
}

Result<KeyspaceId> FindOrMakeKeyspace(Store& store, const std::optional<std::string>& name) {
  Result<KeyspaceId> found = FindKeyspace(store, name);
  if (found || found.error().code() != StatusCode::kNotFound) return found;
  return store.CreateKeyspace(*name);
}

Status TellOfOtherKeyspaces(const Store& store) {
  const Result<std::vector<KeyspaceInfo>> keyspaces = store.ListKeyspaces();
  if (!keyspaces) return keyspaces.error();
  std::string names;
  for (const KeyspaceInfo& keyspace : *keyspaces) {
    if (keyspace.id == KeyspaceId::kDefault) continue;
    names += (names.empty() ? "" : ", ") + ToText(keyspace.name);
  }
  if (!names.empty()) {
    Complain("left out the keyspaces " + names +
             ": --keyspace NAME dumps one, --all-keyspaces all");
  }
  return {};
}

}  // namespace basalt::tools
