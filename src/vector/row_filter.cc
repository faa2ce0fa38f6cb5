#include "vector/row_filter.h"

#include <memory>
#include <utility>

#include "basalt/vector_index.h"
#include "vector/attribute_code.h"

namespace basalt {
namespace vector {
namespace {

struct PassesRow {
  std::string_view id;
  std::string_view attributes;

  bool operator()(const AttributeFilter& filter) const noexcept {
    return filter.Passes(attributes);
  }
  bool operator()(const RowFilter::Ids& ids) const { return ids.contains(std::string(id)); }
  bool operator()(const RowFilter::IdPrefix& prefix) const noexcept {
    return id.starts_with(prefix.prefix);
  }
  bool operator()(const RowFilter::Function& function) const {
    return function(id, DecodeAttributes(attributes).value());
  }
};

}  // namespace

bool RowFilter::Passes(std::string_view id, std::string_view attributes) const {
  return std::visit(PassesRow{id, attributes}, kind_);
}

}  // namespace vector

Result<VectorFilter> VectorFilter::Parse(std::string_view expression) {
  auto parsed = vector::AttributeFilter::Parse(expression);
  if (!parsed) return parsed.error();
  return VectorFilter(std::make_shared<const vector::RowFilter>(*std::move(parsed)));
}

VectorFilter VectorFilter::Ids(std::vector<std::string> ids) {
  vector::RowFilter::Ids set;
  for (std::string& id : ids) set.insert(std::move(id));
  return VectorFilter(std::make_shared<const vector::RowFilter>(std::move(set)));
}

VectorFilter VectorFilter::IdPrefix(std::string prefix) {
  return VectorFilter(std::make_shared<const vector::RowFilter>(
      vector::RowFilter::IdPrefix{.prefix = std::move(prefix)}));
}

VectorFilter VectorFilter::Where(
    std::function<bool(std::string_view id, const Attributes& attributes)> passes) {
  return VectorFilter(std::make_shared<const vector::RowFilter>(std::move(passes)));
}

}  // namespace basalt
