// Any bytes as what a client of HTTP sends: requests are the same in whatever pieces the bytes
// arrive, and the bodies and addresses of requests are read within their bounds.

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/check.h"
#include "server/batch_request.h"
#include "server/http.h"
#include "server/http_target.h"

namespace {

using basalt::Result;
using basalt::StatusCode;
using basalt::server::BatchRequest;
using basalt::server::DecodePercent;
using basalt::server::HttpParser;
using basalt::server::HttpRequest;
using basalt::server::HttpTarget;
using basalt::server::Users;

constexpr uint64_t kBodyBytesMax = 4096;

template <class T>
void CheckRefusal(const Result<T>& parsed) {
  BASALT_CHECK(parsed || parsed.code() == StatusCode::kInvalidArgument);
}

void CheckTarget(std::string_view text) {
  const Result<HttpTarget> target = basalt::server::ParseHttpTarget(text);
  CheckRefusal(target);
  CheckRefusal(DecodePercent(text));
  if (!target) return;
  BASALT_CHECK(text.starts_with(target->path));
  for (const HttpTarget::Parameter& one : target->parameters) {
    BASALT_CHECK(target->Find(one.name) == &one.value);
  }
  CheckRefusal(target->Database());
}

void CheckBatch(std::string_view body) {
  const Result<BatchRequest> batch = BatchRequest::Parse(body);
  CheckRefusal(batch);
  if (!batch) return;
  BASALT_CHECK(!batch->operations.empty());
  BASALT_CHECK(batch->operations.size() <= BatchRequest::kOperationsMax);
  std::set<std::string_view> keys;
  for (const auto& operation : batch->operations) BASALT_CHECK(keys.insert(operation.key).second);
}

/// What the bytes ask for.
std::string Requests(std::string_view bytes, size_t step) {
  static const Users users = Users::WithPassword({});
  HttpParser parser(users, kBodyBytesMax);
  std::string requests;
  size_t begin = 0;
  for (size_t end = 0; end < bytes.size();) {
    end = std::min(end + step, bytes.size());
    while (true) {
      size_t consumed = 0;
      const auto outcome = parser.Next(bytes.substr(begin, end - begin), &consumed);
      BASALT_CHECK(consumed <= end - begin);
      begin += consumed;
      if (outcome == HttpParser::Outcome::kError) {
        BASALT_CHECK(parser.error().starts_with("HTTP/1.1 4"));
        return requests;
      }
      if (outcome == HttpParser::Outcome::kMore) break;
      if (outcome == HttpParser::Outcome::kContinue) continue;
      const HttpRequest& request = parser.request();
      BASALT_CHECK(request.body.size() <= kBodyBytesMax);
      CheckTarget(request.target);
      CheckBatch(request.body);
      requests += request.method + " " + request.target + " " + request.host + " " + request.body;
      requests += '\n';
    }
  }
  return requests;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  CheckTarget(bytes);
  CheckBatch(bytes);
  const std::string whole = Requests(bytes, bytes.size() + 1);
  const std::string pieces = Requests(bytes, data[0] % 64 + 1);
  // An error ends either. In pieces it may be seen a request earlier or later.
  BASALT_CHECK(whole.starts_with(pieces) || pieces.starts_with(whole));
  return 0;
}
