#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "basalt/wall_time.h"

// Properties of the nodes and edges of a graph. Read PropertyValue first.

namespace basalt {

/// Bytes that are not text.
struct Bytes {
  std::string bytes;

  friend bool operator==(const Bytes&, const Bytes&) = default;
};

/// The value of a property: null, bool, a 64-bit integer, a double, a string (UTF-8 by convention,
/// not checked), bytes, a time, or a list of values. Lists may be nested up to kPropertyDepthMax.
class PropertyValue {
 public:
  using List = std::vector<PropertyValue>;
  using Variant =
      std::variant<std::monostate, bool, int64_t, double, std::string, Bytes, WallTime, List>;

  PropertyValue() = default;
  PropertyValue(bool value) : value_(value) {}
  PropertyValue(int value) : value_(int64_t{value}) {}
  PropertyValue(int64_t value) : value_(value) {}
  PropertyValue(double value) : value_(value) {}
  PropertyValue(const char* value) : value_(std::string(value)) {}
  PropertyValue(std::string value) : value_(std::move(value)) {}
  PropertyValue(Bytes value) : value_(std::move(value)) {}
  PropertyValue(WallTime value) : value_(value) {}
  PropertyValue(List value) : value_(std::move(value)) {}

  const Variant& variant() const noexcept { return value_; }
  /// Null if the value is of another type.
  template <class T>
  const T* As() const noexcept {
    return std::get_if<T>(&value_);
  }
  bool is_null() const noexcept { return value_.index() == 0; }

  friend bool operator==(const PropertyValue&, const PropertyValue&) = default;

 private:
  Variant value_;
};

inline constexpr int kPropertyDepthMax = 16;

/// Properties by name.
using Properties = std::map<std::string, PropertyValue, std::less<>>;

}  // namespace basalt
