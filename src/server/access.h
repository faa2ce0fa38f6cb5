#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/command.h"
#include "server/users.h"
#include "server/view.h"

namespace basalt::server {

/// The keys among a command's arguments. Nothing: the arguments are malformed.
std::optional<std::vector<std::string_view>> KeysOf(const Command& command, Args args);

/// Why a user must not run a command: the rights that it lacks, or a key that it must not reach.
/// Empty: it may. A user with prefixes may run no command that tells about all keys; SCAN and KEYS
/// show it its own. Nothing is read, so that a refusal tells nothing about keys.
std::string AccessError(const User& user, const Command& command, Args args);

/// Moves a walk over names, which begin with `prefix`, to the next one that the user may reach.
void SkipForeign(const User& user, std::string_view prefix, Walk* walk);

/// Whether a user may see a message of this channel: those of keyspace notifications name keys.
bool MaySeeMessage(const User& user, std::string_view channel, std::string_view text);

}  // namespace basalt::server
