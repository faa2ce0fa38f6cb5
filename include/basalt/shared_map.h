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

namespace basalt {

namespace shared_map {
class Core;
class SpooledBuild;
struct ReaderState;
void ReleaseReader(ReaderState* state) noexcept;
}  // namespace shared_map

/// How the records of a map's base lie in its files.
enum class SharedMapLayout : uint8_t {
  kDerived = 0,   ///< Fixed when that costs at most a tenth more bytes than variable.
  kFixed = 1,     ///< Every record has a place of the same size: one cache miss a lookup.
  kVariable = 2,  ///< Records follow one another, found by an array of 4 bytes a key: two.
};

/// How a map is made or opened. The defaults need no tuning.
struct SharedMapOptions {
  /// Create: a map that is already there is replaced. Its readers keep what they have mapped.
  bool overwrite = false;
  /// The level of writes that name none. kInterval promises what kProcess does; kMemory is refused.
  Durability durability = Durability::kProcess;
  /// Of files that this handle writes.
  SharedMapLayout layout = SharedMapLayout::kDerived;
  /// How long Create and Open wait for the lock of another writer.
  std::chrono::milliseconds lock_timeout{0};
  /// Whether changes are folded into the base in the background as they pile up, by a thread of low
  /// priority. Writes wait for it once twice as many have come as one begins with, or the disk has
  /// little room left. Without it they pile up until Compact is called.
  bool compact_in_background = true;
  /// Threads that compute perfect hash functions; 0: one a processor.
  uint32_t threads = 0;
  /// Bytes that a SharedMapBuilder keeps in memory before it writes records to a temporary file; at
  /// least 1 MiB.
  uint64_t build_memory = uint64_t{256} << 20;
};

/// How far a build, Compact or Check has come.
struct SharedMapProgress {
  uint64_t done_records = 0;
  uint64_t total_records = 0;
};
/// Called now and then on the thread that waits; return false to cancel. Must not write to the map,
/// compact or close it: these may wait for what it tells of, for ever.
using SharedMapProgressFunction = std::function<bool(const SharedMapProgress&)>;

/// A map's figures at one moment.
struct SharedMapStats {
  uint64_t entries = 0;     ///< Live keys.
  uint64_t generation = 0;  ///< Counts publications of the map's list of files.
  uint64_t shards = 0;      ///< Parts of the base, each with a file and a perfect hash function.
  uint64_t base_records = 0;
  uint64_t fixed_shards = 0;    ///< Shards of the fixed layout.
  uint64_t changes = 0;         ///< Records in the change log: puts, and erasures of present keys.
  uint64_t changed_keys = 0;    ///< Distinct keys in it.
  uint64_t base_bytes = 0;      ///< Of files: records, functions, checksums.
  uint64_t function_bytes = 0;  ///< Of base_bytes, those of perfect hash functions.
  uint64_t log_bytes = 0;       ///< Of changes.
  uint64_t log_capacity_bytes = 0;
  uint64_t index_bytes = 0;       ///< Of the change index.
  bool compacting = false;        ///< A fold is under way, or was broken off and will go on.
  uint64_t optimizations = 0;     ///< Folds that this handle has finished.
  uint64_t compact_waits = 0;     ///< Writes of this handle that waited for a fold.
  uint64_t generations_held = 0;  ///< Older ones of this handle that readers still hold.
  uint64_t writer_pid = 0;        ///< Of the newest writer, which may have ended.
  std::string compact_error;  ///< Why the last fold in the background failed; empty: it did not.
};

/// What a check of a map found.
struct SharedMapReport {
  uint64_t records = 0;  ///< Whose bytes are what was written.
  uint64_t bytes = 0;    ///< Read.
  std::vector<std::string> problems;
  bool ok() const noexcept { return problems.empty(); }
};

/// A map from keys to values in memory-mapped files: one process writes, any number of processes
/// read, at the cost of a memory access or two a lookup.
///
///     auto map = basalt::SharedMap::Create("/dev/shm/features").value();   // the writer
///     basalt::Status s = map->Put("user:7", "...");
///
///     auto map = basalt::SharedMap::Attach("/dev/shm/features").value();   // every reader
///     auto reader = map->NewReader().value();                              // one a thread
///     if (auto found = reader.Get("user:7"); found && *found) Use((*found)->view());
///
/// Most records lie in immutable base files under perfect hash functions; changes go to an
/// append-only log with a small index, and are folded into new base files in the background.
/// Readers need read permission only, write nothing, take no lock and are never blocked; a value
/// that they see was written whole, by the key that they asked for. docs/shared-map.md has formats
/// and protocol.
///
/// All of SharedMap is thread-safe; a Reader belongs to one thread at a time. In a forked child,
/// writes are FailedPrecondition, and readers go on if no other thread was inside the map at the
/// fork; a child of many threads attaches anew. The path ":memory:" makes a map without files,
/// for Create and SharedMapBuilder::Create.
///
/// Where /proc/sys/kernel/random/boot_id cannot be read, what makes, opens, checks or destroys a
/// map with files is FailedPrecondition. All processes of a map must see the same one.
///
/// Files that are corrupt or cut short before they are opened give errors. Files that somebody cuts
/// short, or a disk that fails, under a live mapping are a SIGBUS, as with every mapped file.
class SharedMap {
 public:
  class Reader;
  class View;
  using MaybeView = Maybe<View>;

