#include "db/db_iterator.h"

#include <algorithm>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/record_iterator.h"
#include "db/core.h"
#include "table/concatenating_iterator.h"
#include "table/merging_iterator.h"

// From versions in internal order to what a user sees: the newest version of each key at or below
// the iterator's sequence number, unless that is a delete, within the bounds.
//
// Forward, the source stands at the present record, and key_ and value_ look into it. Backward, the
// source meets a key's versions oldest first, so that it has to pass all of them to know the
// newest: it stands before the present key, whose record is copied into found_key_ and
// found_value_.

namespace basalt::db {
namespace {

/// The least string greater than all that begin with `prefix`; nothing when there is none.
std::optional<std::string> PrefixEnd(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xFF) end.pop_back();
  if (end.empty()) return std::nullopt;
  end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return end;
}

class DBIterator final : public Iterator {
 public:
  DBIterator(std::shared_ptr<const Core> core, std::shared_ptr<const ReadState> state,
             base::SequenceNumber at, const ScanOptions& options,
             std::unique_ptr<base::RecordIterator> source)
      : core_(std::move(core)),
        state_(std::move(state)),
        source_(std::move(source)),
        at_(at),
        keys_only_(options.keys_only) {
    if (options.lower) lower_.emplace(*options.lower);
    if (options.upper) upper_.emplace(*options.upper);
    if (options.prefix) {
      lower_.emplace(*options.prefix);
      upper_ = PrefixEnd(*options.prefix);
    }
  }

  void SeekToFirst() override {
    Move([&] {
      if (lower_) {
        source_->Seek(*lower_, base::kNewestTag);
      } else {
        source_->SeekToFirst();
      }
      FindForward(/*skip=*/false);
    });
  }

  void SeekToLast() override {
    Move([&] {
      if (upper_) {
        source_->SeekForPrev(*upper_, base::kNewestTag);
      } else {
        source_->SeekToLast();
      }
      FindBackward();
    });
  }

  void Seek(std::string_view target) override {
    if (lower_ && target < *lower_) return SeekToFirst();
    Move([&] {
      source_->Seek(target, base::kNewestTag);
      FindForward(/*skip=*/false);
    });
  }

  void SeekForPrev(std::string_view target) override {
    if (upper_ && target >= *upper_) return SeekToLast();
    Move([&] {
      source_->SeekForPrev(target, 0);
      FindBackward();
    });
  }

  void Next() override {
    if (!valid_) return;
    Move([&] {
      if (backward_) {
        source_->Seek(found_key_, 0);
        FindForward(/*skip=*/false);
      } else {
        source_->Next();
        FindForward(/*skip=*/true);
      }
    });
  }

  void Prev() override {
    if (!valid_) return;
    Move([&] {
      // found_key_ is the present key in both directions.
      if (!backward_) source_->SeekForPrev(found_key_, base::kNewestTag);
      FindBackward();
    });
  }

 private:
  template <class Step>
  void Move(Step step) {
    status_ = core_->CheckUsable();
    if (!status_.ok()) return Invalidate();
    try {
      step();
    } catch (const std::bad_alloc&) {
      status_ = Status(StatusCode::kResourceExhausted, "out of memory while iterating");
      Invalidate();
    }
  }

  void Invalidate() {
    valid_ = false;
    key_ = {};
    value_ = {};
  }

  /// Ends the iteration: at a bound or the source's end, or at its error.
  void End() {
    if (!source_->Valid()) status_ = source_->status();
    Invalidate();
  }

  /// To the first visible record at or after the source's; `skip`: older versions of found_key_ do
  /// not count.
  void FindForward(bool skip) {
    backward_ = false;
    for (; source_->Valid(); source_->Next()) {
      const std::string_view key = source_->key();
      if (upper_ && key >= *upper_) break;
      if (base::TagSequence(source_->tag()) > at_) continue;
      if (skip && key == found_key_) continue;
      found_key_.assign(key);
      skip = true;
      if (base::TagKind(source_->tag()) == RecordKind::kPut) {
        key_ = key;
        value_ = keys_only_ ? std::string_view() : source_->value();
        valid_ = true;
        return;
      }
    }
    End();
  }

  void FindBackward() {
    backward_ = true;
    while (source_->Valid()) {
      if (lower_ && source_->key() < *lower_) break;
      found_key_.assign(source_->key());
      bool found = false;
      for (; source_->Valid() && source_->key() == found_key_; source_->Prev()) {
        if (base::TagSequence(source_->tag()) > at_) continue;
        found = base::TagKind(source_->tag()) == RecordKind::kPut;
        if (found && !keys_only_) found_value_.assign(source_->value());
      }
      if (!source_->status().ok()) break;
      if (found) {
        key_ = found_key_;
        value_ = keys_only_ ? std::string_view() : std::string_view(found_value_);
        valid_ = true;
        return;
      }
    }
    End();
  }

  const std::shared_ptr<const Core> core_;
  const std::shared_ptr<const ReadState> state_;
  const std::unique_ptr<base::RecordIterator> source_;
  const base::SequenceNumber at_;
  const bool keys_only_;
  std::optional<std::string> lower_;
  std::optional<std::string> upper_;
  bool backward_ = false;
  std::string found_key_;
  std::string found_value_;
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

Result<std::unique_ptr<base::RecordIterator>> NewSource(const ReadState& state,
                                                        base::SequenceNumber at, bool fill_cache) {
  std::vector<std::unique_ptr<base::RecordIterator>> children;
  for (const auto& generation : {state.active, state.sealed}) {
    if (generation != nullptr && !generation->table->empty()) {
      children.push_back(generation->table->NewIterator(0, at));
    }
  }
  for (const std::shared_ptr<TableFile>& file : state.version->level(0)) {
    BASALT_ASSIGN_OR_RETURN(const table::Table* table, file->Open());
    children.push_back(table->NewIterator(fill_cache));
  }
  std::vector<std::shared_ptr<const table::Table>> sorted;
  for (const std::shared_ptr<TableFile>& file : state.version->level(1)) {
    BASALT_ASSIGN_OR_RETURN(const table::Table* table, file->Open());
    sorted.push_back(table->shared_from_this());
  }
  if (!sorted.empty()) {
    children.push_back(table::NewConcatenatingIterator(std::move(sorted), fill_cache));
  }
  return table::NewMergingIterator(std::move(children));
}

}  // namespace

std::unique_ptr<Iterator> NewErrorIterator(Status status) {
  return std::make_unique<ErrorIterator>(std::move(status));
}

std::unique_ptr<Iterator> NewDBIterator(std::shared_ptr<const Core> core,
                                        const ScanOptions& options) {
  if (Status usable = core->CheckUsable(); !usable.ok()) return NewErrorIterator(usable);
  if (Status known = core->CheckKeyspace(options.keyspace); !known.ok()) {
    return NewErrorIterator(known);
  }
  if (options.prefix && (options.lower || options.upper)) {
    return NewErrorIterator(Status(StatusCode::kInvalidArgument,
                                   "ScanOptions: prefix excludes lower and upper; set one or the "
                                   "other"));
  }
  std::shared_ptr<const ReadState> state = core->State();
  base::SequenceNumber at = core->visible();
  if (options.snapshot != nullptr) {
    const auto sequence = core->SnapshotSequence(*options.snapshot);
    if (!sequence) return NewErrorIterator(sequence.error());
    at = *sequence;
  }
  auto source = NewSource(*state, at, options.fill_cache);
  if (!source) return NewErrorIterator(source.error());
  return std::make_unique<DBIterator>(std::move(core), std::move(state), at, options,
                                      std::move(*source));
}

}  // namespace basalt::db
