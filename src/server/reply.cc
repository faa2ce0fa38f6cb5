#include "server/reply.h"

#include <algorithm>
#include <charconv>

#include "server/numbers.h"

namespace basalt::server {

void Reply::Append(std::string_view bytes) {
  if (out_->size() + bytes.size() > limit_) {
    over_limit_ = true;
    return;
  }
  out_->append(bytes);
}

void Reply::Header(char kind, size_t count) {
  char line[24];
  line[0] = kind;
  char* end = std::to_chars(line + 1, line + sizeof line - 2, count).ptr;
  *end++ = '\r';
  *end++ = '\n';
  Append({line, static_cast<size_t>(end - line)});
}

void Reply::Simple(std::string_view text) {
  Append("+");
  Append(text);
  Append("\r\n");
}

void Reply::Error(std::string_view text) {
  std::string line(text);
  std::replace_if(line.begin(), line.end(), [](char c) { return c == '\r' || c == '\n'; }, ' ');
  Append("-");
  Append(line);
  Append("\r\n");
}

void Reply::Integer(int64_t number) {
  char line[24];
  line[0] = ':';
  char* end = std::to_chars(line + 1, line + sizeof line - 2, number).ptr;
  *end++ = '\r';
  *end++ = '\n';
  Append({line, static_cast<size_t>(end - line)});
}

void Reply::Bulk(std::string_view bytes) {
  Header('$', bytes.size());
  Append(bytes);
  Append("\r\n");
}

void Reply::Null() { Append(version_ == 3 ? "_\r\n" : "$-1\r\n"); }
void Reply::NullArray() { Append(version_ == 3 ? "_\r\n" : "*-1\r\n"); }

void Reply::Boolean(bool value) {
  if (version_ == 3) return Append(value ? "#t\r\n" : "#f\r\n");
  Integer(value ? 1 : 0);
}

void Reply::Double(double number) {
  const std::string text = FormatDouble(number);
  if (version_ != 3) return Bulk(text);
  Append(",");
  Append(text);
  Append("\r\n");
}

void Reply::Verbatim(std::string_view text) {
  if (version_ != 3) return Bulk(text);
  Header('=', text.size() + 4);
  Append("txt:");
  Append(text);
  Append("\r\n");
}

}  // namespace basalt::server
