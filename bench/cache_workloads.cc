#include "bench/cache_workloads.h"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <thread>
#include <utility>

#include "bench/cache_footprint.h"
#include "bench/cache_sim/policy.h"
#include "bench/text.h"
#include "bench/two_reads.h"

namespace basalt::bench {
namespace {

constexpr uint32_t kKeys = 1'000'000;
constexpr std::string_view kValue = "val";
/// What one of them takes in Basalt's cache, beside the index.
constexpr size_t kEntryBytes = 48;
/// More than any subject takes for kKeys small entries.
constexpr uint64_t kRoomForAll = uint64_t{256} << 20;
constexpr uint64_t kRoomForGrown = uint64_t{1} << 30;

constexpr uint32_t kKvPresent = 100'000;
constexpr std::array<uint32_t, 5> kReadPercents = {50, 70, 90, 95, 99};
constexpr size_t kReadNinety = 2;

constexpr uint32_t kShardKeys = 100'000;
constexpr uint32_t kShardKeysPresent = 10'000;
constexpr uint64_t kShardCapacity = uint64_t{64} << 20;
constexpr uint32_t kShardsMost = 128;

/// What takes long is measured up to this number of threads, or in the first rounds alone.
constexpr int kSlowThreads = 2;
constexpr int kSlowRounds = 3;

constexpr uint64_t kKvSeed = 1;
constexpr uint64_t kHitSeed = 2;
constexpr uint64_t kZipfSeed = 3;
constexpr uint64_t kReadThroughSeed = 4;
constexpr uint64_t kShardSeed = 5;
constexpr uint64_t kTtlSeed = 6;
// Few: to look one up is no cache miss, which puts without would not have.
constexpr uint32_t kTimesToLive = 4096;

/// A subject's cache, open for as long as this lives. What it leaves behind in malloc goes back to
/// the system, so that the next subject finds the same heap.
class OpenCache {
 public:
  OpenCache(CacheSubject* subject, const CachePlan& plan) : subject_(subject) {
    subject_->Open(plan);
  }
  ~OpenCache() {
    subject_->Close();
    malloc_trim(0);
  }
  OpenCache(const OpenCache&) = delete;
  OpenCache& operator=(const OpenCache&) = delete;

 private:
  CacheSubject* subject_;
};

CachePlan SmallEntries() {
  return {.capacity_bytes = kRoomForAll, .entries = kKeys, .value_bytes = kValue.size()};
}

uint64_t GetsIn(const CacheRequests& requests, uint64_t count) {
  return static_cast<uint64_t>(
      std::count_if(requests.begin(), requests.begin() + static_cast<ptrdiff_t>(count),
                    [](const CacheRequest& request) { return !request.is_put; }));
}

/// A cache may drop an entry though it has room, where its index is crowded; not more than a few.
void ExpectHits(const std::string& what, uint64_t found, uint64_t put) {
  constexpr uint64_t kPutForOneLost = 10'000;
  if (found + put / kPutForOneLost >= put) return;
  Fail(what, Format("of %llu keys that were put only %llu are there",
                    static_cast<unsigned long long>(put), static_cast<unsigned long long>(found)));
}

/// Gets and puts as the requests say.
CrewResult Serve(CacheSubject* subject, const CacheRequests& requests, int threads) {
  return RunCrewByRuns(
      requests, {.threads = threads},
      [subject](std::span<const CacheRequest> run) { return subject->Serve(run, kValue); });
}

/// Gets, and a put after each that misses.
CrewResult ServeThrough(CacheSubject* subject, std::span<const CacheRequest> requests,
                        std::string_view value, int threads) {
  return RunCrewByRuns(requests, {.threads = threads},
                       [subject, value](std::span<const CacheRequest> run) {
                         return subject->ServeThrough(run, value);
                       });
}

/// The part of the requests from `warm_up` on that an exact LRU of so many entries would hit,
/// having seen those before.
double ExactLruHitPercent(std::span<const CacheRequest> requests, size_t warm_up, uint64_t entries,
                          uint32_t keys) {
  cache_sim::Trace trace;
  trace.key_count = keys;
  const auto lru = cache_sim::MakeLru(trace, entries);
  uint64_t hits = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const bool is_hit = lru->Access(requests[i].number, 1);
    hits += is_hit && i >= warm_up ? 1 : 0;
  }
  return 100 * static_cast<double>(hits) / static_cast<double>(requests.size() - warm_up);
}

}  // namespace

