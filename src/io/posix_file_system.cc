#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/never_destroyed.h"
#include "io/file_system.h"
#include "io/posix_descriptor.h"
#include "io/posix_file_lock.h"

namespace basalt::io {
namespace {

/// Mappings from this size on can be by huge pages.
constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

/// What a system call answered, as an errno.
int ErrorOf(int answer) { return answer < 0 ? errno : 0; }

class PosixMapping final : public Mapping {
 public:
  PosixMapping() = default;
  PosixMapping(const PosixMapping&) = delete;
  PosixMapping& operator=(const PosixMapping&) = delete;
  ~PosixMapping() override {
    if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }

  void Take(void* address, uint64_t size) noexcept {
    bytes_ = {static_cast<const char*>(address), size};
  }
};

class PosixWritableMapping final : public WritableMapping {
 public:
  PosixWritableMapping() = default;
  PosixWritableMapping(const PosixWritableMapping&) = delete;
  PosixWritableMapping& operator=(const PosixWritableMapping&) = delete;
  ~PosixWritableMapping() override {
    if (data_ != nullptr) munmap(data_, size_);
  }

  void Take(void* address, uint64_t size) noexcept {
    data_ = static_cast<char*>(address);
    size_ = size;
  }
};

/// What statfs calls some file systems.
constexpr uint64_t kExt = 0xEF53;
constexpr uint64_t kXfs = 0x5846'5342;
constexpr uint64_t kTmpfs = 0x0102'1994;

/// Whether space that fallocate has given can be written through a mapping whatever else fills the
/// disk. File systems that copy on write may find no room at the store itself, which is a SIGBUS.
bool KeepsAllocatedSpace(int descriptor) {
  struct statfs attributes{};
  if (fstatfs(descriptor, &attributes) != 0) return false;
  const auto type = static_cast<uint64_t>(attributes.f_type);
  return type == kExt || type == kXfs || type == kTmpfs;
}

/// A part of a file, mapped to be written.
class WriteWindow {
 public:
  WriteWindow() = default;
  ~WriteWindow() { Unmap(); }
  WriteWindow(const WriteWindow&) = delete;
  WriteWindow& operator=(const WriteWindow&) = delete;

  bool Holds(uint64_t offset, size_t bytes) const noexcept {
    return offset >= begin_ && offset + bytes <= begin_ + size_;
  }
  char* At(uint64_t offset) const noexcept { return address_ + (offset - begin_); }

  /// Makes the pages from `offset` to beyond `offset + bytes` ready to be written. Zeros that are
  /// written to them bring them into the page cache in large pieces, where the file system has
  /// such, and then they are mapped: a quarter of what it costs to have each made by the fault that
  /// maps it. Should a call fail, faults will do.
  ///
  /// A piece is synced as a whole, so that pieces are as small as what is written between syncs.
  void MakeReady(int descriptor, uint64_t offset, size_t bytes) noexcept {
    constexpr uint64_t kAheadMax = uint64_t{256} << 10;
    const uint64_t end = offset + bytes;
    if (end <= ready_end_) return;
    if (const uint64_t syncs = syncs_.load(std::memory_order_relaxed); syncs != syncs_seen_) {
      syncs_seen_ = syncs;
      synced_end_ = offset;
    }
    const uint64_t ahead = std::clamp(end - synced_end_, kPageBytes, kAheadMax);
    const uint64_t to = std::min(begin_ + size_, (end + ahead) / kPageBytes * kPageBytes);
    WriteZeros(descriptor, std::max(offset, ready_end_), to);
    madvise(At(ready_end_), to - ready_end_, MADV_POPULATE_WRITE);
    ready_end_ = to;
  }

  /// By any thread.
  void CountSync() noexcept { syncs_.fetch_add(1, std::memory_order_relaxed); }

