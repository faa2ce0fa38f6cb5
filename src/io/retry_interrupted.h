#pragma once

#include <cerrno>

namespace basalt::io {

/// A call that is interrupted this often in a row is reported: something is wrong with the machine.
inline constexpr int kInterruptionsMax = 1000;

/// Makes a system call, again while it answers EINTR.
template <class Call>
int RetryInterrupted(const Call& call) {
  int error = EINTR;
  for (int i = 0; error == EINTR && i < kInterruptionsMax; ++i) error = call();
  return error;
}

}  // namespace basalt::io
