#include "memtable/run_set.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace basalt::memtable {
namespace {

// Below this, copying a run costs no more than another run in every list and every search.
constexpr size_t kTinyEntries = 32;

bool BelongTogether(const SortedRun& older, size_t newer, uint64_t newer_tails) noexcept {
  return older.size() < kTinyEntries || RunSet::kSizeRatio * newer >= older.size() ||
         RunSet::kTailRatio * newer_tails >= older.size();
}

}  // namespace

std::optional<size_t> RunSet::FindMergeable(const RunList& runs) const noexcept {
  size_t total = 0;
  for (const auto& run : runs) total += run->size();
  const size_t merged_max = std::max(merged_freely_max_, total / kMergedPart);
  for (size_t i = runs.size(); i-- > 1;) {
    const SortedRun& older = *runs[i - 1];
    const SortedRun& newer = *runs[i];
    if (older.size() + newer.size() <= merged_max &&
        BelongTogether(older, newer.size(), newer.tails())) {
      return i - 1;
    }
  }
  return std::nullopt;
}

RunSet::KeyspaceRuns* RunSet::Find(uint32_t keyspace) const {
  if (latest_.second != nullptr && latest_.first == keyspace) return latest_.second;
  const auto found = keyspaces_.find(keyspace);
  if (found == keyspaces_.end()) return nullptr;
  latest_ = {keyspace, found->second.get()};
  return latest_.second;
}

void RunSet::Append(std::span<Tail> tails) {
  for (Tail& tail : tails) Prepare(&tail);
  for (const Tail& tail : tails) Commit(tail);
}

bool RunSet::AppendOne(uint32_t keyspace, const Record& record) noexcept {
  KeyspaceRuns* const held = Find(keyspace);
  if (held == nullptr || !held->fresh.is_reserved() || !held->fresh.HasRoomFor(1)) return false;
  const SortEntry entry{&record, 0};
  InsertFresh({&entry, 1}, held);
  return true;
}

// Makes what Commit puts in place. Changes nothing that shows.
void RunSet::Prepare(Tail* tail) {
  if (Find(tail->keyspace) == nullptr) {
    keyspaces_.emplace(tail->keyspace, std::make_unique<KeyspaceRuns>());
  }
  KeyspaceRuns& held = *Find(tail->keyspace);
  waiting_.reserve(keyspaces_.size());
  if (tail->entries.size() <= kInsertedMax && held.fresh.HasRoomFor(tail->entries.size())) {
    held.fresh.Reserve();
    return;
  }
  const RunView sorted{tail->entries, SortEntries(tail->entries, sorter_)};
  if (held.fresh.empty()) {
    tail->extended = Extend(held, sorted);
  } else {
    tail->extended = Extend(held, SortedRun::Merge(held.fresh.view(), sorted));
  }
}

// The runs with one more, which is not merged yet or alone in its memory.
RunSet::Extended RunSet::Extend(const KeyspaceRuns& held, RunView newest) {
  const RunList& runs = *held.runs;
  SortedRun merged;
  size_t kept = runs.size();
  while (kept > held.frozen) {
    const SortedRun& older = *runs[kept - 1];
    const size_t size = newest.entries.size();
    if (!BelongTogether(older, size, newest.tails)) break;
    if (older.size() + size > kMergedAtOnceMax) break;
    merged = SortedRun::Merge(older, newest);
    newest = merged;
    --kept;
  }
  if (kept == runs.size()) merged = SortedRun(newest);

  auto extended = std::make_shared<RunList>();
  extended->reserve(kept + 1);
  extended->assign(runs.begin(), runs.begin() + static_cast<ptrdiff_t>(kept));
  extended->push_back(std::make_shared<const SortedRun>(std::move(merged)));
  return {.runs = std::move(extended), .kept = kept};
}

void RunSet::Commit(const Tail& tail) noexcept {
  KeyspaceRuns& held = *Find(tail.keyspace);
  if (tail.extended.runs == nullptr) return InsertFresh(tail.entries, &held);
  Add(&entry_count_, tail.entries.size());
  PutInPlace(tail.keyspace, &held, tail.extended);
}

void RunSet::InsertFresh(std::span<const SortEntry> entries, KeyspaceRuns* held) noexcept {
  Add(&entry_count_, entries.size());
  if (held->fresh.empty()) Add(&run_count_, 1);
  Add(&bytes_, entries.size() * sizeof(SortEntry));
  for (const SortEntry& entry : entries) held->fresh.Insert(*entry.record);
  held->fresh.CountTail();
}

