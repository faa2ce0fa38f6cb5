#include "bench/steady/growth.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include "basalt/db.h"
#include "base/random.h"
#include "bench/idle.h"
#include "bench/measurement.h"
#include "bench/steady/child_process.h"
#include "bench/steady/observation.h"
#include "bench/text.h"
#include "bench/workload.h"

namespace basalt::bench {
namespace {

using std::chrono::steady_clock;

constexpr uint64_t kValueSeed = 1;
constexpr uint64_t kFillSeed = 2;
constexpr uint64_t kReadSeed = 4;
constexpr uint32_t kKeysLeast = 1'000'000;
constexpr uint32_t kReads = 1'000'000;
constexpr uint32_t kSeeks = 100'000;
constexpr int kNexts = 10;

enum : size_t {
  kFillRandom,
  kSettled,
  kCompact,
  kReadRandom,
  kReadMissing,
  kSeekRandom,
  kReadSeq,
  kMemory,
  kBenchmarks
};
constexpr std::array<const char*, kBenchmarks> kNames = {"fillrandom", "settled",     "compact",
                                                         "readrandom", "readmissing", "seekrandom",
                                                         "readseq",    "memory"};

using Costs = std::array<double, kBenchmarks>;

void Check(const Status& status, std::string_view what) {
  if (!status.ok()) Fail(what, status.ToString());
}

void Expect(std::string_view benchmark, uint64_t found, uint64_t expected) {
  if (found == expected) return;
  Fail(benchmark,
       "gave " + std::to_string(found) + " records instead of " + std::to_string(expected));
}

double NsSince(steady_clock::time_point start) {
  return std::chrono::duration<double, std::nano>(steady_clock::now() - start).count();
}

/// The child's part: one store, from empty on.
class Store {
 public:
  Store(const GrowthSettings& settings, uint32_t keys) : keys_(keys) {
    DBOptions options;
    options.memory_budget = settings.memory_budget;
    auto db = DB::Open(settings.directory, options);
    Check(db.status(), "open");
    db_ = std::move(*db);
  }

  Costs Run() {
    const uint64_t empty_bytes = ReadProcessMemory(getpid()).anonymous_bytes;
    Costs costs{};
    Fill(&costs);
    const auto start = steady_clock::now();
    Check(db_->CompactRange(), "compact");
    costs[kCompact] = NsSince(start) / keys_;
    WaitUntilIdle();
    Scan();  // What the cache has room for is in it.
    costs[kReadRandom] = Read("readrandom", PresentKey, kReads);
    costs[kReadMissing] = Read("readmissing", MissingKey, 0);
    costs[kSeekRandom] = Seek();
    costs[kReadSeq] = Scan();
    costs[kMemory] = static_cast<double>(ReadProcessMemory(getpid()).anonymous_bytes) -
                     static_cast<double>(empty_bytes);
    Check(db_->Close(), "close");
    return costs;
  }

 private:
  void Fill(Costs* costs) {
    const Values values(kValueSeed);
    const std::vector<uint32_t> order = Permutation(keys_, kFillSeed);
    const auto start = steady_clock::now();
    for (uint32_t i = 0; i < keys_; ++i) {
      Check(db_->Put(PresentKey(order[i]).view(), values.At(i)), "put");
    }
    Check(db_->Flush(), "flush");
    const double drained_ns = NsSince(start);
    (*costs)[kFillRandom] = drained_ns / keys_;
    (*costs)[kSettled] = (drained_ns + WaitUntilIdle() * 1e9) / keys_;
  }

  double Read(std::string_view benchmark, Key (*make_key)(uint64_t), uint64_t expected) {
    base::Random random(kReadSeed);
    uint64_t found = 0;
    const Measurement measured = Measure({.calls = kReads}, [&](uint32_t) {
      const auto value = db_->Get(make_key(random.Below(keys_)).view());
      Check(value.status(), "get");
      if (*value) found += Touch((*value)->view());
    });
    Expect(benchmark, found, expected);
    return 1e9 / measured.PerSecond();
  }

  double Seek() {
    base::Random random(kReadSeed);
    uint64_t read = 0;
    const Measurement measured = Measure({.calls = kSeeks}, [&](uint32_t) {
      const auto iterator = db_->NewIterator();
      iterator->Seek(PresentKey(random.Below(keys_ - kNexts)).view());
      for (int i = 0; i <= kNexts && iterator->Valid(); ++i) {
        read += Touch(iterator->value());
        if (i < kNexts) iterator->Next();
      }
      Check(iterator->status(), "seek");
    });
    Expect("seekrandom", read, uint64_t{kSeeks} * (kNexts + 1));
    return 1e9 / measured.PerSecond();
  }

