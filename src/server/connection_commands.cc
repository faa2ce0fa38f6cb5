#include <algorithm>

#include "server/command.h"
#include "server/executor.h"
#include "server/hub.h"
#include "server/numbers.h"
#include "server/session.h"
#include "server/version.h"

namespace basalt::server {
namespace {

void RunPing(Call& call) {
  if (call.count() > 2) {
    return call.reply.Error("ERR wrong number of arguments for 'ping' command");
  }
  if (call.session.resp_version() == 2 && call.session.subscriptions() > 0) {
    call.reply.Array(2);
    call.reply.Bulk("pong");
    return call.reply.Bulk(call.count() == 2 ? call.arg(1) : std::string_view());
  }
  call.count() == 2 ? call.reply.Bulk(call.arg(1)) : call.reply.Simple("PONG");
}

void RunEcho(Call& call) { call.reply.Bulk(call.arg(1)); }

void RunQuit(Call& call) {
  call.reply.Ok();
  call.session.Close();
}

void RunReset(Call& call) {
  Session& session = call.session;
  Disconnect(call.hub, session);
  session.set_db(0);
  session.set_name({});
  session.set_resp_version(2);
  session.set_user(call.hub.settings().users.Initial());
  call.reply.set_version(2);
  call.reply.Simple("RESET");
}

void RunSelect(Call& call) {
  const std::optional<int64_t> db = call.Integer(1);
  if (!db) return;
  if (*db < 0 || *db >= kDatabases) return call.reply.Error("ERR DB index is out of range");
  call.session.set_db(static_cast<uint8_t>(*db));
  call.reply.Ok();
}

/// Whether user and password are right. Replies with the error if not.
bool Authenticate(Call& call, std::string_view user, std::string_view password) {
  if (const User* found = call.hub.settings().users.Find(user, password)) {
    call.session.set_user(found);
    return true;
  }
  call.reply.Error("WRONGPASS invalid username-password pair or user is disabled.");
  return false;
}

void RunAuth(Call& call) {
  if (call.count() > 3) return call.SyntaxError();
  if (call.count() == 2 && call.hub.settings().users.Initial() != nullptr) {
    return call.reply.Error(
        "ERR AUTH <password> called without any password configured for the default user. Are you "
        "sure your configuration is correct?");
  }
  const bool has_user = call.count() == 3;
  if (Authenticate(call, has_user ? call.arg(1) : "default", call.arg(has_user ? 2 : 1))) {
    call.reply.Ok();
  }
}

bool IsName(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) { return c >= '!' && c <= '~'; });
}

void BadName(Call& call) {
  call.reply.Error("ERR Client names cannot contain spaces, newlines or special characters.");
}

void ReplyHello(Call& call) {
  call.reply.Map(7);
  call.reply.Bulk("server");
  call.reply.Bulk("redis");
  call.reply.Bulk("version");
  call.reply.Bulk(kRedisVersion);
  call.reply.Bulk("proto");
  call.reply.Integer(call.session.resp_version());
  call.reply.Bulk("id");
  call.reply.Integer(static_cast<int64_t>(call.session.id()));
  call.reply.Bulk("mode");
  call.reply.Bulk("standalone");
  call.reply.Bulk("role");
  call.reply.Bulk("master");
  call.reply.Bulk("modules");
  call.reply.Array(0);
}

void RunHello(Call& call) {
  int version = call.session.resp_version();
  if (call.count() > 1) {
    const std::optional<int64_t> number = ParseInteger(call.arg(1));
    if (!number) {
      return call.reply.Error("ERR Protocol version is not an integer or out of range");
    }
    if (*number != 2 && *number != 3) {
      return call.reply.Error("NOPROTO unsupported protocol version");
    }
    version = static_cast<int>(*number);
  }
  std::optional<std::string_view> name;
  for (size_t i = 2; i < call.count(); ++i) {
    if (call.Is(i, "auth") && i + 2 < call.count()) {
      if (!Authenticate(call, call.arg(i + 1), call.arg(i + 2))) return;
      i += 2;
    } else if (call.Is(i, "setname") && i + 1 < call.count()) {
      name = call.arg(++i);
      if (!IsName(*name)) return BadName(call);
    } else {
      return call.reply.Error("ERR Syntax error in HELLO option '" + std::string(call.arg(i)) +
                              "'");
    }
  }
  if (!call.session.is_authenticated()) {
    return call.reply.Error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
        "<proto> AUTH <user> <pass> option can be used to authenticate the client and select the "
        "RESP protocol version at the same time");
  }
  if (name) call.session.set_name(std::string(*name));
  call.session.set_resp_version(version);
  call.reply.set_version(version);
  ReplyHello(call);
}

