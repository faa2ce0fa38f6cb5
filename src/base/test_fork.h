#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

// Work in forked children, in tests.

namespace basalt::base {

/// The exit code that `work` gives in a forked child, or 1000 and the signal that has ended it. A
/// child that waits for what never comes dies of the alarm.
template <class Work>
int InChild(const Work& work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(work());
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/// Whether `check` is true in a forked child, and the child ends.
template <class Check>
bool TrueInChild(const Check& check) {
  return InChild([&check] { return check() ? 0 : 1; }) == 0;
}

}  // namespace basalt::base
