#include "embed/json_file.h"

#include <boost/json/parse.hpp>
#include <boost/system/error_code.hpp>

namespace basalt::embed {

Result<boost::json::object> ParseObject(std::string_view text, std::string_view what) {
  boost::system::error_code error;
  boost::json::value value =
      boost::json::parse(boost::json::string_view(text.data(), text.size()), error);
  if (!error && value.is_object()) return std::move(value.get_object());
  return Status(StatusCode::kCorruption,
                "reading " + std::string(what) + ": it is not a JSON object" +
                    (error ? " (" + error.message() + ")" : std::string()));
}

std::optional<uint64_t> AsSize(const boost::json::value& value) noexcept {
  if (value.is_uint64()) return value.get_uint64();
  if (value.is_int64() && value.get_int64() >= 0) return static_cast<uint64_t>(value.get_int64());
  return std::nullopt;
}

}  // namespace basalt::embed