  /// Makes an empty map in a directory of its own, and opens it to be written. AlreadyExists: there
  /// is something, and options.overwrite is false or it is no map. Busy: a writer has it.
  static Result<std::unique_ptr<SharedMap>> Create(std::string_view path,
                                                   const SharedMapOptions& options = {});
  /// Opens a map to be written. Reads the log of changes: O(changes). NotFound. Busy: another
  /// writer has it; the message names its process.
  static Result<std::unique_ptr<SharedMap>> Open(std::string_view path,
                                                 const SharedMapOptions& options = {});
  /// Opens a map to be read, whether it has a writer or not. Verifies indexes and functions:
  /// O(changes), and 0.3 bytes a key of the fixed layout, 4.3 of the variable one. Writes are
  /// FailedPrecondition.
  static Result<std::unique_ptr<SharedMap>> Attach(std::string_view path);

  /// Closes. What is being folded is broken off, and goes on with the next writer.
  ~SharedMap();
  SharedMap(const SharedMap&) = delete;
  SharedMap& operator=(const SharedMap&) = delete;

  /// Sets one key. ResourceExhausted: the disk is full; nothing has changed then. Writes wait for a
  /// fold that does not keep up (SharedMapOptions::compact_in_background).
  Status Put(std::string_view key, std::string_view value, const WriteOptions& options = {});
  /// Removes one key, present or not.
  Status Delete(std::string_view key, const WriteOptions& options = {});
  /// Reads, computes and writes one key as one atomic step. `fn` runs outside all locks, and again
  /// when the key changed meanwhile. After three times the Update gets a turn: other threads'
  /// writes of the key wait until it has ended, for at most 100 ms and four times as long as `fn`
  /// took. (Writes of the thread that runs `fn` do not wait.)
  Status Update(std::string_view key, const UpdateFunction& fn, const WriteOptions& options = {});
  /// Puts and deletes, durable all or none, and seen all or none: once a Reader has seen one of
  /// them, its later calls see all, also when the writer is killed meanwhile. Unsupported: other
  /// kinds of records, what expires, a keyspace.
  Status Write(const WriteBatch& batch, const WriteOptions& options = {});
  /// Makes all writes that have returned survive a power cut.
  Status Sync();

  /// Folds the changes made before the call into the base. Others may write meanwhile. Cancelled:
  /// on_progress said so; what is done stays done.
  Status Compact(const SharedMapProgressFunction& on_progress = {});

  /// A reader for one thread at a time.
  Result<Reader> NewReader() const;

