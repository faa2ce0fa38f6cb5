#pragma once

#include <algorithm>
#include <string_view>

#include "db/version.h"

namespace basalt::db {

/// Both ends are keys in it.
struct KeyRange {
  std::string_view smallest;
  std::string_view largest;

  explicit KeyRange(const TableFile& table)
      : smallest(table.properties().smallest_key), largest(table.properties().largest_key) {}
  KeyRange(std::string_view smallest_key, std::string_view largest_key)
      : smallest(smallest_key), largest(largest_key) {}

  void Include(const KeyRange& other) {
    smallest = std::min(smallest, other.smallest);
    largest = std::max(largest, other.largest);
  }
  bool Overlaps(const KeyRange& other) const {
    return smallest <= other.largest && other.smallest <= largest;
  }
};

}  // namespace basalt::db
