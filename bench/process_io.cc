#include "bench/process_io.h"

#include <fstream>
#include <string>

namespace basalt::bench {

ProcessIo ReadProcessIo() {
  ProcessIo written;
  std::ifstream io("/proc/self/io");
  uint64_t value = 0;
  for (std::string field; io >> field >> value;) {
    if (field == "wchar:") written.call_bytes = value;
    if (field == "write_bytes:") written.page_bytes = value;
  }
  return written;
}

}  // namespace basalt::bench
