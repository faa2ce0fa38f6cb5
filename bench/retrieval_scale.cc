#include "bench/retrieval_scale.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "basalt/db.h"
#include "basalt/retrieve.h"
#include "base/random.h"
#include "bench/text.h"

namespace basalt::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kQueries = 300;
constexpr size_t kWordsPerPassage = 85;
constexpr size_t kNamesPerPassage = 6;

double MillisecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

/// A word of a language in which the n-th word is about 1 / n as frequent as the first.
std::string Word(base::Random* random, double words) {
  auto rank = static_cast<uint64_t>(std::pow(words, random->NextDouble()));
  std::string word;
  do {
    word += "bdgklmnrst"[rank % 10];
    word += "aeiou"[rank / 10 % 5];
    rank /= 50;
  } while (rank > 0);
  return word;
}

std::string Name(base::Random* random, size_t passages) {
  std::string name = Word(random, static_cast<double>(passages)) + "x";
  name[0] = static_cast<char>(name[0] - 'a' + 'A');
  return name;
}

Document AnyDocument(base::Random* random, size_t number, size_t passages) {
  Document document{.source = std::to_string(number), .title = Name(random, passages)};
  for (size_t i = 0; i < kWordsPerPassage; ++i) {
    document.text += Word(random, 50'000);
    if (i % (kWordsPerPassage / kNamesPerPassage) == 0) {
      document.text += " " + Name(random, passages);
    }
    document.text += i % 12 == 11 ? ". " : " ";
  }
  return document;
}

struct Answers {
  double median_ms = 0;
  double p99_ms = 0;
};

Answers MeasureAnswers(const Corpus& corpus, size_t passages) {
  base::Random random(2);
  std::vector<double> times;
  for (size_t i = 0; i < kQueries; ++i) {
    std::string query = Name(&random, passages);
    for (int word = 0; word < 8; ++word) query += " " + Word(&random, 50'000);
    const auto begin = Clock::now();
    const auto found = corpus.Retrieve(query);
    times.push_back(MillisecondsSince(begin));
    if (!found) Fail("retrieve", found.error().ToString());
  }
  std::ranges::sort(times);
  return {times[kQueries / 2], times[kQueries * 99 / 100]};
}

}  // namespace

void MeasureScale(size_t passages, Report* report) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / "basalt_retrieval_bench";
  std::filesystem::remove_all(path);
  auto db = DB::Open(path.string());
  if (!db) Fail(path.string(), db.error().ToString());
  auto corpus = Corpus::Open(db->get());
  if (!corpus) Fail("open a corpus", corpus.error().ToString());
  base::Random random(1);
  std::printf("\n%12s %16s %18s %18s\n", "passages", "us an ingest", "median ms", "P99 ms");
  size_t number = 0;
  for (size_t end = std::min<size_t>(1000, passages); number < passages;
       end = std::min(2 * end, passages)) {
    const size_t count = end - number;
    double taken_ms = 0;
    for (; number < end; ++number) {
      const Document document = AnyDocument(&random, number, passages);
      const auto begin = Clock::now();
      const auto ingested = (*corpus)->IngestText(document);
      taken_ms += MillisecondsSince(begin);
      if (!ingested) Fail("ingest", ingested.error().ToString());
    }
    const double ingest_us = 1000 * taken_ms / static_cast<double>(count);
    const Answers answers = MeasureAnswers(**corpus, passages);
    std::printf("%12zu %16.0f %18.2f %18.2f\n", end, ingest_us, answers.median_ms, answers.p99_ms);
    std::fflush(stdout);
    const std::string benchmark = "scale_" + std::to_string(end);
    const auto add = [&](const char* metric, const char* unit, double value) {
      report->Add(benchmark, "hybrid_links", Level::kProcess, metric, unit, value);
    };
    add("ingest", "us", ingest_us);
    add("median", "ms", answers.median_ms);
    add("p99", "ms", answers.p99_ms);
  }
  corpus->reset();
  db->reset();
  std::filesystem::remove_all(path);
}

}  // namespace basalt::bench
