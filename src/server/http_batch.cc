#include <boost/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "server/batch_request.h"
#include "server/http_json.h"
#include "server/http_key.h"
#include "server/http_route.h"

// POST /v1/batch: several operations as one transaction (batch_request.h has their form).
//
// All keys are read first, and all conditions are checked. If one does not hold the response is 412
// with the place of the operation, and nothing changes. Then the deletions are written, and last
// the puts: a string is one record, so the versions of the keys that were put are the last ones of
// the commit, in order.

namespace basalt::server {
namespace {

namespace json = boost::json;

using Kind = BatchOperation::Kind;

/// Of values that are returned together.
constexpr size_t kValueBytesMax = size_t{16} << 20;

class Batch {
 public:
  explicit Batch(const BatchRequest& request) : request_(request) {}

  /// The response without the entity tags of puts. Nothing: it has none yet, see Finish.
  HttpResponse Run(View& view);
  /// After the commit.
  void Finish(const View& view, HttpResponse* response);

 private:
  HttpResponse ReadAll(View& view);
  json::object ReadOne(const BatchOperation& operation, Key& key);

  const BatchRequest& request_;
  std::vector<Key> keys_;  // Of each operation.
  std::vector<json::object> results_;
  size_t value_bytes_ = 0;
};

/// What an operation answers, apart from the tag of a put.
json::object Batch::ReadOne(const BatchOperation& operation, Key& key) {
  if (operation.kind == Kind::kPut) return {{"status", 204}};
  if (!key.exists) return {{"status", 404}};
  if (operation.kind == Kind::kDelete) return {{"status", 204}};
  json::object result = {{"status", 200}, {"etag", EntityTag(key.version)}};
  if (operation.kind == Kind::kCheck) return result;
  if (key.meta.type != Type::kString) {
    return {{"status", 409}, {"type", TypeName(key.meta.type)}};
  }
  value_bytes_ += key.text.size();
  result["value"] = JsonOfBytes(key.text);
  if (key.expiry) result["expiry_ms"] = key.expiry->time_since_epoch().count();
  return result;
}

HttpResponse Batch::ReadAll(View& view) {
  for (size_t i = 0; i < request_.operations.size(); ++i) {
    const BatchOperation& operation = request_.operations[i];
    Key key = view.Find(operation.key);
    if (!operation.if_match.empty() && !NamesVersion(operation.if_match, key)) {
      return Problem(412, "a key has another version, or is absent: nothing was changed", i);
    }
    if (NamesVersion(operation.if_none_match, key)) {
      return Problem(412, "a key is there, or has this version: nothing was changed", i);
    }
    results_.push_back(ReadOne(operation, key));
    if (value_bytes_ > kValueBytesMax) {
      return Problem(413, "the values of a batch have more than 16 MiB: read fewer keys", i);
    }
    // There may be 10,000 keys with megabytes each. An assignment would keep the memory.
    std::string().swap(key.text);
    keys_.push_back(std::move(key));
  }
  return {.content_type = "application/json"};
}

HttpResponse Batch::Run(View& view) {
  keys_.clear();
  results_.clear();
  value_bytes_ = 0;
  HttpResponse response = ReadAll(view);
  if (response.status != 200) return response;
  for (size_t i = 0; i < keys_.size(); ++i) {
    const bool is_put = request_.operations[i].kind == Kind::kPut;
    const bool is_replaced = is_put && keys_[i].exists && keys_[i].meta.type != Type::kString;
    if (request_.operations[i].kind == Kind::kDelete || is_replaced) view.Remove(keys_[i]);
    if (is_replaced) keys_[i].exists = false;
  }
  for (size_t i = 0; i < keys_.size(); ++i) {
    const BatchOperation& operation = request_.operations[i];
    if (operation.kind == Kind::kPut) PutString(view, &keys_[i], operation.value, operation.ttl);
  }
  return response;
}

void Batch::Finish(const View& view, HttpResponse* response) {
  if (response->status != 200) return;
  uint64_t version = view.sequence();
  for (size_t i = results_.size(); i-- > 0;) {
    if (request_.operations[i].kind == Kind::kPut) results_[i]["etag"] = EntityTag(version--);
  }
  json::array results(results_.begin(), results_.end());
  *response = JsonResponse(200, json::object{{"results", std::move(results)}});
}

}  // namespace

std::optional<HttpResponse> RunHttpBatch(const HttpCall& call) {
  if (call.mode == Mode::kLoop) return std::nullopt;
  if (Status names = call.target.CheckNames({}); !names.ok()) return ProblemOf(names);
  if (call.request.body.size() > kJsonBytesMax) return Problem(413, "the batch is above 8 MiB");
  const Result<BatchRequest> request = BatchRequest::Parse(call.request.body);
  if (!request) return ProblemOf(request.error());
  for (size_t i = 0; i < request->operations.size(); ++i) {
    const BatchOperation& operation = request->operations[i];
    const bool writes = operation.kind == Kind::kPut || operation.kind == Kind::kDelete;
    if (!call.user->MayReach(operation.key) || !call.MayDo(writes ? kRightWrite : kRightRead)) {
      return Problem(403, "this user may not do that with this key", i);
    }
  }
  Batch batch(*request);
  return InHttpTransaction(
      call, request->db, [&](View& view) { return batch.Run(view); },
      [&](const View& view, HttpResponse* response) { batch.Finish(view, response); });
}

}  // namespace basalt::server
