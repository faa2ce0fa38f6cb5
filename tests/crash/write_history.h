#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "base/hash.h"

namespace basalt::crash {

/// Every state that a database has been in, as a hash of its whole content, so that what a power
/// cut left can be recognised as one of them in O(1). The hash is a sum over the records, so that a
/// write changes it in O(1) too. One thread at a time.
class WriteHistory {
 public:
  WriteHistory() : hashes_{0} {}

  /// The next write as one atomic step: nullopt deletes. Call before the database does it.
  void Begin(const std::vector<std::pair<std::string, std::optional<std::string>>>& records);
  /// The last write, and so every earlier one, must survive a power cut from now on.
  void AcknowledgeDurable() { durable_ = hashes_.size() - 1; }
  /// The last write failed and left no trace that a reader can see.
  void TakeBack();

  /// States that a cut may leave: from the durable one to the last that was begun.
  size_t durable() const noexcept { return durable_; }
  size_t begun() const noexcept { return hashes_.size() - 1; }
  /// The number of the first state in [first, last] with this hash; nullopt: none, which is a hole.
  std::optional<size_t> Find(uint64_t hash, size_t first, size_t last) const;

  /// Starts again from what a database holds.
  void Restart(const std::map<std::string, std::string>& content);

  const std::map<std::string, std::string>& content() const noexcept { return content_; }

  static uint64_t RecordHash(std::string_view key, std::string_view value);

 private:
  std::vector<uint64_t> hashes_;  // [i]: after i writes
  size_t durable_ = 0;
  std::map<std::string, std::string> content_;
  std::vector<std::pair<std::string, std::optional<std::string>>> undo_;
};

inline uint64_t WriteHistory::RecordHash(std::string_view key, std::string_view value) {
  return base::Hash(value, base::Hash(key, 1));
}

inline void WriteHistory::Begin(
    const std::vector<std::pair<std::string, std::optional<std::string>>>& records) {
  uint64_t hash = hashes_.back();
  undo_.clear();
  for (const auto& [key, value] : records) {
    const auto present = content_.find(key);
    if (present != content_.end()) {
      undo_.emplace_back(key, present->second);
      hash -= RecordHash(key, present->second);
      content_.erase(present);
    } else {
      undo_.emplace_back(key, std::nullopt);
    }
    if (value) {
      hash += RecordHash(key, *value);
      content_[key] = *value;
    }
  }
  hashes_.push_back(hash);
}

inline void WriteHistory::TakeBack() {
  hashes_.pop_back();
  for (auto record = undo_.rbegin(); record != undo_.rend(); ++record) {
    if (record->second) {
      content_[record->first] = *record->second;
    } else {
      content_.erase(record->first);
    }
  }
  undo_.clear();
}

inline std::optional<size_t> WriteHistory::Find(uint64_t hash, size_t first, size_t last) const {
  for (size_t i = first; i <= last; ++i) {
    if (hashes_[i] == hash) return i;
  }
  return std::nullopt;
}

inline uint64_t ContentHash(const std::map<std::string, std::string>& content) {
  uint64_t hash = 0;
  for (const auto& [key, value] : content) hash += WriteHistory::RecordHash(key, value);
  return hash;
}

inline void WriteHistory::Restart(const std::map<std::string, std::string>& content) {
  content_ = content;
  hashes_.assign(1, ContentHash(content));
  durable_ = 0;
  undo_.clear();
}

/// The whole content, read by an iterator forward, and again backward, which must agree.
inline Result<std::map<std::string, std::string>> ReadContent(const DB& db) {
  std::map<std::string, std::string> content;
  const auto it = db.NewIterator();
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