  /// Moves to a stretch that begins with the page of `offset`, holds `bytes` from there, and is
  /// `chunk_bytes` long, or ends with the file if that has room. False: the space cannot be had;
  /// nothing is mapped then.
  bool MoveTo(int descriptor, uint64_t offset, size_t bytes, uint64_t chunk_bytes) noexcept {
    Unmap();
    const uint64_t begin = offset / kPageBytes * kPageBytes;
    struct stat attributes{};
    if (fstat(descriptor, &attributes) != 0) return false;
    const auto file_end = static_cast<uint64_t>(attributes.st_size);
    uint64_t end = std::max(begin + chunk_bytes, offset + bytes);
    if (offset + bytes <= file_end) end = std::min(end, file_end);
    const uint64_t size = (end - begin + kPageBytes - 1) / kPageBytes * kPageBytes;
    if (fallocate(descriptor, 0, static_cast<off_t>(begin), static_cast<off_t>(size)) != 0) {
      return false;
    }
    void* const address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor,
                               static_cast<off_t>(begin));
    if (address == MAP_FAILED) return false;
    address_ = static_cast<char*>(address);
    begin_ = begin;
    size_ = size;
    if (ready_end_ == 0) synced_end_ = begin;
    ready_end_ = begin;
    return true;
  }

 private:
  static constexpr uint64_t kPageBytes = 4096;

  static void WriteZeros(int descriptor, uint64_t at, uint64_t end) noexcept {
    static char zeros[kPageBytes];
    std::array<iovec, 64> pieces;
    while (at < end) {
      size_t count = 0;
      for (uint64_t left = end - at; left > 0 && count < pieces.size(); ++count) {
        pieces[count] = {.iov_base = zeros, .iov_len = std::min(left, kPageBytes)};
        left -= pieces[count].iov_len;
      }
      const ssize_t written =
          pwritev(descriptor, pieces.data(), static_cast<int>(count), static_cast<off_t>(at));
      if (written <= 0) return;
      at += static_cast<uint64_t>(written);
    }
  }

  void Unmap() noexcept {
    if (address_ != nullptr) munmap(address_, size_);
    address_ = nullptr;
    size_ = 0;
  }

  char* address_ = nullptr;
  uint64_t begin_ = 0;
  uint64_t size_ = 0;
  uint64_t ready_end_ = 0;   // 0: no page was ever made ready.
  uint64_t synced_end_ = 0;  // Where pages were first made ready, or first since a sync.
  uint64_t syncs_seen_ = 0;
  std::atomic<uint64_t> syncs_{0};
};

class PosixFile final : public File {
  // What a call costs is spread over larger writes, which page faults would not be.
  static constexpr size_t kCopiedMax = size_t{64} << 10;

 public:
  explicit PosixFile(std::string path) : File(std::move(path)) {}
  ~PosixFile() override {
    if (descriptor_ >= 0) CloseDescriptor(descriptor_);
  }
  PosixFile(const PosixFile&) = delete;
  PosixFile& operator=(const PosixFile&) = delete;

  /// Before anything else. Gives an errno.
  int Open(int flags) {
    descriptor_ = OpenDescriptor(path().c_str(), flags, 0644);
    if (descriptor_ < 0) return errno;
    struct stat attributes{};
    if (fstat(descriptor_, &attributes) != 0) return errno;
    if (S_ISDIR(attributes.st_mode)) return EISDIR;
    return S_ISREG(attributes.st_mode) ? 0 : ESPIPE;
  }

 private:
  void DoWriteThroughMemory(uint64_t chunk_bytes) noexcept override {
    window_bytes_ = KeepsAllocatedSpace(descriptor_) ? chunk_bytes : 0;
  }

  bool DoWritesToMemory(uint64_t offset, size_t bytes) const noexcept override {
    return window_bytes_ != 0 && bytes <= kCopiedMax && window_.Holds(offset, bytes);
  }

  /// False: the pieces are to be written by a call.
  bool CopyToWindow(uint64_t offset, std::span<const std::string_view> pieces, size_t* done) {
    size_t bytes = 0;
    for (const std::string_view piece : pieces) bytes += piece.size();
    if (bytes > kCopiedMax) return false;
    if (!window_.Holds(offset, bytes) &&
        !window_.MoveTo(descriptor_, offset, bytes, window_bytes_)) {
      window_bytes_ = 0;
      return false;
    }
    window_.MakeReady(descriptor_, offset, bytes);
    char* out = window_.At(offset);
    for (const std::string_view piece : pieces) {
      if (!piece.empty()) std::memcpy(out, piece.data(), piece.size());
      out += piece.size();
    }
    // Where the next record goes: else what takes a lock next waits for these lines.
    for (size_t line = 1; line <= 4; ++line) __builtin_prefetch(out + 64 * line, /*rw=*/1);
    *done = bytes;
    return true;
  }

