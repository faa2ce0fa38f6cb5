#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

// One store under measurement. Each subject uses its engine's fastest ordinary calls for a program
// that wants the newest state on every read, and reads the first and last byte of what it is given.
// Many threads may call Put; everything else is for one thread at a time.
//
// An error ends the program with the engine's message: a figure of a run that failed says nothing.

namespace basalt::bench {

/// kProcess: a write survives the death of the process. kPower: and a power cut.
enum class Level : uint8_t { kProcess, kPower };

/// The memory of every subject: Basalt's budget, and the peers' write buffer plus block cache.
struct Memory {
  size_t total = size_t{256} << 20;

  size_t WriteBuffer() const noexcept { return std::min(total / 4, size_t{64} << 20); }
  size_t Cache() const noexcept { return total - WriteBuffer(); }
};
inline constexpr int kFilterBitsPerKey = 10;

struct Record {
  std::string_view key;
  std::string_view value;
};

class Subject {
 public:
  virtual ~Subject() = default;
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  /// As on the command line and in the results.
  virtual std::string name() const = 0;
  /// Version and settings, for people.
  virtual std::string description() const = 0;
  /// Whether "the best LSM" may be this one.
  virtual bool is_lsm_peer() const = 0;

  /// Makes a store in an existing, empty directory, or opens the one that is there.
  virtual void Open(const std::string& directory, Level level) = 0;
  virtual void Close() = 0;

  virtual void Put(std::string_view key, std::string_view value) = 0;
  /// All of them as one atomic write.
  virtual void PutBatch(std::span<const Record> records) = 0;
  virtual void Delete(std::string_view key) = 0;
  /// Whether the key is present.
  virtual bool Get(std::string_view key) = 0;
  /// Looks up all of them, together where the engine can; how many are present.
  virtual uint64_t MultiGet(std::span<const std::string_view> keys) {
    return static_cast<uint64_t>(
        std::ranges::count_if(keys, [this](std::string_view key) { return Get(key); }));
  }
  /// Reads every record in order; their number.
  virtual uint64_t ScanAll() = 0;
  /// Opens a fresh view, goes to the first key >= `key` and on by `nexts` records; records read.
  virtual uint64_t SeekAndNext(std::string_view key, int nexts) = 0;
  /// Brings what lies in memory to tables, and waits for it. A store without tables has nothing to
  /// do.
  virtual void Flush() = 0;
  /// Brings all records to the last level.
  virtual void CompactAll() = 0;

  /// Bytes that compaction has yet to rewrite, by the engine's own estimate, if it has one.
  virtual std::optional<uint64_t> CompactionDebt() const { return std::nullopt; }
  /// Bytes written to files since the store was opened, by the engine's own count, if it has one.
  virtual std::optional<uint64_t> BytesWritten() const { return std::nullopt; }

  /// What the bytes read add up to, so that no read can be optimised away.
  uint64_t touched() const noexcept { return touched_; }

 protected:
  Subject() = default;
  void Touch(std::string_view value) noexcept {
    if (value.empty()) return;
    touched_ +=
        static_cast<unsigned char>(value.front()) + static_cast<unsigned char>(value.back());
  }

 private:
  uint64_t touched_ = 0;
};

std::unique_ptr<Subject> MakeBasalt(Memory memory);
std::unique_ptr<Subject> MakeLevelDb(Memory memory);
std::unique_ptr<Subject> MakeRocksDb(Memory memory);
std::unique_ptr<Subject> MakeLmdb(Memory memory);

}  // namespace basalt::bench
