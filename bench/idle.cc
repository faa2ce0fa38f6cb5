#include "bench/idle.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "bench/process_io.h"

namespace basalt::bench {
namespace {

using std::chrono::steady_clock;

/// What the process has done so far.
struct Activity {
  int64_t cpu_us = 0;
  ProcessIo written;
};

Activity ReadActivity() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  Activity activity;
  activity.cpu_us = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1'000'000 +
                    usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
  activity.written = ReadProcessIo();
  return activity;
}

/// Whether another thread of this process runs, waits for a processor or for the disk.
bool AnotherThreadIsBusy() {
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    if (thread.path().filename() == std::to_string(gettid())) continue;
    std::ifstream stat(thread.path() / "stat");
    std::string fields;
    std::getline(stat, fields);
    const size_t name_end = fields.rfind(") ");  // The name before it may hold anything.
    if (name_end == std::string::npos) continue;
    const char state = fields[name_end + 2];
    if (state == 'R' || state == 'D') return true;
  }
  return false;
}

}  // namespace

double WaitUntilIdle() {
  constexpr auto kWindow = std::chrono::milliseconds(50);
  constexpr int kQuietWindows = 4;
  constexpr int64_t kQuietCpuUs = 1'500;  // Reading /proc costs some of it.
  const auto start = steady_clock::now();
  auto last_active = start;
  Activity before = ReadActivity();
  for (int quiet = 0; quiet < kQuietWindows;) {
    std::this_thread::sleep_for(kWindow);
    const Activity now = ReadActivity();
    const bool active = now.cpu_us - before.cpu_us > kQuietCpuUs ||
                        now.written.call_bytes != before.written.call_bytes ||
                        now.written.page_bytes != before.written.page_bytes ||
                        AnotherThreadIsBusy();
    quiet = active ? 0 : quiet + 1;
    if (active) last_active = steady_clock::now();
    before = now;
  }
  return std::chrono::duration<double>(last_active - start).count();
}

}  // namespace basalt::bench