  int DoRead(uint64_t offset, std::span<char> out, size_t* done) const override {
    const ssize_t answer = pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (answer < 0) return errno;
    *done = static_cast<size_t>(answer);
    return 0;
  }

  void DoWillRead(uint64_t offset, uint64_t size) const noexcept override {
    posix_fadvise(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(size),
                  POSIX_FADV_WILLNEED);
  }

  int DoWrite(uint64_t offset, std::span<const std::string_view> pieces, size_t* done) override {
    if (window_bytes_ != 0 && CopyToWindow(offset, pieces, done)) return 0;
    std::array<iovec, IOV_MAX> vectors;
    size_t count = 0;
    for (const std::string_view piece : pieces) {
      if (piece.empty()) continue;
      vectors[count++] = {.iov_base = const_cast<char*>(piece.data()), .iov_len = piece.size()};
      if (count == vectors.size()) break;
    }
    const auto at = static_cast<off_t>(offset);
    const ssize_t answer = count == 1
                               ? pwrite(descriptor_, vectors[0].iov_base, vectors[0].iov_len, at)
                               : pwritev(descriptor_, vectors.data(), static_cast<int>(count), at);
    if (answer < 0) return errno;
    *done = static_cast<size_t>(answer);
    return 0;
  }

  int DoSync() override {
    window_.CountSync();
    return ErrorOf(fdatasync(descriptor_));
  }

  int DoTruncate(uint64_t size) override {
    return ErrorOf(ftruncate(descriptor_, static_cast<off_t>(size)));
  }

  int DoAllocate(uint64_t size) override {
    // Beyond it the call would end the process by a signal, over what may never be written.
    rlimit limit{};
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && size > limit.rlim_cur) return EFBIG;
    const int error = ErrorOf(fallocate(descriptor_, 0, 0, static_cast<off_t>(size)));
    return error == EOPNOTSUPP || error == ENOSYS ? 0 : error;
  }

  int DoSize(uint64_t* size) const override {
    struct stat attributes{};
    if (fstat(descriptor_, &attributes) != 0) return errno;
    *size = static_cast<uint64_t>(attributes.st_size);
    return 0;
  }

  int DoMap(uint64_t size, std::unique_ptr<Mapping>* mapping) const override {
    auto made = std::make_unique<PosixMapping>();
    if (size > 0) {
      void* const address = mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor_, 0);
      if (address == MAP_FAILED) return errno;
      made->Take(address, size);
      // Where the file lies in large pieces in the page cache, it is mapped by such; else this does
      // nothing.
      if (size >= kHugePageBytes) madvise(address, size, MADV_HUGEPAGE);
    }
    *mapping = std::move(made);
    return 0;
  }

  int DoMapForWriting(uint64_t size, std::unique_ptr<WritableMapping>* mapping) override {
    auto made = std::make_unique<PosixWritableMapping>();
    void* const address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    if (address == MAP_FAILED) return errno;
    made->Take(address, size);
    // What has not been in the page cache yet comes into it in pieces that large, for all who map
    // the file. Whether it does is of no consequence but to speed.
    if (size >= kHugePageBytes) {
      madvise(address, size, MADV_HUGEPAGE);
      madvise(address, size, MADV_POPULATE_READ);
    }
    *mapping = std::move(made);
    return 0;
  }

  int DoMarkInUse() override {
    struct flock range = WholeFile(F_RDLCK);
    return ErrorOf(fcntl(descriptor_, F_OFD_SETLK, &range));
  }

  int DoIsInUse(bool* in_use) const override {
    struct flock range = WholeFile(F_WRLCK);
    if (fcntl(descriptor_, F_OFD_GETLK, &range) != 0) return errno;
    *in_use = range.l_type != F_UNLCK;
    return 0;
  }

  static struct flock WholeFile(int type) {
    struct flock range{};
    range.l_type = static_cast<decltype(range.l_type)>(type);
    range.l_whence = SEEK_SET;
    return range;
  }

  int descriptor_ = -1;
  uint64_t window_bytes_ = 0;  // 0: every write is a call
  WriteWindow window_;
};