const std::vector<CacheWorkloads::Group>& CacheWorkloads::Groups() {
  static const std::vector<Group> kGroups = {
      {"bytes", &CacheWorkloads::RunBytes, {"bytes"}},
      {"kv", &CacheWorkloads::RunKv, {"kv_r90w10"}},
      {"ratios", &CacheWorkloads::RunRatios, {"ratios"}},
      {"hits", &CacheWorkloads::RunLoaded, {"hit", "hit_r90w10", "zipf", "multiget"}},
      {"read_through", &CacheWorkloads::RunReadThroughs, {"read_through"}},
      {"shards", &CacheWorkloads::RunShards, {"shards"}},
      {"ttl", &CacheWorkloads::RunTtl, {"ttl"}},
      {"growth", &CacheWorkloads::RunGrowth, {"growth"}},
  };
  return kGroups;
}

CacheWorkloads::CacheWorkloads(const CacheSettings& settings, CacheReport* report)
    : settings_(settings),
      report_(report),
      every_key_(EveryKey(std::max(kKeys, Wanted("growth") ? settings.grown_entries : 0))) {
  const uint32_t operations = settings.operations;
  if (Wanted("kv_r90w10") || Wanted("ratios")) {
    for (const uint32_t reads : kReadPercents) {
      kv_.push_back(UniformRequests(operations, kKeys, 100 - reads, kKvSeed));
    }
  }
  hits_ = UniformRequests(operations, kKeys, 0, kHitSeed);
  hits_r90w10_ = UniformRequests(operations, kKeys, 10, kHitSeed);
  if (Wanted("zipf")) zipf_ = ZipfRequests(operations, kKeys, kZipfSeed);
  if (Wanted("shards")) shards_ = UniformRequests(operations, kShardKeys, 70, kShardSeed);
  if (Wanted("ttl")) {
    ttls_ms_ = TimesToLive(kTimesToLive, kTtlSeed);
    puts_ = UniformRequests(operations, kKeys, 100, kHitSeed);
  }
  if (Wanted("read_through")) {
    MakeReadThrough("read_through_100", kKeys, 100, operations);
    MakeReadThrough("read_through_4k", kKeys / 4, 4096, operations / 2);
  }
}

void CacheWorkloads::MakeReadThrough(std::string name, uint32_t keys, size_t value_bytes,
                                     size_t operations) {
  ReadThrough workload{.name = std::move(name), .keys = keys};
  workload.value.assign(value_bytes, 'v');
  workload.capacity_bytes = (KeyBytes(keys) + keys * value_bytes) / 10;
  workload.run = operations;
  workload.requests =
      ZipfRequests((1 + settings_.threads.size()) * operations, keys, kReadThroughSeed);
  read_throughs_.push_back(std::move(workload));
}

bool CacheWorkloads::Wanted(const std::string& benchmark) const {
  return settings_.benchmarks.contains(benchmark);
}
int CacheWorkloads::MostThreads() const {
  return *std::max_element(settings_.threads.begin(), settings_.threads.end());
}

void CacheWorkloads::Add(const std::string& benchmark, int threads, const CacheSubject& subject,
                         std::string_view metric, std::string_view unit, double value) {
  report_->Add(benchmark, threads, subject.name(), metric, unit, value);
}

void CacheWorkloads::AddThroughput(const std::string& benchmark, int threads,
                                   const CacheSubject& subject, const CrewResult& result) {
  Add(benchmark, threads, subject, "throughput", "ops/s", result.PerSecond());
  Add(benchmark, threads, subject, "cpu", "ns", result.CpuNs());
}

