#include "bench/cache_footprint.h"

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "bench/cache_subject.h"

namespace basalt::bench {
namespace {

double RssBytes() {
  std::ifstream status("/proc/self/smaps_rollup");
  for (std::string field; status >> field;) {
    double kib = 0;
    if (field == "Rss:" && status >> kib) return kib * 1024;
  }
  Fail("measure memory", "/proc/self/smaps_rollup says nothing");
}

double HeapBytes() {
  const struct mallinfo2 heap = mallinfo2();
  return static_cast<double>(heap.uordblks) + static_cast<double>(heap.hblkhd);
}

Footprint MeasureHere(const std::function<double()>& grow) {
  malloc_trim(0);
  const double rss_before = RssBytes();
  const double heap_before = HeapBytes();
  Footprint footprint;
  footprint.claimed_bytes = grow();
  footprint.rss_bytes = RssBytes() - rss_before;
  footprint.heap_bytes = HeapBytes() - heap_before;
  return footprint;
}

}  // namespace

Footprint MeasureFootprint(const std::function<double()>& grow) {
  std::fflush(nullptr);
  int ends[2];
  if (pipe(ends) != 0) Fail("measure memory", "there is no pipe");
  const pid_t child = fork();
  if (child < 0) Fail("measure memory", "there is no child process");
  if (child == 0) {
    const Footprint footprint = MeasureHere(grow);
    const bool written = write(ends[1], &footprint, sizeof footprint) == sizeof footprint;
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  Footprint footprint;
  const bool is_read = read(ends[0], &footprint, sizeof footprint) == sizeof footprint;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!is_read || status != 0) Fail("measure memory", "the child process failed");
  return footprint;
}

}  // namespace basalt::bench
