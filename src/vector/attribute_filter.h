#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/attributes.h"
#include "basalt/status.h"

// Expressions over attributes, as "lang == 'en' and year >= 2020".
//
//   expression  conjunction, then any number of: "or" conjunction
//   conjunction term, then any number of: "and" term
//   term        "not" term | "(" expression ")" | "exists" name
//               | name ("==" | "!=" | "<" | "<=" | ">" | ">=") literal
//               | name "in" "(" literal, then any number of: "," literal ")"
//   name        a letter or _, then letters, digits, _ and . | anything between ` and `
//   literal     'text' | "text" | number | true | false
//
// In a text \ stands before a character that is to be taken as it is. Words may be in capitals.
//
// A comparison of an attribute that is absent, or of another type than the literal, is false, with
// any operator. Integers and doubles are compared as numbers. "not" turns any answer round.
//
// A parsed filter is a list of nodes; a node's children stand before it, the last one is the root.
// Expressions are at most kFilterDepthMax deep, so that evaluation needs little of the stack.

namespace basalt::vector {

inline constexpr size_t kFilterDepthMax = 100;

/// Immutable and thread-safe.
class AttributeFilter {
 public:
  /// InvalidArgument: it is no such expression. The message has the position, from 1 on.
  static Result<AttributeFilter> Parse(std::string_view expression);

  /// Whether a record with these attributes (attribute_code.h, validated) passes.
  bool Passes(std::string_view attributes) const noexcept {
    return Passes(nodes_.back(), attributes);
  }

 private:
  friend class FilterParser;

  enum class Kind : uint8_t {
    kOr,
    kAnd,
    kNot,
    kExists,
    kEqual,
    kNotEqual,
    kLess,
    kLessOrEqual,
    kGreater,
    kGreaterOrEqual,
    kIn,
  };
  struct Node {
    Kind kind;
    uint32_t left = 0;  ///< A child of kOr, kAnd and kNot.
    uint32_t right = 0;
    std::string name;
    std::vector<AttributeValue> literals;
  };

  bool Passes(const Node& node, std::string_view attributes) const noexcept;
  static bool Compares(const Node& node, std::string_view attributes) noexcept;

  std::vector<Node> nodes_;
};

}  // namespace basalt::vector
