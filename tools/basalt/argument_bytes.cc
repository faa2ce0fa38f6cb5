#include "tools/basalt/argument_bytes.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "basalt/write_batch.h"
#include "base/base64.h"

namespace basalt::tools {

Result<std::string> MeantBytes(const std::string& argument, bool base64) {
  if (!base64) return argument;
  Result<std::string> bytes = base::DecodeBase64(argument);
  if (bytes) return bytes;
  return Status(StatusCode::kInvalidArgument,
                "argument '" + argument + "' is " + std::string(bytes.error().message()));
}

Result<std::string> ReadValueFromStandardInput() {
  constexpr size_t kReadBytes = 64 * 1024;
  std::string bytes;
  // A string that grows as it is read would take half as much more.
  struct stat attributes{};
  if (::fstat(STDIN_FILENO, &attributes) == 0 && S_ISREG(attributes.st_mode) &&
      attributes.st_size <= static_cast<off_t>(kMaxValueBytes)) {
    bytes.reserve(static_cast<size_t>(attributes.st_size) + kReadBytes);
  }
  while (true) {
    const size_t had = bytes.size();
    bytes.resize(had + kReadBytes);
    const ssize_t got = ::read(STDIN_FILENO, bytes.data() + had, kReadBytes);
    bytes.resize(had + static_cast<size_t>(got < 0 ? 0 : got));
    if (got == 0) return bytes;
    if (got < 0 && errno != EINTR) {
      return Status(StatusCode::kIoError,
                    std::string("cannot read standard input: ") + std::strerror(errno));
    }
    if (bytes.size() > kMaxValueBytes) {
      return Status(StatusCode::kInvalidArgument, "the value on standard input is above 4 GiB - 1");
    }
  }
}

}  // namespace basalt::tools
