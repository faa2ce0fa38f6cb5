#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "io/file_system.h"

namespace basalt::io {

class PooledFile;

/// Bounds the descriptors of files that stay in use for long and are only read, such as tables.
///
/// A file of the pool is closed while nobody reads it when the pool needs its descriptor for
/// another one, and opened again, by its path, for its next read. Which file is closed is decided
/// by a second chance: files stand in a queue; the first one goes, unless it was read since it last
/// stood there, or is being read, and then it goes to the end.
///
/// A read of a file that is open takes no lock: it adds two atomic operations to the system call.
/// The pool's mutex guards the queue. Files are opened and closed without it, and no other lock is
/// taken under it. Thread-safe.
class DescriptorPool {
 public:
  /// `capacity`: how many files may be open at once; more only while all of these are being read.
  /// 0: half of what the process may have open, at each moment, but at least kCapacityMin.
  explicit DescriptorPool(size_t capacity) noexcept : capacity_(capacity) {}
  DescriptorPool(const DescriptorPool&) = delete;
  DescriptorPool& operator=(const DescriptorPool&) = delete;

  /// That of all databases of the process. Also usable in a forked child.
  static DescriptorPool* Process();

  /// When a file may be closed.
  enum class Closing : uint8_t {
    kAsOthers,
    kLast,  ///< When no other kind is left: it may not be there any more to be opened again.
  };
  /// Opens a file to be read. `fs` and the pool must outlive it. What opening it again fails with
  /// is the error of the read that needed it; ESTALE when it is no longer there.
  Result<std::unique_ptr<File>> Open(FileSystem* fs, std::string_view path,
                                     Closing closing = Closing::kAsOthers);
  /// Closes one of the files, whether or not the pool is full. False: none can be closed now.
  bool CloseOne() noexcept;

  size_t open_files() const noexcept;

  static constexpr size_t kCapacityMin = 4;

 private:
  friend class PooledFile;
  using Queue = std::list<PooledFile*>;

  size_t Capacity() const noexcept;
  /// Counts a file that is about to be opened, and closes others where that makes too many.
  void TakePlace() noexcept;
  void GiveBackPlace() noexcept;
  void Add(PooledFile* file) noexcept;
  /// Before a file is destroyed, also one that is closed.
  void Remove(PooledFile* file) noexcept;
  /// Under the mutex: takes the next file to be closed out of the queues. Null: there is none.
  std::unique_ptr<File> TakeNext() noexcept;

  const size_t capacity_;
  mutable std::mutex mutex_;
  Queue queues_[2];   // by Closing; of files that are open
  size_t taken_ = 0;  // files that are open or about to be
};

/// Raises the number of files that the process may have open to the most that it may ask for.
void RaiseDescriptorLimit() noexcept;
/// How many files the process may have open now.
size_t DescriptorLimit() noexcept;

}  // namespace basalt::io
