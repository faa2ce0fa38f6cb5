#include "io/posix_file_lock.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "io/posix_descriptor.h"

// A holder may remove the file, and does when it destroys a database or a map. A process that had
// opened the file before then has a lock on a file without a name, which excludes no other process.
// So a lock counts only if the name still leads to the locked file.

namespace basalt::io {
namespace {

/// No errno: the file was removed by its holder before it could be locked.
constexpr int kReplaced = -1;

/// More than any holder's text: Linux bounds host names by 64 bytes and program names by 255.
constexpr size_t kHolderBytesMax = 1024;
constexpr size_t kUrlBytesMax = 512;

struct Held {
  dev_t device;
  ino_t inode;
  int descriptor;
  bool is_mark;
  size_t text_bytes;  // Of the holder's text, without a URL.
};

struct flock WholeFile(int type) {
  struct flock range{};
  range.l_type = static_cast<decltype(range.l_type)>(type);
  range.l_whence = SEEK_SET;
  return range;
}

int OpenDirectory(const std::string& path) {
  return OpenDescriptor(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/// Closed when it goes, unless somebody has taken it.
class OwnDescriptor {
 public:
  explicit OwnDescriptor(int number) noexcept : number_(number) {}
  ~OwnDescriptor() {
    if (number_ >= 0) CloseDescriptor(number_);
  }
  OwnDescriptor(const OwnDescriptor&) = delete;
  OwnDescriptor& operator=(const OwnDescriptor&) = delete;

  int number() const noexcept { return number_; }
  int Take() noexcept { return std::exchange(number_, -1); }

 private:
  int number_;
};

class PosixFileLock;

/// Every lock that this process holds. Never destroyed: a static object may hold a lock to the end.
class LockRegistry {
 public:
  static LockRegistry& Get() {
    static LockRegistry* const registry = [] {
      auto* made = new LockRegistry;
      pthread_atfork([] { Get().mutex_.lock(); }, [] { Get().mutex_.unlock(); },
                     [] { Get().AfterForkInChild(); });
      return made;
    }();
    return *registry;
  }

  int Acquire(const std::string& path, PosixFileLock* lock, std::string* holder);
  int Mark(const std::string& path, PosixFileLock* mark);
  int SetUrl(const std::string& path, std::string_view url);
  void Release(int descriptor);

 private:
  void AfterForkInChild() {
    for (const Held& held : held_) close(held.descriptor);
    held_.clear();
    mutex_.unlock();
  }
  /// kReplaced: it is locked, but by now `path` is another file, or none.
  int AcquireOpened(const std::string& path, int descriptor, std::string* holder);

  std::mutex mutex_;
  std::vector<Held> held_;  // By mutex_.
};

// As the library is loaded, so that no fork finds another thread making it.
[[maybe_unused]] const LockRegistry& registry_made_early = LockRegistry::Get();

class PosixFileLock final : public FileLock {
 public:
  PosixFileLock() = default;
  PosixFileLock(const PosixFileLock&) = delete;
  PosixFileLock& operator=(const PosixFileLock&) = delete;
  ~PosixFileLock() override {
    if (descriptor_ >= 0) LockRegistry::Get().Release(descriptor_);
  }
  void Hold(int descriptor) noexcept { descriptor_ = descriptor; }

 private:
  int descriptor_ = -1;
};

/// Without gmtime_r, which opens the time zone's file, possibly under the number of a standard
/// stream (see OpenDescriptor).
std::string TimeNow() {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const auto today = std::chrono::floor<std::chrono::days>(now);
  const std::chrono::year_month_day date(today);
  const std::chrono::hh_mm_ss time(now - today);
  std::array<char, 96> text{};
  const int size = std::snprintf(
      text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02dZ", static_cast<int>(date.year()),
      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
      static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
      static_cast<int>(time.seconds().count()));
  return {text.data(), static_cast<size_t>(size)};
}

std::string HostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

/// Replaces what an earlier holder left. Only the removal of that must succeed. `text_bytes`: what
/// was written.
int WriteHolder(int descriptor, size_t* text_bytes) {
  if (ftruncate(descriptor, 0) != 0) return errno;
  const std::string text = "pid " + std::to_string(getpid()) + "\nstarted " + TimeNow() +
                           "\nhost " + HostName() + "\nprogram " + program_invocation_short_name +
                           "\n";
  const ssize_t written = pwrite(descriptor, text.data(), text.size(), 0);
  *text_bytes = text.size();
  if (written == static_cast<ssize_t>(text.size())) return 0;
  *text_bytes = 0;
  return ftruncate(descriptor, 0) != 0 ? errno : 0;
}

/// The rest of the line of `text` that begins with `name` and a space.
std::string_view Line(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.starts_with(name) && line.size() > name.size() && line[name.size()] == ' ') {
      return line.substr(name.size() + 1);
    }
  }
  return {};
}

std::string ReadHolder(int descriptor) {
  std::array<char, kHolderBytesMax> bytes{};
  const ssize_t size = pread(descriptor, bytes.data(), bytes.size(), 0);
  const std::string_view text(bytes.data(), size > 0 ? static_cast<size_t>(size) : 0);
  const std::string_view pid = Line(text, "pid");
  if (pid.empty()) return "is in use by another process";
  std::string holder = "is in use by process ";
  holder.append(pid).append(" (").append(Line(text, "program"));
  holder.append(", since ").append(Line(text, "started"));
  holder.append(", on host ").append(Line(text, "host")).append(")");
  if (const std::string_view url = Line(text, "url"); !url.empty() && text.ends_with('\n')) {
    holder.append(", which serves it at ").append(url).append("; connect to that URL");
  }
  return holder;
}

int LockRegistry::AcquireOpened(const std::string& path, int descriptor, std::string* holder) {
  struct stat attributes{};
  if (fstat(descriptor, &attributes) != 0) return errno;
  if (!S_ISREG(attributes.st_mode)) return ESPIPE;
  for (const Held& held : held_) {
    if (held.device == attributes.st_dev && held.inode == attributes.st_ino) {
      *holder = "is already open in this process";
      return EWOULDBLOCK;
    }
  }
  struct flock whole = WholeFile(F_WRLCK);
  if (fcntl(descriptor, F_OFD_SETLK, &whole) != 0) {
    if (errno != EAGAIN && errno != EACCES) return errno;
    *holder = ReadHolder(descriptor);
    return EWOULDBLOCK;
  }
  struct stat named{};
  if (stat(path.c_str(), &named) != 0 || named.st_dev != attributes.st_dev ||
      named.st_ino != attributes.st_ino) {
    return kReplaced;
  }
  Held held{.device = attributes.st_dev,
            .inode = attributes.st_ino,
            .descriptor = descriptor,
            .is_mark = false,
            .text_bytes = 0};
  if (const int error = WriteHolder(descriptor, &held.text_bytes); error != 0) return error;
  held_.push_back(held);
  return 0;
}

int LockRegistry::Acquire(const std::string& path, PosixFileLock* lock, std::string* holder) {
  const std::lock_guard guard(mutex_);
  for (;;) {
    OwnDescriptor opened(
        OpenDescriptor(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644));
    if (opened.number() < 0) return errno;
    const int error = AcquireOpened(path, opened.number(), holder);
    if (error == kReplaced) continue;
    if (error == 0) lock->Hold(opened.Take());
    return error;
  }
}

int LockRegistry::Mark(const std::string& path, PosixFileLock* mark) {
  const std::lock_guard guard(mutex_);
  OwnDescriptor opened(OpenDirectory(path));
  if (opened.number() < 0) return errno;
  struct flock whole = WholeFile(F_RDLCK);
  if (fcntl(opened.number(), F_OFD_SETLK, &whole) != 0) return errno;
  held_.push_back(
      {.device = 0, .inode = 0, .descriptor = opened.number(), .is_mark = true, .text_bytes = 0});
  mark->Hold(opened.Take());
  return 0;
}

int LockRegistry::SetUrl(const std::string& path, std::string_view url) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7F; };
  if (url.size() > kUrlBytesMax || std::ranges::any_of(url, is_control)) return EINVAL;
  const std::lock_guard guard(mutex_);
  struct stat named{};
  if (stat(path.c_str(), &named) != 0) return errno;
  const auto held = std::ranges::find_if(held_, [&](const Held& one) {
    return !one.is_mark && one.device == named.st_dev && one.inode == named.st_ino;
  });
  if (held == held_.end()) return ENOENT;
  const auto end = static_cast<off_t>(held->text_bytes);
  if (ftruncate(held->descriptor, end) != 0) return errno;
  if (url.empty()) return 0;
  const std::string line = "url " + std::string(url) + "\n";
  const ssize_t written = pwrite(held->descriptor, line.data(), line.size(), end);
  if (written == static_cast<ssize_t>(line.size())) return 0;
  const int error = written < 0 ? errno : ENOSPC;
  return ftruncate(held->descriptor, end) != 0 ? errno : error;
}

