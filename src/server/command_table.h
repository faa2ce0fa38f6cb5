#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/command.h"

namespace basalt::server {

/// The command of this name, in any case; null: there is none.
const Command* FindCommand(std::string_view name) noexcept;

/// All commands by name.
const std::vector<const Command*>& AllCommands();

/// Replies with what COMMAND INFO says of one command, or null.
void ReplyCommandInfo(const Command* command, Reply& reply);
/// The same for COMMAND DOCS.
void ReplyCommandDocs(const Command& command, Reply& reply);

/// The page docs/commands.md.
std::string CommandsPage();

}  // namespace basalt::server
