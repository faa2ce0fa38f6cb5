#pragma once

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "wal/log.h"

// What log.cc and log_sync.cc share and nobody else sees.

namespace basalt::wal {

/// Records that are written together: as fields until it is known which file they go to, then as
/// its bytes. Under the log's lock, but for: the bytes while the group is
/// being written (its writer's), `references`, and `done` with what it publishes (`status`).
struct Log::Group {
  /// A buffer that grew larger than this for one large batch is not kept.
  static constexpr size_t kKeptBytesMax = size_t{1} << 20;
  static constexpr size_t kBytesMin = 4096;
  /// A record with a payload of so many bytes is a group of its own, which does not copy it.
  static constexpr size_t kUncopiedBytesMin = size_t{1} << 20;

  std::unique_ptr<char[]> bytes;
  size_t size = 0;
  size_t capacity = 0;
  Lsn first_lsn = 0;
  Lsn last_lsn = 0;
  bool starts_file = false;
  std::string_view uncopied{};          ///< The payload of the only record, which its writer keeps.
  std::atomic<uint32_t> references{0};  ///< Of the queue and of each ticket.
  std::atomic<bool> done{false};
  Status status;
  uint32_t sleepers = 0;
  std::condition_variable wake;
  Group* next = nullptr;

  void Reserve(size_t more) {
    if (more <= capacity - size) return;
    const size_t grown = std::max({size + more, 2 * capacity, kBytesMin});
    auto larger = std::make_unique_for_overwrite<char[]>(grown);
    if (size > 0) std::memcpy(larger.get(), bytes.get(), size);
    bytes = std::move(larger);
    capacity = grown;
  }

  /// What Append takes: a Record with its payload behind it. The former is larger than the header
  /// that Frame makes of it, so that payloads only ever move forward.
  static constexpr size_t StagedBytes(size_t payload_bytes) noexcept {
    static_assert(std::is_trivially_copyable_v<Record> && sizeof(Record) >= kRecordHeaderBytesMax);
    return sizeof(Record) + payload_bytes;
  }

  /// Room must have been reserved.
  void Append(const Record& record) {
    char* const at = bytes.get() + size;
    std::memcpy(at, &record, sizeof record);
    if (!record.payload.empty()) {
      std::memcpy(at + sizeof record, record.payload.data(), record.payload.size());
    }
    size += StagedBytes(record.payload.size());
  }

  /// The same of the only record. Room for StagedBytes(0) must have been reserved.
  void AppendUncopied(const Record& record) {
    std::memcpy(bytes.get(), &record, sizeof record);
    uncopied = record.payload;
    size = StagedBytes(0);
  }

  /// What it takes in a file, at most.
  size_t file_bytes_max() const noexcept { return size + uncopied.size(); }

  /// Makes of what was appended the bytes that will lie at `offset` of the file with this header,
  /// in the same memory; once. `uncopied` follows them. Takes the file's running hash on.
  std::string_view Frame(const FileHeader& header, uint64_t offset,
                         uint64_t* running_hash) noexcept;

  void Recycle(Group** free) {
    size = 0;
    uncopied = {};
    status = Status();
    if (capacity > kKeptBytesMax) {
      bytes.reset();
      capacity = 0;
    }
    next = std::exchange(*free, this);
  }
};

/// A log file that is still in the directory. Under the log's lock; what only its writer changes
/// (ends, running hash), the writer also reads without it.
struct Log::LogFile {
  std::string path;
  FileHeader header{};  ///< Nothing of a file from before Start that no later one continues.
  alignas(64) Lsn last_lsn = 0;  ///< Of such a file: the last LSN of them all.
  uint64_t written_end = 0;      ///< Bytes, with the header.
  uint64_t records_end = 0;      ///< The end of the last batch: a closing record may follow it.
  uint64_t running_hash = 0;     ///< At records_end.
  uint64_t synced_end = 0;
  uint64_t granted_end = 0;    ///< How far it may grow: beyond what is mapped to be written.
  bool entry_durable = false;  ///< The directory was synced since the file was made.
  /// Never synced again, and written no more; only tables make its LSNs durable.
  bool sync_failed = false;
  std::shared_ptr<io::File> handle;  ///< Null once nothing can be needed of it.

  bool NeedsSync() const {
    return handle != nullptr && !sync_failed && (synced_end < written_end || !entry_durable);
  }
};

/// One round of syncs, shared by those who wait for it. `done` publishes the rest.
struct Log::SyncRound {
  Lsn target = 0;  ///< Everything up to here is durable when the round ends well.
  Status status;
  std::atomic<int> done{0};
};

}  // namespace basalt::wal
