#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace basalt::server {

/// Appends replies to a client's output, in the form of its protocol version (RESP2 or RESP3).
/// What would exceed the limit is dropped, and is_over_limit() says so: the connection is closed.
class Reply {
 public:
  explicit Reply(std::string* out, size_t limit_bytes) : out_(out), limit_(limit_bytes) {}

  void set_version(int version) noexcept { version_ = version; }
  int version() const noexcept { return version_; }

  void Simple(std::string_view text);
  void Ok() { Simple("OK"); }
  /// `text` begins with the error's code, as in "ERR syntax error". Line ends become spaces.
  void Error(std::string_view text);
  void Integer(int64_t number);
  void Bulk(std::string_view bytes);
  void Null();
  /// The null of commands that give an array.
  void NullArray();
  void Boolean(bool value);
  void Double(double number);
  void Array(size_t count) { Header('*', count); }
  /// `pairs` keys, each with its value. In RESP2 an array.
  void Map(size_t pairs) { version_ == 3 ? Header('%', pairs) : Header('*', pairs * 2); }
  void Set(size_t count) { Header(version_ == 3 ? '~' : '*', count); }
  void Push(size_t count) { Header(version_ == 3 ? '>' : '*', count); }
  /// A text for people, "txt" in RESP3.
  void Verbatim(std::string_view text);
  /// Something already in wire form.
  void Raw(std::string_view bytes) { Append(bytes); }

  size_t size() const noexcept { return out_->size(); }
  void TruncateTo(size_t size) { out_->resize(size); }
  bool is_over_limit() const noexcept { return over_limit_; }
  std::string* out() noexcept { return out_; }
  size_t limit_bytes() const noexcept { return limit_; }

 private:
  void Append(std::string_view bytes);
  void Header(char kind, size_t count);

  std::string* out_;
  size_t limit_;
  int version_ = 2;
  bool over_limit_ = false;
};

}  // namespace basalt::server
