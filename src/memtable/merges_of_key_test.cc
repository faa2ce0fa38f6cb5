#include "memtable/merges_of_key.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "base/hash.h"
#include "base/random.h"

namespace basalt::memtable {
namespace {

using base::SequenceNumber;

struct MergeVersion {
  RecordKind kind;
  std::string value;
  uint64_t time_ms;
};

/// One key of a memtable, and all that was done to it: version i + 1 has sequence i + 1.
class MergeHistory {
 public:
  explicit MergeHistory(uint64_t seed) : random_(seed) {
    for (uint64_t i = random_.Between(1, 150); i > 0; --i) Write();
  }

  SequenceNumber last() const { return versions_.size(); }
  base::Random* random() { return &random_; }

  /// What is read at `at` by walking over all versions; "error": the merges do not fit.
  std::optional<std::string> Expected(SequenceNumber at, uint64_t now_ms) const {
    MergesOfKey found;
    for (SequenceNumber sequence = at; sequence > 0; --sequence) {
      const MergeVersion& version = versions_[sequence - 1];
      if (version.kind == RecordKind::kDeleteRange) break;
      if (version.kind == RecordKind::kMerge) {
        found.merges.push_back({version.value, version.time_ms});
        continue;
      }
      if (version.kind == RecordKind::kPut) Below(version, sequence, &found);
      break;
    }
    return Apply(found, now_ms);
  }

  /// The same through folds, as a read does it.
  std::optional<std::string> Read(SequenceNumber at, uint64_t now_ms) const {
    MergesOfKey found;
    found.TakeFrom(table_.get(), 0, kKey, base::Hash(kKey), at, 0);
    const uint64_t expiry_ms = found.below.time_ms;
    if (found.IsSplit()) {
      found = {};
      found.TakeFrom(table_.get(), 0, kKey, base::Hash(kKey), at, expiry_ms);
      EXPECT_FALSE(found.IsSplit());
    }
    for (Generation* const table : found.long_walks) {
      table->FoldMerges(0, kKey, base::Hash(kKey), at, expiry_ms);
    }
    return Apply(found, now_ms);
  }
  /// As a writer folds, who does not know what lies below.
  void Fold(SequenceNumber at) const { table_->FoldMerges(0, kKey, base::Hash(kKey), at, 0); }

  size_t folds_used(SequenceNumber at) const {
    MergesOfKey found;
    found.TakeFrom(table_.get(), 0, kKey, base::Hash(kKey), at, 0);
    return found.folds.size();
  }

 private:
  static constexpr const char* kKey = "key";

  static void Below(const MergeVersion& version, SequenceNumber sequence, MergesOfKey* found) {
    found->below = {base::MakeTag(sequence, RecordKind::kPut), version.time_ms,
                    Value::Copy(version.value)};
  }

  static std::optional<std::string> Apply(const MergesOfKey& found, uint64_t now_ms) {
    std::optional<std::string_view> below;
    if (base::TagKind(found.below.tag) == RecordKind::kPut) below = found.below.value.view();
    std::optional<std::string> value(below);
    uint64_t expiry_ms = found.below.time_ms;
    if (!found.merges.empty()) {
      const auto merged = base::ApplyMerges(found.merges, below, expiry_ms, now_ms);
      if (!merged) return "error";
      value = merged->value;
      expiry_ms = merged->expiry_ms;
    }
    if (expiry_ms != 0 && expiry_ms <= now_ms) return std::nullopt;
    return value;
  }

  void Write() {
    const SequenceNumber sequence = versions_.size() + 1;
    if (random_.OneIn(3)) time_ms_ += random_.Below(4);
    if (random_.OneIn(20)) op_ = static_cast<MergeOperator>(1 + random_.Below(4));
    MergeVersion version{RecordKind::kMerge, {}, time_ms_};
    if (random_.OneIn(60)) {
      version.kind = RecordKind::kDeleteRange;
      RangeDelete* const range = table_->PrepareRangeDelete(0, "k", "l", false);
      table_->Finish(range, sequence);
    } else {
      if (random_.OneIn(40)) {
        version.kind = random_.OneIn(3) ? RecordKind::kDelete : RecordKind::kPut;
        version.time_ms = 0;
        if (version.kind == RecordKind::kPut) {
          version.value = random_.OneIn(3) ? "text" : Number(random_.Below(50));
          if (random_.OneIn(2)) version.time_ms = time_ms_ + random_.Below(20);
        }
      } else {
        const bool is_append = op_ == MergeOperator::kAppend;
        version.value = std::string(1, static_cast<char>(op_)) +
                        (is_append ? std::to_string(sequence) : Number(random_.Below(50)));
      }
      auto reserved = table_->Reserve(
          {.kind = version.kind, .key = kKey, .value = version.value, .time_ms = version.time_ms});
      table_->Insert(std::move(reserved.value()), sequence);
    }
    versions_.push_back(std::move(version));
  }

  static std::string Number(uint64_t number) {
    std::string bytes(base::kMergeNumberBytes, '\0');
    base::Store(bytes.data(), number);
    return bytes;
  }

  base::Random random_;
  std::vector<MergeVersion> versions_;
  uint64_t time_ms_ = 100;
  MergeOperator op_ = MergeOperator::kAdd;
  const std::shared_ptr<Generation> table_ = Generation::Create({});
};

TEST(MergesOfKey, FoundThroughFoldsAreThoseThatAreThere) {
  size_t folds = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    MergeHistory history(seed);
    base::Random& random = *history.random();
    for (int i = 0; i < 30; ++i) {
      const SequenceNumber at = random.Between(1, history.last());
      const uint64_t now_ms = 100 + random.Below(150);
      if (random.OneIn(3)) history.Fold(at);
      const auto expected = history.Expected(at, now_ms);
      ASSERT_EQ(history.Read(at, now_ms), expected) << "seed " << seed << " at " << at;
      ASSERT_EQ(history.Read(at, now_ms), expected) << "seed " << seed << " at " << at;
    }
    folds += history.folds_used(history.last());
  }
  EXPECT_GT(folds, 1000U);
}

}  // namespace
}  // namespace basalt::memtable
