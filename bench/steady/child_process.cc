#include "bench/steady/child_process.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

namespace basalt::bench {

ChildProcess::ChildProcess(const std::function<void()>& work) {
  std::fflush(nullptr);
  id_ = fork();
  if (id_ < 0) Fail("start a child process", "fork failed");
  if (id_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    work();
    std::fflush(nullptr);
    _exit(0);
  }
  is_running_ = true;
}

ChildProcess::~ChildProcess() {
  if (!is_running_) return;
  kill(id_, SIGKILL);
  waitpid(id_, nullptr, 0);
}

bool ChildProcess::IsRunning() {
  if (is_running_) Reap(WNOHANG);
  return is_running_;
}

void ChildProcess::Wait() {
  if (is_running_) Reap(0);
}

void ChildProcess::Reap(int wait_options) {
  int status = 0;
  if (waitpid(id_, &status, wait_options) != id_) return;
  is_running_ = false;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    Fail("measure", "the child process failed");
  }
}

}  // namespace basalt::bench
