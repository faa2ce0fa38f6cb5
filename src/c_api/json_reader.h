#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "basalt/status.h"

// Reads JSON (RFC 8259) front to back; the caller says what it expects next. No part is read twice,
// and nothing is kept. A name that stands twice in an object is given twice.

namespace basalt::c_api {

class JsonReader {
 public:
  struct Number {
    bool is_integer = false;  ///< Without fraction and exponent, and in the range of int64_t.
    int64_t integer = 0;
    double real = 0;  ///< Also of an integer.
  };

  /// `text` must outlive the reader.
  explicit JsonReader(std::string_view text) : text_(text) {}

  /// The character that the next value begins with; 0 at the end.
  char Peek();
  Result<std::string> String();
  Result<Number> ReadNumber();
  Result<int64_t> Integer();
  Status Literal(std::string_view literal);
  /// Calls `member` with each name; it must read the value.
  Status Object(const std::function<Status(std::string_view name)>& member);
  /// Calls `element` before each element; it must read it.
  Status Array(const std::function<Status()>& element);
  /// Ok: nothing but space is left.
  Status End();

  /// InvalidArgument: something else was expected here.
  Status Wrong(std::string_view expected) const;

 private:
  bool Take(char c);
  Status Escape(std::string* out);
  /// Four hexadecimal digits.
  Result<uint32_t> CodeUnit();
  /// Elements up to `close`, with commas between.
  Status Elements(char close, const std::function<Status()>& element);

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace basalt::c_api
