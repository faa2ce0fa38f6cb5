#include "base/merging_iterator.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/coding.h"

// A tree of losers (Knuth, The Art of Computer Programming 3, 5.4.1). Of k children, child i is
// leaf k + i of a complete binary tree, and node n's parent is n / 2:
//
//   place        0          the winner: the best of all
//   places 1 to k - 1       of the two winners that met in this node the one that lost
//
// A step moves the winner's child and replays its matches, one in each node from its leaf to the
// root: ceil(log2 k) comparisons, while a heap's are up to twice as many. While one child wins
// again and again, its rivals stay as they are; so the best of them is remembered, and a step that
// does not reach it is done after one comparison.
//
// A comparison is one of two numbers: 8 bytes of each key, behind what the keys of all children
// share at present, which would decide nothing. They are inverted when going backward, so that
// the smaller number is always the better one. Only equal numbers lead to the records.
//
// Invariant while Valid(): forward, every child but the winner's stands at its first record after
// the present one; backward, at its last record before it. A change of direction re-establishes it
// by seeks.

namespace basalt::base {
namespace {

class MergingIterator final : public base::RecordIterator {
 public:
  explicit MergingIterator(std::vector<std::unique_ptr<base::RecordIterator>> children)
      : children_(std::move(children)), tree_(children_.size()) {}

  void SeekToFirst() override {
    Start(true, [](base::RecordIterator& child) { child.SeekToFirst(); });
  }
  void SeekToLast() override {
    Start(false, [](base::RecordIterator& child) { child.SeekToLast(); });
  }
  void Seek(std::string_view key, base::Tag tag) override {
    target_ = key;
    constexpr int kLastStep = kSeekSteps - 1;
    for (int step = 0; step < kLastStep; ++step) {
      for (const auto& child : children_) child->SeekStep(step, target_, tag);
    }
    Start(true, [&](base::RecordIterator& child) { child.SeekStep(kLastStep, target_, tag); });
  }
  void SeekForPrev(std::string_view key, base::Tag tag) override {
    target_ = key;
    Start(false, [&](base::RecordIterator& child) { child.SeekForPrev(target_, tag); });
  }

  void Next() override {
    if (!forward_) Turn();
    if (!status_.ok()) return;
    base::RecordIterator& child = Winner();
    child.Next();
    Advanced(child);
  }
  void Prev() override {
    if (forward_) Turn();
    if (!status_.ok()) return;
    base::RecordIterator& child = Winner();
    child.Prev();
    Advanced(child);
  }
  /// Of the others, those that have the key win next.
  void SkipVersions() override {
    if (!forward_) Turn();
    if (!status_.ok()) return;
    base::RecordIterator& child = Winner();
    child.SkipVersions();
    Advanced(child);
  }
  /// The winner's, up to its best rival.
  std::span<const PlainPut> PlainAhead(size_t passed, SequenceNumber at) noexcept override {
    if (!forward_ || !status_.ok() || wins_ < kManyWins) return {};
    RecordIterator& child = Winner();
    const std::span<const PlainPut> ahead = child.PlainAhead(passed, at);
    if (passed != 0) ShowAs(child);
    // Between two keys that begin with shared_ all do.
    const auto is_before_rivals = [this](const PlainPut& put) {
      return HasShared(put.key()) && KeyPrefix(put.key(), shared_.size()) < runner_up_;
    };
    if (ahead.empty() || is_before_rivals(ahead.back())) return ahead;
    return {ahead.begin(), std::ranges::partition_point(ahead, is_before_rivals)};
  }

 private:
  struct Entry {
    uint64_t prefix = 0;  // of the child's present key: PrefixOf
    uint32_t place = 0;   // of the child
  };
  static constexpr uint32_t kNobody = UINT32_MAX;  // a place, while the tree is built
  static constexpr uint64_t kLast = UINT64_MAX;
  /// Of so many records that their numbers could not tell apart, the shared bytes are found anew.
  static constexpr uint32_t kUndecidedMax = 64;