// What was fresh is in the last of the runs.
void RunSet::PutInPlace(uint32_t keyspace, KeyspaceRuns* held, const Extended& extended) noexcept {
  uint64_t bytes = extended.runs->back()->memory_bytes();
  for (size_t i = extended.kept; i < held->runs->size(); ++i) {
    bytes -= (*held->runs)[i]->memory_bytes();
  }
  Add(&bytes_, bytes - held->fresh.size() * sizeof(SortEntry));
  Add(&run_count_, extended.runs->size() - held->runs->size() - (held->fresh.empty() ? 0 : 1));
  held->fresh.Clear();
  held->runs = extended.runs;
  // Only the last run is new. While a merge is out, PutBack looks at all.
  const RunList& runs = *held->runs;
  if (held->frozen == 0 && runs.size() > 1 &&
      BelongTogether(*runs[runs.size() - 2], runs.back()->size(), runs.back()->tails())) {
    Wait(keyspace, held);  // TakeMerge looks whether it is too much
  }
}

void RunSet::Wait(uint32_t keyspace, KeyspaceRuns* held) noexcept {
  if (held->is_waiting) return;
  waiting_.push_back(keyspace);
  held->is_waiting = true;
}

std::shared_ptr<const RunList> RunSet::Of(uint32_t keyspace) const {
  const KeyspaceRuns* const held = Find(keyspace);
  return held != nullptr ? held->runs : nullptr;
}

SortedRun RunSet::FreshOf(uint32_t keyspace) const {
  const KeyspaceRuns* const held = Find(keyspace);
  if (held == nullptr || held->fresh.empty()) return {};
  return SortedRun(held->fresh.view());
}

std::vector<uint32_t> RunSet::Keyspaces() const {
  std::vector<uint32_t> ids;
  ids.reserve(keyspaces_.size());
  for (const auto& [id, held] : keyspaces_) ids.push_back(id);
  return ids;
}

std::optional<RunSet::Merge> RunSet::TakeMerge() {
  while (!waiting_.empty()) {
    const uint32_t keyspace = waiting_.back();
    KeyspaceRuns& held = *Find(keyspace);
    std::optional<Merge> merge;
    if (const auto found = FindMergeable(*held.runs)) merge = HandOut(keyspace, &held, *found);
    waiting_.pop_back();
    held.is_waiting = false;
    if (merge) return merge;
  }
  return std::nullopt;
}

std::optional<RunSet::Merge> RunSet::TakeMergeOfAll(uint32_t keyspace) {
  KeyspaceRuns* const held = Find(keyspace);
  if (held == nullptr) return std::nullopt;
  if (!held->fresh.empty()) {
    waiting_.reserve(keyspaces_.size());
    PutInPlace(keyspace, held, Extend(*held, held->fresh.view()));
  }
  if (held->runs->size() < 2) return std::nullopt;
  return HandOut(keyspace, held, held->runs->size() - 2);
}

// Two at a time, the smallest first: each merge has inputs of similar size, and what it has read is
// freed before the next one writes.
RunSet::Merge RunSet::HandOut(uint32_t keyspace, KeyspaceRuns* held, size_t first) {
  BASALT_CHECK(held->frozen == 0);
  Merge merge;
  merge.keyspace_ = keyspace;
  merge.first_ = first;
  merge.older_ = (*held->runs)[first];
  merge.newer_ = (*held->runs)[first + 1];
  merge.charged_bytes_ = merge.older_->memory_bytes() + merge.newer_->memory_bytes();
  Add(&bytes_, merge.charged_bytes_);
  held->frozen = first + 2;
  return merge;
}

void RunSet::Merge::Run() {
  merged_ = std::make_shared<const SortedRun>(SortedRun::Merge(*older_, *newer_));
}

void RunSet::PutBack(Merge* merge) {
  KeyspaceRuns& held = *Find(merge->keyspace_);
  BASALT_CHECK(held.frozen == merge->first_ + 2);
  held.frozen = 0;
  Add(&bytes_, uint64_t{0} - merge->charged_bytes_);
  if (merge->merged_ == nullptr) return;

  auto replaced = std::make_shared<RunList>(*held.runs);
  const auto first = replaced->begin() + static_cast<ptrdiff_t>(merge->first_);
  *first = std::move(merge->merged_);
  Add(&bytes_,
      (*first)->memory_bytes() - merge->older_->memory_bytes() - merge->newer_->memory_bytes());
  Add(&run_count_, uint64_t{0} - 1);
  replaced->erase(first + 1);
  held.runs = std::move(replaced);
  if (FindMergeable(*held.runs)) Wait(merge->keyspace_, &held);
}

}  // namespace basalt::memtable
