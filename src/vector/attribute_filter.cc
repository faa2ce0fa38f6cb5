#include "vector/attribute_filter.h"

#include <algorithm>
#include <charconv>
#include <compare>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/out_of_memory.h"
#include "vector/attribute_code.h"

namespace basalt::vector {
namespace {

bool IsNameStart(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool IsDigit(char c) noexcept { return c >= '0' && c <= '9'; }
bool IsNamePart(char c) noexcept { return IsNameStart(c) || IsDigit(c) || c == '.'; }
char ToLower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool IsWord(std::string_view text, std::string_view word) noexcept {
  return std::ranges::equal(text, word, {}, ToLower);
}

/// Orders an integer and a double without rounding the integer.
std::partial_ordering Order(int64_t a, double b) noexcept {
  if (b != b) return std::partial_ordering::unordered;
  if (b >= 0x1p63) return std::partial_ordering::less;
  if (b < -0x1p63) return std::partial_ordering::greater;
  const auto whole = static_cast<int64_t>(b);
  if (a != whole) return a <=> whole;
  return 0.0 <=> b - static_cast<double>(whole);
}

struct Comparison {
  template <class A, class B>
  std::partial_ordering operator()(const A& a, const B& b) const noexcept {
    constexpr bool kANumber = std::is_same_v<A, int64_t> || std::is_same_v<A, double>;
    constexpr bool kBNumber = std::is_same_v<B, int64_t> || std::is_same_v<B, double>;
    if constexpr (std::is_same_v<A, std::string_view> && std::is_same_v<B, std::string>) {
      return a.compare(b) <=> 0;
    } else if constexpr (std::is_same_v<A, int64_t> && std::is_same_v<B, double>) {
      return Order(a, b);
    } else if constexpr (std::is_same_v<A, double> && std::is_same_v<B, int64_t>) {
      return 0 <=> Order(b, a);
    } else if constexpr (std::is_same_v<A, B> && (kANumber || std::is_same_v<A, bool>)) {
      return a <=> b;
    } else {
      static_assert(!(kANumber && kBNumber));
      return std::partial_ordering::unordered;
    }
  }
};

/// Unordered: of two types, or not a number.
std::partial_ordering Order(const AttributeView& a, const AttributeValue& b) noexcept {
  return std::visit(Comparison(), a, b);
}

}  // namespace

/// Descends through the grammar. `position_` is where the next token begins, or a blank before it.
class FilterParser {
 public:
  explicit FilterParser(std::string_view text) noexcept : text_(text) {}

  Result<AttributeFilter> Parse() {
    BASALT_RETURN_IF_ERROR(ParseOr(0));
    SkipBlanks();
    if (position_ != text_.size()) return Fault("'and', 'or' or the end");
    return std::move(filter_);
  }

 private:
  using Kind = AttributeFilter::Kind;
  using Node = AttributeFilter::Node;

  Status Fault(std::string_view expected) const {
    std::string message = "the filter is not readable at position ";
    message += std::to_string(position_ + 1);
    message += ": expected ";
    message += expected;
    if (position_ < text_.size()) {
      message += ", found '";
      message += text_.substr(position_, 20);
      message += '\'';
    } else {
      message += ", but it ends";
    }
    return Status(StatusCode::kInvalidArgument, message);
  }

  void SkipBlanks() noexcept {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\t' ||
                                        text_[position_] == '\n' || text_[position_] == '\r')) {
      ++position_;
    }
  }
  char Peek() noexcept {
    SkipBlanks();
    return position_ < text_.size() ? text_[position_] : '\0';
  }
  bool Take(std::string_view token) noexcept {
    SkipBlanks();
    if (!text_.substr(position_).starts_with(token)) return false;
    position_ += token.size();
    return true;
  }
  std::string_view PeekWord() noexcept {
    SkipBlanks();
    size_t end = position_;
    if (end < text_.size() && IsNameStart(text_[end])) {
      while (end < text_.size() && IsNamePart(text_[end])) ++end;
    }
    return text_.substr(position_, end - position_);
  }
  bool TakeWord(std::string_view word) noexcept {
    if (!IsWord(PeekWord(), word)) return false;
    position_ += word.size();
    return true;
  }