void CacheWorkloads::AddSpeed(const std::string& benchmark, int threads,
                              const CacheSubject& subject, const CrewResult& result) {
  AddThroughput(benchmark, threads, subject, result);
  Add(benchmark, threads, subject, "p50", "us", result.PercentileUs(50));
  Add(benchmark, threads, subject, "p99", "us", result.PercentileUs(99));
  Add(benchmark, threads, subject, "p99.9", "us", result.PercentileUs(99.9));
}

void CacheWorkloads::Preload(CacheSubject* subject, uint32_t count) const {
  for (uint32_t i = 0; i < count; ++i) subject->Put(every_key_[i].key, kValue);
}

void CacheWorkloads::RunBytes(CacheSubject* subject, int round) {
  if (round > 0 || subject->is_noop()) return;  // Memory does not change from round to round.
  MeasureBytes("bytes", false, subject);
  if (subject->expires()) MeasureBytes("bytes_ttl", true, subject);
}

void CacheWorkloads::MeasureBytes(const std::string& benchmark, bool with_ttl,
                                  CacheSubject* subject) {
  const Footprint footprint = MeasureFootprint([&] {
    subject->Open(SmallEntries());
    for (uint32_t i = 0; i < kKeys; ++i) {
      const CacheKey& key = every_key_[i].key;
      if (with_ttl) {
        subject->PutExpiring(key, kValue, std::chrono::hours(1));
      } else {
        subject->Put(key, kValue);
      }
    }
    ExpectHits("fill " + subject->name(), subject->entries(), kKeys);
    return static_cast<double>(subject->bytes());
  });
  Add(benchmark, 1, *subject, "rss", "bytes", footprint.rss_bytes / kKeys);
  Add(benchmark, 1, *subject, "heap", "bytes", footprint.heap_bytes / kKeys);
  if (footprint.claimed_bytes > 0) {
    Add(benchmark, 1, *subject, "charged", "bytes", footprint.claimed_bytes / kKeys);
  }
}

CrewResult CacheWorkloads::ServeKv(const CacheRequests& requests, int threads,
                                   CacheSubject* subject) const {
  const OpenCache open(subject, SmallEntries());
  Preload(subject, kKvPresent);
  return Serve(subject, requests, threads);
}

void CacheWorkloads::RunKv(CacheSubject* subject, int /*round*/) {
  const CacheRequests& requests = kv_[kReadNinety];
  for (const int threads : settings_.threads) {
    const CrewResult result = ServeKv(requests, threads, subject);
    AddSpeed("kv_r90w10", threads, *subject, result);
    if (subject->is_noop()) continue;
    const auto gets = static_cast<double>(GetsIn(requests, result.requests));
    Add("kv_r90w10", threads, *subject, "hits", "%", 100 * static_cast<double>(result.hits) / gets);
  }
}

void CacheWorkloads::RunRatios(CacheSubject* subject, int /*round*/) {
  for (size_t i = 0; i < kReadPercents.size(); ++i) {
    AddThroughput(Format("ratio_%u", kReadPercents[i]), MostThreads(), *subject,
                  ServeKv(kv_[i], MostThreads(), subject));
  }
}

void CacheWorkloads::RunLoaded(CacheSubject* subject, int /*round*/) {
  const OpenCache open(subject, SmallEntries());
  Preload(subject, kKeys);
  if (Wanted("hit")) MeasureHits("hit", hits_, subject);
  if (Wanted("hit_r90w10")) MeasureHits("hit_r90w10", hits_r90w10_, subject);
  if (Wanted("zipf")) MeasureHits("zipf", zipf_, subject);
  if (Wanted("multiget") && subject->gets_many()) MeasureMultiGet(subject);
}

void CacheWorkloads::MeasureHits(const std::string& benchmark, const CacheRequests& requests,
                                 CacheSubject* subject) {
  for (const int threads : settings_.threads) {
    const CrewResult result = Serve(subject, requests, threads);
    ExpectHits(benchmark + " of " + subject->name(), result.hits,
               GetsIn(requests, result.requests));
    AddSpeed(benchmark, threads, *subject, result);
  }
}

