#pragma once

// src/io: files, directories and clocks, as interfaces that tests can simulate. Read FileSystem
// first, then SimFileSystem (sim_file_system.h), which cuts the power and fails calls.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/status.h"

// Everything that touches a disk goes through here: the machine's file system (FileSystem::Posix)
// or a simulated one with power cuts and injected faults (sim_file_system.h).
//
// Implementations override the private functions, which mirror system calls: they answer an errno
// (0: done) and may read or write less than asked. The public functions are written once over them:
// they retry EINTR, finish short reads and writes, and turn an errno into a Status that names the
// operation, the path and, where a person can do something, what to do.

namespace basalt::io {

/// The Status for an errno. ENOENT: NotFound; EEXIST: AlreadyExists; ENOSPC, EDQUOT, EMFILE,
/// ENFILE, ENOMEM: ResourceExhausted; others IoError. `operation` reads like "write 4096 bytes at
/// 8192".
Status ErrnoStatus(int error, std::string_view operation, std::string_view path);
/// Whether it is one of ENOSPC or EDQUOT: what is wanting is room on the disk, and nothing else
/// that ResourceExhausted may mean.
bool IsDiskFull(const Status& status) noexcept;

/// A read-only mapping of a file's first bytes; unmapped on destruction. Sees later writes.
class Mapping {
 public:
  virtual ~Mapping() = default;
  std::string_view bytes() const noexcept { return bytes_; }

 protected:
  std::string_view bytes_;
};

/// A mapping of a file's first bytes that can be written, seen by every other mapping of them at
/// once; unmapped on destruction. The kernel may write them to the disk in any order, or never.
class WritableMapping {
 public:
  virtual ~WritableMapping() = default;
  char* data() const noexcept { return data_; }
  uint64_t size() const noexcept { return size_; }

 protected:
  char* data_ = nullptr;
  uint64_t size_ = 0;
};

/// An open file; closed on destruction. Reads may run concurrently; so may writes to disjoint
/// ranges.
class File {
 public:
  virtual ~File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::string& path() const noexcept { return path_; }

  /// Fills `out` from `offset` on; gives the bytes read, fewer only where the file ends.
  Result<size_t> ReadAt(uint64_t offset, std::span<char> out) const;
  /// As ReadAt, but a file that ends earlier is Corruption ("... ends at X, needed Y").
  Status ReadExactAt(uint64_t offset, std::span<char> out) const;
  /// Writes all of `bytes` at `offset`. After an error any part of them may have been written.
  Status WriteAt(uint64_t offset, std::string_view bytes);
  /// The same for pieces one after the other, in as few system calls as the system allows.
  Status WritePiecesAt(uint64_t offset, std::span<const std::string_view> pieces);
  /// These bytes are about to be read: the system may begin to load them. A hint, which cannot
  /// fail, and waits for nothing.
  void WillRead(uint64_t offset, uint64_t size) const noexcept { DoWillRead(offset, size); }
  /// From now on WriteAt may copy small writes into memory that is mapped over the file, instead of
  /// calling the system, where the file system can promise the space: where the file has no room
  /// for a write it is then extended by `chunk_bytes` of zeros at a time. What is written survives
  /// the death of the process either way. One writer at a time, which writes upwards; nobody else
  /// may cut the file off.
  void WriteThroughMemory(uint64_t chunk_bytes) noexcept { DoWriteThroughMemory(chunk_bytes); }
  /// Whether WriteAt of `bytes` at `offset` would be a copy into such memory as it is mapped now:
  /// some tens of nanoseconds. Asked by the one writer.
  bool WritesToMemory(uint64_t offset, size_t bytes) const noexcept {
    return DoWritesToMemory(offset, bytes);
  }
  /// fdatasync: the file's bytes and size survive a power cut. After an error the state of unsynced
  /// bytes is unknown, and a retry proves nothing.
  Status Sync();
  Status Truncate(uint64_t size);
  /// Reserves space for [0, size) and extends the file to `size` with zeros; never shrinks it.
  /// Where there is no room for all it may take what there is, and the file keep a part of it. A
  /// file system without fallocate answers ok and does nothing. More than the process may write to
  /// a file (`ulimit -f`) is refused without the signal that a write would send.
  Status Allocate(uint64_t size);
  Result<uint64_t> Size() const;
  Result<std::unique_ptr<Mapping>> Map(uint64_t size) const;
  /// As Map, of a file that was opened to be written. Its space must be allocated: a store that
  /// finds none is a signal, not an error.
  Result<std::unique_ptr<WritableMapping>> MapForWriting(uint64_t size);

  /// Marks the file as in use until this object is destroyed, for IsInUse of other open files of
  /// it, also of other processes. Needs only the right to read it.
  Status MarkInUse();
  /// Whether MarkInUse was called on another open file of this one.
  Result<bool> IsInUse() const;

 protected:
  explicit File(std::string path) : path_(std::move(path)) {}

 private:
  virtual int DoRead(uint64_t offset, std::span<char> out, size_t* done) const = 0;
  virtual int DoWrite(uint64_t offset, std::span<const std::string_view> pieces, size_t* done) = 0;
  virtual void DoWillRead(uint64_t, uint64_t) const noexcept {}
  virtual void DoWriteThroughMemory(uint64_t) noexcept {}
  virtual bool DoWritesToMemory(uint64_t, size_t) const noexcept { return false; }
  virtual int DoSync() = 0;
  virtual int DoTruncate(uint64_t size) = 0;
  virtual int DoAllocate(uint64_t size) = 0;
  virtual int DoSize(uint64_t* size) const = 0;
  virtual int DoMap(uint64_t size, std::unique_ptr<Mapping>* mapping) const = 0;
  virtual int DoMapForWriting(uint64_t size, std::unique_ptr<WritableMapping>* mapping) = 0;
  virtual int DoMarkInUse() = 0;
  virtual int DoIsInUse(bool* in_use) const = 0;

