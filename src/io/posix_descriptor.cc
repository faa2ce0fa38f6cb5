#include "io/posix_descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

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

}  // namespace

int OpenDescriptor(const char* path, int flags, mode_t mode) noexcept {
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

}  // namespace basalt::io
