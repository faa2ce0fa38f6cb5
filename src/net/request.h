#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace basalt::net {

/// A command being put together in wire form. Its parts are copied. Throws std::bad_alloc.
class Request {
 public:
  explicit Request(std::string_view command) : bytes_(kHeaderBytesMax, ' ') { Add(command); }

  Request& Add(std::string_view part) {
    AppendHeader('$', part.size());
    bytes_.append(part);
    bytes_.append("\r\n");
    ++parts_;
    return *this;
  }
  Request& Add(uint64_t number) {
    char text[20];
    const char* const end = std::to_chars(text, text + sizeof text, number).ptr;
    return Add(std::string_view(text, static_cast<size_t>(end - text)));
  }

  uint64_t parts() const noexcept { return parts_; }
  size_t size() const noexcept { return bytes_.size(); }

  /// The bytes to send; valid until the next Add.
  std::string_view bytes() const {
    char line[kHeaderBytesMax];
    const size_t size = Header('*', parts_, line);
    const size_t begin = kHeaderBytesMax - size;
    bytes_.replace(begin, size, line, size);
    return std::string_view(bytes_).substr(begin);
  }

 private:
  static constexpr size_t kHeaderBytesMax = 24;

  static size_t Header(char kind, uint64_t number, char* line) noexcept {
    *line = kind;
    char* end = std::to_chars(line + 1, line + kHeaderBytesMax - 2, number).ptr;
    *end++ = '\r';
    *end++ = '\n';
    return static_cast<size_t>(end - line);
  }
  void AppendHeader(char kind, uint64_t number) {
    char line[kHeaderBytesMax];
    bytes_.append(line, Header(kind, number, line));
  }

  mutable std::string bytes_;  // kHeaderBytesMax bytes of room, then the parts.
  uint64_t parts_ = 0;
};

}  // namespace basalt::net
