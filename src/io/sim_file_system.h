#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/file_system.h"
#include "io/sim_inode.h"

// A file system in memory that can lose power and fail, the same way again for the same seed. What
// it may do to a program is the specification that durability is tested against:
//
//  Bytes of a file
//   - A program sees its writes at once (live image), also through mappings. They survive a power
//   cut
//     for certain once a later Sync of the file has succeeded (durable image). Sync covers bytes,
//     size, truncations and allocations of that one file, and not its name.
//   - Of the changes since the last successful Sync, a cut leaves what the CrashMode draws for the
//   file:
//     nothing, everything, those up to some moment, the same and a part of the next write, or any
//     subset of the 512-byte sectors, where a sector that was written more than once may be of any
//     moment between. A file's size is of a moment of its own then: bytes beyond it are gone, and
//     what it covers but did not reach the disk is zeros, or what was there before. Only
//     truncations are kept in order with the writes after them.
//   - A sector is never torn inside except in a torn tail. Bytes that were durable change only
//   where an
//     unsynced write or truncation touches them.
//   - A Sync that fails (by an injected error other than EINTR) leaves its bytes visible, but
//   clean: no
//     later Sync makes them durable, as on Linux, where a failed write-back marks pages clean. A
//     cut keeps or loses them like other unsynced ones, each write by a draw of its own besides.
//
//  Names
//   - Creations, renames, removals and directories' creation are visible at once, and survive for
//   certain
//     after a later SyncDirectory of the directory that holds the name. A synced file whose name
//     was not synced may be gone; a name that was synced may lead to a file whose bytes were not.
//   - Of the changes since, a cut keeps none, all, those up to some moment, or a random subset. A
//   rename is
//     one change, also between two directories: afterwards both names are as before or both as
//     after. A change of a name is kept only if the earlier changes of that name are. Syncing one
//     of the directories of a rename makes it durable as a whole.
//
//  The machine
//   - After a cut every File, Mapping and FileLock of before is dead: calls of a File answer EIO
//   and change
//     nothing, mappings keep the bytes that they showed, locks are gone.
//   - Any call can fail by an injected Fault; then it has done nothing. A short read or write does
//   at
//     least one byte. Beyond the capacity a write is short, and then answers ENOSPC; an allocation
//     takes what there is, and answers ENOSPC.
//
// Names of calls, for faults and observers: "open" "read" "write" "sync" "truncate" "allocate"
// "size" "map" "mkdir" "list" "rename" "remove" "rmdir" "syncdir" "stat" "statfs" "lock" "mark"
// (MarkDirectory and IsMarked). A public function may make several: a retry after EINTR or a short
// write is a call of its own, and File::Map asks for the size first. Closing is not a call.

namespace basalt::io {

/// Which of the file system's calls fails, and how.
struct Fault {
  enum class Kind : uint8_t {
    kError,       ///< Any call: answers `error` and does nothing.
    kShortRead,   ///< Only "read": gives a part.
    kShortWrite,  ///< Only "write": writes a part and says so.
  };
  Kind kind = Kind::kError;
  /// Counted from 1 over the calls to which the fault can happen, since SetFault or ResetCalls. 0:
  /// never.
  uint64_t at_call = 0;
  int error = 0;        ///< EIO, ENOSPC, EMFILE, EINTR; for kError.
  bool sticky = false;  ///< This and every later call to which the fault can happen, until cleared.
  /// Which calls it can happen to and are counted: all when empty. Called without locks.
  std::function<bool(std::string_view operation, std::string_view path)> matches{};
};

/// See above. Thread-safe; one lock covers all. Open files may outlive it.
class SimFileSystem final : public FileSystem {
 public:
  enum class Durability : uint8_t {
    kTracked,
    kIgnored,  ///< Remembers nothing for Crash, after which everything is still there. Cheaper.
  };

  /// With an empty, durable directory "/".
  explicit SimFileSystem(Durability durability = Durability::kTracked);
  ~SimFileSystem() override;

  /// Cuts the power. `mode` holds for the bytes of every file and for names, where kTornTail is
  /// kPrefix; with kRandom each file and the names draw their own. The same calls before and the
  /// same seed leave the same.
  void Crash(uint64_t seed, CrashMode mode = CrashMode::kRandom);

  /// A copy of the whole state (live, durable and between) and of the capacity, with no open files,
  /// locks, fault or observer: many crashes can be tried from one moment. O(bytes).
  std::unique_ptr<SimFileSystem> Clone() const;

  /// Replaces the fault that was set before.
  void SetFault(Fault fault);
  void ClearFault();
  /// Whether the fault that is set has happened.
  bool FaultHappened() const;

  /// Calls made since construction or the last reset. Calls of dead files do not count.
  uint64_t calls() const;
  /// Counts calls, also those of the fault, from 1 again.
  void ResetCalls();
  /// Called before every call with its number, operation and path, without locks: it may clone the
  /// file system, or cut the power, and then the call answers EIO. An empty one is none.
  void SetObserver(
      std::function<void(uint64_t call, std::string_view operation, std::string_view path)>
          observer);

  /// Flips one bit of a file's bytes, live and durable.
  Status FlipBit(std::string_view path, uint64_t bit);
  /// Limits the bytes of all files together; writes and allocations beyond it answer ENOSPC. 0:
  /// none.
  void SetCapacity(uint64_t bytes);
  /// False: File::Allocate answers ok and does nothing, as where there is no fallocate.
  void SetCanAllocate(bool can_allocate);
  /// The sizes of all files together, as SetCapacity counts them.
  uint64_t BytesUsed() const;

 private:
  struct State;
  class Call;
  class OpenFile;
  class HeldLock;
  class HeldMark;
  class HeldMapping;
  class HeldWritableMapping;

  int DoOpen(const std::string& path, OpenMode mode, std::unique_ptr<File>* file) override;
  int DoCreateDirectory(const std::string& path) override;
  int DoList(const std::string& path, std::vector<std::string>* names) override;
  int DoRename(const std::string& from, const std::string& to) override;
  int DoRemoveFile(const std::string& path) override;
  int DoRemoveDirectory(const std::string& path) override;
  int DoSyncDirectory(const std::string& path) override;
  int DoStat(const std::string& path, bool* is_directory, uint64_t* size) override;
  int DoFreeBytes(const std::string& path, std::optional<uint64_t>* bytes) override;
  int DoLock(const std::string& path, std::unique_ptr<FileLock>* lock,
             std::string* holder) override;
  int DoMarkDirectory(const std::string& path, std::unique_ptr<FileLock>* mark) override;
  int DoIsMarked(const std::string& path, bool* is_marked) override;

  const std::shared_ptr<State> state_;
};

}  // namespace basalt::io
