#include "bench/phash_measure.h"

#include <cmph.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <span>

#include "basalt/perfect_hash.h"
#include "bench/text.h"
#include "table/bloom_filter.h"

namespace basalt::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Keys = std::vector<uint64_t>;

// More queries say no more.
constexpr size_t kQueriesMax = 10'000'000;

// The keys that queries are made with, in the order of building: a random part of a random set.
std::span<const uint64_t> Asked(const Keys& keys) {
  return std::span(keys).first(std::min(keys.size(), kQueriesMax));
}

// What the compiler must believe is used.
volatile uint64_t used_sum = 0;

double NanosecondsSince(Clock::time_point start, uint64_t keys) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count() /
         static_cast<double>(keys);
}

// A field of /proc/self/status that counts kilobytes, in bytes.
double StatusBytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field)) return 1024 * std::strtod(line.c_str() + field.size(), nullptr);
  }
  Fail("/proc/self/status", "no " + field);
}

// The least of some repetitions: the process is not alone on its machine.
template <class Run>
double Best(int repetitions, const Run& run) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repetitions; ++i) best = std::min(best, run());
  return best;
}

template <class Query>
double InALoop(const Keys& all, const Query& query) {
  const auto keys = Asked(all);
  return Best(3, [&] {
    const auto start = Clock::now();
    uint64_t sum = 0;
    for (const uint64_t key : keys) sum += query(key);
    used_sum = sum;
    return NanosecondsSince(start, keys.size());
  });
}

// Each key is known only when the answer for the one before is; it is a key of the set.
template <class Query>
double Dependent(const Keys& all, const Query& query) {
  const auto keys = Asked(all);
  return Best(2, [&] {
    const auto start = Clock::now();
    uint64_t last = 0;
    for (const uint64_t key : keys) last = query(key ^ (last >> 40));
    used_sum = last;
    return NanosecondsSince(start, keys.size());
  });
}

template <class Answer, class Many>
double Streamed(const Keys& all, const Many& many) {
  const auto keys = Asked(all);
  const auto answers = std::make_unique<Answer[]>(keys.size());
  return Best(3, [&] {
    const auto start = Clock::now();
    many(keys, std::span(answers.get(), keys.size()));
    return NanosecondsSince(start, keys.size());
  });
}

// Builds, and says what that took and how many bits a key the result has.
template <class Build>
auto MeasureBuild(uint64_t keys, PhashFigures* figures, const Build& build) {
  const double before = StatusBytes("VmRSS:");
  const auto start = Clock::now();
  auto built = build();
  figures->push_back({"build_ns", NanosecondsSince(start, keys)});
  figures->push_back(
      {"memory_bytes", (StatusBytes("VmHWM:") - before) / static_cast<double>(keys)});
  return built;
}

PhashFigures MeasureBasalt(PerfectHashSeeds seeds, const Keys& keys, uint32_t threads) {
  PhashFigures figures;
  const PerfectHash function = MeasureBuild(keys.size(), &figures, [&] {
    return PerfectHashBuilder({.seeds = seeds, .threads = threads}).BuildFromHashes(keys).value();
  });
  figures.push_back({"bits", function.bits_per_key()});
  const auto query = [&](uint64_t key) { return function.Index(key); };
  figures.push_back({"loop_ns", InALoop(keys, query)});
  figures.push_back({"dependent_ns", Dependent(keys, query)});
  figures.push_back({"streamed_ns", Streamed<uint64_t>(keys, [&](const auto& some, auto indexes) {
                       function.IndexMany(some, indexes);
                     })});
  return figures;
}

// libcmph takes keys as bytes; it has one thread and no batches.
PhashFigures MeasureCmph(CMPH_ALGO algorithm, Keys& keys) {
  struct Free {
    void operator()(cmph_t* function) const { cmph_destroy(function); }
  };
  PhashFigures figures;
  const auto function = MeasureBuild(keys.size(), &figures, [&] {
    cmph_io_adapter_t* const source = cmph_io_struct_vector_adapter(
        keys.data(), sizeof(uint64_t), 0, sizeof(uint64_t), static_cast<cmph_uint32>(keys.size()));
    cmph_config_t* const config = cmph_config_new(source);
    cmph_config_set_algo(config, algorithm);
    std::unique_ptr<cmph_t, Free> built(cmph_new(config));
    cmph_config_destroy(config);
    cmph_io_struct_vector_adapter_destroy(source);
    if (built == nullptr) Fail("libcmph", "it built nothing");
    return built;
  });
  figures.push_back(
      {"bits", 8.0 * cmph_packed_size(function.get()) / static_cast<double>(keys.size())});
  const auto query = [&](uint64_t key) -> uint64_t {
    return cmph_search(function.get(), reinterpret_cast<const char*>(&key), sizeof key);
  };
  figures.push_back({"loop_ns", InALoop(keys, query)});
  figures.push_back({"dependent_ns", Dependent(keys, query)});
  return figures;
}

