#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/maybe.h"
#include "basalt/options.h"
#include "basalt/status.h"
#include "basalt/store.h"
#include "basalt/write_batch.h"

// The shared map: a map in mapped files, which one process writes and many read. Read SharedMap
// first, then SharedMap::Reader. docs/shared-map.md explains it.

namespace basalt {

namespace shared_map {
class Core;
class SpooledBuild;
struct ReaderState;
void ReleaseReader(ReaderState* state) noexcept;
}  // namespace shared_map

/// The layout of records in a map's base files.
enum class SharedMapLayout : uint8_t {
  kDerived = 0,   ///< Fixed if that takes at most a tenth more bytes than variable.
  kFixed = 1,     ///< Every record has a slot of the same size: one cache miss for a lookup.
  kVariable = 2,  ///< Records follow one another and are found by an array of 4 bytes a key: two.
};

/// Options of a map. The defaults need no tuning.
struct SharedMapOptions {
  /// Create: replaces a map that exists already. Its readers keep what they have mapped.
  bool overwrite = false;
  /// The level of writes that name none. kInterval promises the same as kProcess; kMemory is
  /// refused.
  Durability durability = Durability::kProcess;
  /// The layout of files that this handle writes.
  SharedMapLayout layout = SharedMapLayout::kDerived;
  /// How long Create and Open wait for the lock of another writer.
  std::chrono::milliseconds lock_timeout{0};
  /// Whether changes are compacted into the base in the background, by a thread of low priority.
  /// When there are twice as many changes as start a compaction, or the disk has little room left,
  /// writes wait for it. Without it, changes accumulate until Compact is called.
  bool compact_in_background = true;
  /// Threads that compute perfect hash functions. 0: one for each processor.
  uint32_t threads = 0;
  /// Bytes that a SharedMapBuilder keeps in memory before it writes records to a temporary file. At
  /// least 1 MiB.
  uint64_t build_memory = uint64_t{256} << 20;
};

/// The progress of a build, Compact or Check.
struct SharedMapProgress {
  uint64_t done_records = 0;
  uint64_t total_records = 0;
};
/// Called periodically on the waiting thread. Return false to cancel. It must not write to the map,
/// compact or close it: these calls may wait for the operation that reports the progress, and never
/// return.
using SharedMapProgressFunction = std::function<bool(const SharedMapProgress&)>;

/// Statistics of a map at one moment.
struct SharedMapStats {
  uint64_t entries = 0;  ///< Live keys.
  uint64_t version =
      0;  ///< The number of the map's current list of files. It grows with each new list.
  uint64_t shards = 0;  ///< Parts of the base, each with a file and a perfect hash function.
  uint64_t base_records = 0;
  uint64_t fixed_shards = 0;    ///< Shards of the fixed layout.
  uint64_t changes = 0;         ///< Records in the change log: puts, and deletes of present keys.
  uint64_t changed_keys = 0;    ///< Distinct keys in the change log.
  uint64_t base_bytes = 0;      ///< Bytes of base files: records, functions, checksums.
  uint64_t function_bytes = 0;  ///< Of base_bytes, those of perfect hash functions.
  uint64_t log_bytes = 0;       ///< Bytes of changes.
  uint64_t log_capacity_bytes = 0;
  uint64_t index_bytes = 0;    ///< Bytes of the change index.
  bool compacting = false;     ///< A compaction is running, or was interrupted and will be resumed.
  uint64_t optimizations = 0;  ///< Compactions that this handle has finished.
  uint64_t compact_waits = 0;  ///< Writes of this handle that waited for a compaction.
  uint64_t versions_held = 0;  ///< Older versions of this handle that readers still hold.
  uint64_t writer_pid = 0;     ///< The process of the newest writer. It may have ended.
  std::string
      compact_error;  ///< Why the last background compaction failed. Empty: it did not fail.
};

/// The result of a check of a map.
struct SharedMapReport {
  uint64_t records = 0;  ///< Records whose bytes are intact.
  uint64_t bytes = 0;    ///< Bytes that were read.
  std::vector<std::string> problems;
  bool ok() const noexcept { return problems.empty(); }
};

/// A map from keys to values in memory-mapped files. One process writes and any number of processes
/// read. A lookup takes one or two memory accesses.
///
///     auto map = basalt::SharedMap::Create("/dev/shm/features").value();   // the writer
///     basalt::Status s = map->Put("user:7", "...");
///
///     auto map = basalt::SharedMap::Attach("/dev/shm/features").value();   // every reader
///     auto reader = map->NewReader().value();                              // one a thread
///     if (auto found = reader.Get("user:7"); found && *found) Use((*found)->view());
///
/// Most records lie in immutable base files with perfect hash functions. Changes go to an
/// append-only log with a small index, and are compacted into new base files in the background.
/// Readers need only read permission. They write nothing, take no lock and are never blocked. A
/// value that they see was written completely, for the key that they asked for. docs/shared-map.md
/// has the formats and the protocol.
///
/// All functions of SharedMap are thread-safe. A Reader is used by one thread at a time. In a
/// forked child, writes return FailedPrecondition. Readers continue to work there if no other
/// thread was inside the map at the fork; a child that needs certainty attaches again. The path
/// ":memory:" creates a map without files, for Create and SharedMapBuilder::Create.
///
/// If /proc/sys/kernel/random/boot_id cannot be read, calls that create, open, check or destroy a
/// map with files return FailedPrecondition. All processes of a map must see the same boot id.
///
/// Files that were corrupted or truncated before they are opened give errors. Files that are
/// truncated under a live mapping, or a failing disk, cause a SIGBUS, as with every mapped file.
class SharedMap {
 public:
  class Reader;
  class View;
  using MaybeView = Maybe<View>;

