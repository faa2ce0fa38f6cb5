#include "retrieve/posting_packer.h"

#include <algorithm>

#include "basalt/key.h"
#include "base/check.h"
#include "retrieve/posting_record.h"
#include "text/merged_postings.h"

namespace basalt::retrieve {
namespace {

constexpr size_t kSegmentPostingsMax = 4096;
constexpr size_t kPackedAtOnceMax = 1024;
constexpr uint64_t kDueChangesMin = 32;
constexpr uint64_t kDueChangesMax = 4096;
/// Terms beyond these are remembered when they are written again.
constexpr size_t kTouchedMax = 100'000;

}  // namespace

void PostingPacker::Touch(const std::string& term) {
  const std::scoped_lock lock(mutex_);
  if (touched_.size() < kTouchedMax) touched_.insert(term);
}

Status PostingPacker::PackDue() {
  std::set<std::string> terms;
  {
    const std::scoped_lock lock(mutex_);
    terms.swap(touched_);
  }
  while (!terms.empty()) {
    const std::string& term = *terms.begin();
    const auto is_due = IsDue(term);
    Status packed = is_due ? Status() : is_due.error();
    if (is_due && *is_due) packed = Pack(term);
    // A conflict: somebody changes these documents now. The term is touched by that change.
    if (!packed.ok() && packed.code() != StatusCode::kAborted) {
      const std::scoped_lock lock(mutex_);
      touched_.merge(terms);
      return packed;
    }
    terms.erase(terms.begin());
  }
  return {};
}

Result<bool> PostingPacker::IsDue(std::string_view term) const {
  BASALT_ASSIGN_OR_RETURN(const MaybeValue found,
                          store_->Get(TermKey(kTermTag, term), {.keyspace = keyspace_}));
  if (!found) return false;
  BASALT_ASSIGN_OR_RETURN(const TermCounter count, DecodeTermCounter(found->view()));
  if (count.documents == 0) return true;
  return count.changes >= std::clamp(count.documents / 4, kDueChangesMin, kDueChangesMax);
}

Status PostingPacker::Pack(std::string_view term) const {
  for (bool is_more = true; is_more;) {
    BASALT_RETURN_IF_ERROR(Transact(*store_,
                                    [&](Transaction& tx) -> Status {
                                      BASALT_ASSIGN_OR_RETURN(is_more, PackSome(tx, term));
                                      return {};
                                    },
                                    {.attempts = 2}));
  }
  return {};
}

/// False: nothing is left to pack.
Result<bool> PostingPacker::PackSome(Transaction& tx, std::string_view term) const {
  bool is_all = true;
  BASALT_ASSIGN_OR_RETURN(const Unpacked unpacked, ReadUnpacked(tx, term, &is_all));
  size_t packed = 0;
  if (!unpacked.empty()) {
    BASALT_ASSIGN_OR_RETURN(const Segment segment, FindSegment(tx, term, unpacked[0].first));
    text::PostingsBuilder changes;
    for (const auto& [document, value] : unpacked) {
      if (!segment.is_last && document > segment.last_document) break;
      BASALT_ASSIGN_OR_RETURN(const PostingRecord posting, DecodePosting(value));
      changes.Add({document, posting.length, posting.positions});
      BASALT_RETURN_IF_ERROR(
          tx.Delete(PostingKey(kPostingTag, term, document), {.keyspace = keyspace_}));
      ++packed;
    }
    BASALT_RETURN_IF_ERROR(Rewrite(tx, term, segment, changes.Finish()));
  }
  is_all = is_all && packed == unpacked.size();
  BASALT_RETURN_IF_ERROR(SettleCounter(tx, term, is_all, packed));
  return !is_all;
}

/// The first 'p' records of a term. Each is tracked on its own: a record that is added meanwhile is
/// no conflict.
Result<PostingPacker::Unpacked> PostingPacker::ReadUnpacked(Transaction& tx, std::string_view term,
                                                            bool* is_all) const {
  Unpacked unpacked;
  const std::string prefix = TermKey(kPostingTag, term);
  const auto it =
      tx.NewIterator({.keyspace = keyspace_, .track = false, .prefix = prefix, .keys_only = true});
  for (it->SeekToFirst(); it->Valid() && unpacked.size() < kPackedAtOnceMax; it->Next()) {
    BASALT_ASSIGN_OR_RETURN(const uint64_t document, DocumentOf(it->key(), prefix));
    if (document == text::kNoDocument) {
      return Status(StatusCode::kCorruption, "a text index has a posting of document 2^64 - 1");
    }
    BASALT_ASSIGN_OR_RETURN(const MaybeValue value, tx.Get(it->key(), {.keyspace = keyspace_}));
    if (value) unpacked.emplace_back(document, value->ToString());
  }
  *is_all = !it->Valid();
  BASALT_RETURN_IF_ERROR(it->status());
  return unpacked;
}

/// The segment for a document: the first one that ends at or behind it; else the last one, if it
/// has room; else a new one.
Result<PostingPacker::Segment> PostingPacker::FindSegment(Transaction& tx, std::string_view term,
                                                          uint64_t document) const {
  const std::string prefix = TermKey(kSegmentTag, term);
  const KeyRange range = PrefixRange(prefix);
  const auto it = tx.NewIterator({.keyspace = keyspace_, .lower = range.begin, .upper = range.end});
  it->Seek(PostingKey(kSegmentTag, term, document));
  const bool is_last = !it->Valid();
  if (is_last) it->SeekToLast();
  Segment segment;
  if (it->Valid()) {
    BASALT_ASSIGN_OR_RETURN(const uint64_t last_document, DocumentOf(it->key(), prefix));
    segment = {last_document, std::string(it->value()), is_last};
  }
  BASALT_RETURN_IF_ERROR(it->status());
  const bool is_full = is_last && !segment.bytes.empty() &&
                       text::SegmentCursor(segment.bytes).postings() >= kSegmentPostingsMax;
  return is_full ? Segment() : segment;
}

/// Puts segments of bounded size in place of `segment` with `changes` to it.
Status PostingPacker::Rewrite(Transaction& tx, std::string_view term, const Segment& segment,
                              std::string_view changes) const {
  std::vector<std::string_view> newest_first = {changes};
  if (!segment.bytes.empty()) {
    BASALT_RETURN_IF_ERROR(
        tx.Delete(PostingKey(kSegmentTag, term, segment.last_document), {.keyspace = keyspace_}));
    newest_first.emplace_back(segment.bytes);
  }
  text::PostingsBuilder builder;
  uint64_t last_document = 0;
  const auto write = [&]() -> Status {
    return tx.Put(PostingKey(kSegmentTag, term, last_document), builder.Finish(),
                  {.keyspace = keyspace_});
  };
  const auto merged = text::OpenSegments(newest_first);
  std::vector<uint32_t> positions;
  for (size_t count = 1; merged->document() != text::kNoDocument; merged->Next(), ++count) {
    merged->ReadPositions(&positions);
    last_document = merged->document();
    builder.Add({last_document, merged->length(), positions});
    if (count % kSegmentPostingsMax == 0) BASALT_RETURN_IF_ERROR(write());
  }
  BASALT_RETURN_IF_ERROR(merged->status());
  return builder.empty() ? Status() : write();
}

/// Takes what was packed off the counter of changes. Deletes the counter of a term that no document
/// holds. The counter is read at the snapshot that the postings were read at, so it counts all that
/// were found.
Status PostingPacker::SettleCounter(Transaction& tx, std::string_view term, bool is_all,
                                    size_t packed) const {
  const std::string key = TermKey(kTermTag, term);
  BASALT_ASSIGN_OR_RETURN(const MaybeValue found,
                          tx.Get(key, {.keyspace = keyspace_, .track = false}));
  if (!found) return {};
  BASALT_ASSIGN_OR_RETURN(const TermCounter count, DecodeTermCounter(found->view()));
  if (is_all && count.documents == 0) {
    BASALT_RETURN_IF_ERROR(tx.Contains(key, {.keyspace = keyspace_}).status());  // Tracks it.
    return tx.Delete(key, {.keyspace = keyspace_});
  }
  const uint64_t settled = is_all ? count.changes : std::min<uint64_t>(count.changes, packed);
  if (settled == 0) return {};
  return tx.Merge(key, MergeOperator::kAdd, TermCounterOperand(0, -static_cast<int64_t>(settled)),
                  {.keyspace = keyspace_});
}

}  // namespace basalt::retrieve
