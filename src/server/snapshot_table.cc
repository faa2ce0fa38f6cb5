#include "server/snapshot_table.h"

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"

namespace basalt::server {
namespace {

constexpr uint64_t kFirstMax = uint64_t{1} << 62;

}  // namespace

SnapshotTable::SnapshotTable() : next_(base::RandomSeed() % kFirstMax + 1) {}

Result<uint64_t> SnapshotTable::Add(uint64_t owner, Snapshot snapshot) {
  const std::lock_guard lock(mutex_);
  const auto owned = of_owner_.find(owner);
  if (held_.size() >= kAllMax ||
      (owned != of_owner_.end() && owned->second.size() >= kOfOwnerMax)) {
    return Status(StatusCode::kResourceExhausted,
                  "take a snapshot: a connection may hold " + std::to_string(kOfOwnerMax) +
                      ", and all connections together " + std::to_string(kAllMax) +
                      "; release iterators, snapshots or transactions",
                  SubCode::kPins);
  }
  const uint64_t number = next_++;
  held_.emplace(number,
                Held{owner, std::make_shared<const Snapshot>(std::move(snapshot)), Clock::now()});
  of_owner_[owner].insert(number);
  return number;
}

Result<std::shared_ptr<const Snapshot>> SnapshotTable::Find(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = held_.find(number);
  if (found == held_.end()) {
    return Status(StatusCode::kOutOfRange,
                  "read from a snapshot: the server has released it, because its connection was "
                  "closed or it was not used for five minutes; take another one");
  }
  found->second.used = Clock::now();
  return found->second.snapshot;
}

std::shared_ptr<const Snapshot> SnapshotTable::Take(ByNumber::iterator at) {
  const auto owner = of_owner_.find(at->second.owner);
  owner->second.erase(at->first);
  if (owner->second.empty()) of_owner_.erase(owner);
  std::shared_ptr<const Snapshot> snapshot = std::move(at->second.snapshot);
  held_.erase(at);
  return snapshot;
}

void SnapshotTable::Remove(uint64_t number) {
  std::shared_ptr<const Snapshot> removed;
  const std::lock_guard lock(mutex_);
  const auto found = held_.find(number);
  if (found != held_.end()) removed = Take(found);
}

void SnapshotTable::RemoveOwner(uint64_t owner) {
  std::vector<std::shared_ptr<const Snapshot>> removed;
  const std::lock_guard lock(mutex_);
  const auto owned = of_owner_.find(owner);
  if (owned == of_owner_.end()) return;
  const std::vector<uint64_t> numbers(owned->second.begin(), owned->second.end());
  for (const uint64_t number : numbers) removed.push_back(Take(held_.find(number)));
}

void SnapshotTable::RemoveIdle(Clock::time_point now) {
  std::vector<std::shared_ptr<const Snapshot>> removed;
  const std::lock_guard lock(mutex_);
  for (auto at = held_.begin(); at != held_.end();) {
    const auto next = std::next(at);
    if (at->second.used + kIdle <= now) removed.push_back(Take(at));
    at = next;
  }
}

size_t SnapshotTable::count() const {
  const std::lock_guard lock(mutex_);
  return held_.size();
}

}  // namespace basalt::server