  double Scan() {
    const auto start = steady_clock::now();
    const auto iterator = db_->NewIterator();
    uint64_t records = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      records += Touch(iterator->value());
    }
    Check(iterator->status(), "scan");
    Expect("readseq", records, keys_);
    return NsSince(start) / keys_;
  }

  /// Reads what a caller would; 1, one record.
  static uint64_t Touch(std::string_view value) {
    return value.size() == kValueBytes && value.front() != 0 && value.back() != 0 ? 1 : 0;
  }

  const uint32_t keys_;
  std::unique_ptr<DB> db_;
};

Costs MeasureStore(const GrowthSettings& settings, uint32_t keys) {
  std::filesystem::remove_all(settings.directory);
  std::filesystem::create_directories(settings.directory);
  sync();  // What the store before it left to be written back is not this one's cost.
  const Shared<Costs> costs;
  ChildProcess child([&] { *costs.get() = Store(settings, keys).Run(); });
  child.Wait();
  std::filesystem::remove_all(settings.directory);
  return *costs.get();
}

void Add(uint32_t keys, const Costs& costs, std::vector<GrowthFigure>* figures) {
  for (size_t i = 0; i < kBenchmarks; ++i) {
    const auto place =
        std::find_if(figures->begin(), figures->end(), [&](const GrowthFigure& present) {
          return present.keys == keys && present.figure.benchmark == kNames[i];
        });
    if (place != figures->end()) {
      place->figure.values.push_back(costs[i]);
      continue;
    }
    GrowthFigure added{.keys = keys, .figure = {}};
    added.figure.benchmark = kNames[i];
    added.figure.unit = i == kMemory ? "bytes" : "ns";
    added.figure.values = {costs[i]};
    figures->push_back(std::move(added));
  }
}

std::string Cell(const Figure& figure) {
  const double scale = figure.unit == "bytes" ? 1 << 20 : 1;
  std::string cell = Format("%.1f", figure.Median() / scale);
  if (figure.values.size() > 1) {
    cell += Format(" (%.1f - %.1f)", figure.Min() / scale, figure.Max() / scale);
  }
  return cell;
}

}  // namespace

std::vector<GrowthFigure> MeasureGrowth(const GrowthSettings& settings) {
  std::vector<GrowthFigure> figures;
  for (int run = 0; run < settings.runs; ++run) {
    for (uint64_t keys = kKeysLeast; keys <= settings.keys_max; keys *= 4) {
      const auto start = steady_clock::now();
      Add(static_cast<uint32_t>(keys), MeasureStore(settings, static_cast<uint32_t>(keys)),
          &figures);
      std::printf("run %d of %d, %8.1f M keys  %6.1f s\n", run + 1, settings.runs,
                  static_cast<double>(keys) / 1e6, NsSince(start) / 1e9);
      std::fflush(stdout);
    }
  }
  return figures;
}

std::string GrowthText(const std::vector<GrowthFigure>& figures) {
  std::set<uint32_t> sizes;
  for (const GrowthFigure& each : figures) sizes.insert(each.keys);
  std::string text = Format("\n%-24s", "ns an operation at");
  for (const uint32_t keys : sizes) text += Format("%26u M", keys / 1'000'000);
  text += "\n";
  for (const char* name : kNames) {
    const bool is_memory = std::string_view(name) == kNames[kMemory];
    text += Format("%-24s", is_memory ? "memory, MiB" : name);
    for (const uint32_t keys : sizes) {
      for (const GrowthFigure& each : figures) {
        if (each.keys == keys && each.figure.benchmark == name) {
          text += Format("%28s", Cell(each.figure).c_str());
        }
      }
    }
    text += "\n";
  }
  return text;
}

std::string GrowthJson(const GrowthSettings& settings, const std::vector<GrowthFigure>& figures) {
  std::string json = "[";
  for (const GrowthFigure& each : figures) {
    json += json.size() == 1 ? "\n" : ",\n";
    json += Format(R"(  {"benchmark": "%s", "keys": %u, "memory_budget": %llu, "unit": "%s", )"
                   R"("median": %.6g, "min": %.6g, "max": %.6g, "runs": %zu})",
                   each.figure.benchmark.c_str(), each.keys,
                   static_cast<unsigned long long>(settings.memory_budget),
                   each.figure.unit.c_str(), each.figure.Median(), each.figure.Min(),
                   each.figure.Max(), each.figure.values.size());
  }
  return json + "\n]\n";
}

}  // namespace basalt::bench
