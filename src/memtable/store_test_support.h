#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/memtable.h"

// What the tests of the public memtable share.

namespace basalt {

using Contents = std::vector<std::pair<std::string, std::string>>;

inline constexpr uint64_t kKiB = 1024;
inline constexpr uint64_t kMiB = 1024 * kKiB;

inline std::string Numbered(std::string_view stem, uint64_t number) {
  std::string text(stem);
  text += std::to_string(number);
  return text;
}

inline testing::AssertionResult IsOk(const Status& status) {
  if (status.ok()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << status.ToString();
}

/// A table of options that must be accepted.
inline std::unique_ptr<MemTable> NewTable(const MemTableOptions& options = {}) {
  auto table = MemTable::Create(options);
  return std::move(table).value();
}

inline Snapshot SnapshotOf(const Store& store) {
  auto snapshot = store.GetSnapshot();
  return std::move(snapshot).value();
}

/// What Get gives; an error is a failure of the test.
inline std::optional<std::string> GetFrom(const Store& store, std::string_view key,
                                          const ReadOptions& options = {}) {
  const Result<MaybeValue> value = store.Get(key, options);
  EXPECT_TRUE(value) << value.error().ToString();
  if (!value || !*value) return std::nullopt;
  return (*value)->ToString();
}

inline Contents ReadForwards(Iterator* it) {
  Contents all;
  for (it->SeekToFirst(); it->Valid(); it->Next()) all.emplace_back(it->key(), it->value());
  EXPECT_TRUE(IsOk(it->status()));
  return all;
}

/// From the end, and turned round.
inline Contents ReadBackwards(Iterator* it) {
  Contents all;
  for (it->SeekToLast(); it->Valid(); it->Prev()) all.emplace_back(it->key(), it->value());
  EXPECT_TRUE(IsOk(it->status()));
  std::reverse(all.begin(), all.end());
  return all;
}

/// All that a scan sees, which must be the same in both directions.
inline Contents Scan(const Store& store, const ReadOptions& options = {}) {
  const auto it = store.NewIterator(options);
  Contents all = ReadForwards(it.get());
  EXPECT_EQ(ReadBackwards(it.get()), all);
  return all;
}

/// The keys of a scan, with blanks between them.
inline std::string KeysOf(const Store& store, const ReadOptions& options = {}) {
  std::string keys;
  for (const auto& [key, value] : Scan(store, options)) {
    if (!keys.empty()) keys += ' ';
    keys += key;
  }
  return keys;
}

/// Nothing is merged unless the test says so.
inline MemTableOptions Still() { return {.compaction = false}; }

/// What each stage of a record's life must leave as it is.
struct Stage {
  const char* name;
  std::function<void(MemTable&)> reach;
};

inline const std::vector<Stage>& Stages() {
  static const std::vector<Stage> stages = {
      {"as written", [](MemTable&) {}},
      {"sorted", [](MemTable& table) { table.WaitForBackgroundWork(); }},
      {"sealed", [](MemTable& table) { EXPECT_TRUE(IsOk(table.Seal())); }},
      {"sealed and sorted",
       [](MemTable& table) {
         EXPECT_TRUE(IsOk(table.Seal()));
         table.WaitForBackgroundWork();
       }},
      {"compacted", [](MemTable& table) { EXPECT_TRUE(IsOk(table.Compact())); }},
      {"compacted twice",
       [](MemTable& table) {
         EXPECT_TRUE(IsOk(table.Compact()));
         EXPECT_TRUE(IsOk(table.Compact()));
       }},
  };
  return stages;
}

}  // namespace basalt
