#include "base/visible_iterator.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "base/merge_operator.h"
#include "base/printable_key.h"

// Forward, the source stands at the present record, or some plain puts before it, which it has
// given at once; key_ and value_ look into the record. The store is asked whether it is usable once
// for all of these. Where the present record is a merge, the source has passed what it builds on,
// and both are copies. Backward, the source meets a key's versions oldest first, so that it has to
// pass all of them to know the newest: it stands before the present key, whose record is copied,
// unless records stay where they are anyway. So the expiry is the source's, but of a merge and
// backward, where it is kept with what was merged last; plain puts have none.

namespace basalt::base {
namespace {

/// The least string greater than all that begin with `prefix`; nothing when there is none.
std::optional<std::string> PrefixEnd(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xFF) end.pop_back();
  if (end.empty()) return std::nullopt;
  end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return end;
}

class VisibleIterator final : public Iterator {
 public:
  VisibleIterator(View&& view, const ReadOptions& options)
      : view_(std::move(view)),
        keys_only_(options.keys_only),
        may_read_merged_(view_.read_merged != nullptr && !keys_only_),
        may_look_ahead_(view_.ranges == nullptr && !keys_only_) {
    if (options.lower) lower_.emplace(*options.lower);
    if (options.upper) upper_.emplace(*options.upper);
    if (options.prefix) {
      lower_.emplace(*options.prefix);
      upper_ = PrefixEnd(*options.prefix);
    }
  }

  std::optional<WallTime> expiry() const noexcept override {
    const bool is_given = ahead_ != ahead_begin_;
    const bool is_kept = backward_ || is_merged_;
    const uint64_t ms = is_given ? 0 : is_kept ? merged_.expiry_ms : source()->time_ms();
    if (ms == 0) return std::nullopt;
    return WallTime(std::chrono::milliseconds(ms));
  }

  void SeekToFirst() override {
    Move([&] {
      if (lower_) {
        source()->Seek(*lower_, kNewestTag);
      } else {
        source()->SeekToFirst();
      }
      FindForward(/*skip=*/false);
    });
  }

  void SeekToLast() override {
    Move([&] {
      if (upper_) {
        source()->SeekForPrev(*upper_, kNewestTag);
      } else {
        source()->SeekToLast();
      }
      FindBackward();
    });
  }

  void Seek(std::string_view target) override {
    if (lower_ && target < *lower_) return SeekToFirst();
    Move([&] {
      source()->Seek(target, kNewestTag);
      FindForward(/*skip=*/false);
    });
  }

  void SeekForPrev(std::string_view target) override {
    if (upper_ && target >= *upper_) return SeekToLast();
    Move([&] {
      source()->SeekForPrev(target, 0);
      FindBackward();
    });
  }

  void Next() override {
    if (ahead_ != ahead_end_) return ShowAhead();
    if (looks_ahead_) return NextAhead();
    NextOfAny();
  }

  void Prev() override {
    if (!valid_) return;
    Move([&] {
      // found_key_ is the present key in both directions.
      if (!backward_) source()->SeekForPrev(found_key_, kNewestTag);
      FindBackward();
    });
  }

 private:
  template <class Step>
  void Move(Step step) {
    OrWithoutMemory([&] {
      LeaveAhead();
      looks_ahead_ = false;
      // A scan may end behind its first record, and what is given has to be put together.
      steps_to_look_ = view_.records_stay ? 0 : 1;
      if (IsUsable()) step();
    });
  }
  template <class Step>
  void OrWithoutMemory(Step step) {
    try {
      step();
    } catch (const std::bad_alloc&) {
      status_ = Status(StatusCode::kResourceExhausted, "out of memory while iterating");
      Invalidate();
    }
  }

  /// False: the iteration has ended with what is wrong with the store.
  bool IsUsable() {
    if (view_.check_usable) {
      status_ = view_.check_usable();
      if (!status_.ok()) [[unlikely]]
        Invalidate();
    } else if (!status_.ok()) {
      status_ = Status();
    }
    return status_.ok();
  }

  void Invalidate() {
    valid_ = false;
    key_ = {};
    value_ = {};
    looks_ahead_ = false;
    ahead_begin_ = ahead_ = ahead_end_ = nullptr;
  }

  /// Ends the iteration: at a bound or the source's end, or at its error.
  void End() {
    if (!source()->Valid()) status_ = source()->status();
    Invalidate();
  }