void CacheWorkloads::MeasureMultiGet(CacheSubject* subject) {
  const TwoReads<kEntryBytes> floor(kKeys);
  for (const int threads : settings_.threads) {
    const CrewResult single = Serve(subject, hits_, threads);
    const CrewResult batched = RunCrew(
        hits_, {.threads = threads, .group = CacheSubject::kBatch},
        [subject](std::span<const CacheRequest> group) { return subject->MultiGet(group); });
    const CrewResult in_turn = RunCrewByRuns(
        hits_, {.threads = threads},
        [subject](std::span<const CacheRequest> run) { return subject->GetInTurn(run, kValue); });
    const CrewResult least = RunCrew(hits_, {.threads = threads, .group = CacheSubject::kBatch},
                                     [&floor](std::span<const CacheRequest> group) {
                                       floor.ReadTogether(group);
                                       return group.size();
                                     });
    ExpectHits("multiget of " + subject->name(), batched.hits, batched.requests);
    ExpectHits("gets in turn of " + subject->name(), in_turn.hits, in_turn.requests);
    AddThroughput("get_in_turn", threads, *subject, in_turn);
    AddThroughput("multiget_1", threads, *subject, single);
    AddThroughput("multiget_16", threads, *subject, batched);
    AddThroughput("floor_16", threads, *subject, least);
  }
}

void CacheWorkloads::RunReadThroughs(CacheSubject* subject, int /*round*/) {
  if (!subject->evicts()) return;
  for (const ReadThrough& workload : read_throughs_) MeasureReadThrough(workload, subject);
}

void CacheWorkloads::MeasureReadThrough(const ReadThrough& workload, CacheSubject* subject) {
  const OpenCache open(subject, {.capacity_bytes = workload.capacity_bytes,
                                 .value_bytes = static_cast<uint32_t>(workload.value.size()),
                                 .reserve = false});
  std::span<const CacheRequest> seen = std::span(workload.requests).first(workload.run);
  ServeThrough(subject, seen, workload.value, 1);
  for (const int threads : settings_.threads) {
    const size_t warm_up = seen.size();
    seen = std::span(workload.requests).first(warm_up + workload.run);
    const uint64_t refused_before = subject->refused().value_or(0);
    const CrewResult result = ServeThrough(subject, seen.subspan(warm_up), workload.value, threads);
    AddSpeed(workload.name, threads, *subject, result);
    Add(workload.name, threads, *subject, "hits", "%", result.HitPercent());
    if (subject->refused()) {
      const auto refused = static_cast<double>(*subject->refused() - refused_before);
      Add(workload.name, threads, *subject, "refused", "%",
          100 * refused / static_cast<double>(result.requests));
    }
    if (threads > kSlowThreads) continue;
    const uint64_t entries = subject->entries();
    Add(workload.name, threads, *subject, "entries", "", static_cast<double>(entries));
    Add(workload.name, threads, *subject, "exact LRU", "%",
        ExactLruHitPercent(seen, warm_up, entries, workload.keys));
  }
}

void CacheWorkloads::RunShards(CacheSubject* subject, int /*round*/) {
  if (!subject->has_shards()) return;
  for (uint32_t shards = 1; shards <= kShardsMost; shards *= 2) {
    CachePlan plan = SmallEntries();
    plan.capacity_bytes = kShardCapacity;
    plan.entries = kShardKeys;
    plan.shards = shards;
    const OpenCache open(subject, plan);
    Preload(subject, kShardKeysPresent);
    AddThroughput(Format("shards_%u", shards), MostThreads(), *subject,
                  Serve(subject, shards_, MostThreads()));
  }
}

void CacheWorkloads::RunTtl(CacheSubject* subject, int round) {
  if (!subject->expires()) return;
  for (const int threads : settings_.threads) {
    if (threads > kSlowThreads) continue;
    const bool ttl_first = round % 2 == 0;
    MeasureTtl(ttl_first, threads, subject);
    MeasureTtl(!ttl_first, threads, subject);
  }
  MeasureSweep(subject);
}

