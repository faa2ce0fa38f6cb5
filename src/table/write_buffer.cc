#include "table/write_buffer.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace basalt::table {

char* WriteBuffer::Reserve(size_t size) {
  if (capacity_ - used_ < size) {
    const size_t capacity = std::max(used_ + size, kWriteBytes + kWriteBytes / 4);
    auto buffer = std::make_unique_for_overwrite<char[]>(capacity);
    if (used_ > 0) std::memcpy(buffer.get(), buffer_.get(), used_);
    buffer_ = std::move(buffer);
    capacity_ = capacity;
  }
  return buffer_.get() + used_;
}

void WriteBuffer::Append(std::string_view bytes) {
  if (bytes.size() >= kWriteBytes) {
    // Past the buffer, which would keep the size.
    if (Flush().ok()) status_ = file_->WriteAt(written_, bytes);
    written_ += bytes.size();
    return;
  }
  if (bytes.empty()) return;
  std::memcpy(Reserve(bytes.size()), bytes.data(), bytes.size());
  Commit(bytes.size());
}

Status WriteBuffer::Flush() {
  if (!status_.ok()) return status_;
  if (used_ > 0) status_ = file_->WriteAt(written_, {buffer_.get(), used_});
  written_ += used_;
  used_ = 0;
  return status_;
}

}  // namespace basalt::table
