#pragma once

#include <cstdint>
#include <string>

#include "basalt/options.h"
#include "tools/basalt/exit_code.h"
#include "tools/basalt/output.h"
#include "tools/basalt/verb.h"

namespace basalt::tools {

struct ServeOptions {
  std::string path;
  std::string address = "127.0.0.1";
  uint16_t port = 6379;
  bool no_tcp = false;
  std::string unix_socket;
  std::string password_file;
  std::string users_file;
  std::string scripts = "auto";
  uint32_t threads = 0;
  uint32_t clients = 10'000;
  uint64_t request_bytes = uint64_t{64} << 20;
  uint64_t output_bytes = uint64_t{256} << 20;
  uint64_t memory_budget = 0;
  Durability durability = Durability::kProcess;
};

/// Serves the database until SIGTERM or SIGINT.
ExitCode Serve(const ServeOptions& options, Output& out);

void AddServeVerb(const VerbList& verbs);

}  // namespace basalt::tools
