#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/status.h"

namespace basalt::server {

/// The target of a request, taken apart.
struct HttpTarget {
  struct Parameter {
    std::string name;
    std::string value;
  };

  std::string path;  ///< Still percent-encoded.
  std::vector<Parameter> parameters{};

  /// The value of a parameter; null: it is absent.
  const std::string* Find(std::string_view name) const noexcept;
  /// The value of a parameter as a number from `min` to `max`. Nothing: it is absent.
  /// InvalidArgument: it is no such number.
  Result<std::optional<int64_t>> Number(std::string_view name, int64_t min, int64_t max) const;
  /// InvalidArgument: a parameter has none of these names.
  Status CheckNames(std::initializer_list<std::string_view> names) const;
  /// The parameter `db`: a database of the Redis types.
  Result<uint8_t> Database() const;
};

/// InvalidArgument: a parameter has no value, stands twice, or is not percent-encoded; or there are
/// too many.
Result<HttpTarget> ParseHttpTarget(std::string_view target);

/// The bytes behind percent-encoded ones. InvalidArgument: a percent sign without two digits.
Result<std::string> DecodePercent(std::string_view text);

}  // namespace basalt::server
