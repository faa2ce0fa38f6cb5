#include "tools/basalt/bench.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "tools/basalt/bench_database.h"
#include "tools/basalt/bench_report.h"
#include "tools/basalt/figures.h"
#include "tools/basalt/progress.h"
#include "tools/basalt/workload.h"

namespace basalt::tools {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(100);

/// The threads of one workload: they begin together and are waited for.
class BenchThreads {
 public:
  BenchThreads(const Workload& workload, WorkloadRun& run, uint32_t threads)
      : workload_(workload), run_(run), ends_(threads) {}

  /// Runs all of it, and shows how far it has come. The first error of any thread.
  Status Run(Progress& progress) {
    const uint64_t calls = workload_.calls(run_.options);
    progress.BeginStage(std::string(workload_.name), ProgressUnit::kCalls, 0, calls);
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < ends_.size(); ++i) {
      threads.emplace_back([this, i, calls] { RunShare(i, calls); });
    }
    {
      std::unique_lock lock(mutex_);
      while (!changed_.wait_for(lock, kPollInterval, [&] { return ended_ == ends_.size(); })) {
        progress.Update(run_.done.load(std::memory_order_relaxed), 0);
      }
    }
    for (std::jthread& thread : threads) thread.join();
    Status failed;
    for (End& end : ends_) {
      counts_.Merge(end.counts);
      if (failed.ok()) failed = end.status;
    }
    return failed;
  }

  WorkloadCounts& counts() noexcept { return counts_; }

 private:
  /// What a thread leaves behind.
  struct End {
    WorkloadCounts counts;
    Status status;
  };

  void RunShare(size_t thread, uint64_t calls) {
    const uint64_t threads = ends_.size();
    const WorkloadShare share{.begin = calls * thread / threads,
                              .end = calls * (thread + 1) / threads,
                              .seed = base::Hash(workload_.name, run_.options.seed + thread),
                              .is_first = thread == 0,
                              .is_last = thread + 1 == threads};
    End& end = ends_[thread];
    try {
      end.status = workload_.run(run_, share, end.counts);
    } catch (const std::bad_alloc&) {
      run_.failed.store(true, std::memory_order_relaxed);
      end.status = Status(StatusCode::kResourceExhausted, "out of memory for keys and values");
    }
    const std::scoped_lock lock(mutex_);
    ++ended_;
    changed_.notify_all();
  }

  const Workload& workload_;
  WorkloadRun& run_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t ended_ = 0;
  std::vector<End> ends_;
  WorkloadCounts counts_;
};

Result<WorkloadResult> RunWorkload(const Workload& workload, const BenchOptions& options, DB& db,
                                   std::atomic<uint64_t>& ycsb_records) {
  WorkloadRun run{.db = db, .options = options, .ycsb_records = ycsb_records};
  WorkloadResult result{
      .workload = &workload, .threads = workload.one_thread ? 1 : options.threads, .counts = {}};
  BenchThreads threads(workload, run, result.threads);
  {
    Progress progress(ProgressStyleForStderr(options.progress), "", 0);
    if (Status status = threads.Run(progress); !status.ok()) return status;
  }
  result.counts = threads.counts();
  return result;
}

/// A workload that finds nothing has measured something else than was meant.
void ComplainOfNothingFound(const WorkloadResult& result) {
  const Workload& workload = *result.workload;
  if (workload.loaded_by.empty() || result.counts.lookups == 0 || result.counts.found > 0) return;
  Complain(std::string(workload.name) + " has found none of its keys: run `" +
           std::string(workload.loaded_by) + "` before it, with the same --num");
}

Status CheckWorkloads(const BenchOptions& options) {
  for (const std::string& name : options.workloads) {
    if (FindWorkload(name) != nullptr) continue;
    std::string names;
    for (const Workload& workload : AllWorkloads()) {
      names.append(names.empty() ? "" : ", ").append(workload.name);
    }
    return {StatusCode::kInvalidArgument,
            "there is no workload '" + name + "'; there are " + names};
  }
  return {};
}

Status RunAll(const BenchOptions& options, BenchDatabase& database, Output& out) {
  BenchReport report(options, out);
  std::atomic<uint64_t> ycsb_records = options.num;
  bool has_begun = false;
  for (const std::string& name : options.workloads) {
    const Workload& workload = *FindWorkload(name);
    Status opened = workload.begins_empty ? database.OpenEmpty() : database.Open();
    if (!opened.ok()) return opened;
    if (workload.begins_empty) ycsb_records = options.num;
    if (!std::exchange(has_begun, true)) report.Begin();
    const Result<WorkloadResult> result =
        RunWorkload(workload, options, database.db(), ycsb_records);
    if (!result) return result.error();
    report.Add(*result);
    if (Status written = out.Flush(); !written.ok()) return written;
    ComplainOfNothingFound(*result);
  }
  return database.Close();
}

}  // namespace

ExitCode Bench(const BenchOptions& options, Output& out) {
  if (Status wrong = CheckWorkloads(options); !wrong.ok()) return ReportPlainly(wrong);
  BenchDatabase database(
      options.path, {.memory_budget = options.memory_budget, .durability = options.durability});
  Status status = database.Claim(options.replace_database);
  if (status.ok()) status = RunAll(options, database, out);
  return ReportPlainly(status);
}

}  // namespace basalt::tools
