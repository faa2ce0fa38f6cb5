#include "net/remote_writes.h"

#include <string>

#include "base/check.h"
#include "net/remote_reads.h"
#include "net/requirement.h"

namespace basalt::net {
namespace {

using Kind = Requirement::Kind;

Result<std::string> ConditionsOf(const WriteBatch& batch) {
  std::string bytes;
  BASALT_RETURN_IF_ERROR(batch.ForEachCondition([&](const WriteBatch::Requirement& condition) {
    AppendRequirement({.kind = static_cast<Kind>(condition.condition),
                       .keyspace = condition.keyspace,
                       .key = condition.key,
                       .number = condition.version},
                      &bytes);
    return Status();
  }));
  return bytes;
}

void AppendReads(const transaction::ReadSet& reads, std::string* bytes) {
  for (const transaction::ReadSet::Key& key : reads.keys()) {
    AppendRequirement({.kind = Kind::kReadKey,
                       .keyspace = static_cast<KeyspaceId>(key.keyspace),
                       .key = reads.BytesOf(key)},
                      bytes);
  }
  for (const transaction::ReadRange& range : reads.ranges()) {
    Requirement requirement{.kind = range.end ? Kind::kReadRange : Kind::kReadTail,
                            .keyspace = static_cast<KeyspaceId>(range.keyspace),
                            .key = range.begin};
    if (range.end) requirement.end = *range.end;
    AppendRequirement(requirement, bytes);
  }
  if (reads.earliest_expiry_ms() != 0) {
    AppendRequirement({.kind = Kind::kExpiry, .number = reads.earliest_expiry_ms()}, bytes);
  }
}

}  // namespace

Result<Commit> WriteRemote(Client& client, const WriteBatch& batch, const WriteOptions& options,
                           const RemoteReads& reads) {
  BASALT_RETURN_IF_ERROR(batch.status());
  if (batch.empty() && !batch.has_conditions()) return Commit();
  if (!options.may_wait) return MustWait(client);
  BASALT_ASSIGN_OR_RETURN(std::string requirements, ConditionsOf(batch));
  if (reads.reads != nullptr) AppendReads(*reads.reads, &requirements);
  Request request("BASALT.WRITE");
  request.Add(reads.snapshot);
  if (options.durability) {
    request.Add(static_cast<uint64_t>(*options.durability));
  } else {
    request.Add("-");
  }
  request.Add(batch.bytes()).Add(requirements);
  Commit commit;
  BASALT_RETURN_IF_ERROR(
      client.Call(request, Client::Repeat::kForbidden, [&](AnswerReader& answer) {
        answer.Array();
        commit.sequence = static_cast<uint64_t>(answer.Integer());
        commit.lsn = static_cast<uint64_t>(answer.Integer());
      }));
  return commit;
}

}  // namespace basalt::net
