#include "tests/metamorphic/model.h"

#include <algorithm>
#include <utility>

#include "base/coding.h"
#include "base/hash.h"

namespace basalt::metamorphic {
namespace {

size_t IndexOf(Space space) { return static_cast<size_t>(space); }

uint64_t HashOf(Space space, std::string_view key, const Cell& cell) {
  const uint64_t place = base::Hash(key, IndexOf(space) + 1);
  return cell.is_unreadable ? base::Hash("unreadable", ~place) : base::Hash(*cell.value, place);
}
uint64_t HashOf(Space space, const Contents& contents, uint64_t now_ms) {
  uint64_t sum = 0;
  for (const auto& [key, cell] : contents) {
    if (!cell.HasExpired(now_ms)) sum += HashOf(space, key, cell);
  }
  return sum;
}
uint64_t HashOf(const SpaceContents& found) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kSpaces; ++i) sum += HashOf(static_cast<Space>(i), *found[i], 0);
  return sum;
}

/// Calls `visit(key, expected, found)` for each key in which two maps differ; absent: null.
template <class Visit>
void ForEachDifference(const Contents& expected, const Contents& found, const Visit& visit) {
  auto a = expected.begin();
  auto b = found.begin();
  while (a != expected.end() || b != found.end()) {
    const bool only_a = b == found.end() || (a != expected.end() && a->first < b->first);
    const bool only_b = !only_a && (a == expected.end() || b->first < a->first);
    if (only_a) {
      visit(a->first, &a->second, nullptr);
    } else if (only_b) {
      visit(b->first, nullptr, &b->second);
    } else if (!a->second.LooksLike(b->second)) {
      visit(a->first, &a->second, &b->second);
    }
    if (!only_b) ++a;
    if (!only_a) ++b;
  }
}

/// The beginning of a key that may be long.
std::string Named(std::string_view key) {
  constexpr size_t kShown = 40;
  if (key.size() <= kShown) return Quoted(key);
  return Quoted(key.substr(0, kShown)) + ".. of " + std::to_string(key.size()) + " bytes";
}

std::string Describe(const Cell* cell) {
  if (cell == nullptr) return "absent";
  if (cell->is_unreadable) return "a merge that does not fit";
  return std::to_string(cell->value->size()) + " bytes " + Quoted(cell->value->substr(0, 12));
}

int64_t Combine(MergeOperator op, int64_t present, int64_t operand) {
  if (op == MergeOperator::kMin) return std::min(present, operand);
  if (op == MergeOperator::kMax) return std::max(present, operand);
  return static_cast<int64_t>(static_cast<uint64_t>(present) + static_cast<uint64_t>(operand));
}

/// What a merge makes of what is there; null: nothing is.
Cell Merged(const Cell* present, const Change& merge) {
  if (present == nullptr) return {.value = merge.value};
  Cell merged = *present;
  if (merged.is_unreadable) return merged;
  if (merge.merge_operator == MergeOperator::kAppend) {
    merged.value = std::make_shared<const std::string>(*present->value + *merge.value);
    return merged;
  }
  if (present->value->size() != sizeof(int64_t)) {
    merged.is_unreadable = true;
    return merged;
  }
  const int64_t number = Combine(merge.merge_operator,
                                 static_cast<int64_t>(base::Load<uint64_t>(present->value->data())),
                                 static_cast<int64_t>(base::Load<uint64_t>(merge.value->data())));
  std::string bytes(sizeof(number), '\0');
  base::Store(bytes.data(), static_cast<uint64_t>(number));
  merged.value = std::make_shared<const std::string>(std::move(bytes));
  return merged;
}

}  // namespace

bool Cell::LooksLike(const Cell& other) const {
  if (is_unreadable || other.is_unreadable) return is_unreadable == other.is_unreadable;
  return value == other.value || *value == *other.value;
}

std::shared_ptr<const Contents> ReadAt(const std::shared_ptr<const Contents>& contents,
                                       uint64_t now_ms) {
  const auto has_expired = [&](const auto& record) { return record.second.HasExpired(now_ms); };
  if (std::ranges::none_of(*contents, has_expired)) return contents;
  auto seen = std::make_shared<Contents>(*contents);
  std::erase_if(*seen, has_expired);
  return seen;
}

const Cell* FindAt(const Contents& contents, std::string_view key, uint64_t now_ms) {
  const auto at = contents.find(key);
  return at == contents.end() || at->second.HasExpired(now_ms) ? nullptr : &at->second;
}

std::string Difference(const Contents& expected, const Contents& found) {
  constexpr size_t kNamed = 5;
  std::string text;
  size_t differences = 0;
  ForEachDifference(expected, found, [&](const std::string& key, const Cell* a, const Cell* b) {
    if (++differences > kNamed) return;
    text += "\n  " + Named(key) + ": expected " + Describe(a) + ", found " + Describe(b);
  });
  if (differences > kNamed) text += "\n  and " + std::to_string(differences - kNamed) + " more";
  return text;
}

Model::Model() {
  for (auto& contents : contents_) contents = std::make_shared<Contents>();
}

SpaceContents Model::Freeze() const {
  SpaceContents frozen;
  std::ranges::copy(contents_, frozen.begin());
  return frozen;
}

Contents& Model::Mutable(Space space) {
  std::shared_ptr<Contents>& contents = contents_[IndexOf(space)];
  if (contents.use_count() > 1) contents = std::make_shared<Contents>(*contents);
  return *contents;
}

