#include "server/openapi.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <set>
#include <string>

#include "server/http_route.h"
#include "server/numbers.h"

namespace basalt::server {
namespace {

namespace json = boost::json;

/// "GET /path" of each route and method. GET implies HEAD.
std::set<std::string> RoutedOperations() {
  std::set<std::string> operations;
  for (const HttpRoute& route : HttpRoutes()) {
    std::string_view methods = route.methods;
    while (!methods.empty()) {
      const size_t end = std::min(methods.find(", "), methods.size());
      const std::string method(methods.substr(0, end));
      if (method != "HEAD") operations.insert(method + " " + std::string(route.path));
      methods.remove_prefix(std::min(end + 2, methods.size()));
    }
  }
  return operations;
}

TEST(OpenApi, DocumentHasExactlyTheRoutesOfTheServer) {
  const json::value document = json::parse(OpenApiDocument());
  std::set<std::string> described;
  std::set<std::string> ids;
  for (const auto& [path, item] : document.at("paths").as_object()) {
    for (const auto& [method, operation] : item.as_object()) {
      if (method == "parameters") continue;
      described.insert(ToUpper(method) + " " + std::string(path));
      EXPECT_FALSE(operation.at("responses").as_object().empty()) << path;
      EXPECT_FALSE(operation.at("summary").as_string().empty()) << path;
      EXPECT_TRUE(ids.insert(std::string(operation.at("operationId").as_string())).second) << path;
    }
  }
  EXPECT_EQ(described, RoutedOperations());
  EXPECT_GE(described.size(), 12U);
}

TEST(OpenApi, RoutesWithGetHaveHeadAndAreFound) {
  for (const HttpRoute& route : HttpRoutes()) {
    EXPECT_EQ(route.methods.find("GET") == std::string_view::npos,
              route.methods.find("HEAD") == std::string_view::npos);
    std::string_view name;
    EXPECT_EQ(FindHttpRoute(route.path, &name), &route) << route.path;
  }
  std::string_view name;
  EXPECT_EQ(FindHttpRoute("/v1/keys/a/b", &name)->path, "/v1/keys/{key}");
  EXPECT_EQ(name, "a/b");
  EXPECT_EQ(FindHttpRoute("/v1/key", &name), nullptr);
}

/// The status codes that a description of an operation has.
std::set<std::string> Statuses(std::string_view path, std::string_view method) {
  std::set<std::string> statuses;
  const json::value document = json::parse(OpenApiDocument());
  for (const auto& [status, response] :
       document.at("paths").at(path).at(method).at("responses").as_object()) {
    statuses.insert(status);
  }
  return statuses;
}

TEST(OpenApi, RoutesForAnyoneNeedNoCredentials) {
  for (const HttpRoute& route : HttpRoutes()) {
    const bool is_read = route.methods.starts_with("GET");
    EXPECT_EQ(Statuses(route.path, is_read ? "get" : "post").contains("401"), !route.is_for_anyone)
        << route.path;
  }
}

}  // namespace
}  // namespace basalt::server
