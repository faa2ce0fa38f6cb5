#include "bench/steady/sustained.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <span>
#include <thread>

#include "basalt/db.h"
#include "base/random.h"
#include "bench/text.h"
#include "bench/workload.h"

namespace basalt::bench {
namespace {

using std::chrono::steady_clock;

// What may lie between two quarters of a run that stands still: a round of level 0, and a part of
// the debt, which is paid in large pieces and grows by some with the levels.
constexpr double kTablesOfRound = 8;
constexpr double kGrowthMax = 1.5;

void Check(const Status& status, std::string_view what) {
  if (!status.ok()) Fail(what, status.ToString());
}

std::vector<KeyspaceId> MakeKeyspaces(DB* db, uint32_t count) {
  std::vector<KeyspaceId> keyspaces = {KeyspaceId::kDefault};
  while (keyspaces.size() < count) {
    auto made = db->CreateKeyspace("keyspace" + std::to_string(keyspaces.size()));
    Check(made.status(), "create a keyspace");
    keyspaces.push_back(*made);
  }
  return keyspaces;
}

/// Puts until it is told to end.
void Write(DB* db, std::span<const KeyspaceId> keyspaces, uint64_t seed, std::atomic<bool>* ends,
           std::atomic<uint64_t>* puts) {
  const Values values(seed);
  base::Random random(seed);
  for (uint64_t i = 0; !ends->load(std::memory_order_relaxed); ++i) {
    const KeyspaceId keyspace = keyspaces[random.Below(keyspaces.size())];
    const Key key(random.Below(10'000'000'000'000'000));
    Check(db->Put(key.view(), values.At(i), {.keyspace = keyspace}), "put");
    puts->fetch_add(1, std::memory_order_relaxed);
  }
}

LoadSample Observe(const DB& db) {
  const DBStats stats = db.GetStats();
  LoadSample sample;
  sample.level0_tables = stats.levels[0].tables;
  sample.debt_bytes = stats.compaction_debt;
  for (const LevelStats& level : stats.levels) {
    sample.tables += level.tables;
    sample.table_bytes += level.bytes;
  }
  return sample;
}

template <class Figure>
double Mean(std::span<const LoadSample> samples, Figure LoadSample::* figure) {
  double sum = 0;
  for (const LoadSample& sample : samples) sum += static_cast<double>(sample.*figure);
  return samples.empty() ? 0 : sum / static_cast<double>(samples.size());
}

}  // namespace

std::vector<LoadSample> MeasureSustained(const SustainedSettings& settings) {
  std::filesystem::remove_all(settings.directory);
  std::filesystem::create_directories(settings.directory);
  auto db = DB::Open(settings.directory, {.memory_budget = settings.memory_budget});
  Check(db.status(), "open");
  const std::vector<KeyspaceId> keyspaces = MakeKeyspaces(db->get(), settings.keyspaces);
  std::atomic<bool> ends{false};
  std::atomic<uint64_t> puts{0};
  std::vector<std::thread> writers;
  for (uint32_t i = 0; i < settings.threads; ++i) {
    writers.emplace_back(Write, db->get(), keyspaces, i + 1, &ends, &puts);
  }
  std::vector<LoadSample> samples;
  uint64_t before = 0;
  const auto start = steady_clock::now();
  const auto seconds = static_cast<size_t>(settings.minutes * 60);
  while (samples.size() < seconds) {
    std::this_thread::sleep_until(start + std::chrono::seconds(samples.size() + 1));
    LoadSample sample = Observe(**db);
    const uint64_t now = puts.load();
    sample.puts = now - before;
    before = now;
    samples.push_back(sample);
  }
  ends = true;
  for (std::thread& writer : writers) writer.join();
  Check((*db)->Close(), "close");
  db->reset();
  std::filesystem::remove_all(settings.directory);
  return samples;
}

std::string SustainedText(const SustainedSettings& settings, const std::vector<LoadSample>& samples,
                          bool* is_flat) {
  std::string text = Format("budget %.0f MiB, %u keyspaces, %u threads\n",
                            static_cast<double>(settings.memory_budget) / (1 << 20),
                            settings.keyspaces, settings.threads);
  text += Format("%10s%14s%12s%10s%12s%12s\n", "quarter", "puts a second", "level 0", "tables",
                 "debt, MiB", "data, MiB");
  const std::span<const LoadSample> all(samples);
  const size_t quarter = samples.size() / 4;
  for (size_t i = 0; i < 4; ++i) {
    const auto part = all.subspan(i * quarter, quarter);
    text += Format("%10zu%14.0f%12.1f%10.0f%12.1f%12.1f\n", i + 1, Mean(part, &LoadSample::puts),
                   Mean(part, &LoadSample::level0_tables), Mean(part, &LoadSample::tables),
                   Mean(part, &LoadSample::debt_bytes) / (1 << 20),
                   Mean(part, &LoadSample::table_bytes) / (1 << 20));
  }
  const auto third = all.subspan(2 * quarter, quarter);
  const auto last = all.subspan(3 * quarter, quarter);
  const bool tables_are_flat = Mean(last, &LoadSample::level0_tables) <=
                               Mean(third, &LoadSample::level0_tables) + kTablesOfRound;
  const bool debt_is_flat =
      Mean(last, &LoadSample::debt_bytes) <= kGrowthMax * Mean(third, &LoadSample::debt_bytes);
  *is_flat = tables_are_flat && debt_is_flat;
  return text + (*is_flat ? "level 0 and the debt stood still\n"
                          : "NOT FLAT: level 0 or the debt grew until the end\n");
}

std::string SustainedJson(const SustainedSettings& settings,
                          const std::vector<LoadSample>& samples) {
  std::string json =
      Format(R"({"memory_budget": %llu, "keyspaces": %u, "threads": %u, "seconds": [)",
             static_cast<unsigned long long>(settings.memory_budget), settings.keyspaces,
             settings.threads);
  for (const LoadSample& sample : samples) {
    json += Format(
        R"(%s{"puts": %llu, "level0_tables": %llu, "tables": %llu, "debt": %llu, "bytes": %llu})",
        &sample == &samples.front() ? "\n" : ",\n", static_cast<unsigned long long>(sample.puts),
        static_cast<unsigned long long>(sample.level0_tables),
        static_cast<unsigned long long>(sample.tables),
        static_cast<unsigned long long>(sample.debt_bytes),
        static_cast<unsigned long long>(sample.table_bytes));
  }
  return json + "\n]}\n";
}

}  // namespace basalt::bench
