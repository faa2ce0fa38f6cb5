#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "vector/attribute_code.h"
#include "vector/attribute_filter.h"

// Any text as a filter, over attributes of each type: refused with a position, or evaluated to the
// same answer as its double negation.

namespace {

using basalt::vector::AttributeFilter;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view expression(reinterpret_cast<const char*>(data), size);
  static const std::string kAttributes =
      basalt::vector::EncodeAttributes(
          {{"a", true}, {"b", 7}, {"c", -0.5}, {"d", "text"}, {"lang", "en"}, {"year", 2021}})
          .value();
  const auto filter = AttributeFilter::Parse(expression);
  if (!filter) {
    BASALT_CHECK(filter.error().code() == basalt::StatusCode::kInvalidArgument);
    BASALT_CHECK(filter.error().message().find("position") != std::string_view::npos);
    return 0;
  }
  const bool passes = filter->Passes(kAttributes);
  const auto negated = AttributeFilter::Parse("not (" + std::string(expression) + ")");
  // It may be nested too deeply then.
  if (negated) BASALT_CHECK(negated->Passes(kAttributes) == !passes);
  return 0;
}
