#include "bench/round.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/random.h"
#include "bench/cpu_time.h"
#include "bench/disk_space.h"
#include "bench/idle.h"
#include "bench/process_io.h"
#include "bench/text.h"

namespace basalt::bench {

const std::vector<std::string> kBenchmarks = {"fillrandom2",
                                              "fillrandom",
                                              "overwrite",
                                              "written",
                                              "compact",
                                              "readrandom",
                                              "multireadrandom",
                                              "readmissing",
                                              "readseq",
                                              "seekrandom",
                                              "scan_after_deletes",
                                              "scan_flushed_deletes",
                                              "fillseq",
                                              "fillbatch",
                                              "fillsync",
                                              "fillsync8",
                                              "open",
                                              "ycsb_a",
                                              "ycsb_b",
                                              "ycsb_c",
                                              "ycsb_f",
                                              "ycsb_d",
                                              "ycsb_e"};

namespace {

using std::chrono::steady_clock;

const std::vector<std::string> kOnCompactedStore = {
    "compact", "readrandom", "multireadrandom",    "readmissing",
    "readseq", "seekrandom", "scan_after_deletes", "scan_flushed_deletes"};

constexpr uint64_t kValueSeed = 1;
constexpr uint64_t kFillSeed = 2;
constexpr uint64_t kOverwriteSeed = 3;
constexpr uint64_t kReadSeed = 4;
constexpr uint64_t kYcsbSeed = 6;
constexpr uint32_t kBatchRecords = 100;
constexpr uint32_t kKeysAtOnce = 32;
constexpr int kNexts = 10;
constexpr uint32_t kScansAcrossDeletes = 200;
constexpr int kOpens = 5;
constexpr uint32_t kManySyncingThreads = 8;

double SecondsSince(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

std::string YcsbName(const workload::YcsbMix& mix) { return std::string("ycsb_") + mix.name; }

}  // namespace

bool Round::AnyWanted(const std::vector<std::string>& benchmarks) const {
  return std::any_of(benchmarks.begin(), benchmarks.end(),
                     [this](const std::string& benchmark) { return Wanted(benchmark); });
}

void Round::OpenFresh(Level level) {
  std::filesystem::remove_all(settings_.directory);
  std::filesystem::create_directories(settings_.directory);
  sync();  // What the previous subject left to be written back is not this one's cost.
  level_ = level;
  subject_->Open(settings_.directory, level);
}

void Round::CloseAndRemove() {
  subject_->Close();
  std::filesystem::remove_all(settings_.directory);
}

void Round::Add(std::string_view benchmark, std::string_view metric, std::string_view unit,
                double value, uint32_t threads) {
  if (!Wanted(std::string(benchmark))) return;
  report_->Add(benchmark, subject_->name(), level_, metric, unit, value, static_cast<int>(threads));
}

Measurement Round::Run(std::string_view benchmark, const Plan& plan,
                       const std::function<void(uint32_t)>& operation) {
  Measurement measured = Measure(plan, operation);
  const auto add = [&](const char* metric, uint64_t nanoseconds) {
    Add(benchmark, metric, "us", static_cast<double>(nanoseconds) / 1e3, plan.threads);
  };
  Add(benchmark, "throughput", "ops/s", measured.PerSecond(), plan.threads);
  add("p50", measured.call_ns.Percentile(50));
  add("p99", measured.call_ns.Percentile(99));
  add("p99.9", measured.call_ns.Percentile(99.9));
  add("max", measured.call_ns.max());
  return measured;
}

void Round::Drain(std::string_view benchmark, const Plan& plan, const Measurement& fill) {
  const double cpu_before = CpuSeconds();
  const auto start = steady_clock::now();
  subject_->Flush();
  const double flush_seconds = SecondsSince(start);
  const double cpu_seconds = fill.cpu_seconds + CpuSeconds() - cpu_before;
  const auto operations = static_cast<double>(fill.operations);
  Add(benchmark, "drained", "ops/s", operations / (fill.seconds + flush_seconds), plan.threads);
  Add(benchmark, "processor", "ns", 1e9 * cpu_seconds / operations, plan.threads);
  Add(benchmark, "busy", "", cpu_seconds / (fill.seconds + flush_seconds), plan.threads);
  if (const auto debt = subject_->CompactionDebt()) {
    Add(benchmark, "debt", "bytes", static_cast<double>(*debt), plan.threads);
  }
  Add(benchmark, "settle", "s", flush_seconds + WaitUntilIdle(), plan.threads);
  Add(benchmark, "size", "bytes", static_cast<double>(BytesOnDisk(settings_.directory)),
      plan.threads);
}

void Round::Expect(std::string_view benchmark, uint64_t found, uint64_t expected) const {
  if (found == expected) return;
  Fail(std::string(benchmark) + " of " + subject_->name(),
       "gave " + std::to_string(found) + " records instead of " + std::to_string(expected));
}

void Round::RunFillRandom() {
  // Who comes second finds memory that the first has made the process's own.
  const bool two_come_first = number_ % 2 == 0;
  if (two_come_first) RunFillRandom2();
  RunFillRandom1();
  if (!two_come_first) RunFillRandom2();
}

void Round::RunFillRandom1() {
  if (!AnyWanted({"fillrandom", "overwrite", "written"}) && !AnyWanted(kOnCompactedStore)) return;
  OpenFresh(Level::kProcess);
  const uint64_t written_before = ReadProcessIo().page_bytes;
  const Values values(kValueSeed);
  const std::vector<uint32_t> order = Permutation(settings_.keys, kFillSeed);
  const Plan plan{.calls = settings_.keys};
  const Measurement fill = Run("fillrandom", plan, [&](uint32_t i) {
    subject_->Put(PresentKey(order[i]).view(), values.At(i));
  });
  Drain("fillrandom", plan, fill);
  if (AnyWanted({"overwrite", "written"})) RunOverwrite(written_before);
  if (AnyWanted(kOnCompactedStore)) {
    const auto start = steady_clock::now();
    subject_->CompactAll();
    Add("compact", "time", "s", SecondsSince(start));
    WaitUntilIdle();
    Add("compact", "size", "bytes", static_cast<double>(BytesOnDisk(settings_.directory)));
    RunReads();
    if (AnyWanted({"scan_after_deletes", "scan_flushed_deletes"})) RunScansAcrossDeletes();
  }
  CloseAndRemove();
}

void Round::RunFillRandom2() {
  if (!Wanted("fillrandom2")) return;
  OpenFresh(Level::kProcess);
  const Values values(kValueSeed);
  const std::vector<uint32_t> order = Permutation(settings_.keys, kFillSeed);
  const Plan plan{.calls = settings_.keys, .threads = 2};
  const Measurement fill = Run("fillrandom2", plan, [&](uint32_t i) {
    subject_->Put(PresentKey(order[i]).view(), values.At(i));
  });
  Drain("fillrandom2", plan, fill);
  Expect("fillrandom2", subject_->ScanAll(), settings_.keys);
  CloseAndRemove();
}

void Round::RunOverwrite(uint64_t written_before) {
  const Values values(kValueSeed);
  const std::vector<uint32_t> order = Permutation(settings_.keys, kOverwriteSeed);
  const Plan plan{.calls = settings_.keys};
  const Measurement fill = Run("overwrite", plan, [&](uint32_t i) {
    subject_->Put(PresentKey(order[i]).view(), values.At(uint64_t{settings_.keys} + i));
  });
  Drain("overwrite", plan, fill);
  sync();
  const double put_bytes = 2.0 * settings_.keys * (kKeyBytes + kValueBytes);
  const uint64_t written = ReadProcessIo().page_bytes - written_before;
  Add("written", "disk", "B/B", static_cast<double>(written) / put_bytes);
  if (const auto counted = subject_->BytesWritten()) {
    Add("written", "counted", "B/B", static_cast<double>(*counted) / put_bytes);
  }
}

void Round::RunReads() {
  Expect("warm-up scan", subject_->ScanAll(), settings_.keys);
  const Plan plan{.calls = settings_.keys};
  if (Wanted("readrandom")) {
    base::Random random(kReadSeed);
    uint64_t found = 0;
    Run("readrandom", plan, [&](uint32_t) {
      found += subject_->Get(PresentKey(random.Below(settings_.keys)).view()) ? 1 : 0;
    });
    Expect("readrandom", found, settings_.keys);
  }
  if (Wanted("multireadrandom")) {
    base::Random random(kReadSeed);
    uint64_t found = 0;
    std::vector<Key> keys(kKeysAtOnce, Key(0));
    std::vector<std::string_view> views(kKeysAtOnce);
    const Plan many{.calls = settings_.keys / kKeysAtOnce, .operations_per_call = kKeysAtOnce};
    Run("multireadrandom", many, [&](uint32_t) {
      for (uint32_t i = 0; i < kKeysAtOnce; ++i) {
        keys[i] = PresentKey(random.Below(settings_.keys));
        views[i] = keys[i].view();
      }
      found += subject_->MultiGet(views);
    });
    Expect("multireadrandom", found, uint64_t{many.calls} * kKeysAtOnce);
  }
  if (Wanted("readmissing")) {
    base::Random random(kReadSeed);
    uint64_t found = 0;
    Run("readmissing", plan, [&](uint32_t) {
      found += subject_->Get(MissingKey(random.Below(settings_.keys)).view()) ? 1 : 0;
    });
    Expect("readmissing", found, 0);
  }
  if (Wanted("readseq")) {
    const auto start = steady_clock::now();
    Expect("readseq", subject_->ScanAll(), settings_.keys);
    Add("readseq", "throughput", "ops/s", settings_.keys / SecondsSince(start));
  }
  if (Wanted("seekrandom")) {
    base::Random random(kReadSeed);
    const uint32_t seeks = settings_.keys / 10;
    uint64_t read = 0;
    Run("seekrandom", {.calls = seeks}, [&](uint32_t) {
      read +=
          subject_->SeekAndNext(PresentKey(random.Below(settings_.keys - kNexts)).view(), kNexts);
    });
    Expect("seekrandom", read, uint64_t{seeks} * (kNexts + 1));
  }
}

void Round::RunScansAcrossDeletes() {
  const uint32_t first_deleted = settings_.keys / 2;
  const uint32_t end_deleted = first_deleted + settings_.keys / 10;
  for (uint32_t i = first_deleted; i < end_deleted; ++i) subject_->Delete(PresentKey(i).view());
  const auto run = [&](std::string_view benchmark) {
    base::Random random(kReadSeed);
    uint64_t read = 0;
    Run(benchmark, {.calls = kScansAcrossDeletes}, [&](uint32_t) {
      const uint64_t start = first_deleted - 1 - random.Below(kNexts);
      read += subject_->SeekAndNext(PresentKey(start).view(), kNexts);
    });
    Expect(benchmark, read, uint64_t{kScansAcrossDeletes} * (kNexts + 1));
  };
  if (Wanted("scan_after_deletes")) run("scan_after_deletes");
  if (!Wanted("scan_flushed_deletes")) return;
  subject_->Flush();
  WaitUntilIdle();
  run("scan_flushed_deletes");
}

void Round::RunFillSeq() {
  if (!Wanted("fillseq")) return;
  OpenFresh(Level::kProcess);
  const Values values(kValueSeed);
  const Plan plan{.calls = settings_.keys};
  const Measurement fill =
      Run("fillseq", plan, [&](uint32_t i) { subject_->Put(PresentKey(i).view(), values.At(i)); });
  Drain("fillseq", plan, fill);
  CloseAndRemove();
}

void Round::RunFillBatch() {
  if (!Wanted("fillbatch")) return;
  OpenFresh(Level::kProcess);
  const Values values(kValueSeed);
  const std::vector<uint32_t> order = Permutation(settings_.keys, kFillSeed);
  std::vector<Key> keys(kBatchRecords, Key(0));
  std::vector<Record> batch(kBatchRecords);
  const Plan plan{.calls = settings_.keys / kBatchRecords, .operations_per_call = kBatchRecords};
  const Measurement fill = Run("fillbatch", plan, [&](uint32_t i) {
    for (uint32_t j = 0; j < kBatchRecords; ++j) {
      const uint32_t index = i * kBatchRecords + j;
      keys[j] = PresentKey(order[index]);
      batch[j] = {keys[j].view(), values.At(index)};
    }
    subject_->PutBatch(batch);
  });
  Drain("fillbatch", plan, fill);
  CloseAndRemove();
}

void Round::RunFillSync() {
  const Values values(kValueSeed);
  const std::vector<uint32_t> order = Permutation(settings_.keys, kFillSeed);
  const auto run = [&](const char* benchmark, uint32_t calls, uint32_t threads) {
    if (!Wanted(benchmark)) return;
    OpenFresh(Level::kPower);
    const Plan plan{.calls = std::min(calls, settings_.keys), .threads = threads};
    Run(benchmark, plan,
        [&](uint32_t i) { subject_->Put(PresentKey(order[i]).view(), values.At(i)); });
    Expect(benchmark, subject_->ScanAll(), plan.calls);
    CloseAndRemove();
  };
  run("fillsync", settings_.synced_writes, 1);
  run("fillsync8", settings_.synced_writes_of_many, kManySyncingThreads);
}

void Round::RunYcsb() {
  std::vector<std::string> names = {"open"};
  for (const workload::YcsbMix& mix : workload::kYcsbMixes) names.push_back(YcsbName(mix));
  if (!AnyWanted(names)) return;
  OpenFresh(Level::kProcess);
  YcsbRecords records(settings_.keys);
  const Values values(kValueSeed);
  for (uint32_t i = 0; i < settings_.keys; ++i) {
    subject_->Put(records.KeyOf(i).view(), values.At(i));
  }
  WaitUntilIdle();
  RunOpens();
  for (const workload::YcsbMix& mix : workload::kYcsbMixes) {
    if (Wanted(YcsbName(mix))) RunYcsbMix(mix, &records);
  }
  CloseAndRemove();
}

void Round::RunOpens() {
  std::vector<double> milliseconds;
  for (int i = 0; i < kOpens; ++i) {
    subject_->Close();
    const auto start = steady_clock::now();
    subject_->Open(settings_.directory, level_);
    milliseconds.push_back(1e3 * SecondsSince(start));
  }
  Add("open", "first", "ms", milliseconds.front());
  std::sort(milliseconds.begin(), milliseconds.end());
  Add("open", "time", "ms", milliseconds[kOpens / 2]);
  Expect("scan after open", subject_->ScanAll(), settings_.keys);
  WaitUntilIdle();
}

void Round::RunYcsbMix(const workload::YcsbMix& mix, YcsbRecords* records) {
  using Kind = workload::YcsbRequest::Kind;
  const std::string name = YcsbName(mix);
  const std::vector<YcsbKeyRequest> requests = records->Requests(mix, kYcsbSeed);
  const Values values(kYcsbSeed);
  uint64_t found = 0;
  uint64_t scanned = 0;
  const auto run = [&](uint32_t i) {
    const YcsbKeyRequest& request = requests[i];
    const std::string_view key = request.key.view();
    if (request.kind == Kind::kScan) {
      scanned += subject_->SeekAndNext(key, request.scan_records - 1);
      return;
    }
    if (request.kind == Kind::kRead || request.kind == Kind::kReadModifyWrite) {
      found += subject_->Get(key) ? 1 : 0;
    }
    if (request.kind != Kind::kRead) subject_->Put(key, values.At(i));
  };
  const Measurement measured = Run(name, {.calls = static_cast<uint32_t>(requests.size())}, run);
  const auto expected = std::count_if(requests.begin(), requests.end(), [](const auto& request) {
    return request.kind == Kind::kRead || request.kind == Kind::kReadModifyWrite;
  });
  Expect(name, found, static_cast<uint64_t>(expected));
  if (scanned > 0) {
    Expect(name, scanned, agreed_->try_emplace(name, scanned).first->second);
    Add(name, "records", "ops/s", static_cast<double>(scanned) / measured.seconds);
  }
  WaitUntilIdle();
}

}  // namespace basalt::bench
