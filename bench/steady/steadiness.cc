#include "bench/steady/steadiness.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>

#include "basalt/db.h"
#include "base/random.h"
#include "bench/disk_space.h"
#include "bench/idle.h"
#include "bench/steady/child_process.h"
#include "bench/steady/observation.h"
#include "bench/steady/standstills.h"
#include "bench/text.h"
#include "bench/workload.h"

namespace basalt::bench {
namespace {

using std::chrono::steady_clock;

constexpr uint64_t kValueSeed = 1;
constexpr uint64_t kLoadSeed = 2;
constexpr uint64_t kOverwriteSeed = 3;
constexpr size_t kSecondsMax = 24 * 3600;
constexpr size_t kPausesKept = 20;
constexpr uint64_t kPauseNsMin = 1'000'000;

enum class Phase : uint8_t { kOpening, kEmpty, kLoading, kOverwriting, kSettling };

/// What the child, which has the database, and its parent tell each other. Each writes its own
/// members of a Second.
struct Exchange {
  std::atomic<Phase> phase{Phase::kOpening};
  steady_clock::time_point start;  ///< Of overwriting.
  double load_seconds = 0;
  uint64_t settled_disk_bytes = 0;
  base::Histogram put_ns;
  std::array<Pause, kPausesKept> pauses;
  std::array<Second, kSecondsMax> seconds;
};

void Check(const Status& status, std::string_view what) {
  if (!status.ok()) Fail(what, status.ToString());
}

double SecondsBetween(steady_clock::time_point from, steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

size_t SecondsOf(const SteadinessSettings& settings) {
  const auto seconds = static_cast<size_t>(std::lround(settings.minutes * 60));
  return std::clamp<size_t>(seconds, 1, kSecondsMax);
}

uint32_t KeysOf(const SteadinessSettings& settings) {
  return static_cast<uint32_t>(static_cast<double>(settings.memory_budget) *
                               settings.data_over_budget / (kKeyBytes + kValueBytes));
}

/// The child's part.
class Worker {
 public:
  Worker(const SteadinessSettings& settings, Exchange* exchange)
      : settings_(settings), exchange_(exchange), keys_(KeysOf(settings)), values_(kValueSeed) {}

  void Run() {
    DBOptions options;
    options.memory_budget = settings_.memory_budget;
    auto db = DB::Open(settings_.directory, options);
    Check(db.status(), "open");
    db_ = std::move(*db);
    exchange_->phase = Phase::kEmpty;
    while (exchange_->phase == Phase::kEmpty) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    Load();
    Overwrite();
    Settle();
    Check(db_->Close(), "close");
  }

 private:
  void Load() {
    const auto start = steady_clock::now();
    const std::vector<uint32_t> order = Permutation(keys_, kLoadSeed);
    for (uint32_t i = 0; i < keys_; ++i) {
      Check(db_->Put(PresentKey(order[i]).view(), values_.At(i)), "load");
    }
    Check(db_->Flush(), "flush");
    WaitUntilIdle();
    exchange_->load_seconds = SecondsBetween(start, steady_clock::now());
  }

  void Overwrite() {
    base::Random random(kOverwriteSeed);
    base::Histogram put_ns;
    uint64_t index = keys_;
    stats_ = db_->GetStats();
    processor_wait_ns_ = ProcessorWaitNs();
    const auto start = steady_clock::now();
    exchange_->start = start;
    exchange_->phase = Phase::kOverwriting;
    auto before = start;
    for (size_t i = 0; i < SecondsOf(settings_); ++i) {
      Second& second = exchange_->seconds[i];
      const auto end = start + std::chrono::seconds(i + 1);
      while (before < end) {
        Check(db_->Put(PresentKey(random.Below(keys_)).view(), values_.At(index++)), "put");
        const auto after = steady_clock::now();
        const auto nanoseconds = static_cast<uint64_t>((after - before).count());
        put_ns.Record(nanoseconds);
        second.longest_ns = std::max(second.longest_ns, nanoseconds);
        ++second.puts;
        if (nanoseconds >= kPauseNsMin) {
          RecordPause(SecondsBetween(start, before), nanoseconds);
          before = steady_clock::now();
        } else {
          before = after;
        }
      }
      Describe(&second);
      before = steady_clock::now();
    }
    exchange_->put_ns = put_ns;
  }

  void RecordPause(double at_seconds, uint64_t nanoseconds) {
    const uint64_t waited_before = std::exchange(processor_wait_ns_, ProcessorWaitNs());
    Pause& shortest = exchange_->pauses.back();
    if (nanoseconds <= shortest.ns) return;
    shortest = {.at_seconds = at_seconds,
                .ns = nanoseconds,
                .processor_wait_ns = std::min(nanoseconds, processor_wait_ns_ - waited_before)};
    std::sort(exchange_->pauses.begin(), exchange_->pauses.end(),
              [](const Pause& left, const Pause& right) { return left.ns > right.ns; });
  }

  /// On the thread that puts, and between two puts, so that no put waits for a lock of it.
  void Describe(Second* second) {
    const DBStats before = std::exchange(stats_, db_->GetStats());
    second->memtable_bytes = stats_.memtable_bytes;
    second->cache_bytes = stats_.cache_bytes;
    second->table_metadata_bytes = stats_.table_metadata_bytes;
    second->log_bytes = stats_.log_bytes;
    for (const LevelStats& level : stats_.levels) second->table_bytes += level.bytes;
    if (!stats_.levels.empty()) {
      second->level0_tables = stats_.levels.front().tables;
      second->level0_bytes = stats_.levels.front().bytes;
    }
    second->compaction_debt = stats_.compaction_debt;
    second->flushes = stats_.flushes - before.flushes;
    second->compactions = stats_.compactions - before.compactions;
    second->write_wait_us = stats_.write_wait_us - before.write_wait_us;
    second->write_delay_us = stats_.write_delay_us - before.write_delay_us;
    processor_wait_ns_ = ProcessorWaitNs();
  }

  void Settle() {
    exchange_->phase = Phase::kSettling;
    Check(db_->Flush(), "flush");
    WaitUntilIdle();
    exchange_->settled_disk_bytes = BytesOnDisk(settings_.directory);
    const auto iterator = db_->NewIterator();
    uint64_t records = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) ++records;
    Check(iterator->status(), "scan");
    if (records != keys_) {
      Fail("scan",
           Format("%llu records instead of %u", static_cast<unsigned long long>(records), keys_));
    }
  }

  const SteadinessSettings& settings_;
  Exchange* const exchange_;
  const uint32_t keys_;
  const Values values_;
  std::unique_ptr<DB> db_;
  DBStats stats_;
  uint64_t processor_wait_ns_ = 0;
};

bool AwaitPhase(ChildProcess* child, const Exchange& exchange, Phase phase) {
  while (child->IsRunning()) {
    if (exchange.phase >= phase) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

double Mebibytes(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }
double Milliseconds(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e6; }

void PrintMinute(size_t seconds, const std::array<Second, kSecondsMax>& all) {
  constexpr size_t kMinute = 60;
  uint64_t puts = 0;
  uint64_t longest_ns = 0;
  for (size_t i = seconds - kMinute; i < seconds; ++i) {
    puts += all[i].puts;
    longest_ns = std::max(longest_ns, all[i].longest_ns);
  }
  std::printf("minute %3zu  %8.1f k puts/s, longest %7.2f ms, disk %7.1f MiB, memory %6.1f MiB\n",
              seconds / kMinute, static_cast<double>(puts) / kMinute / 1e3,
              Milliseconds(longest_ns), Mebibytes(all[seconds - 1].disk_bytes),
              Mebibytes(all[seconds - 1].anonymous_bytes));
  std::fflush(stdout);
}

/// The parent's part, once a second.
void Watch(const SteadinessSettings& settings, uint64_t empty_anonymous_bytes, ChildProcess* child,
           Exchange* exchange) {
  double others_before = MachineCpuSeconds() - ProcessCpuSeconds(child->id());
  for (size_t i = 0; i < SecondsOf(settings); ++i) {
    std::this_thread::sleep_until(exchange->start + std::chrono::seconds(i + 1));
    if (!child->IsRunning()) return;
    Second& second = exchange->seconds[i];
    const ProcessMemory memory = ReadProcessMemory(child->id());
    second.anonymous_bytes =
        memory.anonymous_bytes - std::min(memory.anonymous_bytes, empty_anonymous_bytes);
    second.file_bytes = memory.file_bytes;
    second.disk_bytes = BytesOnDisk(settings.directory);
    const double others = MachineCpuSeconds() - ProcessCpuSeconds(child->id());
    second.other_cpu_seconds = std::max(0.0, others - std::exchange(others_before, others));
    if (i > 0 && i % 60 == 0) PrintMinute(i, exchange->seconds);
  }
}

// The gates

struct Found {
  double longest_ms = 0;
  double space_highest = 0;  ///< Over live bytes, after the first minute.
  double space_at_end = 0;
  double space_settled = 0;
  double first_per_second = 0;
  double last_per_second = 0;
  uint64_t anonymous_bytes_highest = 0;
  size_t window = 0;        ///< Seconds at either end that throughput is compared of.
  size_t warm_seconds = 0;  ///< That do not count for space.
};

double PutsPerSecond(const std::vector<Second>& seconds, size_t first, size_t count) {
  uint64_t puts = 0;
  for (size_t i = first; i < first + count; ++i) puts += seconds[i].puts;
  return static_cast<double>(puts) / static_cast<double>(count);
}

Found Find(const Steadiness& measured) {
  const std::vector<Second>& seconds = measured.seconds;
  const auto live = static_cast<double>(measured.live_bytes);
  Found found;
  found.window = std::max<size_t>(1, std::min<size_t>(300, seconds.size() / 3));
  found.warm_seconds = std::min<size_t>(60, seconds.size() / 3);
  for (size_t i = 0; i < seconds.size(); ++i) {
    found.longest_ms = std::max(found.longest_ms, Milliseconds(seconds[i].longest_ns));
    found.anonymous_bytes_highest =
        std::max(found.anonymous_bytes_highest, seconds[i].anonymous_bytes);
    if (i < found.warm_seconds) continue;
    found.space_highest =
        std::max(found.space_highest, static_cast<double>(seconds[i].disk_bytes) / live);
  }
  found.space_at_end = static_cast<double>(seconds.back().disk_bytes) / live;
  found.space_settled = static_cast<double>(measured.settled_disk_bytes) / live;
  found.first_per_second = PutsPerSecond(seconds, 0, found.window);
  found.last_per_second = PutsPerSecond(seconds, seconds.size() - found.window, found.window);
  return found;
}

std::string GateLine(bool is_met, const std::string& name, const std::string& wanted,
                     const std::string& found) {
  return Format("  %-6s  %-58s %12s  %s\n", is_met ? "met" : "missed", name.c_str(), wanted.c_str(),
                found.c_str());
}

std::string GateLines(const SteadinessSettings& settings, const Steadiness& measured) {
  constexpr double kPauseMsMost = 50;
  constexpr double kSpaceMost = 1.5;
  constexpr double kThroughputLeast = 0.8;
  const Found found = Find(measured);
  const double kept = found.last_per_second / found.first_per_second;
  std::string lines = "Gates: what is wanted; found\n";
  lines += GateLine(found.longest_ms <= kPauseMsMost, "longest put",
                    Format("<= %.0f ms", kPauseMsMost), Format("%.2f ms", found.longest_ms));
  lines += GateLine(found.space_highest <= kSpaceMost,
                    Format("space over live bytes, highest after %zu s", found.warm_seconds),
                    Format("<= %.2f x", kSpaceMost), Format("%.2f x", found.space_highest));
  lines +=
      GateLine(found.space_at_end <= kSpaceMost, "space over live bytes, at the end",
               Format("<= %.2f x", kSpaceMost),
               Format("%.2f x (%.2f x when settled)", found.space_at_end, found.space_settled));
  lines += GateLine(kept >= kThroughputLeast,
                    Format("throughput of the last %zu s over the first's", found.window),
                    Format(">= %.2f x", kThroughputLeast),
                    Format("%.2f x (%.1f k/s, %.1f k/s)", kept, found.first_per_second / 1e3,
                           found.last_per_second / 1e3));
  lines += GateLine(found.anonymous_bytes_highest <= settings.memory_budget,
                    "memory beyond the empty database's, highest",
                    Format("<= %.0f MiB", Mebibytes(settings.memory_budget)),
                    Format("%.1f MiB", Mebibytes(found.anonymous_bytes_highest)));
  return lines;
}

template <class Value>
std::string Series(const char* name, const std::vector<Second>& seconds, Value value) {
  std::string text = Format("    \"%s\": [", name);
  for (const Second& second : seconds) {
    text +=
        Format("%s%.9g", &second == seconds.data() ? "" : ", ", static_cast<double>(value(second)));
  }
  return text + "]";
}

}  // namespace

Steadiness MeasureSteadiness(const SteadinessSettings& settings) {
  std::filesystem::remove_all(settings.directory);
  std::filesystem::create_directories(settings.directory);
  const Shared<Exchange> exchange;
  ChildProcess child([&] { Worker(settings, exchange.get()).Run(); });
  const Standstills standstills;
  Steadiness measured;
  measured.knows_standstills = standstills.is_watching();
  measured.keys = KeysOf(settings);
  measured.live_bytes = measured.keys * (kKeyBytes + kValueBytes);
  if (AwaitPhase(&child, *exchange.get(), Phase::kEmpty)) {
    measured.empty_anonymous_bytes = ReadProcessMemory(child.id()).anonymous_bytes;
    exchange->phase = Phase::kLoading;
  }
  if (AwaitPhase(&child, *exchange.get(), Phase::kOverwriting)) {
    std::printf("%llu keys loaded in %.1f s\n", static_cast<unsigned long long>(measured.keys),
                exchange->load_seconds);
    Watch(settings, measured.empty_anonymous_bytes, &child, exchange.get());
  }
  child.Wait();
  measured.settled_disk_bytes = exchange->settled_disk_bytes;
  measured.load_seconds = exchange->load_seconds;
  measured.seconds.assign(exchange->seconds.begin(),
                          exchange->seconds.begin() + static_cast<ptrdiff_t>(SecondsOf(settings)));
  for (Pause pause : exchange->pauses) {
    if (pause.ns == 0) continue;
    const auto from = exchange->start + std::chrono::duration_cast<steady_clock::duration>(
                                            std::chrono::duration<double>(pause.at_seconds));
    pause.standstill_ns = standstills.NsWithin(from, from + std::chrono::nanoseconds(pause.ns));
    measured.pauses.push_back(pause);
  }
  measured.put_ns = exchange->put_ns;
  std::filesystem::remove_all(settings.directory);
  return measured;
}

std::string SteadinessText(const SteadinessSettings& settings, const Steadiness& measured) {
  const base::Histogram& put_ns = measured.put_ns;
  const auto microseconds = [&](double percent) {
    return static_cast<double>(put_ns.Percentile(percent)) / 1e3;
  };
  std::string text =
      Format("\n%llu puts; p50 %.2f us, p99 %.2f us, p99.9 %.1f us, p99.99 %.1f us\n",
             static_cast<unsigned long long>(put_ns.count()), microseconds(50), microseconds(99),
             microseconds(99.9), microseconds(99.99));
  text +=
      "Longest puts: ms at second (ms of it at most that other threads had the processors;\n"
      "              ms in which a processor let nobody run)\n";
  for (size_t i = 0; i < measured.pauses.size(); ++i) {
    const Pause& pause = measured.pauses[i];
    const std::string standstill = measured.knows_standstills
                                       ? Format("%.2f", Milliseconds(pause.standstill_ns))
                                       : std::string("unknown");
    text +=
        Format("  %.2f at %.1f (%.2f; %s)%s", Milliseconds(pause.ns), pause.at_seconds,
               Milliseconds(pause.processor_wait_ns), standstill.c_str(), i % 4 == 3 ? "\n" : "");
  }
  if (measured.pauses.size() % 4 != 0) text += "\n";
  return text + "\n" + GateLines(settings, measured);
}

std::string SteadinessJson(const SteadinessSettings& settings, const Steadiness& measured) {
  using Integer = unsigned long long;  // NOLINT(google-runtime-int): what %llu takes.
  const auto integer = [](uint64_t value) { return static_cast<Integer>(value); };
  std::string json = Format(
      "{\n  \"keys\": %llu,\n  \"live_bytes\": %llu,\n  \"memory_budget\": %llu,\n"
      "  \"empty_anonymous_bytes\": %llu,\n  \"settled_disk_bytes\": %llu,\n"
      "  \"load_seconds\": %.6g,\n",
      integer(measured.keys), integer(measured.live_bytes), integer(settings.memory_budget),
      integer(measured.empty_anonymous_bytes), integer(measured.settled_disk_bytes),
      measured.load_seconds);
  json += "  \"put_ns\": {";
  for (const double percent : {50.0, 90.0, 99.0, 99.9, 99.99, 99.999}) {
    json += Format("\"p%g\": %llu, ", percent, integer(measured.put_ns.Percentile(percent)));
  }
  json += Format("\"max\": %llu},\n  \"pauses\": [", integer(measured.put_ns.max()));
  for (const Pause& pause : measured.pauses) {
    json += Format("%s\n    {\"at_seconds\": %.3f, \"ns\": %llu, \"processor_wait_ns\": %llu",
                   &pause == measured.pauses.data() ? "" : ",", pause.at_seconds, integer(pause.ns),
                   integer(pause.processor_wait_ns));
    if (measured.knows_standstills) {
      json += Format(", \"standstill_ns\": %llu", integer(pause.standstill_ns));
    }
    json += "}";
  }
  json += "\n  ],\n  \"series\": {\n";
  constexpr std::pair<const char*, uint64_t Second::*> kSeries[] = {
      {"puts", &Second::puts},
      {"longest_ns", &Second::longest_ns},
      {"disk_bytes", &Second::disk_bytes},
      {"anonymous_bytes", &Second::anonymous_bytes},
      {"file_bytes", &Second::file_bytes},
      {"memtable_bytes", &Second::memtable_bytes},
      {"cache_bytes", &Second::cache_bytes},
      {"table_metadata_bytes", &Second::table_metadata_bytes},
      {"log_bytes", &Second::log_bytes},
      {"table_bytes", &Second::table_bytes},
      {"level0_tables", &Second::level0_tables},
      {"level0_bytes", &Second::level0_bytes},
      {"compaction_debt", &Second::compaction_debt},
      {"flushes", &Second::flushes},
      {"compactions", &Second::compactions},
      {"write_wait_us", &Second::write_wait_us},
      {"write_delay_us", &Second::write_delay_us}};
  for (const auto& [name, member] : kSeries) {
    json += Series(name, measured.seconds,
                   [member = member](const Second& second) { return second.*member; }) +
            ",\n";
  }
  json += Series("other_cpu_seconds", measured.seconds,
                 [](const Second& second) { return second.other_cpu_seconds; });
  return json + "\n  }\n}\n";
}

}  // namespace basalt::bench
