#pragma once

#include <string_view>

#include "basalt/status.h"

namespace basalt::tools {

/// What every verb ends with. The numbers are frozen: scripts test them.
enum class ExitCode : int {
  kOk = 0,
  kAbsent = 1,       ///< A key is not there.
  kUsage = 2,        ///< The command line, a key, a value or an input line cannot be meant.
  kCannotOpen = 3,   ///< No such database, or the operating system reported an error.
  kCorruption = 4,   ///< Stored bytes are not what was written.
  kUnavailable = 5,  ///< Locked by another process, or disk, memory or descriptors ran out.
};

/// The one place where a Status becomes an exit code.
ExitCode ExitCodeFor(StatusCode code) noexcept;

/// Says "basalt: <message>" on stderr.
void Complain(std::string_view message);

/// Says what went wrong on stderr, and what to do where the code alone tells it; gives the exit
/// code. An ok status is silent and gives kOk.
ExitCode Report(const Status& status);
/// The same where no database is meant: the message says all there is to say.
ExitCode ReportPlainly(const Status& status);

}  // namespace basalt::tools
