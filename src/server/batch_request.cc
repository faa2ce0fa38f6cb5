#include "server/batch_request.h"

#include <boost/json.hpp>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "server/dataset.h"
#include "server/http_json.h"
#include "server/http_key.h"

namespace basalt::server {
namespace {

namespace json = boost::json;

Status BadBatch(const std::string& what) {
  return {StatusCode::kInvalidArgument, "the batch cannot be read: " + what};
}

std::optional<BatchOperation::Kind> KindOf(const json::value& op) {
  if (op == "get") return BatchOperation::Kind::kGet;
  if (op == "put") return BatchOperation::Kind::kPut;
  if (op == "delete") return BatchOperation::Kind::kDelete;
  if (op == "check") return BatchOperation::Kind::kCheck;
  return std::nullopt;
}

/// Nothing: it is no whole number from `min` to `max`. 5.0 is a whole number.
std::optional<int64_t> NumberOf(const json::value& value, int64_t min, int64_t max) {
  boost::system::error_code failed;
  const auto number = value.to_number<int64_t>(failed);
  if (failed || number < min || number > max) return std::nullopt;
  return number;
}

/// One member of an operation, except `op`.
Status ReadMember(std::string_view name, const json::value& value, BatchOperation* operation) {
  const bool is_put = operation->kind == BatchOperation::Kind::kPut;
  if (name == "key" || (name == "value" && is_put)) {
    Result<std::string> bytes = BytesOfJson(value);
    if (!bytes)
      return BadBatch("'" + std::string(name) + "': " + std::string(bytes.error().message()));
    (name == "key" ? operation->key : operation->value) = *std::move(bytes);
    return {};
  }
  if (name == "ttl_ms" && is_put) {
    const std::optional<int64_t> ttl = NumberOf(value, 1, kHttpTtlMsMax);
    if (!ttl) return BadBatch("'ttl_ms' must be a number of milliseconds above 0");
    operation->ttl = std::chrono::milliseconds(*ttl);
    return {};
  }
  if (name == "if_match" || name == "if_none_match") {
    if (!value.is_string() || value.get_string().empty()) {
      return BadBatch("'" + std::string(name) + "' must be a list of entity tags, or \"*\"");
    }
    (name == "if_match" ? operation->if_match : operation->if_none_match) = value.get_string();
    return {};
  }
  return BadBatch("an operation has an unknown member, or one that its 'op' does not have");
}

Result<BatchOperation> ReadOperation(const json::value& value) {
  if (!value.is_object()) return BadBatch("an operation must be an object");
  const json::object& members = value.get_object();
  const json::value* const op = members.if_contains("op");
  const std::optional<BatchOperation::Kind> kind = op != nullptr ? KindOf(*op) : std::nullopt;
  if (!kind) return BadBatch("'op' must be get, put, delete or check");
  BatchOperation operation{.kind = *kind};
  for (const auto& [name, member] : members) {
    if (name != "op") BASALT_RETURN_IF_ERROR(ReadMember(name, member, &operation));
  }
  if (!members.contains("key")) return BadBatch("'key' is missing");
  if (*kind == BatchOperation::Kind::kPut && !members.contains("value")) {
    return BadBatch("'value' is missing");
  }
  return operation;
}

Status ReadOperations(const json::value& value, std::vector<BatchOperation>* operations) {
  if (!value.is_array() || value.get_array().empty()) {
    return BadBatch("'operations' must be an array with at least one operation");
  }
  if (value.get_array().size() > BatchRequest::kOperationsMax) {
    return BadBatch("it has more than " + std::to_string(BatchRequest::kOperationsMax) +
                    " operations");
  }
  operations->reserve(value.get_array().size());
  std::unordered_set<std::string_view> keys;
  for (const json::value& one : value.get_array()) {
    const std::string where = "operation " + std::to_string(operations->size()) + ": ";
    Result<BatchOperation> operation = ReadOperation(one);
    if (!operation) {
      return {StatusCode::kInvalidArgument, where + std::string(operation.error().message())};
    }
    operations->push_back(*std::move(operation));
    if (!keys.insert(operations->back().key).second) {
      return BadBatch(where + "another operation has the same key");
    }
  }
  return {};
}

}  // namespace

Result<BatchRequest> BatchRequest::Parse(std::string_view body) {
  boost::system::error_code failed;
  const json::value value = json::parse(body, failed);
  if (failed) return BadBatch("it is not JSON: " + failed.message());
  if (!value.is_object()) return BadBatch("it must be an object with 'operations'");
  BatchRequest request;
  for (const auto& [name, member] : value.get_object()) {
    if (name == "operations") {
      BASALT_RETURN_IF_ERROR(ReadOperations(member, &request.operations));
    } else if (name == "db") {
      const std::optional<int64_t> db = NumberOf(member, 0, kDatabases - 1);
      if (!db) return BadBatch("'db' must be a number from 0 to 15");
      request.db = static_cast<uint8_t>(*db);
    } else {
      return BadBatch("it may have 'db' and 'operations' only");
    }
  }
  if (request.operations.empty()) return BadBatch("'operations' is missing");
  return request;
}

}  // namespace basalt::server
