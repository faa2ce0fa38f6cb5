// Serializability of a database under concurrent transactions. Random transactions (point reads,
// scans in both directions, inserts into scanned gaps, range deletes, merges, updates), batches
// with conditions and plain writes run in several threads on few keys, on a database in memory
// whose memtables are small, so that it flushes and compacts all the while. What they have read and
// written is then checked (checker.h).
//
//   basalt_serializability [--transactions N] [--seed S] [--threads N]

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "basalt/db.h"
#include "db/environment.h"
#include "io/memory_file_system.h"
#include "tests/serializability/checker.h"
#include "tests/serializability/workload.h"

namespace basalt::serializability {
namespace {

bool ParseNumber(std::string_view text, uint64_t* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size() && *number > 0;
}

bool Parse(int argc, char** argv, WorkloadOptions* options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    uint64_t number = 0;
    if (!ParseNumber(argv[i + 1], &number)) return false;
    if (name == "--transactions") {
      options->transactions = number;
    } else if (name == "--seed") {
      options->seed = number;
    } else if (name == "--threads" && number <= 64) {
      options->threads = static_cast<unsigned>(number);
    } else {
      return false;
    }
  }
  return argc % 2 == 1;
}

int Main(int argc, char** argv) {
  WorkloadOptions options;
  if (!Parse(argc, argv, &options)) {
    std::fprintf(stderr,
                 "usage: basalt_serializability [--transactions N] [--seed S] [--threads N]\n");
    return 2;
  }
  const std::unique_ptr<io::FileSystem> disk = io::NewMemoryFileSystem();
  auto environment = db::Environment::System(2);
  if (!environment) {
    std::printf("FAILED: %s\n", environment.error().ToString().c_str());
    return 1;
  }
  environment->fs = disk.get();
  environment->memtable_bytes = uint64_t{256} << 10;
  auto db = db::OpenDatabase("/db", {}, *environment);
  if (!db) {
    std::printf("FAILED: %s\n", db.error().ToString().c_str());
    return 1;
  }
  auto ran = RunWorkload(db->get(), options);
  if (!ran) {
    std::printf("FAILED: %s\n", ran.error().ToString().c_str());
    return 1;
  }
  const CheckReport report = CheckHistory(std::move(ran->history));
  for (const std::string& fault : report.faults) std::printf("%s\n", fault.c_str());
  std::printf(
      "serializability: %llu transactions committed and %llu aborted in %u threads from seed %llu, "
      "%llu reads, %llu edges: %llu cycles, %llu edges against the order of commits, %llu reads of "
      "unknown values: %s\n",
      static_cast<unsigned long long>(report.transactions),
      static_cast<unsigned long long>(ran->aborted), options.threads,
      static_cast<unsigned long long>(options.seed), static_cast<unsigned long long>(report.reads),
      static_cast<unsigned long long>(report.edges), static_cast<unsigned long long>(report.cycles),
      static_cast<unsigned long long>(report.against_order),
      static_cast<unsigned long long>(report.unknown_reads),
      report.ok() ? "serializable" : "FAILED");
  return report.ok() ? 0 : 1;
}

}  // namespace
}  // namespace basalt::serializability

int main(int argc, char** argv) { return basalt::serializability::Main(argc, argv); }