  friend class PooledFile;  // stands for another file

  std::string path_;
};

enum class OpenMode : uint8_t {
  kRead,       ///< Must exist.
  kReadWrite,  ///< Must exist.
  kCreate,     ///< Must not exist; read and write.
};

/// Held until destroyed. See FileSystem::Lock and MarkDirectory.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  Result<std::unique_ptr<File>> Open(std::string_view path, OpenMode mode);
  /// One level; AlreadyExists when something of that name is there.
  Status CreateDirectory(std::string_view path);
  /// Names (not paths) of what a directory holds, sorted, without "." and "..".
  Result<std::vector<std::string>> List(std::string_view path);
  /// Replaces `to`, atomically for every observer; durable after SyncDirectory.
  Status Rename(std::string_view from, std::string_view to);
  Status RemoveFile(std::string_view path);
  Status RemoveDirectory(std::string_view path);
  /// Makes creations, renames and removals in the directory survive a power cut.
  Status SyncDirectory(std::string_view path);
  /// False when nothing is there; an error when that cannot be told.
  Result<bool> Exists(std::string_view path);
  Result<bool> IsDirectory(std::string_view path);
  Result<uint64_t> FileSize(std::string_view path);
  /// More than so many bytes cannot be allocated now on the disk that holds `path`. None: it cannot
  /// be told, as where space that was freed comes back some time later.
  std::optional<uint64_t> FreeBytes(std::string_view path);
  /// Sets the time of a file's last change to now. Stores through a mapping may leave it as it was,
  /// as on tmpfs, and programs that copy what has changed go by it.
  Status MarkChanged(std::string_view path);
  /// The path of something that is there, absolute and without symbolic links: it goes on leading
  /// there when the working directory or a link changes. NotFound: nothing is there.
  Result<std::string> Resolve(std::string_view path);

  /// Takes the lock file `path` (made when absent) for this process and handle: an OFD write lock,
  /// plus a registry inside the process. The holder writes pid, start time, host and program into
  /// the file; a refused opener gets Busy with them and what to do. A forked child lets go of the
  /// file.
  Result<std::unique_ptr<FileLock>> Lock(std::string_view path);

  /// Marks a directory until the mark is destroyed, for IsMarked, also of other processes. Any
  /// number of marks may be there at once. Needs only the right to read the directory, and writes
  /// nothing. A forked child lets go of the mark.
  Result<std::unique_ptr<FileLock>> MarkDirectory(std::string_view path);
  /// Whether anybody has marked the directory.
  Result<bool> IsMarked(std::string_view path);

  /// The machine's file system. What it opens has descriptors from 3 on, also where the program has
  /// closed its standard streams.
  static FileSystem* Posix();

 private:
  friend class PooledFile;
  virtual int DoOpen(const std::string& path, OpenMode mode, std::unique_ptr<File>* file) = 0;
  virtual int DoCreateDirectory(const std::string& path) = 0;
  virtual int DoList(const std::string& path, std::vector<std::string>* names) = 0;
  virtual int DoRename(const std::string& from, const std::string& to) = 0;
  virtual int DoRemoveFile(const std::string& path) = 0;
  virtual int DoRemoveDirectory(const std::string& path) = 0;
  virtual int DoSyncDirectory(const std::string& path) = 0;
  virtual int DoStat(const std::string& path, bool* is_directory, uint64_t* size) = 0;
  virtual int DoFreeBytes(const std::string& path, std::optional<uint64_t>* bytes) = 0;
  /// One that knows no times does nothing.
  virtual int DoMarkChanged(const std::string&) { return 0; }
  /// One that has neither links nor a working directory gives the path as it is.
  virtual int DoResolve(const std::string& path, std::string* resolved) {
    bool is_directory = false;
    uint64_t size = 0;
    *resolved = path;
    return DoStat(path, &is_directory, &size);
  }
  /// Answers EWOULDBLOCK with `holder` filled in when another has it.
  virtual int DoLock(const std::string& path, std::unique_ptr<FileLock>* lock,
                     std::string* holder) = 0;
  virtual int DoMarkDirectory(const std::string& path, std::unique_ptr<FileLock>* mark) = 0;
  virtual int DoIsMarked(const std::string& path, bool* is_marked) = 0;
};

/// The directory that mkfs makes in the root of an ext file system. A directory that holds only it
/// counts as empty.
inline constexpr std::string_view kLostAndFound = "lost+found";

/// The directory part of a path ("." when it has none), and `directory`/`name`.
std::string ParentDirectory(std::string_view path);
std::string JoinPath(std::string_view directory, std::string_view name);

/// The whole of a small file. `limit` bounds it: a larger one is Corruption.
Result<std::string> ReadWholeFile(FileSystem* fs, std::string_view path, uint64_t limit);
/// Replaces `path` atomically and durably: writes `path`.tmp, syncs it, renames it, syncs the
/// directory. After an error either the old or the new content is there.
Status ReplaceFile(FileSystem* fs, std::string_view path, std::string_view bytes);
/// Its two halves. After an error of the first one `path` is what it was, for certain.
Status WriteReplacement(FileSystem* fs, std::string_view path, std::string_view bytes);
Status TakeReplacement(FileSystem* fs, std::string_view path);

}  // namespace basalt::io
