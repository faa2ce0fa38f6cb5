#include "server/http_json.h"

#include <utf8proc.h>

#include "base/base64.h"

namespace basalt::server {

namespace json = boost::json;

namespace {

/// Bytes of the character that `bytes` begins with. 0: it begins with none.
size_t CharacterBytes(std::string_view bytes) noexcept {
  utf8proc_int32_t point = 0;
  const utf8proc_ssize_t length =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(bytes.data()),
                       static_cast<utf8proc_ssize_t>(bytes.size()), &point);
  return length > 0 ? static_cast<size_t>(length) : 0;
}

}  // namespace

bool IsUtf8(std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const size_t length = CharacterBytes(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

std::string ReadableText(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const size_t length = CharacterBytes(bytes);
    text += length == 0 ? "\xEF\xBF\xBD" : bytes.substr(0, length);
    bytes.remove_prefix(length == 0 ? 1 : length);
  }
  return text;
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
