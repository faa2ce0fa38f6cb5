#include "tools/basalt/serve.h"

#include <pthread.h>

#include <csignal>
#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>
#include <utility>

#include "basalt/db.h"
#include "server/server.h"

namespace basalt::tools {
namespace {

Result<std::string> ReadPassword(const std::string& path) {
  std::ifstream file(path);
  std::string password;
  if (!file || !std::getline(file, password)) {
    return Status(StatusCode::kIoError, "cannot read a password from the first line of " + path);
  }
  if (password.ends_with('\r')) password.pop_back();
  if (password.empty()) {
    return Status(StatusCode::kInvalidArgument, "the first line of " + path + " is empty");
  }
  return password;
}

Result<server::Users> ReadUsers(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    return Status(StatusCode::kIoError, "cannot read users from " + path);
  }
  return server::Users::Parse(text.str());
}

Result<server::ServerOptions> ServerOptionsOf(const ServeOptions& options) {
  server::ServerOptions server{.address = options.address,
                               .port = options.port,
                               .listens_on_tcp = !options.no_tcp,
                               .unix_socket = options.unix_socket,
                               .threads = options.threads};
  server.settings.clients = options.clients;
  server.settings.request.argument_bytes = options.request_bytes;
  server.settings.request.command_bytes = options.request_bytes;
  server.settings.output_bytes = options.output_bytes;
  server.settings.queued_bytes = options.request_bytes;
  server.settings.is_power_durable = options.durability == Durability::kPower;
  if (options.no_tcp && options.unix_socket.empty()) {
    return Status(StatusCode::kInvalidArgument, "--no-tcp needs --unix-socket");
  }
  const bool is_local = !server.IsReachedByOthers();
  server.settings.allows_scripts =
      options.scripts == "on" || (options.scripts == "auto" && is_local);
  if (!options.users_file.empty()) {
    if (!options.password_file.empty()) {
      return Status(StatusCode::kInvalidArgument, "give --users-file or --password-file");
    }
    Result<server::Users> users = ReadUsers(options.users_file);
    if (!users) return users.error();
    server.settings.users = *std::move(users);
  } else if (!options.password_file.empty()) {
    Result<std::string> password = ReadPassword(options.password_file);
    if (!password) return password.error();
    server.settings.users = server::Users::WithPassword(*std::move(password));
  }
  if (!is_local && server.settings.users.Initial() != nullptr) {
    return Status(StatusCode::kInvalidArgument,
                  "an address that other machines reach needs --password-file or --users-file, "
                  "and a password for the user 'default'");
  }
  return server;
}

std::string Listening(const ServeOptions& options, const server::Server& server) {
  std::string text;
  if (server.port() != 0) {
    const bool is_ipv6 = options.address.find(':') != std::string::npos;
    text += "listening on " + (is_ipv6 ? "[" + options.address + "]" : options.address) + ":" +
            std::to_string(server.port()) + "\n";
  }
  if (!options.unix_socket.empty()) text += "listening on " + options.unix_socket + "\n";
  return text;
}

/// Blocks the signals that end the program, here and in threads that are started later, so that
/// sigwait receives them.
sigset_t BlockEndingSignals() {
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  return ending;
}

}  // namespace

ExitCode Serve(const ServeOptions& options, Output& out) {
  const Result<server::ServerOptions> wanted = ServerOptionsOf(options);
  if (!wanted) return ReportPlainly(wanted.error());
  const sigset_t ending = BlockEndingSignals();
  const Result<std::unique_ptr<DB>> db =
      DB::Open(options.path.empty() ? ":memory:" : options.path,
               {.memory_budget = options.memory_budget, .durability = options.durability});
  if (!db) return Report(db.error());
  Result<std::unique_ptr<server::Server>> server = server::Server::Start(db->get(), *wanted);
  if (!server) return ReportPlainly(server.error());
  out.Write(Listening(options, **server));
  const Status printed = out.Flush();
  int signal = 0;
  if (printed.ok()) sigwait(&ending, &signal);
  (*server)->Stop();
  server->reset();
  const Status closed = (*db)->Close();
  return Report(printed.ok() ? closed : printed);
}

}  // namespace basalt::tools
