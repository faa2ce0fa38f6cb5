#pragma once

#include <string_view>

namespace basalt::server {

/// The OpenAPI document of the routes: src/server/openapi.json, which the build puts into the
/// library. A test compares it with HttpRoutes().
std::string_view OpenApiDocument() noexcept;

}  // namespace basalt::server
