#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "basalt/db.h"
#include "base/hash.h"

namespace basalt::crash {

/// Every state that a database has been in, as a hash of its whole content, so that what a power
/// cut left can be recognised as one of them. The hash is a sum over the records, so that a write
/// changes it in O(its records); what each changes it by depends on what has expired when it is
/// asked for. Values that expire must be unlike all others of their key. One thread at a time.
class WriteHistory {
 public:
  WriteHistory() : writes_(1) {}

  /// The next write as one atomic step, made of the Sets up to the next Begin. Call before the
  /// database does it.
  void Begin() { writes_.emplace_back(); }
  /// nullopt: deletes. `expiry_ms`: wall time from which it is absent; 0: never.
  void Set(const std::string& key, const std::optional<std::string>& value, uint64_t expiry_ms = 0);
  /// Deletes all keys in [begin, end).
  void DeleteRange(const std::string& begin, const std::string& end);
  /// The last write, and so every earlier one, must survive a kill from now on.
  void Acknowledge() { acknowledged_ = writes_.size() - 1; }
  /// The same of a power cut.
  void AcknowledgeDurable() { durable_ = writes_.size() - 1; }
  /// Back to a moment when `durable` was what it was.
  void ForgetDurableSince(size_t durable) { durable_ = durable; }

  /// States that a cut may leave: from the durable one to the last that was begun; that a kill may
  /// leave: from the one that was acknowledged last.
  size_t durable() const noexcept { return durable_; }
  size_t acknowledged() const noexcept { return acknowledged_; }
  size_t begun() const noexcept { return writes_.size() - 1; }
  /// The number of the first state in [first, last] that has this hash at that time; nullopt: none,
  /// which is a hole.
  std::optional<size_t> Find(uint64_t hash, size_t first, size_t last, uint64_t now_ms) const;

  /// Starts again from what a database holds, which it has held before.
  void Restart(const std::map<std::string, std::string>& content);

  /// What is there at that time.
  std::map<std::string, std::string> ContentAt(uint64_t now_ms) const;
  struct Present {
    std::string value;
    uint64_t expiry_ms;
  };
  /// Null: absent at that time.
  const Present* Find(const std::string& key, uint64_t now_ms) const;

  static uint64_t RecordHash(std::string_view key, std::string_view value);

 private:
  /// What comes with a write, or goes.
  struct Term {
    uint64_t hash;  ///< Of what goes: negative.
    uint64_t expiry_ms;
  };

  static bool HasExpired(uint64_t expiry_ms, uint64_t now_ms) noexcept {
    return expiry_ms != 0 && expiry_ms <= now_ms;
  }

  std::vector<std::vector<Term>> writes_;  // [0]: the content that it began with
  size_t durable_ = 0;
  size_t acknowledged_ = 0;
  std::map<std::string, Present> content_;
  std::unordered_map<uint64_t, uint64_t> expiries_;  // by RecordHash
};

inline uint64_t WriteHistory::RecordHash(std::string_view key, std::string_view value) {
  return base::Hash(value, base::Hash(key, 1));
}

inline void WriteHistory::Set(const std::string& key, const std::optional<std::string>& value,
                              uint64_t expiry_ms) {
  std::vector<Term>& terms = writes_.back();
  if (const auto present = content_.find(key); present != content_.end()) {
    terms.push_back({-RecordHash(key, present->second.value), present->second.expiry_ms});
    content_.erase(present);
  }
  if (!value) return;
  const uint64_t hash = RecordHash(key, *value);
  terms.push_back({hash, expiry_ms});
  if (expiry_ms != 0) expiries_[hash] = expiry_ms;
  content_[key] = {*value, expiry_ms};
}

inline void WriteHistory::DeleteRange(const std::string& begin, const std::string& end) {
  std::vector<std::string> keys;
  for (auto at = content_.lower_bound(begin); at != content_.end() && at->first < end; ++at) {
    keys.push_back(at->first);
  }
  for (const std::string& key : keys) Set(key, std::nullopt);
}

inline std::optional<size_t> WriteHistory::Find(uint64_t hash, size_t first, size_t last,
                                                uint64_t now_ms) const {
  uint64_t sum = 0;
  for (size_t i = 0; i <= last; ++i) {
    for (const Term& term : writes_[i]) {
      if (!HasExpired(term.expiry_ms, now_ms)) sum += term.hash;
    }
    if (i >= first && sum == hash) return i;
  }
  return std::nullopt;
}

inline uint64_t ContentHash(const std::map<std::string, std::string>& content) {
  uint64_t hash = 0;
  for (const auto& [key, value] : content) hash += WriteHistory::RecordHash(key, value);
  return hash;
}

inline void WriteHistory::Restart(const std::map<std::string, std::string>& content) {
  content_.clear();
  writes_.assign(1, {});
  durable_ = 0;
  acknowledged_ = 0;
  for (const auto& [key, value] : content) {
    const auto expiry = expiries_.find(RecordHash(key, value));
    Set(key, value, expiry == expiries_.end() ? 0 : expiry->second);
  }
}

inline std::map<std::string, std::string> WriteHistory::ContentAt(uint64_t now_ms) const {
  std::map<std::string, std::string> content;
  for (const auto& [key, present] : content_) {
    if (!HasExpired(present.expiry_ms, now_ms)) content.emplace(key, present.value);
  }
  return content;
}

inline const WriteHistory::Present* WriteHistory::Find(const std::string& key,
                                                       uint64_t now_ms) const {
  const auto at = content_.find(key);
  if (at == content_.end() || HasExpired(at->second.expiry_ms, now_ms)) return nullptr;
  return &at->second;
}

/// The whole content of a keyspace, read by an iterator forward, and again backward, which must
/// agree.
inline Result<std::map<std::string, std::string>> ReadContent(
    const DB& db, KeyspaceId keyspace = KeyspaceId::kDefault) {
  std::map<std::string, std::string> content;
  const auto it = db.NewIterator({.keyspace = keyspace});
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    content.emplace(std::string(it->key()), std::string(it->value()));
  }
  if (!it->status().ok()) return it->status();
  auto expected = content.rbegin();
  for (it->SeekToLast(); it->Valid(); it->Prev(), ++expected) {
    if (expected == content.rend() || expected->first != it->key() ||
        expected->second != it->value()) {
      return Status(StatusCode::kCorruption, "forward and backward iteration differ");
    }
  }
  if (!it->status().ok()) return it->status();
  if (expected != content.rend()) {
    return Status(StatusCode::kCorruption, "backward iteration ends too early");
  }
  return content;
}

}  // namespace basalt::crash
