#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "basalt/store.h"
#include "text/test_words.h"

// Texts and stores for tests.

namespace basalt::retrieve {

inline std::unique_ptr<Store> NewMemoryDb() { return DB::Open(":memory:").value(); }

using text::AnyText;
using text::AnyWord;

/// All keys and values of a keyspace.
inline std::vector<std::pair<std::string, std::string>> RecordsOf(const Store& store,
                                                                  std::string_view keyspace) {
  std::vector<std::pair<std::string, std::string>> records;
  const auto it = store.NewIterator({.keyspace = store.OpenKeyspace(keyspace).value()});
  for (it->SeekToFirst(); it->Valid(); it->Next()) records.emplace_back(it->key(), it->value());
  EXPECT_TRUE(it->status().ok());
  return records;
}

inline size_t CountTag(const Store& store, std::string_view keyspace, char tag) {
  const auto records = RecordsOf(store, keyspace);
  return static_cast<size_t>(
      std::ranges::count_if(records, [tag](const auto& record) { return record.first[0] == tag; }));
}

}  // namespace basalt::retrieve
