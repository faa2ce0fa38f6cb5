#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/options.h"
#include "basalt/status.h"

namespace basalt::memtable {

/// The keyspaces of a store besides the default one. Immutable.
class Keyspaces {
 public:
  struct Keyspace {
    uint32_t id = 0;
    std::string name;
    KeyspaceOptions options{};
  };

  Keyspaces() = default;
  /// `entries`: ascending by id. `number`: of this list in the order of all lists that the store
  /// has had; the first has 1.
  Keyspaces(std::vector<Keyspace> entries, uint64_t number) noexcept
      : entries_(std::move(entries)), number_(number) {}

  const std::vector<Keyspace>& entries() const noexcept { return entries_; }
  uint64_t number() const noexcept { return number_; }

  /// Null: there is none. The default one is not among them.
  const Keyspace* Find(uint32_t id) const noexcept;
  const Keyspace* Find(std::string_view name) const noexcept;
  bool Contains(uint32_t id) const noexcept { return id == 0 || Find(id) != nullptr; }
  /// Of one that is there. Zero: its records do not expire unless they say so.
  std::chrono::milliseconds DefaultTtl(uint32_t id) const noexcept;

 private:
  std::vector<Keyspace> entries_;
  uint64_t number_ = 1;
};

/// NotFound.
Status NoSuchKeyspace(uint32_t id);
/// InvalidArgument: a keyspace cannot have this name or these options.
Status CheckNewKeyspace(std::string_view name, const KeyspaceOptions& options);

}  // namespace basalt::memtable
