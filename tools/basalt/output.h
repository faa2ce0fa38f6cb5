#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "basalt/status.h"

namespace basalt::tools {

/// Standard output with its errors seen. Bytes are gathered up to kBufferBytes and written with
/// write(2). When the reader has gone away (`| head`) what follows is dropped in silence; any other
/// error stays in `status()`, and the program ends with it. One thread at a time.
///
/// SIGPIPE must be ignored for the process.
class Output {
 public:
  static constexpr size_t kBufferBytes = 64 * 1024;

  explicit Output(int fd) : fd_(fd) {}
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  /// False when nothing can be written any more: stop producing.
  bool Write(std::string_view bytes);
  /// Writes what was gathered. Ok when the reader has gone away.
  Status Flush();
  const Status& status() const noexcept { return status_; }

 private:
  int fd_;
  bool reader_gone_ = false;
  Status status_;
  std::string buffer_;
};

}  // namespace basalt::tools
