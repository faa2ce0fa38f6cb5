#include <utility>

#include "basalt/server.h"
#include "base/check.h"
#include "server/server.h"
#include "server/users.h"

namespace basalt::net {
namespace {

class ServingServer final : public Server {
 public:
  ServingServer(std::unique_ptr<server::Server> server, std::string url)
      : server_(std::move(server)), url_(std::move(url)) {}

  std::string url() const override { return url_; }
  void Stop() override { server_->Stop(); }

 private:
  const std::unique_ptr<server::Server> server_;
  const std::string url_;
};

}  // namespace

Result<std::unique_ptr<Server>> Serve(DB* db, const ServeOptions& options) {
  if (options.address.empty() && options.unix_socket.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "serve a database: ServeOptions has neither an address nor a Unix socket");
  }
  server::ServerOptions wanted{.address = options.address,
                               .port = options.port,
                               .listens_on_tcp = !options.address.empty(),
                               .unix_socket = options.unix_socket,
                               .threads = options.threads};
  wanted.settings.users = server::Users::WithPassword(options.password);
  wanted.settings.allows_scripts = !wanted.IsReachedByOthers();
  if (wanted.IsReachedByOthers() && options.password.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "serve a database on " + options.address +
                      ": other machines reach this address, so ServeOptions needs a password");
  }
  BASALT_ASSIGN_OR_RETURN(std::unique_ptr<server::Server> server,
                          server::Server::Start(db, wanted));
  std::string url = server->url();
  return std::unique_ptr<Server>(
      std::make_unique<ServingServer>(std::move(server), std::move(url)));
}

}  // namespace basalt::net