  /// Creates an empty map in a directory of its own, and opens it for writing. AlreadyExists: the
  /// path exists, and options.overwrite is false or it is not a map. Busy: a writer has it open.
  static Result<std::unique_ptr<SharedMap>> Create(std::string_view path,
                                                   const SharedMapOptions& options = {});
  /// Opens a map for writing. Reads the change log: O(changes). NotFound: there is no map. Busy:
  /// another writer has it open; the message names its process.
  static Result<std::unique_ptr<SharedMap>> Open(std::string_view path,
                                                 const SharedMapOptions& options = {});
  /// Opens a map for reading, whether it has a writer or not. Verifies indexes and functions. This
  /// reads O(changes), and 0.3 bytes a key of the fixed layout, 4.3 of the variable one. Writes
  /// return FailedPrecondition.
  static Result<std::unique_ptr<SharedMap>> Attach(std::string_view path);

  /// Closes the map. A running compaction is interrupted; the next writer resumes it.
  ~SharedMap();
  SharedMap(const SharedMap&) = delete;
  SharedMap& operator=(const SharedMap&) = delete;

  /// Sets one key. ResourceExhausted: the disk is full, and nothing has changed. If compaction is
  /// too slow, writes wait for it (SharedMapOptions::compact_in_background).
  Status Put(std::string_view key, std::string_view value, const WriteOptions& options = {});
  /// Removes one key. It may be absent. Deletes continue on a full disk, in space that the map
  /// reserves for them; see docs/shared-map.md.
  Status Delete(std::string_view key, const WriteOptions& options = {});
  /// Reads, computes and writes one key in one atomic step. `fn` runs outside all locks, and runs
  /// again if the key changed meanwhile. After three attempts the Update gets a turn: other
  /// threads' writes of the key wait until it has ended. They wait at most 100 ms and four times
  /// the time of `fn`. Writes of the thread that runs `fn` do not wait.
  Status Update(std::string_view key, const UpdateFunction& fn, const WriteOptions& options = {});
  /// Applies puts and deletes atomically. A crash keeps all of them or none. When a Reader has seen
  /// one of them, its later calls see all, even if the writer is killed meanwhile. Unsupported:
  /// other kinds of records, records that expire, a keyspace.
  Status Write(const WriteBatch& batch, const WriteOptions& options = {});
  /// Makes all writes that have returned survive a power cut.
  Status Sync();

  /// Compacts the changes made before the call into the base. Other threads may write meanwhile.
  /// Cancelled: on_progress returned false; finished parts are kept.
  Status Compact(const SharedMapProgressFunction& on_progress = {});

  /// A reader for one thread at a time.
  Result<Reader> NewReader() const;

  Result<SharedMapStats> GetStats() const;

  /// Closes the files durably. Later calls return the first result. ~SharedMap does the same and
  /// drops the error. Later writes return FailedPrecondition; readers continue to work.
  Status Close();

  /// Reads every byte of a map and verifies it. The Result is an error only if the check could not
  /// run.
  static Result<SharedMapReport> Check(std::string_view path,
                                       const SharedMapProgressFunction& on_progress = {});
  /// Removes a map that has no writer. Readers keep what they have mapped. If the directory
  /// contains other files, it stays with them.
  static Status Destroy(std::string_view path);

 private:
  friend class shared_map::Core;
  explicit SharedMap(std::shared_ptr<shared_map::Core> core);