  /// A seek costs about as much as so many steps to records that no cache holds.
  static constexpr uint64_t kManyVersions = 16;
  /// So many merges of a key are worth another read of it.
  static constexpr size_t kManyMerges = 32;
  /// A source that gave nothing is asked again behind so many steps.
  static constexpr uint32_t kStepsBetweenLooks = 4;

  /// The next of the plain puts that the source has given.
  [[gnu::always_inline]] void ShowAhead() {
    const PlainPut& put = *ahead_++;
    key_ = put.key();
    value_ = put.value();
  }
  /// Gives how many of them have been shown, which the source is still to pass.
  size_t LeaveAhead() {
    const auto shown = static_cast<size_t>(ahead_ - ahead_begin_);
    if (shown != 0) Remember(key_);
    ahead_begin_ = ahead_ = ahead_end_ = nullptr;
    return shown;
  }
  /// Lets the source pass what has been shown, and give what comes next below the upper bound.
  void LookAhead() {
    const std::span<const PlainPut> ahead = source()->PlainAhead(LeaveAhead(), view_.at);
    if (ahead.empty()) return;
    ahead_begin_ = ahead_ = ahead.data();
    ahead_end_ = ahead_ + ahead.size();
    if (!upper_ || ahead.back().key() < *upper_) return;
    ahead_end_ = std::partition_point(ahead_, ahead_end_,
                                      [&](const PlainPut& put) { return put.key() < *upper_; });
  }

  [[gnu::noinline]] void NextAhead() {
    OrWithoutMemory([&] {
      if (!IsUsable()) return;
      if (steps_to_look_ == 0) {
        LookAhead();
        if (ahead_ != ahead_end_) return ShowAhead();
        steps_to_look_ = kStepsBetweenLooks;
      }
      --steps_to_look_;
      if (StepPlainly()) return;
      looks_ahead_ = false;
      FindForward(/*skip=*/true);
    });
  }
  void NextOfAny() {
    if (!valid_) return;
    Move([&] {
      if (backward_) {
        source()->Seek(found_key_, 0);
        FindForward(/*skip=*/false);
        return;
      }
      if (!is_merged_) source()->Next();
      FindForward(/*skip=*/true);
    });
  }

  /// Moves the source on by one, as most steps need no more: to a visible put of another key.
  /// False: it is not known to be one that is to be shown.
  [[gnu::always_inline]] bool StepPlainly() {
    RecordIterator& source = *view_.source;
    source.Next();
    const std::string_view key = source.key();
    const Tag tag = source.tag();
    if (!source.Valid() || TagKind(tag) != RecordKind::kPut || TagSequence(tag) > view_.at ||
        source.time_ms() != 0 || MayBeFound(key) || (upper_ && key >= *upper_)) {
      return false;
    }
    Remember(key);
    key_ = key;
    value_ = source.value();
    return true;
  }

  /// To the first visible record at or after the source's; `skip`: older versions of found_key_ do
  /// not count.
  void FindForward(bool skip) {
    backward_ = false;
    is_merged_ = false;
    uint64_t versions = 0;  // of found_key_, passed
    for (uint64_t passed = 0; source()->Valid(); PassOne(versions), ++passed) {
      if (passed == View::kManyHidden) TellOfMany();
      const std::string_view key = source()->key();
      if (upper_ && key >= *upper_) break;
      if (skip && IsFound(key)) {
        ++versions;
        continue;
      }
      versions = 0;
      if (TagSequence(source()->tag()) > view_.at) continue;
      Remember(key);
      skip = true;
      if (TagKind(source()->tag()) == RecordKind::kMerge && !IsCovered()) {
        if (ShowMerged()) return;
        continue;  // It has expired with the put below it, where the source stands.
      }
      if (IsPut()) {
        key_ = key;
        value_ = keys_only_ ? std::string_view() : source()->value();
        valid_ = true;
        looks_ahead_ = may_look_ahead_;
        return;
      }
    }
    End();
  }

  void PassOne(uint64_t versions) {
    if (versions < kManyVersions) [[likely]] {
      source()->Next();
    } else {
      source()->SkipVersions();
    }
  }