  Result<SharedMapStats> GetStats() const;

  /// Lets go of the files, durably closed. Later calls give the first one's answer; ~SharedMap does
  /// the same and drops the error. Later writes are FailedPrecondition; readers go on.
  Status Close();

  /// Reads every byte of a map and verifies it. The Result's error is only for what kept it from
  /// looking.
  static Result<SharedMapReport> Check(std::string_view path,
                                       const SharedMapProgressFunction& on_progress = {});
  /// Removes a map that no writer has. Readers keep what they have mapped. A directory that holds
  /// anything else is left with that.
  static Status Destroy(std::string_view path);

 private:
  friend class shared_map::Core;
  explicit SharedMap(std::shared_ptr<shared_map::Core> core);

  const std::shared_ptr<shared_map::Core> core_;
};

/// A value where it lies in a map's files. While any View of a Reader lives, that Reader stays on
/// its generation of the map and does not see newer ones: let go of a value before asking for the
/// next. A Reader holds the files of its generation, and their space, until its next call. May
/// outlive the Reader and the map, on the Reader's thread. Move-only, 24 bytes.
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
  /// A copy; may be called on a temporary.
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
  uint64_t* pins_ = nullptr;  ///< Of the Reader, which it begins with.
};

/// Reads a map. For one thread at a time; a map may have any number. Move-only.
///
/// With no View alive, each call sees all writes of the same process that returned before it, and
/// those of another process as soon as its processor does. Corruption: the bytes that would answer
/// are not those that were written; the message has file and offset.
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

  /// The value of a key, or nothing. One cache miss in the fixed layout, two in the variable one,
  /// at the same time where records are of like size; for a key that was changed since the last
  /// fold two, in the index of changes and in the log.
  Result<MaybeView> Get(std::string_view key);
  /// Many at once, with their memory prefetched: several times as fast as Get. `results` has as
  /// many elements, each as by Get, all as of one moment.
  Status MultiGet(std::span<const std::string_view> keys, std::span<Result<MaybeView>> results);
  Result<bool> Contains(std::string_view key);

  /// A Reader that stays with what the map holds now. O(1); keeps the files of the present
  /// generation.
  Result<Reader> GetSnapshot();

  /// Calls `visit` once for every record that the map holds at the call, in no order, from
  /// `threads` threads at once (0: one a processor); the views last for the call. Stops at the
  /// first error, which is its result.
  Status ParallelScan(
      uint32_t threads,
      const std::function<Status(std::string_view key, std::string_view value)>& visit);

  /// The generation that this Reader is on.
  uint64_t generation() const noexcept;

 private:
  friend class shared_map::Core;
  friend class SharedMap;
  explicit Reader(shared_map::ReaderState* state) noexcept : state_(state) {}

  shared_map::ReaderState* state_;
};

/// What a SharedMapBuilder does with a key that is added twice.
enum class Duplicates : uint8_t {
  kRefuse = 0,    ///< Finish is InvalidArgument and names the key.
  kKeepLast = 1,  ///< The value that was added last stays.
};

/// Builds a map out of many records at once, straight into base files: several times as fast as
/// puts. Records beyond options.build_memory wait in a temporary file in the map's directory.
///
///     auto builder = basalt::SharedMapBuilder::Create("features").value();
///     for (...) if (!builder->Add(key, value).ok()) return 1;
///     auto map = builder->Finish().value();          // open to be written
///
/// One thread at a time. Destroyed without Finish, it leaves no map.
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

  /// Builds what was added, durably, and gives the map. Afterwards the builder is used up.
  Result<std::unique_ptr<SharedMap>> Finish(const SharedMapProgressFunction& on_progress = {});

 private:
  friend class shared_map::SpooledBuild;
  explicit SharedMapBuilder(std::unique_ptr<shared_map::SpooledBuild> build);

  std::unique_ptr<shared_map::SpooledBuild> build_;
};

}  // namespace basalt
