#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "c_api/content_json.h"

// Any bytes: content of a node or an edge is refused as InvalidArgument, or what was accepted,
// written again, reads back as the same text.

namespace {

template <class Content, class Write>
void Check(const basalt::Result<Content>& parsed,
           basalt::Result<Content> (*parse)(std::string_view), const Write& write) {
  if (!parsed) {
    BASALT_CHECK(parsed.error().code() == basalt::StatusCode::kInvalidArgument);
    BASALT_CHECK(!parsed.error().message().empty());
    return;
  }
  const std::string text = write(*parsed);
  const basalt::Result<Content> again = parse(text);
  BASALT_CHECK(again.has_value());
  BASALT_CHECK(write(*again) == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using basalt::c_api::ParseEdgeContent;
  using basalt::c_api::ParseNodeContent;
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  Check(ParseNodeContent(json), ParseNodeContent, [](const basalt::NodeContent& content) {
    return R"({"properties":)" + basalt::c_api::PropertiesJson(content.properties) + "}";
  });
  Check(ParseEdgeContent(json), ParseEdgeContent, basalt::c_api::EdgeContentJson);
  return 0;
}