  /// The source stands at the newest visible version, a merge: passes all that it builds on, up to
  /// the put below. False: the key is not to be shown, since that has expired.
  bool ShowMerged() {
    key_copy_.assign(found_key_);
    found_key_ = key_copy_;
    merges_.clear();
    std::optional<std::string> below;
    uint64_t expiry_ms = 0;
    for (; source()->Valid() && IsFound(source()->key()) && !IsCovered(); source()->Next()) {
      if (TagKind(source()->tag()) != RecordKind::kMerge) {
        if (TagKind(source()->tag()) == RecordKind::kPut) {
          below.emplace(source()->value());
          expiry_ms = source()->time_ms();
        }
        break;
      }
      merges_.push_back({std::string(source()->value()), source()->time_ms()});
      if (merges_.size() == kManyMerges && may_read_merged_) return ShowReadMerged();
    }
    if (!source()->status().ok()) {
      End();
      return true;
    }
    if (!SetMerged(below, expiry_ms)) return true;
    if (HasExpired(merged_.expiry_ms)) return false;
    ShowMergedValue();
    return true;
  }
  /// The same without the rest of the walk: the source stands among the key's versions.
  bool ShowReadMerged() {
    bool is_there = false;
    if (!ReadMerged(&is_there)) return true;
    if (is_there) ShowMergedValue();
    return is_there;
  }
  void ShowMergedValue() {
    key_ = found_key_;
    value_ = keys_only_ ? std::string_view() : merged_.value;
    is_merged_ = true;
    valid_ = true;
  }

  /// False: the error ended the iteration.
  bool ReadMerged(bool* is_there) {
    auto read = view_.read_merged(found_key_);
    if (!read) return Refuse(read.error());
    *is_there = read->has_value();
    if (*is_there) merged_ = **std::move(read);
    return true;
  }
  bool Refuse(const Status& error) {
    status_ = Status(error.code(),
                     "key " + PrintableKey(found_key_) + ": " + std::string(error.message()));
    Invalidate();
    return false;
  }

  /// False: the error ended the iteration.
  bool SetMerged(const std::optional<std::string>& below, uint64_t expiry_ms) {
    if (keys_only_) {
      merged_.expiry_ms = MergedExpiry(merges_, expiry_ms, view_.now_ms);
      return true;
    }
    auto merged =
        ApplyMerges(merges_, below ? std::optional<std::string_view>(*below) : std::nullopt,
                    expiry_ms, view_.now_ms);
    if (!merged) return Refuse(merged.error());
    merged_ = std::move(*merged);
    return true;
  }

  void FindBackward() {
    backward_ = true;
    is_merged_ = false;
    for (uint64_t passed = 0; source()->Valid(); ++passed) {
      if (passed == View::kManyHidden) TellOfMany();
      if (lower_ && source()->key() < *lower_) break;
      Remember(source()->key());
      bool found = false;
      merges_.clear();
      std::optional<std::string> below;
      uint64_t expiry_ms = 0;
      uint64_t versions = 0;
      for (; source()->Valid() && IsFound(source()->key()); source()->Prev()) {
        if (++versions == kManyVersions && PassByNewest(&found, &expiry_ms)) {
          if (!status_.ok()) return;
          merges_.clear();
          below.reset();
          break;
        }
        const Tag tag = source()->tag();
        if (TagSequence(tag) > view_.at || IsCovered()) continue;
        if (TagKind(tag) == RecordKind::kMerge) {
          if (merges_.empty() && found) below.emplace(value_);
          merges_.push_back({std::string(source()->value()), source()->time_ms()});
          continue;
        }
        merges_.clear();
        below.reset();
        found = TagKind(tag) == RecordKind::kPut;
        expiry_ms = source()->time_ms();
        if (found) value_ = Kept(source()->value(), &value_copy_);
      }
      if (!source()->status().ok()) break;
      if (!merges_.empty()) {
        std::ranges::reverse(merges_);
        if (!SetMerged(below, below ? expiry_ms : 0)) return;
        value_ = merged_.value;
        expiry_ms = merged_.expiry_ms;
        found = true;
      }
      if (found && !HasExpired(expiry_ms)) {
        merged_.expiry_ms = expiry_ms;
        key_ = found_key_;
        if (keys_only_) value_ = {};
        valid_ = true;
        return;
      }
    }
    End();
  }