/// Writers sweep: what puts cost while much is due, over the same puts when nothing is.
void CacheWorkloads::MeasureSweep(CacheSubject* subject) {
  constexpr uint32_t kDue = 250'000;
  constexpr std::chrono::seconds kTtl(1);
  constexpr std::chrono::milliseconds kUntilDue(2'500);
  const std::span<const CacheRequest> due = std::span(every_key_).first(kDue);
  const std::span<const CacheRequest> kept = std::span(every_key_).subspan(kDue, kDue);
  const OpenCache open(subject, SmallEntries());
  const auto put_kept = [&] {
    const double before = CpuSeconds();
    for (const CacheRequest& request : kept) subject->Put(request.key, kValue);
    return CpuSeconds() - before;
  };
  put_kept();
  for (const CacheRequest& request : due) subject->PutExpiring(request.key, kValue, kTtl);
  std::this_thread::sleep_for(kUntilDue);
  const double with_sweeping = put_kept();
  const uint64_t left = subject->entries();
  if (left > kDue + kDue / 100) {
    Fail("sweep " + subject->name(), Format("%llu entries are left of %u that do not expire",
                                            static_cast<unsigned long long>(left), kDue));
  }
  const double without = put_kept();
  const double seconds_each = (with_sweeping - without) / kDue;
  Add("ttl_sweep", 1, *subject, "sweep", "ns", 1e9 * seconds_each);
  // With all keys and their times to live, where a record is handed over at most once a level.
  constexpr double kHandovers = 3;
  const double all_ttls_ms = std::accumulate(ttls_ms_.begin(), ttls_ms_.end(), 0.0);
  const double due_a_second = kKeys / (all_ttls_ms / 1e3 / static_cast<double>(ttls_ms_.size()));
  Add("ttl_sweep", 1, *subject, "share", "%", 100 * seconds_each * kHandovers * due_a_second);
}

void CacheWorkloads::MeasureTtl(bool with_ttl, int threads, CacheSubject* subject) {
  const OpenCache open(subject, SmallEntries());
  const auto serve = [&](const char* benchmark, std::span<const CacheRequest> requests) {
    const auto put = [&](const CacheRequest& request) {
      if (!with_ttl) return subject->Put(request.key, kValue);
      const uint32_t ttl_ms = ttls_ms_[request.number % kTimesToLive];
      subject->PutExpiring(request.key, kValue, std::chrono::milliseconds(ttl_ms));
    };
    const CrewResult result =
        RunCrewByRuns(requests, {.threads = threads}, [&](std::span<const CacheRequest> run) {
          uint64_t hits = 0;
          while (!run.empty()) {
            const auto next_put = std::ranges::find_if(run, &CacheRequest::is_put);
            const auto gets = static_cast<size_t>(next_put - run.begin());
            hits += subject->Serve(run.first(gets), kValue);
            if (gets < run.size()) put(run[gets]);
            run = run.subspan(std::min(gets + 1, run.size()));
          }
          return hits;
        });
    AddSpeed(Format("%s_%s", with_ttl ? "ttl" : "no_ttl", benchmark), threads, *subject, result);
  };
  serve("fill", std::span(every_key_).first(kKeys));
  serve("get", hits_);
  serve("put", puts_);
  serve("r90w10", hits_r90w10_);
}

void CacheWorkloads::RunGrowth(CacheSubject* subject, int round) {
  if (round >= kSlowRounds || subject->is_noop()) return;
  const uint32_t entries = settings_.grown_entries;
  const OpenCache open(subject, {.capacity_bytes = kRoomForGrown,
                                 .entries = entries,
                                 .value_bytes = kValue.size(),
                                 .reserve = false});
  const CrewResult result =
      RunCrew(std::span(every_key_).first(entries), {.threads = 1, .sample_every = 1},
              [subject](std::span<const CacheRequest> group) -> uint64_t {
                subject->Put(group.front().key, kValue);
                return 0;
              });
  AddSpeed("growth", 1, *subject, result);
  Add("growth", 1, *subject, "max", "us", result.MaxUs());
}

}  // namespace basalt::bench
