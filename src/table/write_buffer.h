#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "basalt/status.h"
#include "io/file_system.h"

namespace basalt::table {

/// Appends to a file from its beginning, in large writes. The first error stays.
class WriteBuffer {
 public:
  static constexpr size_t kWriteBytes = 256 << 10;

  explicit WriteBuffer(io::File* file) : file_(file) {}

  /// Room for `size` bytes at the end; the first bytes of it become the file's by Commit.
  char* Reserve(size_t size);
  void Commit(size_t size) noexcept { used_ += size; }
  void Append(std::string_view bytes);

  /// The file offset of the next byte.
  uint64_t offset() const noexcept { return written_ + used_; }

  /// The first error of the file, if there was one.
  const Status& status() const noexcept { return status_; }

  /// Writes out what is kWriteBytes or more.
  Status MaybeFlush() { return used_ < kWriteBytes ? status_ : Flush(); }
  Status Flush();

 private:
  io::File* file_;
  uint64_t written_ = 0;
  size_t used_ = 0;
  size_t capacity_ = 0;
  std::unique_ptr<char[]> buffer_;
  Status status_;
};

}  // namespace basalt::table
