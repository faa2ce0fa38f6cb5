#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "io/file_system.h"

namespace basalt::io {

/// Disk space kept back for what must go on when the disk is full. A file of zeros that the file
/// system has allocated; where it cannot allocate, there is no reserve. Thread-safe.
class ReserveFile {
 public:
  /// Makes no file yet. Not `is_wanted`: there never is one.
  ReserveFile(FileSystem* fs, std::string path, bool is_wanted);

  /// While it lives, the reserve's space is given back and nobody fills it again: what needs the
  /// space would else have to share it with writers that want the reserve to be whole.
  class Loan {
   public:
    explicit Loan(ReserveFile* reserve) noexcept;
    ~Loan();
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;

   private:
    ReserveFile* const reserve_;
  };

  /// Makes it at least so large. One of an earlier run is used, and cut to this at first. False:
  /// it is lent, or the disk has no room for that, or for its name; it is then as large as it was.
  bool Fill(uint64_t bytes) noexcept;
  /// Whether it is at least so large, as of the last Fill, or there never is one. False after a
  /// Fill that returned true although it failed for another reason than a full disk.
  bool Has(uint64_t bytes) noexcept;
  /// Cuts it to so much, if it is larger. `needed` is asked while nobody fills it.
  void Trim(const std::function<uint64_t()>& needed) noexcept;
  bool IsLent() noexcept;
  bool is_wanted() const noexcept { return is_wanted_; }
  /// Gives its space back, that of one which an earlier run has left, too. False: there was none.
  bool Release() noexcept;

 private:
  /// False: there is no room.
  Result<bool> Grow(uint64_t bytes);
  bool ReleaseLocked() noexcept;

  FileSystem* const fs_;
  const std::string path_;
  const bool is_wanted_;
  std::mutex mutex_;
  // 0: it was not looked at since it was released, or at all. UINT64_MAX: nothing can be allocated.
  uint64_t bytes_ = 0;
  uint32_t loans_ = 0;
};

}  // namespace basalt::io
