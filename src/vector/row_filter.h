#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <variant>
#include <vector>

#include "basalt/attributes.h"
#include "vector/attribute_filter.h"

// What a VectorFilter holds.

namespace basalt::vector {

/// Immutable and thread-safe, as far as a user's function is.
class RowFilter {
 public:
  struct IdPrefix {
    std::string prefix;
  };
  using Ids = std::unordered_set<std::string>;
  using Function = std::function<bool(std::string_view id, const Attributes& attributes)>;

  explicit RowFilter(AttributeFilter filter) : kind_(std::move(filter)) {}
  explicit RowFilter(Ids ids) : kind_(std::move(ids)) {}
  explicit RowFilter(IdPrefix prefix) : kind_(std::move(prefix)) {}
  explicit RowFilter(Function function) : kind_(std::move(function)) {}

  /// `attributes` are encoded and valid. Throws std::bad_alloc, and what the user's function
  /// throws.
  bool Passes(std::string_view id, std::string_view attributes) const;
  /// The ids, where it is a list of them; otherwise null.
  const Ids* ids() const noexcept { return std::get_if<Ids>(&kind_); }

 private:
  std::variant<AttributeFilter, Ids, IdPrefix, Function> kind_;
};

}  // namespace basalt::vector
