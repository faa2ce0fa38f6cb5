#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/coding.h"
#include "base/hash.h"
#include "table/table_builder.h"
#include "table/table_format.h"

// In which tree a keyspace's records lie, and under which keys.
//
// The default keyspace has a tree of its own. All others share one: a flush adds one table to it,
// however many keyspaces it has records of, and a thousand small keyspaces are compacted like one
// large one. There a key begins with its keyspace, 4 bytes, the most significant first, so that a
// keyspace is a range of keys. The tree's tables have their keys in this form, with two exceptions
// that have a keyspace of their own and keys as users know them: tables that were written before
// there was a shared tree, and those of keys that are too long for 4 bytes more.
//
// Whatever deals with trees deals with tree keys: bounds of tables, range deletes, plans,
// compaction.

namespace basalt::db {

inline constexpr uint32_t kSharedTree = table::kSharedKeyspaces;
inline constexpr size_t kKeyspaceBytes = sizeof(uint32_t);

/// By keyspace; of a tree: itself.
constexpr uint32_t TreeOf(uint32_t keyspace) noexcept { return keyspace == 0 ? 0 : kSharedTree; }

inline void PutKeyspace(uint32_t keyspace, char* out) noexcept {
  for (int shift = 24; shift >= 0; shift -= 8) *out++ = static_cast<char>(keyspace >> shift);
}
/// Of a key of the shared tree.
inline uint32_t KeyspaceOf(std::string_view tree_key) noexcept {
  uint32_t keyspace = 0;
  for (const char byte : tree_key.substr(0, kKeyspaceBytes)) {
    keyspace = keyspace << 8 | static_cast<uint8_t>(byte);
  }
  return keyspace;
}

/// The key of the keyspace in its tree.
inline std::string TreeKey(uint32_t keyspace, std::string_view key) {
  if (TreeOf(keyspace) != kSharedTree) return std::string(key);
  std::string tree_key(kKeyspaceBytes + key.size(), '\0');
  PutKeyspace(keyspace, tree_key.data());
  std::ranges::copy(key, tree_key.begin() + kKeyspaceBytes);
  return tree_key;
}

/// Keys [begin, end) of a keyspace (unset: open) as a range of its tree.
struct TreeRange {
  TreeRange(uint32_t keyspace, std::optional<std::string_view> first,
            std::optional<std::string_view> behind) {
    const bool is_shared = TreeOf(keyspace) == kSharedTree;
    if (first || is_shared) begin = TreeKey(keyspace, first.value_or(""));
    if (behind) {
      end = TreeKey(keyspace, *behind);
    } else if (is_shared) {
      end = TreeKey(keyspace + 1, "");
    }
  }

  std::optional<std::string> begin;
  std::optional<std::string> end;
};

/// A key that is looked for in tables, in both forms. Neither copied nor moved.
class LookupKey {
 public:
  /// `hash`: base::Hash(key). `key` must outlive it. Throws std::bad_alloc where a key is long.
  LookupKey(uint32_t keyspace, std::string_view key, uint64_t hash)
      : key_(key), tree_key_(key), hash_(hash), tree_hash_(hash) {
    if (TreeOf(keyspace) == kSharedTree) [[unlikely]]
      Prepend(keyspace);
  }
  LookupKey(const LookupKey&) = delete;
  LookupKey& operator=(const LookupKey&) = delete;

  std::string_view tree_key() const noexcept { return tree_key_; }

  struct Form {
    std::string_view key;
    uint64_t hash;
  };
  /// As tables with these properties have it.
  Form In(const table::TableProperties& properties) const noexcept {
    // A key of the default keyspace has one form: the properties need not be loaded for it.
    const bool is_tree_key =
        tree_key_.data() != key_.data() && properties.keyspace == table::kSharedKeyspaces;
    return is_tree_key ? Form{tree_key_, tree_hash_} : Form{key_, hash_};
  }

 private:
  void Prepend(uint32_t keyspace) {
    const size_t bytes = kKeyspaceBytes + key_.size();
    char* out = near_.data();
    if (bytes > near_.size()) {
      far_.resize(bytes);
      out = far_.data();
    }
    PutKeyspace(keyspace, out);
    std::ranges::copy(key_, out + kKeyspaceBytes);
    tree_key_ = {out, bytes};
    tree_hash_ = base::Hash(tree_key_);
  }

  std::string_view key_;
  std::string_view tree_key_;
  uint64_t hash_;
  uint64_t tree_hash_;
  std::array<char, 96> near_;
  std::string far_;
};

}  // namespace basalt::db
