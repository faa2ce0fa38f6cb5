#include "db/commit_history.h"

#include <algorithm>
#include <new>

#include "base/batch_cursor.h"
#include "base/hash.h"

namespace basalt::db {
namespace {

/// Whether a record writes something in `reads`.
bool Concerns(const base::BatchCursor& record, const transaction::ReadSet& reads) noexcept {
  if (record.kind() == RecordKind::kDeleteRange) {
    return reads.CoversSomeOf(record.keyspace(), record.key(), record.value());
  }
  return reads.Covers(record.keyspace(), record.key(), base::Hash(record.key()));
}

}  // namespace

void CommitHistory::Begin(base::SequenceNumber last_sequence) noexcept {
  if (is_recording_) return;
  is_recording_ = true;
  covers_from_ = last_sequence;
}

void CommitHistory::Record(base::SequenceNumber last, std::string_view bytes) noexcept {
  if (users_.load(std::memory_order_seq_cst) == 0) return Stop();
  const auto forget_all = [&] {
    entries_.clear();
    bytes_ = 0;
    covers_from_ = last;
  };
  if (bytes.size() > kBatchBytesMax) return forget_all();
  try {
    entries_.push_back({last, std::string(bytes)});
  } catch (const std::bad_alloc&) {
    return forget_all();
  }
  bytes_ += bytes.size() + sizeof(Entry);
  while (bytes_ > kBytesMax) {
    covers_from_ = entries_.front().last;
    bytes_ -= entries_.front().bytes.size() + sizeof(Entry);
    entries_.pop_front();
  }
}

size_t CommitHistory::CountAbove(base::SequenceNumber sequence) const noexcept {
  const auto first = std::ranges::partition_point(
      entries_, [&](const Entry& entry) { return entry.last <= sequence; });
  return static_cast<size_t>(entries_.end() - first);
}

std::optional<std::string> CommitHistory::ConflictAbove(base::SequenceNumber sequence,
                                                        const transaction::ReadSet& reads) const {
  // Newest first: mostly few are above.
  for (auto entry = entries_.rbegin(); entry != entries_.rend() && entry->last > sequence;
       ++entry) {
    base::BatchCursor record(entry->bytes);
    while (record.Next()) {
      if (Concerns(record, reads)) return transaction::NameOfKey(record.key(), record.keyspace());
    }
  }
  return std::nullopt;
}

void CommitHistory::Stop() noexcept {
  is_recording_ = false;
  entries_.clear();
  bytes_ = 0;
}

}  // namespace basalt::db