void Model::Set(Space space, const std::string& key, std::optional<Cell> cell, Undo* undo) {
  Contents& contents = Mutable(space);
  const auto at = contents.find(key);
  if (undo != nullptr) {
    undo->push_back({space, key, at == contents.end() ? std::optional<Cell>() : at->second});
  }
  if (cell) {
    contents.insert_or_assign(key, *std::move(cell));
  } else if (at != contents.end()) {
    contents.erase(at);
  }
}

void Model::Apply(const Change& change, uint64_t now_ms, Undo* undo) {
  switch (change.kind) {
    case RecordKind::kPut:
      return Set(change.space, change.key, Cell{change.value, change.expiry_ms}, undo);
    case RecordKind::kDelete:
      return Set(change.space, change.key, std::nullopt, undo);
    case RecordKind::kMerge:
      return Set(change.space, change.key,
                 Merged(FindAt(contents(change.space), change.key, now_ms), change), undo);
    default:
      break;
  }
  const Contents& present = contents(change.space);
  std::vector<std::string> keys;
  for (auto at = present.lower_bound(change.key); at != present.end() && at->first < change.end;
       ++at) {
    keys.push_back(at->first);
  }
  for (const std::string& key : keys) Set(change.space, key, std::nullopt, undo);
}

void Model::Write(std::span<const Change> changes, uint64_t now_ms) {
  Undo undo;
  for (const Change& change : changes) Apply(change, now_ms, &undo);
  undo_.push_back(std::move(undo));
}

void Model::Clear(Space space) {
  Undo undo;
  for (const auto& [key, cell] : contents(space)) undo.push_back({space, key, cell});
  contents_[IndexOf(space)] = std::make_shared<Contents>();
  undo_.push_back(std::move(undo));
}

uint64_t Model::TakeBackLast(uint64_t now_ms) {
  uint64_t change = 0;
  const Undo undo = std::move(undo_.back());
  undo_.pop_back();
  for (size_t i = undo.size(); i-- > 0;) {
    const Before& before = undo[i];
    const Cell* const after = FindAt(contents(before.space), before.key, now_ms);
    if (after != nullptr) change -= HashOf(before.space, before.key, *after);
    Set(before.space, before.key, before.cell, nullptr);
    if (before.cell && !before.cell->HasExpired(now_ms)) {
      change += HashOf(before.space, before.key, *before.cell);
    }
  }
  return change;
}

uint64_t Model::HashAt(uint64_t now_ms) const {
  uint64_t sum = 0;
  for (size_t i = 0; i < kSpaces; ++i) {
    sum += HashOf(static_cast<Space>(i), *contents_[i], now_ms);
  }
  return sum;
}

std::optional<std::string> Model::Recover(const SpaceContents& found, uint64_t now_ms,
                                          UncertainKeys* uncertain) {
  const uint64_t found_hash = HashOf(found);
  const Model whole = *this;
  uint64_t hash = HashAt(now_ms);
  while (hash != found_hash && !undo_.empty()) hash += TakeBackLast(now_ms);
  if (hash != found_hash) {
    *this = whole;
    return DescribeNearest(found, now_ms);
  }
  std::string difference = DifferenceFrom(found, now_ms);
  if (!difference.empty()) return difference;

  std::array<std::map<std::string, bool>, kSpaces> differing;
  for (Model other = *this; !other.undo_.empty();) {
    hash += other.TakeBackLast(now_ms);
    if (hash != found_hash) continue;
    for (size_t i = 0; i < kSpaces; ++i) {
      for (const auto& [key, cell] : *contents_[i]) {
        const Cell* const earlier = FindAt(*other.contents_[i], key, now_ms);
        if (earlier != nullptr && earlier->expiry_ms != cell.expiry_ms) differing[i][key] = true;
      }
    }
  }
  for (size_t i = 0; i < kSpaces; ++i) {
    for (const auto& [key, is_differing] : differing[i]) {
      uncertain->emplace_back(static_cast<Space>(i), key);
    }
  }
  SetDurable();
  return std::nullopt;
}

std::string Model::DifferenceFrom(const SpaceContents& found, uint64_t now_ms) const {
  std::string text;
  const SpaceContents present = Freeze();
  for (size_t i = 0; i < kSpaces; ++i) {
    const std::string difference = Difference(*ReadAt(present[i], now_ms), *found[i]);
    if (!difference.empty() && i > 0) text += "\n  in the second keyspace";
    text += difference;
  }
  return text;
}

std::string Model::DescribeNearest(const SpaceContents& found, uint64_t now_ms) {
  const size_t writes = undo_.size();
  size_t fewest = SIZE_MAX;
  std::string nearest;
  for (;;) {
    size_t differences = 0;
    const SpaceContents present = Freeze();
    for (size_t i = 0; i < kSpaces; ++i) {
      ForEachDifference(*ReadAt(present[i], now_ms), *found[i],
                        [&](const std::string&, const Cell*, const Cell*) { ++differences; });
    }
    if (differences < fewest) {
      fewest = differences;
      nearest =
          "after " + std::to_string(undo_.size()) + " of them:" + DifferenceFrom(found, now_ms);
    }
    if (undo_.empty()) break;
    TakeBackLast(now_ms);
  }
  return "what was found is no prefix of what was written (" + std::to_string(writes) +
         " writes are not known to be durable); nearest are the contents " + nearest;
}

}  // namespace basalt::metamorphic