  uint32_t Append(Node node) {
    filter_.nodes_.push_back(std::move(node));
    return static_cast<uint32_t>(filter_.nodes_.size() - 1);
  }
  uint32_t Last() const noexcept { return static_cast<uint32_t>(filter_.nodes_.size() - 1); }

  /// A chain of operands leans to the left and would be as deep as it is long: it counts as depth.
  template <class Operand>
  Status ParseChain(size_t depth, std::string_view word, Kind kind, const Operand& operand) {
    BASALT_RETURN_IF_ERROR(operand(depth));
    while (TakeWord(word)) {
      if (++depth > kFilterDepthMax) return TooDeep();
      const uint32_t left = Last();
      BASALT_RETURN_IF_ERROR(operand(depth));
      Append({.kind = kind, .left = left, .right = Last(), .name = {}, .literals = {}});
    }
    return Status();
  }
  Status ParseOr(size_t depth) {
    return ParseChain(depth, "or", Kind::kOr, [this](size_t next) { return ParseAnd(next); });
  }
  Status ParseAnd(size_t depth) {
    return ParseChain(depth, "and", Kind::kAnd, [this](size_t next) { return ParseTerm(next); });
  }

  Status TooDeep() const {
    return Status(StatusCode::kInvalidArgument,
                  "the filter is nested too deeply at position " + std::to_string(position_ + 1) +
                      ": at most " + std::to_string(kFilterDepthMax) +
                      " operators may apply to one another; use 'in' for many values");
  }

  Status ParseTerm(size_t depth) {
    if (depth >= kFilterDepthMax) return TooDeep();
    if (Take("(")) {
      BASALT_RETURN_IF_ERROR(ParseOr(depth + 1));
      return Take(")") ? Status() : Fault("')'");
    }
    if (TakeWord("not")) {
      BASALT_RETURN_IF_ERROR(ParseTerm(depth + 1));
      Append({.kind = Kind::kNot, .left = Last(), .right = 0, .name = {}, .literals = {}});
      return Status();
    }
    Node node{.kind = Kind::kExists, .left = 0, .right = 0, .name = {}, .literals = {}};
    const bool is_exists = TakeWord("exists");
    BASALT_ASSIGN_OR_RETURN(node.name, ParseName());
    if (!is_exists) BASALT_RETURN_IF_ERROR(ParseComparison(&node));
    Append(std::move(node));
    return Status();
  }

  Result<std::string> ParseName() {
    if (Peek() == '`') {
      const size_t end = text_.find('`', position_ + 1);
      if (end == std::string_view::npos) return Fault("a closing '`'");
      std::string name(text_.substr(position_ + 1, end - position_ - 1));
      position_ = end + 1;
      return name;
    }
    const std::string_view word = PeekWord();
    for (const std::string_view taken : {"and", "or", "not", "in", "exists", "true", "false"}) {
      if (IsWord(word, taken)) return Fault("the name of an attribute");
    }
    if (word.empty()) return Fault("the name of an attribute");
    position_ += word.size();
    return std::string(word);
  }

  Status ParseComparison(Node* node) {
    if (TakeWord("in")) {
      node->kind = Kind::kIn;
      if (!Take("(")) return Fault("'(' after 'in'");
      do {
        BASALT_RETURN_IF_ERROR(ParseLiteral(&node->literals));
      } while (Take(","));
      return Take(")") ? Status() : Fault("',' or ')'");
    }
    static constexpr std::pair<std::string_view, Kind> kOperators[] = {
        {"==", Kind::kEqual},          {"!=", Kind::kNotEqual}, {"<=", Kind::kLessOrEqual},
        {">=", Kind::kGreaterOrEqual}, {"<", Kind::kLess},      {">", Kind::kGreater}};
    for (const auto& [token, kind] : kOperators) {
      if (!Take(token)) continue;
      node->kind = kind;
      return ParseLiteral(&node->literals);
    }
    return Fault("a comparison (==, !=, <, <=, >, >=, in)");
  }

