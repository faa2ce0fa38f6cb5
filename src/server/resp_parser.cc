#include "server/resp_parser.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace basalt::server {
namespace {

bool ParseCount(std::string_view text, int64_t* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || c == '\0'; }

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

char EscapeOf(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return c;
  }
}

/// Reads a quoted word behind its opening quote. False: it has no end, or a byte that is no space
/// follows it.
bool ReadQuoted(std::string_view line, size_t* at, char quote, std::string* word) {
  for (size_t i = *at; i < line.size(); ++i) {
    const char c = line[i];
    if (c == quote) {
      *at = i + 1;
      return *at == line.size() || IsSpace(line[*at]);
    }
    if (c != '\\' || i + 1 >= line.size()) {
      *word += c;
    } else if (quote == '\'') {
      if (line[i + 1] == '\'') ++i;
      *word += line[i];
    } else if (line[i + 1] == 'x' && i + 3 < line.size() && HexDigit(line[i + 2]) >= 0 &&
               HexDigit(line[i + 3]) >= 0) {
      *word += static_cast<char>(HexDigit(line[i + 2]) * 16 + HexDigit(line[i + 3]));
      i += 3;
    } else {
      *word += EscapeOf(line[++i]);
    }
  }
  return false;
}

}  // namespace

RespParser::Outcome RespParser::Fail(std::string text) {
  error_ = "Protocol error: " + std::move(text);
  return Outcome::kError;
}

RespParser::Outcome RespParser::Next(std::string_view bytes) {
  if (!error_.empty()) return Outcome::kError;
  if (done_) {
    done_ = false;
    at_ = searched_ = wanted_ = 0;
    state_ = State::kStart;
    spans_.clear();
    args_.clear();
  }
  if (bytes.empty()) return Outcome::kMore;
  if (state_ == State::kStart && bytes.front() != '*') return Inline(bytes);
  return Bulks(bytes);
}

bool RespParser::TakeLine(std::string_view bytes, std::string_view* line, const char* too_long) {
  const size_t end = bytes.find('\n', std::max(at_, searched_));
  if (end == std::string_view::npos) {
    searched_ = bytes.size();
    if (bytes.size() - at_ > limits_.line_bytes) Fail(too_long);
    return false;
  }
  if (end - at_ > limits_.line_bytes) {
    Fail(too_long);
    return false;
  }
  *line = bytes.substr(at_, end - at_);
  if (line->ends_with('\r')) line->remove_suffix(1);
  at_ = end + 1;
  return true;
}

RespParser::Outcome RespParser::Inline(std::string_view bytes) {
  std::string_view line;
  if (!TakeLine(bytes, &line, "too big inline request")) {
    return error_.empty() ? Outcome::kMore : Outcome::kError;
  }
  if (!SplitWords(line)) return Fail("unbalanced quotes in request");
  for (const std::string& word : words_) args_.push_back(word);
  done_ = true;
  return Outcome::kCommand;
}

bool RespParser::SplitWords(std::string_view line) {
  words_.clear();
  size_t at = 0;
  while (true) {
    while (at < line.size() && IsSpace(line[at])) ++at;
    if (at == line.size()) return true;
    std::string word;
    while (at < line.size() && !IsSpace(line[at])) {
      const char c = line[at++];
      if (c != '"' && c != '\'') {
        word += c;
      } else if (ReadQuoted(line, &at, c, &word)) {
        break;
      } else {
        return false;
      }
    }
    words_.push_back(std::move(word));
  }
}

RespParser::Outcome RespParser::Bulks(std::string_view bytes) {
  std::string_view line;
  int64_t number = 0;
  if (state_ == State::kStart) {
    if (!TakeLine(bytes, &line, "too big mbulk count string")) {
      return error_.empty() ? Outcome::kMore : Outcome::kError;
    }
    if (!ParseCount(line.substr(1), &number) ||
        (number > 0 && static_cast<uint64_t>(number) > limits_.arguments)) {
      return Fail("invalid multibulk length");
    }
    bulks_left_ = number > 0 ? static_cast<uint64_t>(number) : 0;
    bulk_bytes_ = 0;
    state_ = State::kBulkLength;
  }
  while (bulks_left_ > 0) {
    if (state_ == State::kBulkLength) {
      if (!TakeLine(bytes, &line, "too big bulk count string")) {
        return error_.empty() ? Outcome::kMore : Outcome::kError;
      }
      if (!line.starts_with('$')) {
        return Fail("expected '$', got '" + std::string(line.substr(0, 1)) + "'");
      }
      if (!ParseCount(line.substr(1), &number) || number < 0 ||
          static_cast<uint64_t>(number) > limits_.argument_bytes) {
        return Fail("invalid bulk length");
      }
      bulk_bytes_ += static_cast<size_t>(number);
      if (bulk_bytes_ > limits_.command_bytes) return Fail("too big request");
      spans_.emplace_back(at_, static_cast<size_t>(number));
      state_ = State::kBulk;
    }
    const size_t end = spans_.back().first + spans_.back().second + 2;
    wanted_ = end;
    if (bytes.size() < end) return Outcome::kMore;
    if (bytes[end - 2] != '\r' || bytes[end - 1] != '\n') return Fail("invalid bulk length");
    at_ = end;
    --bulks_left_;
    state_ = State::kBulkLength;
  }
  return Complete(bytes);
}

RespParser::Outcome RespParser::Complete(std::string_view bytes) {
  args_.reserve(spans_.size());
  for (const auto& [offset, size] : spans_) args_.push_back(bytes.substr(offset, size));
  done_ = true;
  return Outcome::kCommand;
}

}  // namespace basalt::server
