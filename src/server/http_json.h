#pragma once

#include <boost/json.hpp>
#include <cstddef>
#include <string>
#include <string_view>

#include "basalt/status.h"
#include "server/http_response.h"

namespace basalt::server {

// JSON in the bodies of requests and responses. Keys and values may be any bytes: they are strings,
// or {"base64": "..."} where they are not UTF-8, as in the JSON of the command-line program.

/// The greatest body that is parsed as JSON. A number takes up to twelve times its bytes in memory.
inline constexpr size_t kJsonBytesMax = size_t{8} << 20;

bool IsUtf8(std::string_view bytes) noexcept;
/// A text for people: bytes that are not UTF-8 become U+FFFD.
std::string ReadableText(std::string_view bytes);

boost::json::value JsonOfBytes(std::string_view bytes);
/// InvalidArgument: the value has neither form.
Result<std::string> BytesOfJson(const boost::json::value& value);

HttpResponse JsonResponse(int status, const boost::json::value& value);

}  // namespace basalt::server
