#pragma once

#include <optional>
#include <string>

#include "basalt/store.h"

namespace basalt::tools {

/// The keyspace that a verb names; the default one when it names none, or by an empty name.
/// NotFound.
Result<KeyspaceId> FindKeyspace(const Store& store, const std::optional<std::string>& name);
/// The same; makes one that is not there.
Result<KeyspaceId> FindOrMakeKeyspace(Store& store, const std::optional<std::string>& name);

/// Says on stderr which keyspaces there are besides the default one, if there are, and that a verb
/// has left them out.
Status TellOfOtherKeyspaces(const Store& store);

}  // namespace basalt::tools
