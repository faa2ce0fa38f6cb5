#include "graph/names.h"

#include <mutex>

#include "base/check.h"
#include "base/coding.h"

namespace basalt::graph {
namespace {

Status MalformedId() {
  return Status(StatusCode::kCorruption,
                "an id in a graph's dictionary is not of 4 bytes; run basalt graph verify");
}

}  // namespace

std::optional<uint32_t> Names::FindKnown(Dictionary dictionary, std::string_view name) const {
  const std::shared_lock lock(mutex_);
  const auto& ids = known_[static_cast<size_t>(dictionary)].ids;
  const auto found = ids.find(name);
  return found == ids.end() ? std::nullopt : std::optional(found->second);
}

std::string_view Names::Remember(Dictionary dictionary, std::string_view name, uint32_t id) const {
  const std::scoped_lock lock(mutex_);
  Known& known = known_[static_cast<size_t>(dictionary)];
  const auto place = known.ids.try_emplace(std::string(name), id).first;
  return known.names.try_emplace(id, place->first).first->second;
}

Result<uint32_t> Names::Intern(Dictionary dictionary, std::string_view name) {
  if (const auto known = FindKnown(dictionary, name)) return *known;
  if (name.size() > kGraphNameBytesMax) {
    return Status(StatusCode::kInvalidArgument,
                  "a label, type or property name of " + std::to_string(name.size()) +
                      " bytes; the maximum is " + std::to_string(kGraphNameBytesMax));
  }
  uint64_t id = 0;
  const std::string counter = CounterKey(static_cast<uint8_t>(1 + static_cast<int>(dictionary)));
  const auto intern = [&](Transaction& tx) -> Status {
    BASALT_ASSIGN_OR_RETURN(const MaybeValue there,
                            tx.Get(NameIdKey(dictionary, name), {.keyspace = keyspace_}));
    if (there) {
      if (there->size() != 4) return MalformedId();
      id = base::Load<uint32_t>(there->view().data());
      return {};
    }
    BASALT_ASSIGN_OR_RETURN(const MaybeValue next, tx.Get(counter, {.keyspace = keyspace_}));
    if (next && next->size() != 8) return MalformedId();
    id = next ? base::Load<uint64_t>(next->view().data()) : 0;
    if (id > UINT32_MAX) {
      return Status(StatusCode::kResourceExhausted,
                    "a graph has 2^32 names of a kind and can "
                    "have no more");
    }
    std::string bytes;
    base::Append(&bytes, static_cast<uint32_t>(id));
    BASALT_RETURN_IF_ERROR(tx.Put(NameIdKey(dictionary, name), bytes, {.keyspace = keyspace_}));
    BASALT_RETURN_IF_ERROR(
        tx.Put(NameKey(dictionary, static_cast<uint32_t>(id)), name, {.keyspace = keyspace_}));
    bytes.clear();
    base::Append(&bytes, id + 1);
    return tx.Put(counter, bytes, {.keyspace = keyspace_});
  };
  BASALT_RETURN_IF_ERROR(Transact(*store_, intern));
  Remember(dictionary, name, static_cast<uint32_t>(id));
  return static_cast<uint32_t>(id);
}

Result<std::optional<uint32_t>> Names::Find(Dictionary dictionary, std::string_view name) const {
  if (const auto known = FindKnown(dictionary, name)) return known;
  if (name.size() > kGraphNameBytesMax) return std::nullopt;
  BASALT_ASSIGN_OR_RETURN(const MaybeValue found,
                          store_->Get(NameIdKey(dictionary, name), {.keyspace = keyspace_}));
  if (!found) return std::nullopt;
  if (found->size() != 4) return MalformedId();
  const auto id = base::Load<uint32_t>(found->view().data());
  Remember(dictionary, name, id);
  return std::optional(id);
}

Result<std::optional<uint32_t>> Names::Find(Transaction& tx, Dictionary dictionary,
                                            std::string_view name) const {
  BASALT_ASSIGN_OR_RETURN(const std::optional<uint32_t> id, Find(dictionary, name));
  if (id || name.size() > kGraphNameBytesMax) return id;
  // Read for the conflict alone: where it is there by now, the commit is refused.
  BASALT_RETURN_IF_ERROR(
      tx.Contains(NameIdKey(dictionary, name), {.keyspace = keyspace_}).status());
  return std::nullopt;
}

Result<std::string_view> Names::NameOf(Dictionary dictionary, uint32_t id) const {
  {
    const std::shared_lock lock(mutex_);
    const auto& names = known_[static_cast<size_t>(dictionary)].names;
    const auto found = names.find(id);
    if (found != names.end()) return found->second;
  }
  BASALT_ASSIGN_OR_RETURN(const MaybeValue found,
                          store_->Get(NameKey(dictionary, id), {.keyspace = keyspace_}));
  if (!found) {
    return Status(StatusCode::kCorruption, "a graph's dictionary " +
                                               std::to_string(static_cast<int>(dictionary)) +
                                               " has no name for the id " + std::to_string(id) +
                                               "; run basalt graph verify");
  }
  return Remember(dictionary, found->view(), id);
}

}  // namespace basalt::graph
