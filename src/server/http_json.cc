#include "server/http_json.h"

#include <utf8proc.h>

#include "base/base64.h"

namespace basalt::server {

namespace json = boost::json;

bool IsUtf8(std::string_view bytes) noexcept {
  const auto* at = reinterpret_cast<const utf8proc_uint8_t*>(bytes.data());
  auto left = static_cast<utf8proc_ssize_t>(bytes.size());
  while (left > 0) {
    utf8proc_int32_t point = 0;
    const utf8proc_ssize_t length = utf8proc_iterate(at, left, &point);
    if (length <= 0) return false;
    at += length;
    left -= length;
  }
  return true;
}

json::value JsonOfBytes(std::string_view bytes) {
  if (IsUtf8(bytes)) return json::string(bytes);
  std::string text;
  base::AppendBase64(bytes, text);
  return json::object{{"base64", text}};
}

Result<std::string> BytesOfJson(const json::value& value) {
  if (value.is_string()) return std::string(value.get_string());
  if (value.is_object() && value.get_object().size() == 1) {
    const json::value* const base64 = value.get_object().if_contains("base64");
    if (base64 != nullptr && base64->is_string()) return base::DecodeBase64(base64->get_string());
  }
  return Status(StatusCode::kInvalidArgument,
                "bytes are a string, or {\"base64\": \"...\"} if they are not UTF-8");
}

HttpResponse JsonResponse(int status, const json::value& value) {
  return {.status = status, .content_type = "application/json", .body = json::serialize(value)};
}

}  // namespace basalt::server