  const std::shared_ptr<shared_map::Core> core_;
};

/// A value inside a map's files. While a View of a Reader lives, the Reader stays on its version
/// of the map and does not see newer ones: destroy a View before the next lookup. A Reader holds
/// the files of its version, and their space, until its next call. A View may outlive the Reader
/// and the map, on the Reader's thread. Move-only, 24 bytes.
class SharedMap::View {
 public:
  View() noexcept = default;
  View(View&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        pins_(std::exchange(other.pins_, nullptr)) {}
  View& operator=(View&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(pins_, other.pins_);
    return *this;
  }
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  ~View() {
    if (pins_ != nullptr && --*pins_ == 0) Release();
  }

  std::string_view view() const& noexcept { return {data_, size_}; }
  std::string_view view() const&& = delete;
  operator std::string_view() const& noexcept { return view(); }
  operator std::string_view() const&& = delete;
  size_t size() const noexcept { return size_; }
  /// A copy. May be called on a temporary.
  std::string ToString() const { return std::string(data_, size_); }
  friend bool operator==(const View& a, const View& b) noexcept { return a.view() == b.view(); }
  friend bool operator==(const View& a, std::string_view b) noexcept { return a.view() == b; }

 private:
  friend struct shared_map::ReaderState;
  View(const char* data, size_t size, uint64_t* pins) noexcept
      : data_(data), size_(size), pins_(pins) {
    ++*pins;
  }
  void Release() noexcept;

  const char* data_ = nullptr;
  size_t size_ = 0;
  uint64_t* pins_ = nullptr;  ///< Of the Reader's state, at its beginning.
};

/// Reads a map. Used by one thread at a time; a map may have any number of readers. Move-only.
///
/// If no View lives, each call sees all writes of the same process that returned before it, and
/// those of another process as soon as the processor makes them visible. Corruption: the bytes of
/// the answer are not the ones that were written; the message has file and offset.
class SharedMap::Reader {
 public:
  Reader(Reader&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Reader& operator=(Reader&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader();

  /// The value of a key, or nothing. Takes one cache miss in the fixed layout and two in the
  /// variable one. The two overlap if records have similar sizes. A key that was changed since the
  /// last compaction takes two, in the change index and in the log.
  Result<MaybeView> Get(std::string_view key);
  /// Looks up many keys at one moment and prefetches their memory: several times as fast as Get.
  /// `results` has as many elements, each as from Get.
  Status MultiGet(std::span<const std::string_view> keys, std::span<Result<MaybeView>> results);
  Result<bool> Contains(std::string_view key);

  /// A Reader that keeps seeing the map's current contents. O(1). Keeps the files of the current
  /// version.
  Result<Reader> GetSnapshot();

  /// Calls `visit` once for every record that the map holds at the call, in no order, from
  /// `threads` threads at once (0: one for each processor). The views are valid during the call
  /// only. Stops at the first error and returns it.
  Status ParallelScan(
      uint32_t threads,
      const std::function<Status(std::string_view key, std::string_view value)>& visit);

  /// The version of the map that this Reader uses.
  uint64_t version() const noexcept;

 private:
  friend class shared_map::Core;
  friend class SharedMap;
  explicit Reader(shared_map::ReaderState* state) noexcept : state_(state) {}

  shared_map::ReaderState* state_;
};

/// What a SharedMapBuilder does if a key is added twice.
enum class Duplicates : uint8_t {
  kRefuse = 0,    ///< Finish is InvalidArgument and names the key.
  kKeepLast = 1,  ///< The value that was added last stays.
};

/// Builds a map from many records, directly into base files: several times as fast as puts. Records
/// beyond options.build_memory are kept in a temporary file in the map's directory.
///
///     auto builder = basalt::SharedMapBuilder::Create("features").value();
///     for (...) if (!builder->Add(key, value).ok()) return 1;
///     auto map = builder->Finish().value();          // open for writing
///
/// Used by one thread at a time. If it is destroyed before Finish, it leaves no map.
class SharedMapBuilder {
 public:
  /// As SharedMap::Create. With options.overwrite the old map stays until Finish.
  static Result<std::unique_ptr<SharedMapBuilder>> Create(
      std::string_view path, const SharedMapOptions& options = {},
      Duplicates duplicates = Duplicates::kRefuse);
  ~SharedMapBuilder();

  /// InvalidArgument: a key or value is too large. ResourceExhausted: the disk is full.
  Status Add(std::string_view key, std::string_view value);
  uint64_t added() const noexcept;

  /// Builds a map from the added records, durably, and returns it. Afterwards the builder cannot be
  /// used.
  Result<std::unique_ptr<SharedMap>> Finish(const SharedMapProgressFunction& on_progress = {});

 private:
  friend class shared_map::SpooledBuild;
  explicit SharedMapBuilder(std::unique_ptr<shared_map::SpooledBuild> build);

  std::unique_ptr<shared_map::SpooledBuild> build_;
};

}  // namespace basalt
