#include "bench/memtable_workloads.h"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <ctime>
#include <fstream>
#include <utility>

#include "base/histogram.h"
#include "base/random.h"
#include "bench/cache_footprint.h"
#include "bench/cache_subject.h"
#include "bench/cache_ticks.h"
#include "bench/text.h"
#include "bench/two_reads.h"

namespace basalt::bench {
namespace {

constexpr size_t kBatch = 1000;
constexpr uint32_t kScanRecords = 10;
/// A record of the memtable, with its header.
constexpr size_t kRecordBytes = 136;
constexpr uint32_t kPutPercent = 20;
constexpr uint32_t kSampleEvery = 32;
constexpr uint32_t kSampleEveryMultiGet = 4;
constexpr uint64_t kKeySeed = 1;
constexpr uint64_t kRequestSeed = 2;

// Values are windows into a few random bytes, which stay in the processor's first cache.
constexpr size_t kPoolBytes = 256;

const std::array<char, kPoolBytes>& ValuePool() {
  static const std::array<char, kPoolBytes> kPool = [] {
    std::array<char, kPoolBytes> pool;
    base::Random random(kKeySeed);
    std::generate(pool.begin(), pool.end(), [&] { return static_cast<char>(random.Next()); });
    return pool;
  }();
  return kPool;
}

using KeyBytes = std::array<char, kKeyBytes>;

CacheKey ToKey(const KeyBytes& bytes) {
  static_assert(sizeof(CacheKey) == sizeof bytes);
  return std::bit_cast<CacheKey>(bytes);
}

/// 16 bytes from two numbers, the first byte the most significant.
CacheKey BinaryKey(uint64_t high, uint64_t low) {
  return ToKey(std::bit_cast<KeyBytes>(
      std::array<uint64_t, 2>{__builtin_bswap64(high), __builtin_bswap64(low)}));
}

CacheKey DecimalKey(uint32_t number) {
  KeyBytes bytes;
  for (size_t i = bytes.size(); i-- > 0; number /= 10)
    bytes[i] = static_cast<char>('0' + number % 10);
  return ToKey(bytes);
}

CacheRequests BinaryPuts(uint32_t records) {
  base::Random random(kKeySeed);
  CacheRequests puts(records);
  for (uint32_t i = 0; i < records; ++i) {
    const uint64_t high = random.Next();
    puts[i] = {BinaryKey(high, random.Next()), i, true};
  }
  return puts;
}

/// The numbers below `records`, shuffled.
CacheRequests DecimalPuts(uint32_t records) {
  base::Random random(kKeySeed);
  CacheRequests puts(records);
  for (uint32_t i = 0; i < records; ++i) puts[i] = {DecimalKey(i), i, true};
  std::shuffle(puts.begin(), puts.end(), random);
  return puts;
}

/// `count` requests for keys among `puts`, drawn uniformly.
CacheRequests RequestsFor(const CacheRequests& puts, size_t count, uint32_t put_percent) {
  base::Random random(kRequestSeed);
  CacheRequests requests(count);
  for (CacheRequest& request : requests) {
    request = puts[random.Below(puts.size())];
    request.is_put = random.Below(100) < put_percent;
  }
  return requests;
}

/// A subject's store, open for as long as this lives. What it leaves behind in malloc is tidied up
/// at its end, and not by who first asks for a larger block: half a million small ones take 0.3 s.
class OpenStore {
 public:
  OpenStore(MemTableSubject* subject, const StorePlan& plan) : subject_(subject) {
    subject_->Open(plan);
  }
  ~OpenStore() {
    subject_->Close();
    malloc_trim(0);
  }
  OpenStore(const OpenStore&) = delete;
  OpenStore& operator=(const OpenStore&) = delete;

