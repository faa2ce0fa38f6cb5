#include "tools/basalt/serve.h"

namespace basalt::tools {

void AddServeVerb(const VerbList& verbs) {
  const auto serve = verbs.Add<ServeOptions>(
      "serve", "Serve a database to clients of the Redis protocol and HTTP", Serve,
      R"(  basalt serve ./db                        on 127.0.0.1, port 6379
  basalt serve ./db --port 0               on a free port, which is printed
  basalt serve ./db --no-tcp --unix-socket ./basalt.sock
  basalt serve ./db --address 0.0.0.0 --password-file ./password
  redis-cli set user/42 Ada
  curl http://127.0.0.1:6379/v1/keys/user%2F42
Without PATH the data is in memory and ends with the server. SIGTERM and SIGINT
end it after the running commands are answered. docs/server.md describes it.
)");
  serve.app->add_option("PATH", serve.options->path, "The database's directory; made if absent")
      ->type_name("");
  serve.app->add_option("--address", serve.options->address, "Where to listen")
      ->capture_default_str()
      ->type_name("IP");
  serve.app->add_option("--port", serve.options->port, "0: one that is free")
      ->check(WholeNumber(0, 65'535))
      ->capture_default_str()
      ->type_name("NUMBER");
  serve.app->add_flag("--no-tcp", serve.options->no_tcp, "Listen on the Unix socket alone");
  serve.app->add_option("--unix-socket", serve.options->unix_socket, "Listen on this path, too")
      ->type_name("PATH");
  serve.app
      ->add_option("--password-file", serve.options->password_file,
                   "Its first line is the password that clients must give")
      ->type_name("FILE");
  serve.app
      ->add_option("--users-file", serve.options->users_file,
                   "Users with passwords, rights and prefixes of keys, one a line")
      ->type_name("FILE");
  serve.app
      ->add_option("--scripts", serve.options->scripts,
                   "Whether clients may run scripts: on, off, or auto (not from other machines)")
      ->check(CLI::IsMember({"auto", "on", "off"}).description(""))
      ->capture_default_str()
      ->type_name("WHEN");
  serve.app
      ->add_option("--threads", serve.options->threads,
                   "Event loops; default: one for each processor but one")
      ->check(WholeNumber(1, 1024))
      ->type_name("N");
  serve.app->add_option("--max-clients", serve.options->clients, "Connections at one time")
      ->check(WholeNumber(1, 1'000'000))
      ->capture_default_str()
      ->type_name("N");
  serve.app
      ->add_option("--max-request", serve.options->request_bytes,
                   "Of one command or body, such as 64M; default: 64M")
      ->transform(CLI::AsSizeValue(false).description(""))
      ->type_name("BYTES");
  serve.app
      ->add_option("--max-output", serve.options->output_bytes,
                   "That a client may leave unread; default: 256M")
      ->transform(CLI::AsSizeValue(false).description(""))
      ->type_name("BYTES");
  AddDurabilityAs(serve, "Whether writes survive only a killed process, or also a power cut",
                  [](ServeOptions& options, Durability level) { options.durability = level; });
  AddMemoryBudget(serve);
}

}  // namespace basalt::tools
