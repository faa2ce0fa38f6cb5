#include "server/http_target.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "server/dataset.h"
#include "server/numbers.h"

namespace basalt::server {
namespace {

constexpr size_t kParametersMax = 16;

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Status BadTarget(std::string what) { return {StatusCode::kInvalidArgument, std::move(what)}; }

Result<HttpTarget::Parameter> ParseParameter(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return BadTarget("a parameter has no value");
  BASALT_ASSIGN_OR_RETURN(std::string name, DecodePercent(text.substr(0, equals)));
  BASALT_ASSIGN_OR_RETURN(std::string value, DecodePercent(text.substr(equals + 1)));
  return HttpTarget::Parameter{.name = std::move(name), .value = std::move(value)};
}

}  // namespace

const std::string* HttpTarget::Find(std::string_view name) const noexcept {
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [&](const Parameter& one) { return one.name == name; });
  return found == parameters.end() ? nullptr : &found->value;
}

Result<std::optional<int64_t>> HttpTarget::Number(std::string_view name, int64_t min,
                                                  int64_t max) const {
  const std::string* const text = Find(name);
  if (text == nullptr) return std::optional<int64_t>();
  const std::optional<int64_t> number = ParseInteger(*text);
  if (number && *number >= min && *number <= max) return number;
  return BadTarget("the parameter '" + std::string(name) + "' must be a number from " +
                   std::to_string(min) + " to " + std::to_string(max));
}

Status HttpTarget::CheckNames(std::initializer_list<std::string_view> names) const {
  for (const Parameter& parameter : parameters) {
    if (std::find(names.begin(), names.end(), parameter.name) != names.end()) continue;
    std::string known;
    for (const std::string_view name : names) {
      known += (known.empty() ? "" : ", ") + std::string(name);
    }
    return BadTarget("a parameter is unknown: this address has " + known);
  }
  return {};
}

Result<uint8_t> HttpTarget::Database() const {
  BASALT_ASSIGN_OR_RETURN(const std::optional<int64_t> number, Number("db", 0, kDatabases - 1));
  return static_cast<uint8_t>(number.value_or(0));
}

Result<std::string> DecodePercent(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      bytes += text[i];
      continue;
    }
    if (i + 2 >= text.size() || HexValue(text[i + 1]) < 0 || HexValue(text[i + 2]) < 0) {
      return BadTarget("the address has a percent sign without two hexadecimal digits");
    }
    bytes += static_cast<char>(HexValue(text[i + 1]) * 16 + HexValue(text[i + 2]));
    i += 2;
  }
  return bytes;
}

Result<HttpTarget> ParseHttpTarget(std::string_view target) {
  HttpTarget parsed;
  const size_t mark = std::min(target.find('?'), target.size());
  parsed.path = target.substr(0, mark);
  std::string_view query = target.substr(std::min(mark + 1, target.size()));
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    BASALT_ASSIGN_OR_RETURN(HttpTarget::Parameter parameter, ParseParameter(query.substr(0, end)));
    if (parsed.Find(parameter.name) != nullptr) return BadTarget("a parameter stands twice");
    if (parsed.parameters.size() == kParametersMax) return BadTarget("too many parameters");
    parsed.parameters.push_back(std::move(parameter));
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return parsed;
}

}  // namespace basalt::server
