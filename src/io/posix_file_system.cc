#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>

#include "io/file_system.h"
#include "io/posix_file_lock.h"

namespace basalt::io {
namespace {

/// What a system call answered, as an errno.
int ErrorOf(int answer) { return answer < 0 ? errno : 0; }

class PosixMapping final : public Mapping {
 public:
  PosixMapping(void* address, size_t size) { bytes_ = {static_cast<const char*>(address), size}; }
  PosixMapping(const PosixMapping&) = delete;
  PosixMapping& operator=(const PosixMapping&) = delete;
  ~PosixMapping() override {
    if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }
};

class PosixFile final : public File {
 public:
  PosixFile(std::string path, int descriptor) : File(std::move(path)), descriptor_(descriptor) {}
  ~PosixFile() override { close(descriptor_); }

 private:
  int DoRead(uint64_t offset, std::span<char> out, size_t* done) const override {
    const ssize_t answer = pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (answer < 0) return errno;
    *done = static_cast<size_t>(answer);
    return 0;
  }

  int DoWrite(uint64_t offset, std::span<const std::string_view> pieces, size_t* done) override {
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

  int DoSync() override { return ErrorOf(fdatasync(descriptor_)); }

  int DoTruncate(uint64_t size) override {
    return ErrorOf(ftruncate(descriptor_, static_cast<off_t>(size)));
  }

  int DoAllocate(uint64_t size) override {
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
    void* address = nullptr;
    if (size > 0) {
      address = mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor_, 0);
      if (address == MAP_FAILED) return errno;
    }
    *mapping = std::make_unique<PosixMapping>(address, size);
    return 0;
  }

  const int descriptor_;
};

class PosixFileSystem final : public FileSystem {
 private:
  int DoOpen(const std::string& path, OpenMode mode, std::unique_ptr<File>* file) override {
    // O_NONBLOCK means nothing to a file, but lets the open of a pipe return, which is then
    // refused.
    int flags = O_CLOEXEC | O_NONBLOCK;
    flags |= mode == OpenMode::kRead ? O_RDONLY : O_RDWR;
    if (mode == OpenMode::kCreate) flags |= O_CREAT | O_EXCL;
    const int descriptor = open(path.c_str(), flags, 0644);
    if (descriptor < 0) return errno;
    struct stat attributes{};
    int error = ErrorOf(fstat(descriptor, &attributes));
    if (error == 0 && S_ISDIR(attributes.st_mode)) error = EISDIR;
    if (error == 0 && !S_ISREG(attributes.st_mode)) error = ESPIPE;
    if (error != 0) {
      close(descriptor);
      return error;
    }
    *file = std::make_unique<PosixFile>(path, descriptor);
    return 0;
  }

  int DoCreateDirectory(const std::string& path) override {
    return ErrorOf(mkdir(path.c_str(), 0755));
  }

  int DoList(const std::string& path, std::vector<std::string>* names) override {
    DIR* const directory = opendir(path.c_str());
    if (directory == nullptr) return errno;
    errno = 0;
    while (const dirent* const entry = readdir(directory)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names->emplace_back(name);
    }
    const int error = errno;
    closedir(directory);
    return error;
  }

  int DoRename(const std::string& from, const std::string& to) override {
    return ErrorOf(rename(from.c_str(), to.c_str()));
  }

  int DoRemoveFile(const std::string& path) override { return ErrorOf(unlink(path.c_str())); }

  int DoRemoveDirectory(const std::string& path) override { return ErrorOf(rmdir(path.c_str())); }

  int DoSyncDirectory(const std::string& path) override {
    const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return errno;
    const int error = ErrorOf(fsync(descriptor));
    close(descriptor);
    return error;
  }

  int DoStat(const std::string& path, bool* is_directory, uint64_t* size) override {
    struct stat attributes{};
    if (stat(path.c_str(), &attributes) != 0) return errno;
    *is_directory = S_ISDIR(attributes.st_mode);
    *size = static_cast<uint64_t>(attributes.st_size);
    return 0;
  }

  int DoLock(const std::string& path, std::unique_ptr<FileLock>* lock,
             std::string* holder) override {
    return LockPosixFile(path, lock, holder);
  }
};

}  // namespace

FileSystem* FileSystem::Posix() {
  static PosixFileSystem file_system;
  return &file_system;
}

}  // namespace basalt::io
