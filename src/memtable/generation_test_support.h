#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/write_batch.h"
#include "base/hash.h"
#include "memtable/generation.h"

// What the tests of the memtable share.

namespace basalt::memtable {

/// "stem7".
inline std::string Numbered(std::string_view stem, uint64_t number) {
  std::string text(stem);
  text += std::to_string(number);
  return text;
}

inline Generation::Reservation MustReserve(Generation& table, const WriteBatch& batch) {
  auto reservation = table.Reserve(batch.bytes(), batch.count());
  return std::move(reservation.value());
}

inline void Put(Generation& table, std::string_view key, std::string_view value,
                base::SequenceNumber sequence) {
  WriteBatch batch;
  batch.Put(key, value);
  table.Insert(MustReserve(table, batch), sequence);
}

/// "sequence=value", or "sequence deleted", or nothing.
inline std::optional<std::string> GetAt(const Generation& table, std::string_view key,
                                        base::SequenceNumber at, uint32_t keyspace = 0) {
  FoundRecord found;
  if (!table.Get(keyspace, key, base::Hash(key), at, &found)) return std::nullopt;
  std::string text = std::to_string(base::TagSequence(found.tag));
  text += base::TagKind(found.tag) == RecordKind::kDelete ? " deleted" : "=";
  text += found.value.view();
  return text;
}

/// "key@sequence=value", or "key@sequence deleted".
inline std::string Describe(const base::RecordIterator& at) {
  std::string text(at.key());
  text += '@';
  text += std::to_string(base::TagSequence(at.tag()));
  text += base::TagKind(at.tag()) == RecordKind::kDelete ? " deleted" : "=";
  text += at.value();
  return text;
}

inline std::vector<std::string> ScanAll(const Generation& table, base::SequenceNumber visible,
                                        uint32_t keyspace = 0) {
  std::vector<std::string> all;
  const auto iterator = table.NewIterator(keyspace, visible);
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    all.push_back(Describe(*iterator));
  }
  return all;
}

/// As ScanAll, read from the end and turned round.
inline std::vector<std::string> ScanAllBackwards(const Generation& table,
                                                 base::SequenceNumber visible) {
  std::vector<std::string> all;
  const auto iterator = table.NewIterator(0, visible);
  for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) {
    all.push_back(Describe(*iterator));
  }
  std::reverse(all.begin(), all.end());
  return all;
}

}  // namespace basalt::memtable
