#include "tools/basalt/line_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace basalt::tools {

namespace {

Status RefuseUtf16(std::string_view first_line, const std::string& position) {
  if (!first_line.starts_with("\xFF\xFE") && !first_line.starts_with("\xFE\xFF")) return {};
  return {StatusCode::kInvalidArgument,
          position +
              ": UTF-16, by its byte order mark; make it UTF-8 first, say by "
              "`iconv -f UTF-16 -t UTF-8`"};
}

}  // namespace

Result<LineReader> LineReader::Open(const std::string& path, ByteOrderMark mark) {
  if (path == "-") return LineReader("standard input", STDIN_FILENO, 0, mark);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return Status(StatusCode::kIoError, "cannot read " + path + ": " + std::strerror(errno));
  }
  struct stat about{};
  if (::fstat(fd, &about) == 0 && S_ISDIR(about.st_mode)) {
    ::close(fd);
    return Status(StatusCode::kIoError, "cannot read " + path + ": it is a directory");
  }
  return LineReader(path, fd, S_ISREG(about.st_mode) ? static_cast<uint64_t>(about.st_size) : 0,
                    mark);
}

LineReader::LineReader(std::string name, int fd, uint64_t total_bytes, ByteOrderMark mark)
    : name_(std::move(name)), fd_(fd), total_bytes_(total_bytes), mark_(mark) {}

LineReader::LineReader(LineReader&& other) noexcept
    : name_(std::move(other.name_)),
      fd_(std::exchange(other.fd_, -1)),
      total_bytes_(other.total_bytes_),
      mark_(other.mark_),
      consumed_bytes_(other.consumed_bytes_),
      line_number_(other.line_number_),
      buffer_(std::move(other.buffer_)),
      begin_(other.begin_) {}

LineReader::~LineReader() {
  if (fd_ > STDIN_FILENO) ::close(fd_);
}

std::string LineReader::position() const { return name_ + ":" + std::to_string(line_number_); }

Result<bool> LineReader::Fill() {
  buffer_.erase(0, begin_);
  begin_ = 0;
  const size_t had = buffer_.size();
  buffer_.resize(had + kReadBytes);
  ssize_t got = 0;
  do {
    got = ::read(fd_, buffer_.data() + had, kReadBytes);
  } while (got < 0 && errno == EINTR);
  buffer_.resize(had + static_cast<size_t>(got < 0 ? 0 : got));
  if (got < 0) {
    return Status(StatusCode::kIoError, "cannot read " + name_ + ": " + std::strerror(errno));
  }
  return got > 0;
}

Result<bool> LineReader::Next(std::string_view& line) {
  Result<bool> more = NextAsItIs(line);
  if (!more || !*more || line_number_ != 1) return more;
  if (Status refused = RefuseUtf16(line, position()); !refused.ok()) return refused;
  if (mark_ == ByteOrderMark::kSkip) line = WithoutByteOrderMark(line);
  return more;
}

Result<bool> LineReader::NextAsItIs(std::string_view& line) {
  ++line_number_;
  size_t searched = 0;  // Bytes after begin_ that hold no newline.
  while (true) {
    const size_t newline = buffer_.find('\n', begin_ + searched);
    if (newline != std::string::npos) {
      line = std::string_view(buffer_).substr(begin_, newline - begin_);
      consumed_bytes_ += line.size() + 1;
      begin_ = newline + 1;
      return true;
    }
    searched = buffer_.size() - begin_;
    if (searched > kLineBytesMax) {
      return Status(StatusCode::kInvalidArgument, position() + ": a line longer than 1 GiB");
    }
    Result<bool> more = Fill();
    if (!more) return more;
    if (!*more) {
      line = std::string_view(buffer_).substr(begin_);
      consumed_bytes_ += line.size();
      begin_ = buffer_.size();
      return !line.empty();
    }
  }
}

std::string_view WithoutByteOrderMark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

}  // namespace basalt::tools