  /// Who has won so often in a row is asked what comes next. Asking costs as much as some steps.
  static constexpr uint32_t kManyWins = 4;

  base::RecordIterator& Winner() const noexcept { return *children_[tree_[0].place]; }

  /// Positions every child by `seek` and builds the tree.
  template <class SeekChild>
  void Start(bool forward, SeekChild seek) {
    forward_ = forward;
    status_ = Status();
    for (const auto& child : children_) {
      seek(*child);
      if (!Accept(*child)) return;
    }
    Build();
    Publish();
  }

  /// False: the child's error ended the iteration.
  bool Accept(const base::RecordIterator& child) {
    if (child.Valid() || child.status().ok()) [[likely]]
      return true;
    status_ = child.status();
    valid_ = false;
    return false;
  }

  /// Turns round at the present record: the others move to its other side.
  void Turn() {
    if (!status_.ok()) return;
    const uint32_t present = tree_[0].place;
    forward_ = !forward_;
    for (uint32_t place = 0; place < children_.size(); ++place) {
      if (place == present) continue;
      SeekBeyond(*children_[place], place < present);
      if (!Accept(*children_[place])) return;
    }
    Build();
  }

  /// To the nearest record on the new side of the present one. Of records equal to it, those of
  /// earlier children lie before it, those of later ones behind it.
  void SeekBeyond(base::RecordIterator& child, bool is_earlier) {
    if (forward_) {
      child.Seek(key_, tag_);
      if (is_earlier && IsAtPresent(child)) child.Next();
    } else {
      child.SeekForPrev(key_, tag_);
      if (!is_earlier && IsAtPresent(child)) child.Prev();
    }
  }
  bool IsAtPresent(const base::RecordIterator& child) const noexcept {
    return child.Valid() && child.tag() == tag_ && child.key() == key_;
  }

  /// The winner's child took a step: it plays its matches again.
  void Advanced(const base::RecordIterator& child) {
    if (!child.Valid() || !HasShared(child.key())) [[unlikely]] {
      if (!Accept(child)) return;
      if (child.Valid()) SetShared(child.key().substr(0, base::SharedBytes(shared_, child.key())));
    }
    const uint64_t prefix = PrefixOf(child);
    if (prefix < runner_up_) {
      tree_[0].prefix = prefix;
      ++wins_;
    } else {
      Replay(prefix);
    }
    Publish();
  }

  /// `prefix`: the winner's new one.
  void Replay(uint64_t prefix) {
    wins_ = 0;
    const uint32_t before = tree_[0].place;
    const size_t leaf = before + tree_.size();
    Entry winner{.prefix = prefix, .place = before};
    for (size_t node = leaf / 2; node != 0; node /= 2) winner = Play(node, winner);
    tree_[0] = winner;
    runner_up_ = 0;
    if (winner.place == before) {
      runner_up_ = kLast;
      for (size_t node = leaf / 2; node != 0; node /= 2) {
        runner_up_ = std::min(runner_up_, tree_[node].prefix);
      }
    }
    if (undecided_ >= kUndecidedMax) SetShared(Shared());
  }

  /// The match of a node; gives who wins it.
  Entry Play(size_t node, Entry challenger) {
    Entry& loser = tree_[node];
    if (loser.prefix == challenger.prefix) [[unlikely]] {
      if (IsBetter(loser, challenger)) std::swap(loser, challenger);
      return challenger;
    }
    // Which of them wins cannot be foreseen: they are exchanged, or not, without a branch.
    // Compilers make branches of min and max here, and of ?:.
    const uint64_t mask = uint64_t{0} - uint64_t{loser.prefix < challenger.prefix};
    const uint64_t prefixes = (loser.prefix ^ challenger.prefix) & mask;
    const uint32_t places = (loser.place ^ challenger.place) & static_cast<uint32_t>(mask);
    loser.prefix ^= prefixes;
    loser.place ^= places;
    challenger.prefix ^= prefixes;
    challenger.place ^= places;
    return challenger;
  }

