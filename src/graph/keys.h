#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "basalt/graph.h"

// The keys of a graph, in one keyspace. Integers are big-endian, so that the order of the bytes is
// their order. Each key begins with the 8-byte id of the node that owns it, and a tag. Node 0 owns
// the catalogue: what belongs to no node alone.
//
//   node, tag       rest of the key                        value
//   0, kFormat                                             u8, the version of the format
//   0, kExternalId  external id                            u64, the node
//   0, kNameId      u8 dictionary, name                    u32, the id of the name
//   0, kName        u8 dictionary, u32 id                  the name
//   0, kCounter     u8, a Counter                          u64, the next id that was never used
//   0, kRemoval     u64 node                               nothing: its edges are being removed
//   0, kLastRemoval                                        u64, the node that was removed last
//   n, kNode                                               a node (record.h)
//   n, kOut         u32 type, u64 to, discriminator        an edge (record.h)
//   n, kIn          u32 type, u64 from, discriminator      the head of that edge
//
// An edge and its kIn record are written and removed together, with the same expiry.

namespace basalt::graph {

enum class CatalogueTag : char {
  kFormat = 0,
  kExternalId = 1,
  kNameId = 2,
  kName = 3,
  kCounter = 4,
  kRemoval = 5,
  kLastRemoval = 6,
};
enum class NodeTag : char { kNode = 1, kOut = 2, kIn = 3 };

enum class Dictionary : uint8_t { kLabel = 0, kEdgeType = 1, kPropertyName = 2 };
inline constexpr size_t kDictionaries = 3;

/// Of the catalogue. The others are those of the dictionaries, by 1 more than their number.
inline constexpr uint8_t kNodeCounter = 0;

inline constexpr uint64_t kCatalogue = 0;
inline constexpr uint64_t kNodeIdMax = UINT64_MAX >> 1;
inline constexpr size_t kNodePrefixBytes = 9;  // The node and the tag.

template <class Number>
void AppendBigEndian(std::string* key, Number number) {
  number = std::byteswap(number);
  key->append(reinterpret_cast<const char*>(&number), sizeof number);
}
template <class Number>
Number LoadBigEndian(const char* at) noexcept {
  Number number;
  std::memcpy(&number, at, sizeof number);
  return std::byteswap(number);
}

inline std::string CatalogueKey(CatalogueTag tag) {
  std::string key;
  AppendBigEndian(&key, kCatalogue);
  key += static_cast<char>(tag);
  return key;
}
inline std::string ExternalIdKey(std::string_view external_id) {
  return CatalogueKey(CatalogueTag::kExternalId).append(external_id);
}
inline std::string NameIdKey(Dictionary dictionary, std::string_view name) {
  std::string key = CatalogueKey(CatalogueTag::kNameId);
  key += static_cast<char>(dictionary);
  return key.append(name);
}
inline std::string NameKey(Dictionary dictionary, uint32_t id) {
  std::string key = CatalogueKey(CatalogueTag::kName);
  key += static_cast<char>(dictionary);
  AppendBigEndian(&key, id);
  return key;
}
inline std::string CounterKey(uint8_t counter) {
  return CatalogueKey(CatalogueTag::kCounter) + static_cast<char>(counter);
}
inline std::string RemovalKey(NodeId node) {
  std::string key = CatalogueKey(CatalogueTag::kRemoval);
  AppendBigEndian(&key, static_cast<uint64_t>(node));
  return key;
}

/// The node that the key of a removal names. Nothing: it names none.
inline std::optional<NodeId> ParseRemovalKey(std::string_view key) noexcept {
  if (key.size() != kNodePrefixBytes + 8) return std::nullopt;
  const auto node = LoadBigEndian<uint64_t>(key.data() + kNodePrefixBytes);
  return node == kCatalogue || node > kNodeIdMax ? std::nullopt : std::optional(NodeId{node});
}

/// With what all keys of a node begin.
inline std::string NodePrefix(NodeId node) {
  std::string key;
  AppendBigEndian(&key, static_cast<uint64_t>(node));
  return key;
}
inline std::string NodeKey(NodeId node, NodeTag tag) {
  return NodePrefix(node) + static_cast<char>(tag);
}
inline std::string EdgeKey(NodeId owner, NodeTag tag, uint32_t type, NodeId other,
                           std::string_view discriminator) {
  std::string key = NodeKey(owner, tag);
  AppendBigEndian(&key, type);
  AppendBigEndian(&key, static_cast<uint64_t>(other));
  return key.append(discriminator);
}

/// What the key of an edge says. The discriminator is a view into it.
struct EdgeKeyParts {
  NodeId owner{};
  NodeTag tag = NodeTag::kOut;
  uint32_t type = 0;
  NodeId other{};
  std::string_view discriminator;

  /// The key of the same edge at its other end.
  std::string OtherKey() const {
    return EdgeKey(other, tag == NodeTag::kOut ? NodeTag::kIn : NodeTag::kOut, type, owner,
                   discriminator);
  }
};
/// Nothing: it is no key of an edge.
inline std::optional<EdgeKeyParts> ParseEdgeKey(std::string_view key) noexcept {
  constexpr size_t kFixedBytes = kNodePrefixBytes + 4 + 8;
  if (key.size() < kFixedBytes) return std::nullopt;
  const auto tag = static_cast<NodeTag>(key[8]);
  const auto owner = LoadBigEndian<uint64_t>(key.data());
  if (owner == kCatalogue || (tag != NodeTag::kOut && tag != NodeTag::kIn)) return std::nullopt;
  return EdgeKeyParts{NodeId{owner}, tag, LoadBigEndian<uint32_t>(key.data() + kNodePrefixBytes),
                      NodeId{LoadBigEndian<uint64_t>(key.data() + kNodePrefixBytes + 4)},
                      key.substr(kFixedBytes)};
}

}  // namespace basalt::graph
