#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "db/manifest.h"

namespace basalt::db {

/// The keyspaces of a database besides the default one; immutable.
class Keyspaces {
 public:
  Keyspaces() = default;
  /// `entries`: ascending by id.
  explicit Keyspaces(std::vector<Keyspace> entries) : entries_(std::move(entries)) {}

  const std::vector<Keyspace>& entries() const noexcept { return entries_; }
  /// Null: there is none. The default one is not among them.
  const Keyspace* Find(uint32_t id) const noexcept;
  const Keyspace* Find(std::string_view name) const noexcept;
  bool Contains(uint32_t id) const noexcept { return id == 0 || Find(id) != nullptr; }
  /// How many there are with ids in [first, last], the default one not among them.
  size_t CountBetween(uint32_t first, uint32_t last) const noexcept;
  bool HasBetween(uint32_t first, uint32_t last) const noexcept {
    return CountBetween(first, last) > 0;
  }
  /// The level of writes to it that name none; `of_database` is the database's. It is there.
  Durability DurabilityOf(uint32_t id, Durability of_database) const noexcept;

 private:
  std::vector<Keyspace> entries_;
};

}  // namespace basalt::db
