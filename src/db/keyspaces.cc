#include "db/keyspaces.h"

#include <algorithm>

namespace basalt::db {

const Keyspace* Keyspaces::Find(uint32_t id) const noexcept {
  const auto at = std::ranges::lower_bound(entries_, id, {}, &Keyspace::id);
  return at != entries_.end() && at->id == id ? &*at : nullptr;
}

const Keyspace* Keyspaces::Find(std::string_view name) const noexcept {
  const auto at = std::ranges::find(entries_, name, &Keyspace::name);
  return at != entries_.end() ? &*at : nullptr;
}

size_t Keyspaces::CountBetween(uint32_t first, uint32_t last) const noexcept {
  const auto begin = std::ranges::lower_bound(entries_, first, {}, &Keyspace::id);
  const auto end = std::ranges::upper_bound(begin, entries_.end(), last, {}, &Keyspace::id);
  return static_cast<size_t>(end - begin);
}

Durability Keyspaces::DurabilityOf(uint32_t id, Durability of_database) const noexcept {
  if (id == 0) return of_database;
  return Find(id)->durability.value_or(of_database);
}

}  // namespace basalt::db