  /// Of two with the same number: in internal order, ties by place, or exactly the reverse of that;
  /// those that have ended come last.
  bool IsBetter(const Entry& a, const Entry& b) {
    const base::RecordIterator& of_a = *children_[a.place];
    const base::RecordIterator& of_b = *children_[b.place];
    if (!of_a.Valid() || !of_b.Valid()) return of_a.Valid();
    int order = base::CompareKeys(of_a.key(), of_b.key());
    if (order != 0) {
      ++undecided_;
    } else if (of_a.tag() != of_b.tag()) {
      order = of_a.tag() > of_b.tag() ? -1 : 1;
    } else {
      order = a.place < b.place ? -1 : 1;
    }
    return (order < 0) == forward_;
  }

  /// Every child is positioned anew: plays all matches.
  void Build() {
    for (Entry& entry : tree_) entry.place = kNobody;
    shared_ = Shared();
    runner_up_ = 0;
    wins_ = 0;
    undecided_ = 0;
    for (uint32_t place = 0; place < children_.size(); ++place) {
      Entry winner{.prefix = PrefixOf(*children_[place]), .place = place};
      size_t node = (place + children_.size()) / 2;
      for (; node != 0 && tree_[node].place != kNobody; node /= 2) winner = Play(node, winner);
      // The first to come to a node waits there for the second.
      tree_[node] = winner;
    }
  }

  bool HasShared(std::string_view key) const noexcept {
    return key.size() >= shared_.size() && base::SameBytes(key.substr(0, shared_.size()), shared_);
  }
  uint64_t PrefixOf(const base::RecordIterator& child) const noexcept {
    if (!child.Valid()) return kLast;
    const uint64_t prefix = base::KeyPrefix(child.key(), shared_.size());
    return forward_ ? prefix : ~prefix;
  }

  /// What the keys of all children begin with; but not so much that a key has fewer than 8 bytes
  /// more, which would be less to compare, and more often another key does not share.
  std::string_view Shared() const {
    std::string_view shared;
    bool is_first = true;
    for (const auto& child : children_) {
      if (!child->Valid()) continue;
      const std::string_view key = child->key();
      if (std::exchange(is_first, false)) shared = key;
      shared = shared.substr(0, SharedBytes(shared, key));
      shared = shared.substr(0, std::max<size_t>(key.size(), 8) - 8);
    }
    return shared;
  }
  /// The order of records does not depend on it: the tree stays as it is. A longer one than before
  /// may want memory; without it the one before stays.
  void SetShared(std::string_view shared) noexcept {
    undecided_ = 0;
    runner_up_ = 0;
    wins_ = 0;
    try {
      shared_.assign(shared);
    } catch (const std::bad_alloc&) {
      return;
    }
    for (Entry& entry : tree_) entry.prefix = PrefixOf(*children_[entry.place]);
  }

  void Publish() {
    if (!tree_.empty()) ShowAs(Winner());
  }

  std::vector<std::unique_ptr<base::RecordIterator>> children_;
  std::vector<Entry> tree_;
  uint64_t runner_up_ = 0;  // no rival of the winner has a smaller number; 0: nothing is known
  std::string shared_;      // every present key begins with it
  uint32_t wins_ = 0;       // steps of the winner that left it the winner, without a replay
  uint32_t undecided_ = 0;  // matches of different keys with one number, since shared_ was found
  bool forward_ = true;
  std::string target_;  // of a seek: a copy, for it may be this iterator's own key
};

}  // namespace

std::unique_ptr<base::RecordIterator> NewMergingIterator(
    std::vector<std::unique_ptr<base::RecordIterator>> children) {
  if (children.size() == 1) return std::move(children.front());
  return std::make_unique<MergingIterator>(std::move(children));
}

}  // namespace basalt::base