void LockRegistry::Release(int descriptor) {
  const std::lock_guard guard(mutex_);
  // In a forked child the registry is empty, and the number may belong to another file by now.
  const auto held = std::ranges::find(held_, descriptor, &Held::descriptor);
  if (held == held_.end()) return;
  // Nobody has it any more: a text that says otherwise would only mislead a person who looks.
  if (!held->is_mark) static_cast<void>(ftruncate(descriptor, 0));
  held_.erase(held);
  CloseDescriptor(descriptor);
}

}  // namespace

int LockPosixFile(const std::string& path, std::unique_ptr<FileLock>* lock, std::string* holder) {
  auto made = std::make_unique<PosixFileLock>();
  const int error = LockRegistry::Get().Acquire(path, made.get(), holder);
  if (error == 0) *lock = std::move(made);
  return error;
}

int SetPosixLockUrl(const std::string& path, std::string_view url) {
  return LockRegistry::Get().SetUrl(path, url);
}

int MarkPosixDirectory(const std::string& path, std::unique_ptr<FileLock>* mark) {
  auto made = std::make_unique<PosixFileLock>();
  const int error = LockRegistry::Get().Mark(path, made.get());
  if (error == 0) *mark = std::move(made);
  return error;
}

int IsPosixDirectoryMarked(const std::string& path, bool* is_marked) {
  const OwnDescriptor opened(OpenDirectory(path));
  if (opened.number() < 0) return errno;
  struct flock whole = WholeFile(F_WRLCK);
  if (fcntl(opened.number(), F_OFD_GETLK, &whole) != 0) return errno;
  *is_marked = whole.l_type != F_UNLCK;
  return 0;
}

}  // namespace basalt::io
