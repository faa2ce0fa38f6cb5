#include "tools/basalt/key_lines.h"

#include <charconv>
#include <system_error>
#include <utility>

#include "base/base64.h"
#include "tools/basalt/text_format.h"

namespace basalt::tools {
namespace {

Status Malformed(std::string_view what) { return {StatusCode::kInvalidArgument, what}; }

/// A mistaken text as a message shows it.
std::string Shown(std::string_view text) {
  constexpr size_t kShown = 64;
  return "'" + ToText(text.substr(0, kShown)) + (text.size() > kShown ? "...'" : "'");
}

}  // namespace

Result<uint64_t> ParseNumber(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  const std::string_view digits = text.substr(hexadecimal ? 2 : 0);
  uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, hexadecimal ? 16 : 10);
  if (error == std::errc() && end == digits.data() + digits.size()) return number;
  if (error == std::errc::result_out_of_range) return Malformed(Shown(text) + " is above 2^64 - 1");
  return Malformed(Shown(text) +
                   " is not a number: give decimal digits, or 0x and hexadecimal digits");
}

Result<bool> KeyLines::Next(Line& line) {
  std::string_view text;
  Result<bool> more = reader_.Next(text);
  if (!more || !*more) return more;
  if (text.ends_with('\r')) text.remove_suffix(1);
  if (Status parsed = Parse(text, line); !parsed.ok()) {
    return Malformed(reader_.position() + ": " + std::string(parsed.message()));
  }
  return true;
}

Status KeyLines::Parse(std::string_view text, Line& line) {
  line = {};
  const size_t tab = text.find('\t');
  if (payload_bits_ > 0) {
    if (tab == std::string_view::npos) return Malformed("no tab: a line is key, tab, number");
    if (Status parsed = ParsePayload(text.substr(tab + 1), line); !parsed.ok()) return parsed;
    text = text.substr(0, tab);
  } else if (tab != std::string_view::npos) {
    return Malformed("a tab at column " + std::to_string(tab + 1) +
                     ": a line is a key, and inside a key a tab is \\t");
  }
  if (form_ == KeyForm::kNumber) {
    const Result<uint64_t> number = ParseNumber(text);
    if (!number) return number.error();
    line.number = *number;
    return {};
  }
  if (form_ == KeyForm::kText && text.find('\\') == std::string_view::npos) {
    line.key = text;
    return {};
  }
  Result<std::string> decoded =
      form_ == KeyForm::kText ? ParseText(text) : base::DecodeBase64(text);
  if (!decoded) {
    return Malformed((form_ == KeyForm::kText ? "in the key: " : "the key is ") +
                     std::string(decoded.error().message()));
  }
  decoded_ = std::move(*decoded);
  line.key = decoded_;
  return {};
}

Status KeyLines::ParsePayload(std::string_view text, Line& line) const {
  const Result<uint64_t> payload = ParseNumber(text);
  if (!payload) return Malformed("in the payload: " + std::string(payload.error().message()));
  if (payload_bits_ < 64 && *payload >> payload_bits_ != 0) {
    return Malformed("the payload " + std::to_string(*payload) + " takes more than " +
                     std::to_string(payload_bits_) + " bits");
  }
  line.payload = *payload;
  return {};
}

}  // namespace basalt::tools
