#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "basalt/write_batch.h"
#include "io/sim_file_system.h"
#include "wal/log.h"
#include "wal/recovery.h"

namespace basalt::wal {

inline constexpr char kTestDirectory[] = "/db";

/// What recovery gave back, for comparison.
struct Recovered {
  Status status;
  RecoveryResult result;
  std::vector<std::string> payloads;  ///< From the first LSN that was not flushed on.
};

inline Recovered RecoverAll(io::FileSystem* fs, Lsn flushed = 0, Lsn manifest_durable = 0,
                            RecoveryMode mode = RecoveryMode::kOpen, uint64_t database_id = 0) {
  Recovered recovered;
  Lsn next = flushed + 1;
  auto result = Recover(fs, kTestDirectory, {database_id, flushed, manifest_durable}, mode,
                        [&](const RecordView& record) {
                          if (record.lsn != next++) {
                            return Status(StatusCode::kAborted, "not contiguous");
                          }
                          recovered.payloads.emplace_back(record.payload);
                          return Status();
                        });
  recovered.status = result.status();
  if (result) recovered.result = std::move(*result);
  return recovered;
}

/// An empty, durable directory for a log.
inline std::unique_ptr<io::SimFileSystem> NewTestFileSystem() {
  auto fs = std::make_unique<io::SimFileSystem>();
  Status made = fs->CreateDirectory(kTestDirectory);
  if (made.ok()) made = fs->SyncDirectory("/");
  if (!made.ok()) std::abort();
  return fs;
}

/// Starts a log that refuses to flush unless `flush_through` is given.
inline std::unique_ptr<Log> StartLog(io::FileSystem* fs, const LogStart& start = {},
                                     std::function<Status(Lsn)> flush_through = {}) {
  auto log = Log::Start(fs, kTestDirectory, start,
                        {.preallocate_bytes = 8192, .flush_through = std::move(flush_through)});
  return std::move(log.value());
}

inline Status Append(Log* log, std::string_view payload, Lsn* lsn = nullptr) {
  static std::atomic<uint64_t> sequence{1};
  Log::Ticket ticket = log->Stage(sequence.fetch_add(1), 1, payload);
  Status status = log->Wait(ticket);
  if (lsn != nullptr) *lsn = ticket.lsn();
  return status;
}

/// The payload of the `i`-th record, a batch: of any length up to 200, and different from all
/// others.
inline std::string TestPayload(uint64_t i) {
  WriteBatch batch;
  batch.Put(std::to_string(i), std::string(i * 37 % 150, static_cast<char>('a' + i % 26)));
  return std::string(batch.bytes());
}

inline std::vector<std::string> TestPayloads(uint64_t first, uint64_t last) {
  std::vector<std::string> payloads;
  for (uint64_t i = first; i <= last; ++i) payloads.push_back(TestPayload(i));
  return payloads;
}

}  // namespace basalt::wal
