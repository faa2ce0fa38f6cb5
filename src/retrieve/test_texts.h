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
#include "base/random.h"

// Texts and stores for tests.

namespace basalt::retrieve {

inline std::unique_ptr<Store> NewMemoryDb() { return DB::Open(":memory:").value(); }

/// Words of a made-up language, the first ones frequent.
inline std::string AnyWord(base::Random* random) {
  const double x = random->NextDouble();
  auto rank = static_cast<uint64_t>(300 * x * x * x);
  std::string word;
  do {
    word += "bdgklmnrst"[rank % 10];
    word += "aeiou"[rank / 10 % 5];
    rank /= 50;
  } while (rank > 0);
  return word;
}

inline std::string AnyText(base::Random* random, uint64_t words) {
  std::string text;
  for (uint64_t i = 0; i < words; ++i) text += AnyWord(random) + (random->OneIn(9) ? ", " : " ");
  return text;
}

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
