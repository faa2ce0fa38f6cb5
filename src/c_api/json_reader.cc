#include "c_api/json_reader.h"

#include <charconv>
#include <cmath>

#include "base/check.h"
#include "c_api/json_writer.h"

namespace basalt::c_api {
namespace {

void AppendUtf8(uint32_t point, std::string* out) {
  const auto add = [&](uint32_t byte) { *out += static_cast<char>(byte); };
  if (point < 0x80) {
    add(point);
  } else if (point < 0x800) {
    add(0xC0 | point >> 6);
    add(0x80 | (point & 0x3F));
  } else if (point < 0x10000) {
    add(0xE0 | point >> 12);
    add(0x80 | (point >> 6 & 0x3F));
    add(0x80 | (point & 0x3F));
  } else {
    add(0xF0 | point >> 18);
    add(0x80 | (point >> 12 & 0x3F));
    add(0x80 | (point >> 6 & 0x3F));
    add(0x80 | (point & 0x3F));
  }
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// Bytes of the JSON number that `text` begins with; 0: it begins with none.
size_t NumberSize(std::string_view text, bool* is_integer) {
  size_t at = 0;
  const auto is = [&](char c) { return at < text.size() && text[at] == c; };
  const auto digits = [&] {
    const size_t begin = at;
    while (at < text.size() && IsDigit(text[at])) ++at;
    return at > begin;
  };
  *is_integer = true;
  if (is('-')) ++at;
  if (is('0')) {
    ++at;
  } else if (!digits()) {
    return 0;
  }
  if (is('.')) {
    *is_integer = false;
    ++at;
    if (!digits()) return 0;
  }
  if (is('e') || is('E')) {
    *is_integer = false;
    ++at;
    if (is('+') || is('-')) ++at;
    if (!digits()) return 0;
  }
  return at;
}

}  // namespace

Status JsonReader::Wrong(std::string_view expected) const {
  return Status(StatusCode::kInvalidArgument, "the JSON has something other than " +
                                                  std::string(expected) + " at byte " +
                                                  std::to_string(at_));
}

char JsonReader::Peek() {
  while (at_ < text_.size() &&
         std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) {
    ++at_;
  }
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool JsonReader::Take(char c) {
  if (Peek() != c || at_ >= text_.size()) return false;
  ++at_;
  return true;
}

Result<uint32_t> JsonReader::CodeUnit() {
  uint32_t unit = 0;
  const char* begin = text_.data() + at_;
  if (text_.size() - at_ < 4 || std::from_chars(begin, begin + 4, unit, 16).ptr != begin + 4) {
    return Wrong("four hexadecimal digits");
  }
  at_ += 4;
  return unit;
}

Status JsonReader::Escape(std::string* out) {
  static constexpr std::string_view kNames = "\"\\/bfnrt";
  static constexpr std::string_view kCharacters = "\"\\/\b\f\n\r\t";
  const char name = at_ < text_.size() ? text_[at_] : '\0';
  if (const size_t known = kNames.find(name); known != std::string_view::npos) {
    *out += kCharacters[known];
    ++at_;
    return {};
  }
  if (name != 'u') return Wrong("an escape sequence");
  ++at_;
  BASALT_ASSIGN_OR_RETURN(uint32_t point, CodeUnit());
  if (point >= 0xD800 && point < 0xE000) {
    if (point >= 0xDC00 || text_.substr(at_, 2) != "\\u") return Wrong("a pair of surrogates");
    at_ += 2;
    BASALT_ASSIGN_OR_RETURN(const uint32_t low, CodeUnit());
    if (low < 0xDC00 || low >= 0xE000) return Wrong("a pair of surrogates");
    point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
  }
  AppendUtf8(point, out);
  return {};
}

Result<std::string> JsonReader::String() {
  if (!Take('"')) return Wrong("a string");
  std::string out;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    const size_t size = CharacterSize(text_.substr(at_));
    if (size == 0) return Wrong("UTF-8");
    if (static_cast<unsigned char>(c) < 0x20)
      return Wrong("a character that is not a control character");
    if (c == '"' || c == '\\') {
      ++at_;
      if (c == '"') return out;
      BASALT_RETURN_IF_ERROR(Escape(&out));
    } else {
      out += text_.substr(at_, size);
      at_ += size;
    }
  }
  return Wrong("the end of the string");
}

Result<JsonReader::Number> JsonReader::ReadNumber() {
  Peek();
  Number number;
  const size_t size = NumberSize(text_.substr(at_), &number.is_integer);
  if (size == 0) return Wrong("a value");
  const char* begin = text_.data() + at_;
  const char* end = begin + size;
  const auto fault = std::from_chars(begin, end, number.real).ec;
  if (fault != std::errc() || !std::isfinite(number.real)) return Wrong("a number in range");
  if (number.is_integer) {
    number.is_integer = std::from_chars(begin, end, number.integer).ec == std::errc();
  }
  at_ += size;
  return number;
}

Result<int64_t> JsonReader::Integer() {
  BASALT_ASSIGN_OR_RETURN(const Number number, ReadNumber());
  if (!number.is_integer) return Wrong("an integer of 64 bits");
  return number.integer;
}

Status JsonReader::Literal(std::string_view literal) {
  Peek();
  if (text_.substr(at_, literal.size()) != literal) return Wrong(literal);
  at_ += literal.size();
  return {};
}

Status JsonReader::Elements(char close, const std::function<Status()>& element) {
  if (Take(close)) return {};
  do {
    BASALT_RETURN_IF_ERROR(element());
  } while (Take(','));
  return Take(close) ? Status() : Wrong(std::string("a comma or ") + close);
}

Status JsonReader::Object(const std::function<Status(std::string_view name)>& member) {
  if (!Take('{')) return Wrong("an object");
  return Elements('}', [&]() -> Status {
    BASALT_ASSIGN_OR_RETURN(const std::string name, String());
    if (!Take(':')) return Wrong("a colon");
    return member(name);
  });
}

Status JsonReader::Array(const std::function<Status()>& element) {
  if (!Take('[')) return Wrong("an array");
  return Elements(']', element);
}

Status JsonReader::End() {
  Peek();
  return at_ == text_.size() ? Status() : Wrong("the end");
}

}  // namespace basalt::c_api