void ClientList(Call& call) {
  std::string lines;
  for (const auto& peer : call.hub.Clients()) lines += peer->Describe() + "\n";
  call.reply.Verbatim(lines);
}

void ClientSetInfo(Call& call) {
  const bool is_version = call.Is(2, "lib-ver");
  if (!is_version && !call.Is(2, "lib-name")) {
    return call.reply.Error("ERR Unrecognized option '" + std::string(call.arg(2)) + "'");
  }
  if (!IsName(call.arg(3))) {
    return call.reply.Error("ERR " + std::string(is_version ? "lib-ver" : "lib-name") +
                            " cannot contain spaces, newlines or special characters.");
  }
  call.session.set_library(is_version, std::string(call.arg(3)));
  call.reply.Ok();
}

void RunClient(Call& call) {
  const std::string sub = ToLower(call.arg(1));
  const size_t count = call.count();
  if (sub == "id" && count == 2) {
    call.reply.Integer(static_cast<int64_t>(call.session.id()));
  } else if (sub == "getname" && count == 2) {
    const std::string name = call.session.name();
    name.empty() ? call.reply.Null() : call.reply.Bulk(name);
  } else if (sub == "setname" && count == 3) {
    if (!IsName(call.arg(2))) return BadName(call);
    call.session.set_name(std::string(call.arg(2)));
    call.reply.Ok();
  } else if (sub == "setinfo" && count == 4) {
    ClientSetInfo(call);
  } else if (sub == "list" && count == 2) {
    ClientList(call);
  } else if (sub == "info" && count == 2) {
    call.reply.Verbatim(call.session.Describe() + "\n");
  } else if (sub == "no-evict" && count == 3) {
    call.Is(2, "on") || call.Is(2, "off") ? call.reply.Ok() : call.SyntaxError();
  } else if (sub == "id" || sub == "getname" || sub == "setname" || sub == "setinfo" ||
             sub == "info" || sub == "no-evict") {
    call.reply.Error("ERR wrong number of arguments for 'client|" + sub + "' command");
  } else {
    UnknownSubcommand(call);
  }
}

constexpr Command kConnectionCommands[] = {
    {"ping", "[message]", -1, kNoData | kFast | kSubscribed, 0, 0, 0, Group::kConnection,
     "Answers PONG, or the message.", RunPing},
    {"echo", "message", 2, kNoData | kFast, 0, 0, 0, Group::kConnection, "Answers the message.",
     RunEcho},
    {"quit", "", -1, kNoScript | kNoData | kFast | kNoAuth | kSubscribed | kInMultiNow, 0, 0, 0,
     Group::kConnection, "Closes the connection.", RunQuit},
    {"reset", "", 1, kNoScript | kNoData | kFast | kNoAuth | kSubscribed | kInMultiNow, 0, 0, 0,
     Group::kConnection, "Makes the connection as it was when it was opened.", RunReset},
    {"select", "index", 2, kNoData | kFast, 0, 0, 0, Group::kConnection,
     "Selects one of 16 databases.", RunSelect},
    {"auth", "[username] password", -2, kNoScript | kNoData | kFast | kNoAuth, 0, 0, 0,
     Group::kConnection, "Authenticates the connection.", RunAuth},
    {"hello", "[protover [AUTH username password] [SETNAME clientname]]", -1,
     kNoScript | kNoData | kFast | kNoAuth, 0, 0, 0, Group::kConnection,
     "Selects the version of the protocol and describes the server.", RunHello},
    {"client",
     "ID | GETNAME | SETNAME name | SETINFO LIB-NAME|LIB-VER text | LIST | INFO | NO-EVICT "
     "ON|OFF",
     -2, kNoScript | kNoData, 0, 0, 0, Group::kConnection, "Lists and names connections.",
     RunClient},
};

}  // namespace

std::span<const Command> ConnectionCommands() { return kConnectionCommands; }

}  // namespace basalt::server