class PosixFileSystem final : public FileSystem {
 private:
  int DoOpen(const std::string& path, OpenMode mode, std::unique_ptr<File>* file) override {
    // O_NONBLOCK means nothing to a file, but lets the open of a pipe return, which is then
    // refused.
    int flags = O_CLOEXEC | O_NONBLOCK;
    flags |= mode == OpenMode::kRead ? O_RDONLY : O_RDWR;
    if (mode == OpenMode::kCreate) flags |= O_CREAT | O_EXCL;
    auto made = std::make_unique<PosixFile>(path);  // what can fail, before there is a file
    if (const int error = made->Open(flags); error != 0) return error;
    *file = std::move(made);
    return 0;
  }

  int DoCreateDirectory(const std::string& path) override {
    return ErrorOf(mkdir(path.c_str(), 0755));
  }

  int DoList(const std::string& path, std::vector<std::string>* names) override {
    const int descriptor = OpenDescriptor(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return errno;
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(fdopendir(descriptor), closedir);
    if (directory == nullptr) {
      const int error = errno;
      close(descriptor);
      return error;
    }
    errno = 0;
    while (const dirent* const entry = readdir(directory.get())) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names->emplace_back(name);
    }
    return errno;
  }

  int DoRename(const std::string& from, const std::string& to) override {
    return ErrorOf(rename(from.c_str(), to.c_str()));
  }

  int DoRemoveFile(const std::string& path) override { return ErrorOf(unlink(path.c_str())); }

  int DoRemoveDirectory(const std::string& path) override { return ErrorOf(rmdir(path.c_str())); }

  int DoSyncDirectory(const std::string& path) override {
    const int descriptor = OpenDescriptor(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return errno;
    const int error = ErrorOf(fsync(descriptor));
    CloseDescriptor(descriptor);
    return error;
  }

  int DoStat(const std::string& path, bool* is_directory, uint64_t* size) override {
    struct stat attributes{};
    if (stat(path.c_str(), &attributes) != 0) return errno;
    *is_directory = S_ISDIR(attributes.st_mode);
    *size = static_cast<uint64_t>(attributes.st_size);
    return 0;
  }

  // Other file systems find room that they have not counted, when all is gone. A tmpfs without a
  // limit says that it has no blocks.
  int DoFreeBytes(const std::string& path, std::optional<uint64_t>* bytes) override {
    struct statfs attributes{};
    if (statfs(path.c_str(), &attributes) != 0) return errno;
    const auto type = static_cast<uint64_t>(attributes.f_type);
    if ((type != kExt && type != kTmpfs) || attributes.f_blocks == 0) return 0;
    const bool is_root = geteuid() == 0;  // for whom there is more
    *bytes = (is_root ? attributes.f_bfree : attributes.f_bavail) *
             static_cast<uint64_t>(attributes.f_frsize);
    return 0;
  }

  int DoMarkChanged(const std::string& path) override {
    return ErrorOf(utimensat(AT_FDCWD, path.c_str(), nullptr, 0));
  }

  int DoResolve(const std::string& path, std::string* resolved) override {
    const std::unique_ptr<char, void (*)(void*)> found(realpath(path.c_str(), nullptr), std::free);
    if (found == nullptr) return errno;
    *resolved = found.get();
    return 0;
  }

  int DoLock(const std::string& path, std::unique_ptr<FileLock>* lock,
             std::string* holder) override {
    return LockPosixFile(path, lock, holder);
  }

  int DoMarkDirectory(const std::string& path, std::unique_ptr<FileLock>* mark) override {
    return MarkPosixDirectory(path, mark);
  }

  int DoIsMarked(const std::string& path, bool* is_marked) override {
    return IsPosixDirectoryMarked(path, is_marked);
  }
};

}  // namespace

FileSystem* FileSystem::Posix() {
  static constinit base::NeverDestroyed<PosixFileSystem> file_system;
  return &file_system.object;
}

}  // namespace basalt::io
