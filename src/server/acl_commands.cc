#include "server/command.h"
#include "server/hub.h"
#include "server/session.h"

namespace basalt::server {
namespace {

void RunAcl(Call& call) {
  const Users& users = call.hub.settings().users;
  if (call.Is(1, "whoami") && call.count() == 2) {
    return call.reply.Bulk(call.session.user()->name);
  }
  const bool is_list = call.Is(1, "list");
  if (!is_list && !call.Is(1, "users")) return UnknownSubcommand(call);
  if ((call.session.user()->rights & kRightAdmin) == 0) {
    return call.reply.Error("NOPERM this user has no permissions to run the 'acl|" +
                            std::string(is_list ? "list" : "users") + "' command");
  }
  call.reply.Array(users.all().size());
  for (const User& user : users.all()) {
    call.reply.Bulk(is_list ? user.Describe() : user.name);
  }
}

constexpr Command kAclCommands[] = {
    {"acl", "WHOAMI | LIST | USERS", -2, kNoData | kNoScript, 0, 0, 0, Group::kServer,
     "Reports users and their permissions.", RunAcl},
};

}  // namespace

std::span<const Command> AclCommands() { return kAclCommands; }

}  // namespace basalt::server
