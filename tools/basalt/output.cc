#include "tools/basalt/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace basalt::tools {

bool Output::Write(std::string_view bytes) {
  if (reader_gone_ || !status_.ok()) return false;
  buffer_ += bytes;
  if (buffer_.size() < kBufferBytes) return true;
  return Flush().ok() && !reader_gone_;
}

Status Output::Flush() {
  std::string_view rest = buffer_;
  while (!rest.empty() && !reader_gone_ && status_.ok()) {
    const ssize_t written = ::write(fd_, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EPIPE) {
      reader_gone_ = true;
    } else if (errno != EINTR) {
      status_ = Status(StatusCode::kIoError,
                       std::string("write to standard output failed: ") + std::strerror(errno));
    }
  }
  buffer_.clear();
  return status_;
}

}  // namespace basalt::tools
