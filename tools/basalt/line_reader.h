#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "basalt/status.h"

namespace basalt::tools {

/// Whether a reader skips the byte order mark of UTF-8, with which some programs begin a text.
enum class ByteOrderMark : uint8_t { kSkip, kKeep };

/// Lines of a file or of standard input, read with read(2) in pieces of kReadBytes. A last line
/// without a newline counts. Memory: the longest line, at most kLineBytesMax.
class LineReader {
 public:
  static constexpr size_t kReadBytes = 256 * 1024;
  static constexpr size_t kLineBytesMax = size_t{1} << 30;

  /// Opens `path`; "-" is standard input. IoError names it.
  static Result<LineReader> Open(const std::string& path,
                                 ByteOrderMark mark = ByteOrderMark::kSkip);

  LineReader(LineReader&& other) noexcept;
  LineReader& operator=(LineReader&&) = delete;
  ~LineReader();

  /// True: `line` is the next line without its newline, until the next call. False: there are no
  /// more. InvalidArgument: the line is too long, or the text begins with the byte order mark of
  /// UTF-16; IoError: it could not be read.
  Result<bool> Next(std::string_view& line);

  /// The present line's number, from 1.
  uint64_t line_number() const noexcept { return line_number_; }
  /// "<file>:<line>", for messages.
  std::string position() const;
  uint64_t consumed_bytes() const noexcept { return consumed_bytes_; }
  /// The size of a regular file; 0: not known.
  uint64_t total_bytes() const noexcept { return total_bytes_; }

 private:
  LineReader(std::string name, int fd, uint64_t total_bytes, ByteOrderMark mark);

  /// Next, but the first line still has its byte order mark.
  Result<bool> NextAsItIs(std::string_view& line);
  /// Reads one more piece behind the buffer's end; false at the end of input.
  Result<bool> Fill();

  std::string name_;
  int fd_;
  uint64_t total_bytes_;
  ByteOrderMark mark_;
  uint64_t consumed_bytes_ = 0;
  uint64_t line_number_ = 0;
  std::string buffer_;
  size_t begin_ = 0;  // Of what is not consumed in buffer_.
};

/// The text without the byte order mark of UTF-8.
std::string_view WithoutByteOrderMark(std::string_view text);

}  // namespace basalt::tools
