#pragma once

#include <string>

#include "basalt/status.h"

namespace basalt::tools {

// Keys and values as a command line gives them.

/// The bytes that a command-line argument means: itself, or what it is the base64 form of.
/// InvalidArgument, with the argument, when it is no such form.
Result<std::string> MeantBytes(const std::string& argument, bool base64);

/// All of standard input, as it is. InvalidArgument when it is more than a value may have.
Result<std::string> ReadValueFromStandardInput();

}  // namespace basalt::tools
