#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/cache_crew.h"
#include "bench/cache_report.h"
#include "bench/cache_requests.h"
#include "bench/cache_subject.h"

namespace basalt::bench {

struct CacheSettings {
  std::string output = "build/bench/cache.json";
  std::set<std::string> subjects;
  std::set<std::string> benchmarks;
  std::vector<int> threads = {1, 2, 4, 8};
  uint32_t operations = 1'000'000;  ///< Of one run, whatever the number of threads.
  uint32_t grown_entries = 4'000'000;
  int runs = 5;
};

/// The benchmarks, in groups of those that are run on one cache.
class CacheWorkloads {
 public:
  /// Makes the requests of all wanted benchmarks.
  CacheWorkloads(const CacheSettings& settings, CacheReport* report);

  struct Group {
    std::string name;
    /// Runs the group's wanted benchmarks on a subject; nothing if it has not what they need.
    void (CacheWorkloads::*run)(CacheSubject* subject, int round);
    std::vector<std::string> benchmarks;
  };
  /// In the order in which they run.
  static const std::vector<Group>& Groups();

 private:
  /// Zipf-distributed gets of a cache a tenth as large as its data; each miss is followed by a put.
  struct ReadThrough {
    std::string name;
    uint32_t keys = 0;
    std::string value{};
    uint64_t capacity_bytes = 0;
    CacheRequests requests{};
    size_t run = 0;  ///< So many warm up, and so many more are for each number of threads.
  };

  void RunBytes(CacheSubject* subject, int round);
  void RunKv(CacheSubject* subject, int round);
  void RunRatios(CacheSubject* subject, int round);
  void RunLoaded(CacheSubject* subject, int round);
  void RunReadThroughs(CacheSubject* subject, int round);
  void RunShards(CacheSubject* subject, int round);
  void RunTtl(CacheSubject* subject, int round);
  void RunGrowth(CacheSubject* subject, int round);

  void MakeReadThrough(std::string name, uint32_t keys, size_t value_bytes, size_t operations);
  bool Wanted(const std::string& benchmark) const;
  int MostThreads() const;
  void Add(const std::string& benchmark, int threads, const CacheSubject& subject,
           std::string_view metric, std::string_view unit, double value);
  void AddThroughput(const std::string& benchmark, int threads, const CacheSubject& subject,
                     const CrewResult& result);
  /// The throughput and latencies.
  void AddSpeed(const std::string& benchmark, int threads, const CacheSubject& subject,
                const CrewResult& result);

  /// Puts the first `count` keys.
  void Preload(CacheSubject* subject, uint32_t count) const;
  CrewResult ServeKv(const CacheRequests& requests, int threads, CacheSubject* subject) const;
  void MeasureBytes(const std::string& benchmark, bool with_ttl, CacheSubject* subject);
  void MeasureHits(const std::string& benchmark, const CacheRequests& requests,
                   CacheSubject* subject);
  void MeasureMultiGet(CacheSubject* subject);
  void MeasureReadThrough(const ReadThrough& workload, CacheSubject* subject);
  void MeasureTtl(bool with_ttl, int threads, CacheSubject* subject);
  void MeasureSweep(CacheSubject* subject);

  const CacheSettings& settings_;
  CacheReport* report_;
  CacheRequests every_key_;
  CacheRequests hits_;
  CacheRequests hits_r90w10_;
  CacheRequests puts_;
  CacheRequests zipf_;
  CacheRequests shards_;
  std::vector<CacheRequests> kv_;  ///< One for each of kReadPercents.
  std::vector<ReadThrough> read_throughs_;
  std::vector<uint32_t> ttls_ms_;
};

}  // namespace basalt::bench