  /// Backward, among many versions of found_key_: takes the newest visible one by a seek instead of
  /// passing all, and leaves the source before the key, or at an error; merges may be read, too,
  /// and status_ is not ok if that fails. False: all versions have to be passed; the source is
  /// where it was.
  bool PassByNewest(bool* is_put, uint64_t* expiry_ms) {
    const Tag present = source()->tag();
    source()->Seek(found_key_, SeekTag(view_.at));
    if (!source()->status().ok()) return true;
    const bool counts = source()->Valid() && IsFound(source()->key()) && !IsCovered();
    if (counts && TagKind(source()->tag()) == RecordKind::kMerge) {
      if (!may_read_merged_) {
        source()->SeekForPrev(found_key_, present);
        return !source()->Valid();
      }
      if (!ReadMerged(is_put)) return true;
      value_ = merged_.value;
      *expiry_ms = merged_.expiry_ms;
      source()->SeekForPrev(found_key_, kNewestTag);
      return true;
    }
    *is_put = counts && TagKind(source()->tag()) == RecordKind::kPut;
    if (*is_put) {
      value_ = Kept(source()->value(), &value_copy_);
      *expiry_ms = source()->time_ms();
    }
    source()->SeekForPrev(found_key_, kNewestTag);
    return true;
  }

  void TellOfMany() {
    if (view_.on_many_hidden && !std::exchange(has_told_, true)) view_.on_many_hidden();
  }

  std::string_view Kept(std::string_view bytes, std::string* copy) const {
    if (view_.records_stay) return bytes;
    if (copy->size() == bytes.size()) {  // Most often so: an assignment does more than copy.
      std::copy(bytes.begin(), bytes.end(), copy->begin());
    } else {
      copy->assign(bytes);
    }
    return *copy;
  }
  void Remember(std::string_view key) { found_key_ = Kept(key, &key_copy_); }
  /// Whether it is the remembered key.
  bool IsFound(std::string_view key) const { return MayBeFound(key) && key == found_key_; }
  /// False: it is not. Neighbours in order most often differ in their last bytes.
  bool MayBeFound(std::string_view key) const {
    constexpr size_t kLast = sizeof(uint64_t);
    const size_t size = key.size();
    return size == found_key_.size() &&
           (size < kLast || Load<uint64_t>(key.data() + size - kLast) ==
                                Load<uint64_t>(found_key_.data() + size - kLast));
  }

  bool IsPut() {
    return TagKind(source()->tag()) == RecordKind::kPut && !HasExpired(source()->time_ms()) &&
           !IsCovered();
  }
  bool HasExpired(uint64_t expiry_ms) const noexcept {
    return expiry_ms != 0 && expiry_ms <= view_.now_ms;
  }
  bool IsCovered() {
    return view_.ranges != nullptr &&
           covered_.StretchOf(source()->key()).sequence > TagSequence(source()->tag());
  }
  RecordIterator* source() const noexcept { return view_.source.get(); }

  const View view_;
  RangeCoverCursor covered_{view_.ranges.get()};
  const bool keys_only_;
  const bool may_read_merged_;
  const bool may_look_ahead_;  ///< Nothing is to be asked about ranges, nothing to be left out.
  bool looks_ahead_ = false;   ///< Forward, not at a merge; and may.
  uint32_t steps_to_look_ = 0;
  // What the source has given at once: those before ahead_ have been shown, the last of them at
  // present, though the source still stands before all of them.
  const PlainPut* ahead_begin_ = nullptr;
  const PlainPut* ahead_ = nullptr;
  const PlainPut* ahead_end_ = nullptr;
  std::optional<std::string> lower_;
  std::optional<std::string> upper_;
  bool backward_ = false;
  std::string_view found_key_;  ///< Of the present record, or of the one that is looked for.
  std::string key_copy_;
  std::string value_copy_;
  bool has_told_ = false;
  bool is_merged_ = false;  ///< Forward: the source has passed the present key's newest version.
  std::vector<PendingMerge> merges_;  ///< Newest first; oldest first while gathered backward.
  MergedValue merged_;                ///< Backward, its expiry is that of any present record.
};

class ErrorIterator final : public Iterator {
 public:
  explicit ErrorIterator(Status status) { status_ = std::move(status); }
  void SeekToFirst() override {}
  void SeekToLast() override {}
  void Seek(std::string_view) override {}
  void SeekForPrev(std::string_view) override {}
  void Next() override {}
  void Prev() override {}
};

}  // namespace

std::unique_ptr<Iterator> NewErrorIterator(Status status) {
  return std::make_unique<ErrorIterator>(std::move(status));
}

Status CheckBounds(const ReadOptions& options) {
  if (!options.prefix || (!options.lower && !options.upper)) return {};
  return Status(StatusCode::kInvalidArgument,
                "ReadOptions: prefix excludes lower and upper; set one or the other");
}

std::unique_ptr<Iterator> NewVisibleIterator(View&& view, const ReadOptions& options) {
  return std::make_unique<VisibleIterator>(std::move(view), options);
}

}  // namespace basalt::base