// Queries of a set: keys of it, and others.
template <class Query>
void MeasureQueries(const Keys& keys, const Keys& others, const Query& query,
                    PhashFigures* figures) {
  uint64_t found = 0;
  for (const uint64_t key : others) found += query(key);
  figures->push_back(
      {"false_positives", 100 * static_cast<double>(found) / static_cast<double>(others.size())});
  figures->push_back({"hit_loop_ns", InALoop(keys, query)});
  figures->push_back({"miss_loop_ns", InALoop(others, query)});
  figures->push_back({"hit_dependent_ns", Dependent(keys, query)});
  figures->push_back({"miss_dependent_ns", Dependent(others, query)});
}

}  // namespace

std::vector<uint64_t> PhashKeys(uint64_t count, uint64_t seed) {
  std::vector<uint64_t> keys(count);
  for (uint64_t& key : keys) {
    seed += 0x9E37'79B9'7F4A'7C15;
    uint64_t mixed = (seed ^ (seed >> 30)) * 0xBF58'476D'1CE4'E5B9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D0'49BB'1331'11EB;
    key = mixed ^ (mixed >> 31);
  }
  return keys;
}

PhashFigures MeasureFunction(std::string_view subject, uint64_t keys, uint32_t threads,
                             uint64_t seed) {
  Keys all = PhashKeys(keys, seed);
  if (subject == "basalt") return MeasureBasalt(PerfectHashSeeds::kShift, all, threads);
  if (subject == "basalt_dense") return MeasureBasalt(PerfectHashSeeds::kDense, all, threads);
  if (subject == "cmph_chd") return MeasureCmph(CMPH_CHD, all);
  if (subject == "cmph_bdz") return MeasureCmph(CMPH_BDZ, all);
  Fail("measure " + std::string(subject), "there is no such function");
}

PhashFigures MeasureSet(std::string_view subject, uint64_t keys, uint64_t seed) {
  const Keys all = PhashKeys(keys, seed);
  const Keys others = PhashKeys(keys, ~seed);
  PhashFigures figures;
  if (subject == "bloom") {
    const table::BloomFilter filter =
        MeasureBuild(keys, &figures, [&] { return table::BloomFilter::Build(all); });
    figures.push_back(
        {"bits", 8.0 * static_cast<double>(filter.bytes().size()) / static_cast<double>(keys)});
    MeasureQueries(
        all, others, [&](uint64_t key) { return uint64_t{filter.MayContain(key)}; }, &figures);
    return figures;
  }
  uint32_t bits = 0;
  constexpr std::string_view kPrefix = "fingerprint_";
  if (!subject.starts_with(kPrefix) ||
      std::from_chars(subject.data() + kPrefix.size(), subject.data() + subject.size(), bits).ec !=
          std::errc()) {
    Fail("measure " + std::string(subject), "there is no such set");
  }
  const FingerprintSet set = MeasureBuild(keys, &figures, [&] {
    return FingerprintSet::BuildFromHashes(all, bits, {.threads = 1}).value();
  });
  figures.push_back({"bits", set.bits_per_key()});
  MeasureQueries(
      all, others, [&](uint64_t key) { return uint64_t{set.MayContain(key)}; }, &figures);
  figures.push_back({"hit_streamed_ns", Streamed<bool>(all, [&](const auto& some, auto answers) {
                       set.MayContainMany(some, answers);
                     })});
  return figures;
}

std::string ToLine(const PhashFigures& figures) {
  std::string line;
  for (const PhashFigure& figure : figures) {
    line += Format("%s\"%s\":%.6g", line.empty() ? "{" : ",", figure.metric.c_str(), figure.value);
  }
  return line + "}";
}

PhashFigures FromLine(std::string_view line) {
  PhashFigures figures;
  for (size_t quote = line.find('"'); quote != std::string_view::npos;
       quote = line.find('"', quote)) {
    const size_t end = line.find('"', quote + 1);
    if (end == std::string_view::npos || end + 1 >= line.size()) break;
    const std::string number(line.substr(end + 2));
    figures.push_back({std::string(line.substr(quote + 1, end - quote - 1)),
                       std::strtod(number.c_str(), nullptr)});
    quote = end + 1;
  }
  return figures;
}

}  // namespace basalt::bench
