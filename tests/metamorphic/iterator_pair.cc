#include "tests/metamorphic/iterator_pair.h"

#include <iterator>
#include <string_view>
#include <utility>

namespace basalt::metamorphic {
namespace {

/// The first key at or after `from` that does not begin with `prefix`.
Contents::const_iterator EndOfPrefix(const Contents& contents, Contents::const_iterator from,
                                     std::string_view prefix) {
  while (from != contents.end() && from->first.starts_with(prefix)) ++from;
  return from;
}

}  // namespace

IteratorPair::IteratorPair(std::unique_ptr<Iterator> iterator, std::shared_ptr<const Contents> view,
                           const ReadOptions& options)
    : iterator_(std::move(iterator)),
      view_(std::move(view)),
      begin_(view_->begin()),
      end_(view_->end()),
      keys_only_(options.keys_only) {
  if (options.prefix) {
    begin_ = view_->lower_bound(*options.prefix);
    end_ = EndOfPrefix(*view_, begin_, *options.prefix);
  } else {
    if (options.lower) begin_ = view_->lower_bound(*options.lower);
    if (options.upper) end_ = view_->lower_bound(*options.upper);
  }
  at_ = end_;
  unreadable_ = end_;
}

void IteratorPair::MoveTwin(const Move& move) {
  switch (move.kind) {
    case Move::Kind::kFirst:
      at_ = begin_;
      return;
    case Move::Kind::kLast:
      at_ = begin_ == end_ ? end_ : std::prev(end_);
      return;
    case Move::Kind::kNext:
      ++at_;
      return;
    case Move::Kind::kPrev:
      at_ = at_ == begin_ ? end_ : std::prev(at_);
      return;
    case Move::Kind::kSeek:
      at_ = Clamped(view_->lower_bound(move.target), move.target);
      return;
    case Move::Kind::kSeekForPrev:
      at_ = Clamped(view_->upper_bound(move.target), move.target);
      at_ = at_ == begin_ ? end_ : std::prev(at_);
      return;
  }
}

IteratorPair::Position IteratorPair::Clamped(Position position, std::string_view target) const {
  if (begin_ == end_ || target < begin_->first) return begin_;
  if (end_ != view_->end() && target >= end_->first) return end_;
  return position;
}

void IteratorPair::MoveIterator(const Move& move) {
  switch (move.kind) {
    case Move::Kind::kFirst:
      return iterator_->SeekToFirst();
    case Move::Kind::kLast:
      return iterator_->SeekToLast();
    case Move::Kind::kNext:
      return iterator_->Next();
    case Move::Kind::kPrev:
      return iterator_->Prev();
    case Move::Kind::kSeek:
      return iterator_->Seek(move.target);
    case Move::Kind::kSeekForPrev:
      return iterator_->SeekForPrev(move.target);
  }
}

Outcome IteratorPair::Compare(const Move& move) {
  const Status status = iterator_->status();
  const std::string after = "an iterator after " + ToText(move) + " ";
  const auto wrong = [&](std::string what) { return Outcome{.problem = after + std::move(what)}; };
  const bool is_told = status.code() == StatusCode::kFailedPrecondition;
  if (at_ != end_ && at_->second.is_unreadable && !keys_only_) {
    if (!status.ok() && !is_told) return {.error = status};
    if (status.ok() || iterator_->Valid()) {
      return wrong("does not tell of the merge that does not fit " + Quoted(at_->first));
    }
    unreadable_ = std::exchange(at_, end_);
    return {};
  }
  if (is_told) return wrong("answers " + status.ToString());
  if (!status.ok()) return {.error = status};
  if (at_ == end_) {
    if (!iterator_->Valid()) return {};
    return wrong("stands at " + Quoted(iterator_->key()) + ", but there is nothing");
  }
  if (!iterator_->Valid()) return wrong("is not valid, but should stand at " + Quoted(at_->first));
  if (iterator_->key() != at_->first) {
    return wrong("stands at " + Quoted(iterator_->key()) + " instead of " + Quoted(at_->first));
  }
  const std::string_view expected =
      keys_only_ ? std::string_view() : std::string_view(*at_->second.value);
  if (iterator_->value() != expected) {
    return wrong("shows at " + Quoted(at_->first) +
                 " another value than was written: " + Quoted(iterator_->value().substr(0, 24)) +
                 " instead of " + Quoted(expected.substr(0, 24)));
  }
  const auto expiry = iterator_->expiry().value_or(WallTime());
  const auto expiry_ms = static_cast<uint64_t>(expiry.time_since_epoch().count());
  if (expiry_ms != at_->second.expiry_ms) {
    return wrong("says that " + Quoted(at_->first) + " expires at " + std::to_string(expiry_ms) +
                 " ms instead of " + std::to_string(at_->second.expiry_ms) + " (0: never)");
  }
  return {};
}

Outcome IteratorPair::Apply(const Move& move) {
  unreadable_ = end_;
  MoveTwin(move);
  MoveIterator(move);
  return Compare(move);
}

Outcome IteratorPair::Apply(const std::vector<Move>& moves) {
  for (const Move& move : moves) {
    const bool needs_position = move.kind == Move::Kind::kNext || move.kind == Move::Kind::kPrev;
    if (needs_position && at_ == end_) continue;
    Outcome outcome = Apply(move);
    if (!outcome.error.ok() || outcome.problem) return outcome;
  }
  return {};
}

Outcome IteratorPair::CompareAll() {
  for (const bool forward : {true, false}) {
    Move move{forward ? Move::Kind::kFirst : Move::Kind::kLast, {}};
    do {
      Outcome outcome = Apply(move);
      if (!outcome.error.ok() || outcome.problem) return outcome;
      move.kind = forward ? Move::Kind::kNext : Move::Kind::kPrev;
      if (unreadable_ == end_) continue;
      // The error has ended the iteration; it begins again behind that key.
      if (!forward && unreadable_ == begin_) break;
      move = forward ? Move{Move::Kind::kSeek, unreadable_->first + '\0'}
                     : Move{Move::Kind::kSeekForPrev, std::prev(unreadable_)->first};
    } while (at_ != end_ || unreadable_ != end_);
  }
  return {};
}

Status IteratorPair::StatusAfterSeek() {
  iterator_->SeekToFirst();
  return iterator_->Valid() ? Status() : iterator_->status();
}

}  // namespace basalt::metamorphic
