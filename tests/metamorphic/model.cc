#include "tests/metamorphic/model.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "tests/metamorphic/operation.h"

namespace basalt::metamorphic {
namespace {

uint64_t HashOf(std::string_view key, std::string_view value) {
  return base::Hash(value, base::Hash(key));
}
uint64_t HashOf(const Contents& contents) {
  uint64_t sum = 0;
  for (const auto& [key, value] : contents) sum += HashOf(key, *value);
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
      visit(a->first, a->second.get(), nullptr);
    } else if (only_b) {
      visit(b->first, nullptr, b->second.get());
    } else if (*a->second != *b->second) {
      visit(a->first, a->second.get(), b->second.get());
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

std::string Describe(const std::string* value) {
  if (value == nullptr) return "absent";
  return std::to_string(value->size()) + " bytes \"" + value->substr(0, 12) + "\"";
}

}  // namespace

std::string Difference(const Contents& expected, const Contents& found) {
  constexpr size_t kNamed = 5;
  std::string text;
  size_t differences = 0;
  ForEachDifference(
      expected, found, [&](const std::string& key, const std::string* a, const std::string* b) {
        if (++differences > kNamed) return;
        text += "\n  " + Named(key) + ": expected " + Describe(a) + ", found " + Describe(b);
      });
  if (differences > kNamed) text += "\n  and " + std::to_string(differences - kNamed) + " more";
  return text;
}

Contents& Model::Mutable() {
  if (contents_.use_count() > 1) contents_ = std::make_shared<Contents>(*contents_);
  return *contents_;
}

void Model::Set(const Change& change) {
  Contents& contents = Mutable();
  const auto at = contents.find(change.key);
  if (at != contents.end()) {
    hash_ -= HashOf(at->first, *at->second);
    if (change.value == nullptr) {
      contents.erase(at);
    } else {
      at->second = change.value;
    }
  } else if (change.value != nullptr) {
    contents.emplace(change.key, change.value);
  }
  if (change.value != nullptr) hash_ += HashOf(change.key, *change.value);
}

void Model::Write(const std::vector<Change>& changes) {
  Undo undo{.before = {}, .hash_before = hash_};
  for (const Change& change : changes) {
    const auto at = contents_->find(change.key);
    undo.before.push_back({change.key, at == contents_->end() ? nullptr : at->second});
    Set(change);
  }
  std::reverse(undo.before.begin(), undo.before.end());
  undo_.push_back(std::move(undo));
}

void Model::TakeBackLast() {
  for (const Change& change : undo_.back().before) Set(change);
  undo_.pop_back();
}

std::optional<std::string> Model::Recover(const Contents& found) {
  const uint64_t found_hash = HashOf(found);
  size_t writes_kept = undo_.size();
  uint64_t hash = hash_;
  while (hash != found_hash && writes_kept > 0) hash = undo_[--writes_kept].hash_before;
  if (hash != found_hash) return DescribeNearest(found);
  while (undo_.size() > writes_kept) TakeBackLast();
  std::string difference = Difference(*contents_, found);
  if (!difference.empty()) return difference;
  SetDurable();
  return std::nullopt;
}

std::string Model::DescribeNearest(const Contents& found) {
  const size_t writes = undo_.size();
  size_t fewest = SIZE_MAX;
  std::string nearest;
  for (;;) {
    size_t differences = 0;
    ForEachDifference(
        *contents_, found,
        [&](const std::string&, const std::string*, const std::string*) { ++differences; });
    if (differences < fewest) {
      fewest = differences;
      nearest =
          "after " + std::to_string(undo_.size()) + " of them:" + Difference(*contents_, found);
    }
    if (undo_.empty()) break;
    TakeBackLast();
  }
  return "what was found is no prefix of what was written (" + std::to_string(writes) +
         " writes are not known to be durable); nearest are the contents " + nearest;
}

}  // namespace basalt::metamorphic
