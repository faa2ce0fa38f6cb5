#include "io/posix_descriptor.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <mutex>

#include "io/descriptor_pool.h"

namespace basalt::io {
namespace {

constexpr int kStandardStreams = 3;

/// While it lives, the numbers of the standard streams that are closed are taken. What uses such a
/// stream meanwhile fails as if it were closed.
class TakenNumbers {
 public:
  TakenNumbers() noexcept {
    for (int stream = 0; stream < kStandardStreams; ++stream) {
      if (fcntl(stream, F_GETFD) < 0) Take();
    }
  }
  ~TakenNumbers() {
    const int error = errno;
    for (int i = 0; i < count_; ++i) close(taken_[static_cast<size_t>(i)]);
    errno = error;
  }
  TakenNumbers(const TakenNumbers&) = delete;
  TakenNumbers& operator=(const TakenNumbers&) = delete;

 private:
  void Take() noexcept {
    const int taken = open("/", O_PATH | O_CLOEXEC);
    if (taken >= 0) taken_[static_cast<size_t>(count_++)] = taken;
  }

  std::array<int, kStandardStreams> taken_{};
  int count_ = 0;
};

/// As OpenDescriptor, with the descriptors that there are.
int TryOpen(const char* path, int flags, mode_t mode) noexcept {
  const TakenNumbers taken;
  const int opened = open(path, flags, mode);
  if (opened < 0 || opened >= kStandardStreams) return opened;
  // Another thread has closed a standard stream at the same moment.
  const int moved = fcntl(opened, F_DUPFD_CLOEXEC, kStandardStreams);
  const int error = errno;
  close(opened);
  errno = error;
  return moved;
}

/// What SpareDescriptors keeps back: descriptors that can be neither read nor written.
class Spares {
 public:
  static Spares& Get() {
    static Spares* const spares = [] {
      auto* made = new Spares;
      // Another thread may have been changing them: a child keeps back none of its parent's.
      pthread_atfork(nullptr, nullptr, [] { std::construct_at(&Get()); });
      return made;
    }();
    return *spares;
  }

  void AddUser() noexcept {
    const std::scoped_lock lock(mutex_);
    ++users_;
    while (count_ < numbers_.size()) {
      const int spare = TryOpen("/", O_PATH | O_CLOEXEC, 0);
      if (spare < 0) return;
      numbers_[count_++] = spare;
    }
  }
  void RemoveUser() noexcept {
    const std::scoped_lock lock(mutex_);
    if (users_ == 0 || --users_ > 0) return;  // 0: of the parent of this process
    while (count_ > 0) close(numbers_[--count_]);
  }
  /// The last one stays: Close makes the others of it.
  bool GiveUpOne() noexcept {
    const std::scoped_lock lock(mutex_);
    if (count_ <= 1) return false;
    close(numbers_[--count_]);
    return true;
  }
  /// Closes `descriptor`, or makes it one of them.
  void Close(int descriptor) noexcept {
    const std::scoped_lock lock(mutex_);
    const bool is_owed = count_ > 0 && count_ < numbers_.size();
    if (is_owed && dup3(numbers_[0], descriptor, O_CLOEXEC) == descriptor) {
      numbers_[count_++] = descriptor;
      return;
    }
    close(descriptor);
  }

 private:
  std::mutex mutex_;
  std::array<int, kSpareDescriptors + 1> numbers_{};
  size_t count_ = 0;
  size_t users_ = 0;
};

// As the library is loaded, so that no fork finds another thread making it.
[[maybe_unused]] const Spares& spares_made_early = Spares::Get();

}  // namespace

int OpenDescriptor(const char* path, int flags, mode_t mode) noexcept {
  while (true) {
    const int opened = TryOpen(path, flags, mode);
    if (opened >= 0 || (errno != EMFILE && errno != ENFILE)) return opened;
    const int error = errno;
    if (!DescriptorPool::Process()->CloseOne() && !Spares::Get().GiveUpOne()) {
      errno = error;
      return -1;
    }
  }
}

void CloseDescriptor(int descriptor) noexcept { Spares::Get().Close(descriptor); }

SpareDescriptors::SpareDescriptors() noexcept { Spares::Get().AddUser(); }
SpareDescriptors::~SpareDescriptors() { Spares::Get().RemoveUser(); }

}  // namespace basalt::io