  Status ParseLiteral(std::vector<AttributeValue>* literals) {
    const char first = Peek();
    if (first == '\'' || first == '"') return ParseText(first, literals);
    if (first == '-' || first == '+' || first == '.' || IsDigit(first))
      return ParseNumber(literals);
    if (TakeWord("true")) {
      literals->emplace_back(true);
    } else if (TakeWord("false")) {
      literals->emplace_back(false);
    } else {
      return Fault("a text in quotes, a number, true or false");
    }
    return Status();
  }

  Status ParseText(char quote, std::vector<AttributeValue>* literals) {
    std::string text;
    size_t at = position_ + 1;
    for (; at < text_.size() && text_[at] != quote; ++at) {
      if (text_[at] == '\\' && at + 1 < text_.size()) ++at;
      text += text_[at];
    }
    if (at >= text_.size()) return Fault("a text with a closing quote");
    position_ = at + 1;
    literals->emplace_back(std::move(text));
    return Status();
  }

  Status ParseNumber(std::vector<AttributeValue>* literals) {
    const char* begin = text_.data() + position_;
    const char* const end = text_.data() + text_.size();
    if (*begin == '+') ++begin;
    int64_t integer = 0;
    double number = 0;
    const auto of_integer = std::from_chars(begin, end, integer);
    const auto of_double = std::from_chars(begin, end, number);
    const char* stop = of_double.ptr;
    if (of_integer.ec == std::errc() && of_integer.ptr == of_double.ptr) {
      literals->emplace_back(integer);
    } else if (of_double.ec == std::errc()) {
      literals->emplace_back(number);
    } else {
      return Fault("a number");
    }
    if (stop != end && IsNamePart(*stop)) return Fault("a number");
    position_ = static_cast<size_t>(stop - text_.data());
    return Status();
  }

  std::string_view text_;
  size_t position_ = 0;
  AttributeFilter filter_;
};

Result<AttributeFilter> AttributeFilter::Parse(std::string_view expression) {
  return base::OrOutOfMemory(
      [&]() -> Result<AttributeFilter> { return FilterParser(expression).Parse(); });
}

bool AttributeFilter::Compares(const Node& node, std::string_view attributes) noexcept {
  const std::optional<AttributeView> found = FindAttribute(attributes, node.name);
  if (!found) return false;
  if (node.kind == Kind::kExists) return true;
  if (node.kind == Kind::kIn) {
    return std::ranges::any_of(node.literals,
                               [&](const AttributeValue& one) { return Order(*found, one) == 0; });
  }
  const std::partial_ordering order = Order(*found, node.literals.front());
  if (order == std::partial_ordering::unordered) return false;
  switch (node.kind) {
    case Kind::kEqual:
      return order == 0;
    case Kind::kNotEqual:
      return order != 0;
    case Kind::kLess:
      return order < 0;
    case Kind::kLessOrEqual:
      return order <= 0;
    case Kind::kGreater:
      return order > 0;
    default:
      return order >= 0;
  }
}

bool AttributeFilter::Passes(const Node& node, std::string_view attributes) const noexcept {
  switch (node.kind) {
    case Kind::kOr:
      return Passes(nodes_[node.left], attributes) || Passes(nodes_[node.right], attributes);
    case Kind::kAnd:
      return Passes(nodes_[node.left], attributes) && Passes(nodes_[node.right], attributes);
    case Kind::kNot:
      return !Passes(nodes_[node.left], attributes);
    default:
      return Compares(node, attributes);
  }
}

}  // namespace basalt::vector
