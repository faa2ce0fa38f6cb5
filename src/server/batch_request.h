#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/status.h"

namespace basalt::server {

/// One operation of a batch.
struct BatchOperation {
  enum class Kind : uint8_t { kGet, kPut, kDelete, kCheck };

  Kind kind = Kind::kGet;
  std::string key{};
  std::string value{};
  std::optional<std::chrono::milliseconds> ttl{};
  std::string if_match{};       ///< As the field of this name. Empty: no condition.
  std::string if_none_match{};  ///< The same.
};

/// The body of POST /v1/batch:
///
///   {"db": 0, "operations": [{"op": "put", "key": K, "value": V, "ttl_ms": N,
///                             "if_match": T, "if_none_match": T}, ...]}
///
/// `op` is get, put, delete or check. Only put has a value and a lifetime. K and V are bytes as in
/// http_json.h, T a list of entity tags or "*". No key stands twice.
struct BatchRequest {
  static constexpr size_t kOperationsMax = 10'000;

  uint8_t db = 0;
  std::vector<BatchOperation> operations{};

  /// InvalidArgument: it is malformed. The message names the operation.
  static Result<BatchRequest> Parse(std::string_view body);
};

}  // namespace basalt::server
