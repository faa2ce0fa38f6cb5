// The command-line program. command_line.cc and the files *_verb.cc describe the verbs. These files
// execute them:
//
//   keys.cc            get, put, del, scan
//   transfer.cc        load, dump
//   keyspaces.cc       keyspace list, keyspace drop
//   check_repair.cc    check, repair
//   stat.cc, compact.cc, inspect.cc, bench.cc, serve.cc, demo.cc
//   phash.cc           phash build, query, stat
//   map_*.cc, vector.cc, graph*.cc
//   ingest.cc          ingest, forget
//   retrieve.cc        retrieve

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <new>

#include "tools/basalt/command_line.h"
#include "tools/basalt/exit_code.h"
#include "tools/basalt/output.h"

namespace basalt::tools {
namespace {

/// Gives each standard stream that the caller has closed a descriptor of its own. A database file
/// would get its number else, and what is printed would be written into the database. Using such a
/// stream fails as if it were closed.
bool OccupyStandardStreams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    if (::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) return false;
  }
  return true;
}

ExitCode Run(int argc, const char* const* argv) {
  if (!OccupyStandardStreams()) {
    Complain("a standard stream is closed, and /dev/null cannot be opened in its place");
    return ExitCode::kCannotOpen;
  }
  std::signal(SIGPIPE, SIG_IGN);  // A reader that goes away is an EPIPE, which Output knows.
  Output out(STDOUT_FILENO);
  const ExitCode code = ParseCommandLine(argc, argv)(out);
  const ExitCode written = Report(out.Flush());
  return code == ExitCode::kOk ? written : code;
}

}  // namespace
}  // namespace basalt::tools

int main(int argc, char** argv) {
  using basalt::tools::ExitCode;
  ExitCode code = ExitCode::kUnavailable;
  try {
    code = basalt::tools::Run(argc, argv);
  } catch (const std::bad_alloc&) {
    basalt::tools::Complain("out of memory");
  } catch (const std::exception& error) {
    basalt::tools::Complain(error.what());
    code = ExitCode::kCannotOpen;
  }
  return static_cast<int>(code);
}
