#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/perfect_hash.h"
#include "tools/basalt/key_lines.h"

namespace basalt::tools {

/// Told how many bytes of how many are read.
using OnRead = std::function<void(uint64_t done_bytes, uint64_t total_bytes)>;

/// The keys of a file that can be read again: each walk reads it, and none are held in memory.
class KeyFile final : public KeySource {
 public:
  /// Reads the file once, which counts its keys and finds every line that cannot be meant.
  static Result<KeyFile> Open(const std::string& path, KeyForm form, const OnRead& on_read);

  uint64_t size() const override { return size_; }
  /// IoError also when the file has changed since it was opened.
  Status Walk(const std::function<void(std::span<const std::string_view>)>& visit) const override;

 private:
  /// What changes with a file's content.
  struct Identity {
    uint64_t device;
    uint64_t inode;
    int64_t bytes;
    int64_t changed_s;
    int64_t changed_ns;
    bool operator==(const Identity&) const = default;
  };

  KeyFile(std::string path, KeyForm form, Identity identity)
      : path_(std::move(path)), form_(form), identity_(identity) {}
  static Result<Identity> IdentityOf(const std::string& path);

  std::string path_;
  KeyForm form_;
  Identity identity_;
  uint64_t size_ = 0;
};

/// Keys that were read once and stay in memory.
class KeysInMemory final : public KeySource {
 public:
  /// All keys of `lines`, which give keys that are bytes.
  static Result<KeysInMemory> Read(KeyLines lines, const OnRead& on_read);

  std::span<const std::string_view> keys() const noexcept { return keys_; }
  /// As many as keys; none without payloads.
  std::span<const uint64_t> payloads() const noexcept { return payloads_; }

  uint64_t size() const override { return keys_.size(); }
  Status Walk(const std::function<void(std::span<const std::string_view>)>& visit) const override;

 private:
  static constexpr size_t kBlockBytes = 1 << 20;

  void Add(std::string_view key);

  std::deque<std::string> blocks_;  // None grows beyond what it has reserved: views stay.
  std::vector<std::string_view> keys_;
  std::vector<uint64_t> payloads_;
};

/// Keys that are 64-bit numbers. A walk gives their 8 bytes.
class NumberKeys final : public KeySource {
 public:
  static Result<NumberKeys> Read(KeyLines lines, const OnRead& on_read);

  std::span<const uint64_t> keys() const noexcept { return keys_; }
  /// As many as keys; none without payloads.
  std::span<const uint64_t> payloads() const noexcept { return payloads_; }

  uint64_t size() const override { return keys_.size(); }
  Status Walk(const std::function<void(std::span<const std::string_view>)>& visit) const override;

 private:
  std::vector<uint64_t> keys_;
  std::vector<uint64_t> payloads_;
};

}  // namespace basalt::tools
