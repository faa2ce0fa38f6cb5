#include "bench/steady/observation.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace basalt::bench {
namespace {

double TicksToSeconds(uint64_t ticks) {
  return static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

std::string ProcPath(pid_t process, const char* file) {
  return "/proc/" + std::to_string(process) + "/" + file;
}

}  // namespace

ProcessMemory ReadProcessMemory(pid_t process) {
  constexpr uint64_t kKib = 1024;
  ProcessMemory memory;
  std::ifstream status(ProcPath(process, "status"));
  for (std::string line; std::getline(status, line);) {
    std::istringstream fields(line);
    std::string name;
    uint64_t kib = 0;
    if (!(fields >> name >> kib)) continue;
    if (name == "RssAnon:") memory.anonymous_bytes = kib * kKib;
    if (name == "RssFile:") memory.file_bytes = kib * kKib;
  }
  return memory;
}

double ProcessCpuSeconds(pid_t process) {
  constexpr int kFieldsBeforeTimes = 11;  // Between the name and utime, by proc(5).
  std::ifstream stat(ProcPath(process, "stat"));
  std::string line;
  std::getline(stat, line);
  const size_t name_end = line.rfind(") ");  // The name before it may hold anything.
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(line.substr(name_end + 2));
  std::string skipped;
  for (int i = 0; i < kFieldsBeforeTimes; ++i) fields >> skipped;
  uint64_t user = 0;
  uint64_t system = 0;
  fields >> user >> system;
  return TicksToSeconds(user + system);
}

double MachineCpuSeconds() {
  enum : size_t {
    kUser,
    kNice,
    kSystem,
    kIdle,
    kIoWait,
    kInterrupts,
    kSoftInterrupts,
    kSteal,
    kAll
  };
  std::ifstream stat("/proc/stat");
  std::string name;
  stat >> name;
  std::array<uint64_t, kAll> ticks{};
  for (uint64_t& tick : ticks) stat >> tick;
  return TicksToSeconds(ticks[kUser] + ticks[kNice] + ticks[kSystem] + ticks[kInterrupts] +
                        ticks[kSoftInterrupts] + ticks[kSteal]);
}

uint64_t ProcessorWaitNs() {
  thread_local const int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  char text[96] = {};
  if (file < 0 || pread(file, text, sizeof text - 1, 0) <= 0) return 0;
  char* next = text;
  std::strtoull(next, &next, 10);  // What it has run.
  return std::strtoull(next, nullptr, 10);
}

}  // namespace basalt::bench
