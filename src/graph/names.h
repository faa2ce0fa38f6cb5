#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>

#include "basalt/status.h"
#include "basalt/store.h"
#include "basalt/transaction.h"
#include "graph/keys.h"

namespace basalt::graph {

/// The dictionaries of labels, edge types and property names. An id is given to a name once, in a
/// transaction of its own, and never taken back: so what is known here stays true whatever becomes
/// of the transaction that asked for it. Any number of threads; a known name costs a shared lock.
class Names {
 public:
  Names(Store* store, KeyspaceId keyspace) : store_(store), keyspace_(keyspace) {}

  /// The id of a name, which gets one if it has none. InvalidArgument: it is too long.
  Result<uint32_t> Intern(Dictionary dictionary, std::string_view name);
  /// Nothing: the name has never been used.
  Result<std::optional<uint32_t>> Find(Dictionary dictionary, std::string_view name) const;
  /// The same for a transaction, which conflicts with the first use of the name, even if that is
  /// its own: the next try finds the name.
  Result<std::optional<uint32_t>> Find(Transaction& tx, Dictionary dictionary,
                                       std::string_view name) const;
  /// The name of an id. It stays valid as long as this object. Corruption: there is none.
  Result<std::string_view> NameOf(Dictionary dictionary, uint32_t id) const;

 private:
  struct Known {
    std::map<std::string, uint32_t, std::less<>> ids;
    std::map<uint32_t, std::string_view> names;  // Views into the keys of ids.
  };
  std::optional<uint32_t> FindKnown(Dictionary dictionary, std::string_view name) const;
  std::string_view Remember(Dictionary dictionary, std::string_view name, uint32_t id) const;

  Store* const store_;
  const KeyspaceId keyspace_;
  mutable std::shared_mutex mutex_;
  mutable std::array<Known, kDictionaries> known_;
};

}  // namespace basalt::graph
