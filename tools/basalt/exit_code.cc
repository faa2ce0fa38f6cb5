#include "tools/basalt/exit_code.h"

#include <cstdio>
#include <string>

namespace basalt::tools {

ExitCode ExitCodeFor(StatusCode code) noexcept {
  switch (code) {
    case StatusCode::kOk:
      return ExitCode::kOk;
    case StatusCode::kInvalidArgument:
      return ExitCode::kUsage;
    case StatusCode::kCorruption:
      return ExitCode::kCorruption;
    case StatusCode::kBusy:
    case StatusCode::kResourceExhausted:
    case StatusCode::kAborted:
    case StatusCode::kWouldBlock:
    case StatusCode::kUnavailable:
    case StatusCode::kDeadlineExceeded:
      return ExitCode::kUnavailable;
    case StatusCode::kNotFound:
    case StatusCode::kAlreadyExists:
    case StatusCode::kFailedPrecondition:
    case StatusCode::kCancelled:
    case StatusCode::kUnsupported:
    case StatusCode::kIoError:
    case StatusCode::kTypeMismatch:
    case StatusCode::kPermissionDenied:
    case StatusCode::kOutOfRange:
      return ExitCode::kCannotOpen;
  }
  return ExitCode::kCannotOpen;
}

void Complain(std::string_view message) {
  std::string line = "basalt: ";
  line += message;
  line += '\n';
  std::fputs(line.c_str(), stderr);
}

ExitCode Report(const Status& status) {
  const ExitCode code = ReportPlainly(status);
  if (status.code() == StatusCode::kNotFound) {
    Complain(
        "`put` and `load` make a database or keyspace that is not there; the other verbs never do");
  } else if (status.code() == StatusCode::kCorruption) {
    Complain(
        "`basalt check PATH` lists all that is wrong; `basalt repair PATH` mends a broken log");
  }
  return code;
}

ExitCode ReportPlainly(const Status& status) {
  if (!status.ok()) Complain(status.ToString());
  return ExitCodeFor(status.code());
}

}  // namespace basalt::tools
