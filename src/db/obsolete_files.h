#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "basalt/status.h"
#include "io/clock.h"
#include "io/file_system.h"

namespace basalt::db {

/// Removes the files of a database that its manifest no longer needs.
///
/// Another process that opens the database read-only marks the directory, reads the manifest and
/// opens the files that this needs; then the mark goes (Core::LoadForReading). A file that is to be
/// removed meanwhile waits. So the reader finds all files that it needs, whichever manifest it has
/// read: it read it after it set the mark, and a file goes only after a manifest that does not need
/// it was put in its place and after no mark was seen.
///
/// A reader that was stopped must not keep space for ever: after kPatienceMs a file is removed all
/// the same. Files that still wait at the end are removed by the next opening. A reader that finds
/// a file missing after that sees another manifest and begins again.
///
/// One mutex is held while files are removed; has_waiting does not take it. Asking for marks opens
/// the directory, which costs several microseconds for each removal. Thread-safe.
class ObsoleteFiles {
 public:
  /// How long a reader keeps files at most.
  static constexpr uint64_t kPatienceMs = 60'000;

  ObsoleteFiles(io::FileSystem* fs, std::string directory, io::Clock* clock);
  ObsoleteFiles(const ObsoleteFiles&) = delete;
  ObsoleteFiles& operator=(const ObsoleteFiles&) = delete;

  /// Removes a file now, or later if a mark is there. Call it after the manifest that does not need
  /// the file was put in its place. Returns the error of the removal.
  Status Remove(const std::string& path);
  /// Removes those that wait and may go.
  void RemoveWaiting() noexcept;
  bool has_waiting() const noexcept { return waiting_count_.load(std::memory_order_relaxed) > 0; }
  /// The same as RemoveWaiting; no file is removed afterwards. Call it before the directory's lock
  /// is released: files of another opening may have the same names.
  void End() noexcept;

 private:
  struct Waiting {
    std::string path;
    uint64_t since_ms;
  };
  /// Whether a reader may need files.
  bool IsInUse() const;
  void RemoveWaitingLocked();
  uint64_t NowMs() const { return clock_->MonotonicMicros() / 1000; }

  io::FileSystem* const fs_;
  const std::string directory_;
  io::Clock* const clock_;
  std::mutex mutex_;
  std::vector<Waiting> waiting_;  // Oldest first.
  std::atomic<size_t> waiting_count_{0};
  bool has_ended_ = false;
};

}  // namespace basalt::db
