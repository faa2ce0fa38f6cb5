#include "transaction/own_writes.h"

#include <algorithm>

#include "base/batch_records.h"
#include "base/check.h"
#include "base/wall_time_millis.h"

namespace basalt::transaction {
namespace {

/// The value of a merge record: operator and operand.
std::string MergeValueOf(const WriteBatch::Record& record) {
  std::string value(1, static_cast<char>(record.merge_operator));
  value.append(record.value);
  return value;
}

}  // namespace

Result<base::MergedValue> OwnState::Merged(std::optional<std::string_view> stored,
                                           uint64_t stored_expiry_ms, uint64_t now_ms) const {
  BASALT_CHECK(!merges.empty());
  const std::vector<base::PendingMerge> newest_first(merges.rbegin(), merges.rend());
  if (kind == Kind::kMerges) {
    return base::ApplyMerges(newest_first, stored, stored_expiry_ms, now_ms);
  }
  std::optional<std::string_view> own;
  if (kind == Kind::kPut) own = value;
  return base::ApplyMerges(newest_first, own, base::MillisOf(expiry), now_ms);
}

void AddDeletedRange(std::string_view begin, std::string_view end, OwnWrites::Ranges* ranges) {
  auto place = ranges->upper_bound(begin);
  std::string last(end);
  if (place != ranges->begin() && std::prev(place)->second >= begin) {
    --place;
  } else {
    place = ranges->emplace_hint(place, std::string(begin), std::string());
  }
  auto next = std::next(place);
  for (; next != ranges->end() && next->first <= end; next = ranges->erase(next)) {
    last = std::max(last, next->second);
  }
  place->second = std::max(last, place->second);
}

bool OwnWrites::OfKeyspace::IsInDeletedRange(std::string_view key) const noexcept {
  const auto next = deleted.upper_bound(key);
  return next != deleted.begin() && key < std::prev(next)->second;
}

Status OwnWrites::Append(const WriteBatch& other) {
  const WriteBatch::Mark before = mark();
  batch_.Append(other);
  Status added = batch_.status();
  if (!added.ok()) batch_.TruncateTo(before);
  return added;
}

void OwnWrites::TruncateTo(const WriteBatch::Mark& mark) noexcept {
  batch_.TruncateTo(mark);
  if (applied_bytes_ <= mark.bytes) return;
  view_.clear();
  view_bytes_ = 0;
  applied_bytes_ = 0;
}

const OwnWrites::OfKeyspace* OwnWrites::Of(KeyspaceId keyspace, uint64_t now_ms) {
  if (applied_bytes_ < batch_.byte_size()) {
    const size_t from = applied_bytes_;
    const Status applied = base::ForEachRecord(
        batch_.bytes().substr(from), [&](const WriteBatch::Record& record, size_t end) -> Status {
          Apply(record, now_ms);
          applied_bytes_ = from + end;
          return {};
        });
    BASALT_CHECK(applied.ok());
  }
  const auto found = view_.find(static_cast<uint32_t>(keyspace));
  return found == view_.end() ? nullptr : &found->second;
}

void OwnWrites::Apply(const WriteBatch::Record& record, uint64_t now_ms) {
  OfKeyspace& view = view_[static_cast<uint32_t>(record.keyspace)];
  switch (record.kind) {
    case RecordKind::kPut: {
      OwnState put{.kind = OwnState::Kind::kPut,
                   .value = std::string(record.value),
                   .expiry = ExpiryOf(record, now_ms)};
      view.keys.insert_or_assign(std::string(record.key), std::move(put));
      break;
    }
    case RecordKind::kDelete:
      view.keys.insert_or_assign(std::string(record.key), OwnState());
      break;
    case RecordKind::kDeleteRange:
      AddDeletedRange(record.key, record.value, &view.deleted);
      view.keys.erase(view.keys.lower_bound(record.key), view.keys.lower_bound(record.value));
      break;
    case RecordKind::kMerge:
      ApplyMerge(record, now_ms, &view);
      break;
    default:
      BASALT_CHECK(false);  // A batch has no way to make others.
  }
  view_bytes_ += sizeof(OwnState) + record.key.size() + record.value.size();
}

void OwnWrites::ApplyMerge(const WriteBatch::Record& record, uint64_t now_ms, OfKeyspace* view) {
  auto found = view->keys.find(record.key);
  if (found == view->keys.end()) {
    OwnState state{.kind = view->IsInDeletedRange(record.key) ? OwnState::Kind::kDeleted
                                                              : OwnState::Kind::kMerges};
    found = view->keys.emplace(std::string(record.key), std::move(state)).first;
  }
  OwnState& state = found->second;
  state.merges.push_back({.value = MergeValueOf(record), .time_ms = now_ms});
  if (state.kind == OwnState::Kind::kMerges || state.merges.size() > 1) return;
  Result<base::MergedValue> merged = state.Merged(std::nullopt, 0, now_ms);
  if (!merged) return;
  state.merges.clear();
  state.kind = OwnState::Kind::kPut;
  state.value = std::move(merged->value);
  state.expiry = base::WallTimeOf(merged->expiry_ms);
}

std::optional<WallTime> OwnWrites::ExpiryOf(const WriteBatch::Record& record,
                                            uint64_t now_ms) const {
  if (record.expiry) return record.expiry;
  const std::chrono::milliseconds ttl = record.ttl ? *record.ttl : default_ttl_(record.keyspace);
  if (ttl.count() == 0) return std::nullopt;
  constexpr auto kEnd = std::chrono::milliseconds::max();
  const std::chrono::milliseconds now(static_cast<int64_t>(now_ms));
  return WallTime(ttl < kEnd - now ? now + ttl : kEnd);
}

}  // namespace basalt::transaction
