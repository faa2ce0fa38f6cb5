#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// What a transaction has read: what its commit has to find unchanged.
//
// Layout
//
//   keys .... one entry a key {keyspace, hash, offset and size in `bytes`}, each key once: a table
//   of
//             their numbers by hash, made from the ninth key on
//   ranges .. {keyspace, begin, end}; sorted and joined when somebody asks for them
//   expiry .. the earliest moment at which something that was read as present expires
//
// When it would pass its memory limit, the keys of the keyspace that has most of them become one
// range from the least to the greatest: a change between them is then taken for a conflict, one of
// what was read is never missed. When ranges pass it, they become one range a keyspace in the same
// way.
//
// A key stands in the table within kProbeMax slots of its hash. If these are taken, it stands where
// its SecondHash leads: in steps of a length that depends on that, too. Slots are only added, and
// GrowTable enters all keys anew. So a lookup is short, whatever the keys, also for keys whose
// hashes agree in some bits only.
//
// Cost: a key a copy and an entry; `Covers` one probe, and a binary search where there are ranges.
// One thread at a time, except that const functions may run side by side.

namespace basalt::transaction {

/// Keys in [begin, end); no end: all from `begin` on.
struct ReadRange {
  uint32_t keyspace = 0;
  std::string begin;
  std::optional<std::string> end;

  bool Contains(std::string_view key) const noexcept {
    return begin <= key && (!end || key < *end);
  }
};

/// How a key is named in messages about conflicts.
std::string NameOfKey(std::string_view key, uint32_t keyspace);

class ReadSet {
 public:
  struct Key {
    uint32_t keyspace = 0;
    uint32_t size = 0;
    uint64_t offset = 0;
    uint64_t hash = 0;  ///< base::Hash of the key.
  };

  explicit ReadSet(uint64_t memory_limit) noexcept : memory_limit_(memory_limit) {}

  /// Both throw std::bad_alloc.
  void AddKey(uint32_t keyspace, std::string_view key);
  /// An empty range adds nothing.
  void AddRange(uint32_t keyspace, std::string_view begin, std::optional<std::string_view> end);
  /// Something that was read as present expires then; 0: never.
  void AddExpiry(uint64_t expiry_ms) noexcept {
    if (expiry_ms != 0 && (earliest_expiry_ms_ == 0 || expiry_ms < earliest_expiry_ms_)) {
      earliest_expiry_ms_ = expiry_ms;
    }
  }

  /// Memory was missing for something that was read: the transaction cannot commit.
  void SetIncomplete() noexcept { is_incomplete_ = true; }
  bool is_incomplete() const noexcept { return is_incomplete_; }

  bool empty() const noexcept { return keys_.empty() && ranges_.empty(); }
  std::span<const Key> keys() const noexcept { return keys_; }
  std::string_view BytesOf(const Key& key) const noexcept {
    return std::string_view(bytes_).substr(key.offset, key.size);
  }
  /// Disjoint and ascending by keyspace and begin, once Normalise has been called after the last
  /// AddRange.
  std::span<const ReadRange> ranges() const noexcept { return ranges_; }
  /// Sorts and joins the ranges. Throws std::bad_alloc.
  void Normalise();
  /// 0: nothing that was read expires.
  uint64_t earliest_expiry_ms() const noexcept { return earliest_expiry_ms_; }

  // Whether something was read there. After Normalise.
  bool Covers(uint32_t keyspace, std::string_view key, uint64_t hash) const noexcept;
  bool CoversSomeOf(uint32_t keyspace, std::string_view begin, std::string_view end) const noexcept;
  /// A keyspace that something was read of and `is_it` is true of; null: there is none.
  template <class IsIt>
  const uint32_t* FindKeyspace(const IsIt& is_it) const {
    for (const Key& key : keys_) {
      if (is_it(key.keyspace)) return &key.keyspace;
    }
    for (const ReadRange& range : ranges_) {
      if (is_it(range.keyspace)) return &range.keyspace;
    }
    return nullptr;
  }

  /// Bytes that it takes, about.
  uint64_t memory_bytes() const noexcept {
    return bytes_.capacity() + keys_.capacity() * sizeof(Key) +
           slots_.capacity() * sizeof(uint32_t) + range_bytes_;
  }

 private:
  static constexpr size_t kKeysWithoutTable = 8;

  /// Bytes by which memory_bytes() grows when the key is added: containers double.
  uint64_t GrowthFor(std::string_view key) const noexcept;
  bool HasKey(uint32_t keyspace, std::string_view key, uint64_t hash) const noexcept;
  static constexpr size_t kProbeMax = 64;

  /// The slot of the first key on the way of the key's hashes for which is_it, or the empty slot
  /// that ends the way.
  template <class IsIt>
  size_t Probe(std::string_view key, uint64_t hash, const IsIt& is_it) const noexcept;
  void EnterIntoTable(uint32_t number) noexcept;
  void GrowTable();
  /// The first range of the keyspace that ends behind `key`, or the end.
  std::vector<ReadRange>::const_iterator FirstEndingBehind(uint32_t keyspace,
                                                           std::string_view key) const noexcept;
  void CoarsenKeys();
  void CoarsenRanges();

  const uint64_t memory_limit_;
  std::string bytes_;
  std::vector<Key> keys_;
  std::vector<uint32_t> slots_;  // 1 + number of a key; 0: free. A power of two, at most half full.
  std::vector<ReadRange> ranges_;
  uint64_t range_bytes_ = 0;
  bool is_normal_ = true;
  uint64_t earliest_expiry_ms_ = 0;
  bool is_incomplete_ = false;
};

}  // namespace basalt::transaction
