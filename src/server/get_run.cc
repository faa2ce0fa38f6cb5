#include "server/get_run.h"

#include <algorithm>

#include "server/encoding.h"
#include "server/pipeline.h"

namespace basalt::server {
namespace {

using Values = std::vector<Result<MaybeValue>>;

/// The error of a look-up. A key that is too long for a record cannot be there.
Status ErrorOf(const Result<MaybeValue>& value) {
  if (value || value.code() == StatusCode::kInvalidArgument) return {};
  return value.error();
}

void AppendReply(const Result<MaybeValue>& value, Reply& reply) {
  if (!value || !*value) return reply.Null();
  const std::string_view record = (*value)->view();
  if (!record.starts_with(static_cast<char>(Type::kString))) {
    return reply.Error(kWrongTypeError);
  }
  reply.Bulk(record.substr(1));
}

}  // namespace

bool GetRun::Admits(const Session& session, const Command* command, Args args) {
  return command != nullptr && command->name == "get" && Pipeline::Admits(session, command, args);
}

void GetRun::Add(std::string_view key, size_t command_bytes) {
  AppendMetadataKey(&keys_, db_, key);
  gets_.push_back({keys_.size(), this->command_bytes() + command_bytes});
}

Result<GetRun::Answered> GetRun::Answer(Hub& hub, Reply& reply) const {
  std::vector<std::string_view> keys;
  keys.reserve(count());
  size_t begin = 0;
  for (const Get& get : gets_) {
    keys.push_back(std::string_view(keys_).substr(begin, get.key_end - begin));
    begin = get.key_end;
  }
  Values values(count());
  Dataset& dataset = hub.dataset();
  Status status =
      dataset.db().MultiGet(keys, values, {.keyspace = dataset.keyspace(), .memory_only = true});
  for (const Result<MaybeValue>& value : values) {
    if (status.ok()) status = ErrorOf(value);
  }
  if (!status.ok()) return status;
  const size_t reply_begin = reply.size();
  Answered answered{};
  while (answered.count < count() && reply.size() - reply_begin < kPipelineReplyBytes) {
    AppendReply(values[answered.count], reply);
    answered.command_bytes = gets_[answered.count++].command_end;
  }
  return answered;
}

}  // namespace basalt::server
