#include "net/requirement.h"

#include "base/check.h"
#include "base/coding.h"

namespace basalt::net {
namespace {

using Kind = Requirement::Kind;

void AppendBytes(std::string_view bytes, std::string* out) {
  base::Append(out, static_cast<uint32_t>(bytes.size()));
  out->append(bytes);
}

}  // namespace

void AppendRequirement(const Requirement& requirement, std::string* out) {
  out->push_back(static_cast<char>(requirement.kind));
  if (requirement.kind == Kind::kExpiry) return base::Append(out, requirement.number);
  base::Append(out, static_cast<uint32_t>(requirement.keyspace));
  AppendBytes(requirement.key, out);
  if (requirement.kind == Kind::kUnchanged) base::Append(out, requirement.number);
  if (requirement.kind == Kind::kReadRange) AppendBytes(requirement.end, out);
}

Status ForEachRequirement(std::string_view bytes,
                          const std::function<Status(const Requirement& requirement)>& visit) {
  base::Decoder in(bytes);
  while (!in.AtEnd()) {
    const size_t offset = in.position();
    const auto kind = in.Read<uint8_t>();
    Requirement requirement{.kind = static_cast<Kind>(kind)};
    if (requirement.kind == Kind::kExpiry) {
      requirement.number = in.Read<uint64_t>();
    } else {
      requirement.keyspace = static_cast<KeyspaceId>(in.Read<uint32_t>());
      requirement.key = in.ReadBytes(in.Read<uint32_t>());
      if (requirement.kind == Kind::kUnchanged) requirement.number = in.Read<uint64_t>();
      if (requirement.kind == Kind::kReadRange) {
        requirement.end = in.ReadBytes(in.Read<uint32_t>());
      }
    }
    if (!in.ok() || kind < static_cast<uint8_t>(Kind::kAbsent) ||
        kind > static_cast<uint8_t>(Kind::kExpiry)) {
      return {StatusCode::kInvalidArgument,
              "the requirements of a write are malformed at byte " + std::to_string(offset)};
    }
    BASALT_RETURN_IF_ERROR(visit(requirement));
  }
  return {};
}

}  // namespace basalt::net
