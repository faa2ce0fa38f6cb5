#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/internal_key.h"
#include "base/merge_operator.h"
#include "base/record_iterator.h"

namespace basalt::base {

/// What a flush or compaction writes of the versions that it reads, as a walk over them.
///
/// Boundaries are the sequence numbers at which somebody reads or may come to read: the snapshots
/// and the visible number when the work began. They cut the versions into stripes: a version
/// belongs to the lowest boundary at or above its sequence. Of one key and one stripe, readers can
/// see nothing but the newest version, and what it builds on if that is a merge. So
///
///   - behind a put or delete, older versions of the same stripe go;
///   - what a range delete of the same stripe covers goes;
///   - a put that has expired becomes a delete, which hides what is older just as well; but where
///     merges may build on it, it keeps its expiry, and loses only its value;
///   - merges become one put with what they build on, once that is known and allows it; before
///     that, adjacent merges of one operator become one, where what they build on does not expire
///     between them (`expiry_below`);
///   - where nothing older lies below the output (`is_bottom`), deletes of the lowest stripe go,
///   and
///     merges build on nothing.
///
/// Versions above the last boundary stay as they are: snapshots may still be taken there.
///
/// A version that is there twice, which a compaction that was not finished leaves behind, counts
/// once. Merges never are.
class SurvivingRecords {
 public:
  /// Merges that all build on one value below the output, which may have to be looked for.
  struct Chain {
    SequenceNumber oldest = 0;
    uint64_t earliest_ms = 0;  ///< When they were written.
    uint64_t latest_ms = 0;
    size_t count = 0;
  };
  struct Rules {
    std::vector<SequenceNumber> boundaries;  ///< Ascending, at least one.
    /// The newest range delete up to `at` that covers the key; 0: there is none. They are durable
    /// no later than the output. Unset: there are none.
    std::function<SequenceNumber(std::string_view key, SequenceNumber at)> cover_of{};
    uint64_t now_ms = 0;  ///< What expires at or before it has expired.
    /// Newer versions than the source's may be merges.
    bool has_merges_above = false;
    /// Whether one of them is a merge of this key that was written before `expiry_ms`. Unset: it
    /// may be.
    std::function<bool(std::string_view key, uint64_t expiry_ms)> has_merge_above{};
    /// Whether no older version of the key lies below the output. Called with ascending keys;
    /// unset: it may.
    std::function<bool(std::string_view key)> is_bottom{};
    /// The expiry of what the chain builds on, or 0 where that does not expire between its merges;
    /// nothing: it is not known. Unset: it never is.
    std::function<std::optional<uint64_t>(std::string_view key, const Chain& chain)> expiry_below{};
  };

  /// `source` is positioned at its first record, and outlives this.
  SurvivingRecords(RecordIterator* source, Rules rules);

  /// To the next record; false: there is none, or the source has failed (its status says so).
  /// Throws std::bad_alloc.
  bool Next();

  std::string_view key() const noexcept { return key_; }
  Tag tag() const noexcept { return tag_; }
  uint64_t time_ms() const noexcept { return time_ms_; }
  std::string_view value() const noexcept { return value_; }

  /// What hides the version from later readers: the sequence of a newer one of the key that a
  /// boundary lies before, or of a range delete. 0: nothing does.
  SequenceNumber hidden_from() const noexcept { return hidden_from_; }
  /// The lowest boundary whose reader sees it.
  SequenceNumber oldest_reader() const noexcept;

  /// Versions taken from the source so far.
  uint64_t seen() const noexcept { return seen_; }

 private:
  struct Kept {
    Tag tag;
    uint64_t time_ms;
    std::string value;
  };
  /// The merges of one stripe, and what they build on.
  struct Group;
  static constexpr size_t kNoStripe = SIZE_MAX;

  size_t StripeOf(SequenceNumber sequence) const noexcept;
  SequenceNumber CoverOf(size_t stripe) const;
  SequenceNumber HiderOf(SequenceNumber sequence) const;
  bool IsBottom();
  bool IsAtPresentKey() const;
  void Advance();
  void Enter(SequenceNumber sequence) noexcept;
  bool Take();
  void TakeMerges();
  bool GatherMerges();
  std::optional<uint64_t> ExpiryUnderMerges();
  Group GroupAt(size_t begin);
  void KeepGroup(const Group& group, std::optional<uint64_t> expiry_ms);
  void KeepMerges(const Group& group, std::optional<uint64_t> expiry_ms);
  std::optional<Kept> Expired(SequenceNumber sequence, uint64_t expiry_ms, size_t stripe,
                              bool is_built_on);
  void Show(Tag tag, uint64_t time_ms, std::string_view value);
  RecordIterator* const source_;
  const Rules rules_;
  uint64_t seen_ = 0;
  bool passed_ = false;  // the source still stands at the record that is shown

  // The key whose versions are being read.
  std::string present_key_;
  bool has_key_ = false;
  SequenceNumber present_sequence_ = 0;  // of the version that was judged last; 0: none
  size_t present_stripe_ = kNoStripe;    // of that version
  SequenceNumber newer_stripes_ = 0;     // the oldest that was judged of them; 0: none was
  size_t hidden_stripe_ = kNoStripe;     // what is older in it is hidden
  int bottom_ = -1;                      // not asked yet
  bool is_built_on_ = false;             // the last record of the key that was shown is a merge

  std::vector<Kept> merges_;   // of a key: gathered, newest first
  std::vector<Kept> waiting_;  // of a key: records to be shown before the source's next one
  size_t shown_ = 0;           // of waiting_

  std::string_view key_;
  Tag tag_ = 0;
  uint64_t time_ms_ = 0;
  std::string_view value_;
  SequenceNumber hidden_from_ = 0;
};

}  // namespace basalt::base