 private:
  MemTableSubject* subject_;
};

void Fill(std::span<const CacheRequest> puts, MemTableSubject* subject) {
  for (; !puts.empty(); puts = puts.subspan(std::min(kBatch, puts.size()))) {
    subject->PutBatch(puts.first(std::min(kBatch, puts.size())));
  }
}

void Expect(const MemTableSubject& subject, std::string_view what, uint64_t seen, uint64_t wanted) {
  if (seen == wanted) return;
  Fail(subject.name(),
       Format("%.*s: %llu instead of %llu", static_cast<int>(what.size()), what.data(),
              static_cast<unsigned long long>(seen), static_cast<unsigned long long>(wanted)));
}

void ExpectAll(const MemTableSubject& subject, const Walk& walk, uint64_t records) {
  Expect(subject, "records walked over", walk.records(), records);
  Expect(subject, "records in order", walk.is_ordered() ? 1 : 0, 1);
}

uint64_t EndsOfAll(std::span<const CacheRequest> puts) {
  return std::accumulate(
      puts.begin(), puts.end(), uint64_t{0},
      [](uint64_t sum, const CacheRequest& put) { return sum + EndsOf(ValueOf(put.number)); });
}

/// Peers take so much longer that they are given a part of some work, which does not slow them.
size_t ShareOf(const MemTableSubject& subject, size_t work) {
  constexpr size_t kPeersDivisor = 4;
  return subject.sorts_later() ? work : work / kPeersDivisor;
}

/// Processor time that other threads than the caller have taken so far.
double OthersCpuSeconds() {
  timespec own{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &own);
  return CpuSeconds() - static_cast<double>(own.tv_sec) - static_cast<double>(own.tv_nsec) / 1e9;
}

double NsEach(double seconds, uint64_t count) { return 1e9 * seconds / static_cast<double>(count); }

/// Keys of random order whose low half is the record's number.
CacheRequest LifecycleRecord(uint32_t number) {
  uint64_t mixed = number + uint64_t{0x9E37'79B9'7F4A'7C15};
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58'476D'1CE4'E5B9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D0'49BB'1331'11EB;
  return {BinaryKey(mixed ^ (mixed >> 31), number), number, true};
}

/// A line of /proc/self/status that counts in KiB.
double StatusBytes(const std::string& wanted) {
  std::ifstream status("/proc/self/status");
  for (std::string field; status >> field;) {
    double kib = 0;
    if (field == wanted && status >> kib) return kib * 1024;
  }
  Fail("measure memory", "/proc/self/status does not say " + wanted);
}

struct Lifecycle {
  double put_seconds = 0;
  double sort_seconds = 0;
  double walk_seconds = 0;
  double peak_bytes = 0;
  double claimed_bytes = 0;
};

/// Batches of puts, then the order, then one walk over everything.
Lifecycle Live(uint32_t records, int threads, MemTableSubject* subject) {
  const double before = StatusBytes("VmRSS:");
  const auto crew = static_cast<uint32_t>(threads);
  const auto batches = static_cast<uint32_t>((records + kBatch - 1) / kBatch);
  CacheRequests parts((batches + crew - 1) / crew * crew);  // The last few may be empty.
  for (uint32_t i = 0; i < parts.size(); ++i) parts[i].number = i;

  const OpenStore open(subject, {.records = records});
  const CrewResult puts =
      RunCrew(parts, {.threads = threads}, [&](std::span<const CacheRequest> part) -> uint64_t {
        std::array<CacheRequest, kBatch> batch;
        const uint64_t first = part.front().number * kBatch;
        size_t count = 0;
        for (; count < kBatch && first + count < records; ++count) {
          batch[count] = LifecycleRecord(static_cast<uint32_t>(first + count));
        }
        if (count > 0) subject->PutBatch(std::span(batch).first(count));
        return count;
      });
  const Walk walk = subject->WalkAll();
  Lifecycle life{.put_seconds = puts.seconds,
                 .sort_seconds = walk.position_seconds(),
                 .walk_seconds = walk.walk_seconds(),
                 .peak_bytes = StatusBytes("VmHWM:") - before,
                 .claimed_bytes = static_cast<double>(subject->claimed_bytes())};
  ExpectAll(*subject, walk, records);
  return life;
}

/// Nanoseconds a read, each begun when the one before it is done if `is_chained`: its request's
/// place then depends on what was read. Otherwise the processor may overlap them.
template <bool is_chained, class Read>
double MeasureReads(std::span<const CacheRequest> gets, Read&& read) {
  uint64_t zero = 0;
  asm volatile("" : "+r"(zero));  // The compiler does not know it.
  uint64_t last = 0;
  const auto start = std::chrono::steady_clock::now();
  for (size_t i = 0; i < gets.size(); ++i) {
    last = read(gets[is_chained ? i + (last & zero) : i]);
    asm volatile("" : "+r"(last));
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return NsEach(elapsed.count(), gets.size());
}

/// Nanoseconds each of `count`, which `read` reads.
template <class Read>
double MeasureAll(uint64_t count, const Read& read) {
  const auto start = std::chrono::steady_clock::now();
  read();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return NsEach(elapsed.count(), count);
}

}  // namespace

std::string_view ValueOf(uint32_t number) noexcept {
  static const char* const kValues = ValuePool().data();
  return {kValues + number % (kPoolBytes - kValueBytes), kValueBytes};
}

const std::vector<MemTableWorkloads::Group>& MemTableWorkloads::Groups() {
  static const std::vector<Group> kGroups = {
      {"lifecycle", &MemTableWorkloads::RunLifecycle, {"lifecycle"}, true},
      {"memory", &MemTableWorkloads::RunMemory, {"memory"}, true},
      {"writes", &MemTableWorkloads::RunWrites, {"write", "batch_write"}},
      {"reads", &MemTableWorkloads::RunReads, {"get", "multi_get", "mixed"}},
      {"sealed", &MemTableWorkloads::RunSealed, {"sealed"}},
      {"scans", &MemTableWorkloads::RunScans, {"scan"}},
      {"order", &MemTableWorkloads::RunOrder, {"iterate"}},
      {"floor", &MemTableWorkloads::RunFloor, {"floor"}},
  };
  return kGroups;
}

MemTableWorkloads::MemTableWorkloads(const MemTableSettings& settings, MemTableReport* report)
    : settings_(settings), report_(report) {
  // Freed memory stays with malloc, as the memtable's with its pool: what is measured is not what
  // the kernel takes for fresh pages.
  constexpr int kBlockBytesMax = 32 << 20;
  mallopt(M_MMAP_THRESHOLD, kBlockBytesMax);
  mallopt(M_TOP_PAD, 2 * kBlockBytesMax);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);

  for (const bool is_binary : {true, false}) {
    Shape shape{.name = is_binary ? "_bin" : "_dec",
                .puts = is_binary ? BinaryPuts(settings.records) : DecimalPuts(settings.records),
                .gets = {},
                .mixed = {}};
    shape.gets = RequestsFor(shape.puts, shape.puts.size(), 0);
    shape.mixed = RequestsFor(shape.puts, shape.puts.size(), kPutPercent);
    shapes_.push_back(std::move(shape));
  }
}

void MemTableWorkloads::AddSpeed(const std::string& benchmark, int threads,
                                 const MemTableSubject& subject, const CrewResult& result) {
  const std::string name = subject.name();
  report_->Add(benchmark, threads, name, "throughput", "ops/s", result.PerSecond());
  report_->Add(benchmark, threads, name, "time", "ns", NsEach(result.seconds, result.requests));
  report_->Add(benchmark, threads, name, "cpu", "ns", result.CpuNs());
  report_->Add(benchmark, threads, name, "p50", "us", result.PercentileUs(50));
  report_->Add(benchmark, threads, name, "p99", "us", result.PercentileUs(99));
  report_->Add(benchmark, threads, name, "p99.9", "us", result.PercentileUs(99.9));
}

void MemTableWorkloads::RunLifecycle(MemTableSubject* subject, int round) {
  const std::string name = subject->name();
  if (name != "basalt" && (name != "rocksdb" || round > 0)) return;
  const auto records =
      static_cast<uint32_t>(ShareOf(*subject, settings_.lifecycle_bytes / kLogicalBytes));
  const auto logical = static_cast<double>(records * kLogicalBytes);
  void* const shared =
      mmap(nullptr, sizeof(Lifecycle), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) Fail("run a lifecycle", "no memory");
  for (const int threads : settings_.threads) {
    auto* const life = new (shared) Lifecycle;
    MeasureFootprint([&] {
      // The second life is timed: it finds the memory that the first one has left, whose peak
      // counts.
      const double peak_bytes = Live(records, threads, subject).peak_bytes;
      *life = Live(records, threads, subject);
      life->peak_bytes = peak_bytes;
      return 0.0;
    });
    const double seconds = life->put_seconds + life->sort_seconds + life->walk_seconds;
    const auto add = [&](const char* metric, const char* unit, double value) {
      report_->Add("lifecycle", threads, name, metric, unit, value);
    };
    add("speed", "MiB/s", logical / seconds / (1 << 20));
    add("wall", "s", seconds);
    add("put", "ns", NsEach(life->put_seconds, records));
    add("sort", "ns", NsEach(life->sort_seconds, records));
    add("walk", "ns", NsEach(life->walk_seconds, records));
    add("peak memory", "x", life->peak_bytes / logical);
    add("claimed memory", "x", life->claimed_bytes / logical);
  }
  munmap(shared, sizeof(Lifecycle));
}

void MemTableWorkloads::RunMemory(MemTableSubject* subject, int /*round*/) {
  const Footprint footprint =
      MeasureFootprint([&] { return Live(settings_.records, 1, subject).peak_bytes; });
  const auto logical = static_cast<double>(settings_.records * kLogicalBytes);
  report_->Add("memory", 1, subject->name(), "peak memory", "x", footprint.claimed_bytes / logical);
}

double MemTableWorkloads::MeasureWrite(const Shape& shape, bool in_batches, int threads, bool check,
                                       MemTableSubject* subject) {
  const OpenStore open(subject, {.records = shape.puts.size()});
  const CrewPlan plan{.threads = threads,
                      .group = in_batches ? kBatch : 1,
                      .sample_every = in_batches ? 1 : kSampleEvery};
  const CrewResult result =
      RunCrew(shape.puts, plan, [&](std::span<const CacheRequest> group) -> uint64_t {
        if (in_batches) {
          subject->PutBatch(group);
        } else {
          subject->Put(group.front());
        }
        return group.size();
      });
  const auto drain_start = std::chrono::steady_clock::now();
  subject->Drain();
  const std::chrono::duration<double> drain = std::chrono::steady_clock::now() - drain_start;

  AddSpeed((in_batches ? "batch_write" : "write") + shape.name, threads, *subject, result);
  if (subject->sorts_later() && !in_batches) {
    report_->Add("write_drained" + shape.name, threads, subject->name(), "time", "ns",
                 NsEach(result.seconds + drain.count(), result.requests));
  }
  if (check) ExpectAll(*subject, subject->WalkAll(), result.requests);
  return result.PerSecond();
}

void MemTableWorkloads::RunWrites(MemTableSubject* subject, int round) {
  {
    const OpenStore warm_up(subject, {.records = shapes_.front().puts.size()});
    Fill(shapes_.front().puts, subject);
  }
  for (const Shape& shape : shapes_) {
    for (const bool in_batches : {false, true}) {
      const std::string benchmark = in_batches ? "batch_write" : "write";
      if (!Wanted(benchmark)) continue;
      double alone = 0;
      for (const int threads : settings_.threads) {
        const double speed = MeasureWrite(shape, in_batches, threads, round == 0, subject);
        if (threads == 1) alone = speed;
        if (threads == 1 || alone == 0) continue;
        report_->Add(benchmark + shape.name, threads, subject->name(), "over 1 thread", "x",
                     speed / alone);
      }
    }
  }
}

void MemTableWorkloads::RunReads(MemTableSubject* subject, int round) {
  for (const Shape& shape : shapes_) {
    const OpenStore open(subject, {.records = shape.puts.size()});
    Fill(shape.puts, subject);
    subject->Drain();
    const std::span gets = std::span(shape.gets).first(ShareOf(*subject, shape.gets.size()));
    const std::span mixed = std::span(shape.mixed).first(gets.size());
    for (const int threads : settings_.threads) {
      const CrewPlan plan{.threads = threads, .sample_every = kSampleEvery};
      if (Wanted("get")) {
        const CrewResult result =
            RunCrew(gets, plan, [&](std::span<const CacheRequest> group) -> uint64_t {
              return subject->Get(group.front()).has_value() ? 1 : 0;
            });
        Expect(*subject, "keys found", result.hits, result.requests);
        AddSpeed("get" + shape.name, threads, *subject, result);
      }
      if (Wanted("multi_get")) {
        const CrewResult result =
            RunCrew(gets,
                    {.threads = threads,
                     .group = MemTableSubject::kMultiGet,
                     .sample_every = kSampleEveryMultiGet},
                    [&](std::span<const CacheRequest> group) { return subject->MultiGet(group); });
        Expect(*subject, "keys found together", result.hits, result.requests);
        AddSpeed("multi_get" + shape.name, threads, *subject, result);
      }
      if (Wanted("mixed")) {
        const CrewResult result =
            RunCrew(mixed, plan, [&](std::span<const CacheRequest> group) -> uint64_t {
              const CacheRequest& request = group.front();
              if (!request.is_put) return subject->Get(request).has_value() ? 1 : 0;
              subject->Put(request);
              return 1;
            });
        Expect(*subject, "keys found between puts", result.hits, result.requests);
        AddSpeed("mixed" + shape.name, threads, *subject, result);
      }
    }
    if (round > 0) continue;
    const Walk walk = subject->WalkAll();
    ExpectAll(*subject, walk, shape.puts.size());
    Expect(*subject, "bytes read", walk.ends(), EndsOfAll(shape.puts));
  }
}

void MemTableWorkloads::RunSealed(MemTableSubject* subject, int round) {
  if (subject->name() != "basalt") return;
  struct Pile {
    std::string name;
    size_t generations;
    bool compaction;
  };
  const Shape& shape = shapes_.front();
  const CacheRequests& absent = shapes_.back().gets;  // Keys of another shape.
  for (const Pile& pile :
       {Pile{"sealed_1", 1, false}, Pile{"sealed_4", 4, false}, Pile{"sealed_16", 16, false},
        Pile{"sealed_64", 64, false}, Pile{"sealed_64_merged", 64, true}}) {
    const size_t records = shape.puts.size();
    const OpenStore open(subject, {.records = records, .compaction = pile.compaction});
    for (size_t i = 0; i < pile.generations; ++i) {
      const size_t begin = records * i / pile.generations;
      const size_t end = records * (i + 1) / pile.generations;
      Fill(std::span(shape.puts).subspan(begin, end - begin), subject);
      subject->Seal();
    }
    subject->Drain();
    const auto measure = [&](const char* suffix, const CacheRequests& gets, uint64_t wanted) {
      const CrewResult result = RunCrew(gets, {.sample_every = kSampleEvery},
                                        [&](std::span<const CacheRequest> group) -> uint64_t {
                                          return subject->Get(group.front()).has_value() ? 1 : 0;
                                        });
      Expect(*subject, "keys found in sealed generations", result.hits, wanted);
      AddSpeed(pile.name + suffix, 1, *subject, result);
    };
    measure("", shape.gets, shape.gets.size());
    measure("_absent", absent, 0);
    if (round == 0) ExpectAll(*subject, subject->WalkAll(), records);
  }
}

void MemTableWorkloads::MeasureScan(const Shape& shape, uint32_t interval,
                                    MemTableSubject* subject) {
  const uint32_t timed_every = std::max(kSampleEvery / interval, 1U);  // of the scans
  const OpenStore open(subject, {.records = shape.puts.size()});
  uint32_t until_scan = interval;
  uint32_t until_timed = timed_every;
  base::Histogram scans_ticks;
  const auto scan = [&](const CacheRequest& from) {
    if (--until_timed > 0) return subject->Scan(from, kScanRecords);
    until_timed = timed_every;
    const uint64_t before = TicksBefore();
    const uint64_t seen = subject->Scan(from, kScanRecords);
    scans_ticks.Record(TicksAfter() - before);
    return seen;
  };
  CrewResult result = RunCrew(shape.puts, {.sample_every = UINT32_MAX},
                              [&](std::span<const CacheRequest> group) -> uint64_t {
                                subject->Put(group.front());
                                if (--until_scan > 0) return 0;
                                until_scan = interval;
                                return scan(group.front()) > 0 ? 1 : 0;
                              });
  Expect(*subject, "scans that began at their key", result.hits, shape.puts.size() / interval);
  result.samples_ticks = scans_ticks;
  AddSpeed(Format("scan_%u%s", interval, shape.name.c_str()), 1, *subject, result);
}

void MemTableWorkloads::RunScans(MemTableSubject* subject, int /*round*/) {
  for (const Shape& shape : shapes_) {
    for (const uint32_t interval : {1U, 20U, 1000U}) MeasureScan(shape, interval, subject);
  }
}

void MemTableWorkloads::RunOrder(MemTableSubject* subject, int /*round*/) {
  for (const Shape& shape : shapes_) {
    const uint64_t records = shape.puts.size();
    const OpenStore open(subject, {.records = records, .compaction = false});
    const double others_before = OthersCpuSeconds();
    for (const CacheRequest& put : shape.puts) subject->Put(put);
    const double sorted_percent = subject->sorted_percent();
    const Walk walk = subject->WalkAll();
    const double sort_seconds = OthersCpuSeconds() - others_before + walk.position_seconds();
    ExpectAll(*subject, walk, records);
    Expect(*subject, "bytes read", walk.ends(), EndsOfAll(shape.puts));
    const double walk_ns = NsEach(walk.walk_seconds(), records);
    if (subject->sorts_later()) {
      const std::string benchmark = "sort" + shape.name;
      report_->Add(benchmark, 1, subject->name(), "time", "ns", NsEach(sort_seconds, records));
      report_->Add(benchmark, 1, subject->name(), "sorted before", "%", sorted_percent);
    }
    report_->Add("iterate" + shape.name, 1, subject->name(), "time", "ns", walk_ns);
    report_->Add("iterate" + shape.name, 1, subject->name(), "throughput", "ops/s", 1e9 / walk_ns);
  }
}

void MemTableWorkloads::MeasureFloor(const std::string& benchmark, uint32_t records,
                                     MemTableSubject* subject) {
  constexpr size_t kGets = 1'000'000;
  const CacheRequests puts = BinaryPuts(records);
  const CacheRequests gets = RequestsFor(puts, kGets, 0);
  const auto add = [&](const char* metric, const char* unit, double value) {
    report_->Add(benchmark, 1, subject->name(), metric, unit, value);
  };

  const TwoReads<kRecordBytes> two_reads(records);
  const double floor = MeasureReads<true>(gets, two_reads);
  add("floor", "ns", floor);
  add("floor, free", "ns", MeasureReads<false>(gets, two_reads));
  add("floor, scan", "ns", MeasureReads<true>(gets, [&](const CacheRequest& request) {
        return two_reads.Scan(request, kScanRecords);
      }));
  const auto in_groups = [&gets](const auto& read) {
    for (size_t at = 0; at < gets.size(); at += MemTableSubject::kMultiGet) {
      read(std::span(gets).subspan(at, std::min(MemTableSubject::kMultiGet, gets.size() - at)));
    }
  };
  const double multi_floor = MeasureAll(gets.size(), [&] {
    in_groups([&](std::span<const CacheRequest> group) { two_reads.ReadTogether(group); });
  });
  const double walk_floor = MeasureAll(records, [&] { two_reads.ReadAll(); });
  add("floor, 32", "ns", multi_floor);
  add("floor, walk", "ns", walk_floor);

  const OpenStore open(subject, {.records = records});
  Fill(puts, subject);
  subject->Drain();
  uint64_t found = 0;
  const auto get = [&](const CacheRequest& request) -> uint8_t {
    const std::optional<uint8_t> ends = subject->Get(request);
    found += ends.has_value() ? 1 : 0;
    return ends.value_or(0);
  };
  const double time = MeasureReads<true>(gets, get);
  add("get", "ns", time);
  add("get, free", "ns", MeasureReads<false>(gets, get));
  add("get/floor", "x", time / floor);
  const double multi_get = MeasureAll(gets.size(), [&] {
    in_groups([&](std::span<const CacheRequest> group) { found += subject->MultiGet(group); });
  });
  add("multi-get/floor", "x", multi_get / multi_floor);
  const Walk walk = subject->WalkAll();
  ExpectAll(*subject, walk, records);
  add("walk/floor", "x", NsEach(walk.walk_seconds(), records) / walk_floor);
  Expect(*subject, "keys found", found, 3 * kGets);
}

void MemTableWorkloads::RunFloor(MemTableSubject* subject, int /*round*/) {
  if (subject->name() != "basalt") return;
  MeasureFloor("floor_small", settings_.records, subject);
  MeasureFloor("floor_large", settings_.large_records, subject);
}

}  // namespace basalt::bench
