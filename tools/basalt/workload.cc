#include "tools/basalt/workload.h"

#include <algorithm>
#include <string>

#include "tools/basalt/bench_worker.h"
#include "tools/basalt/ycsb.h"
#include "tools/workload/number_key.h"

namespace basalt::tools {
namespace {

using workload::NumberKey;

// How many calls.

uint64_t One(const BenchOptions& /*options*/) { return 1; }
uint64_t Num(const BenchOptions& options) { return options.num; }
uint64_t ThousandthOfNum(const BenchOptions& options) {
  return std::max<uint64_t>(options.num / 1000, 1);
}
uint64_t Batches(const BenchOptions& options) {
  return (options.num + options.batch_records - 1) / options.batch_records;
}
uint64_t Reads(const BenchOptions& options) {
  return options.reads > 0 ? options.reads : options.num;
}

// What one thread does.

Status FillInOrder(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts) {
  BenchWorker worker(run, share, counts);
  return worker.ForEachCall([&](uint64_t i) { return worker.Put(NumberKey(i).view(), {}); });
}

Status PutRandomly(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts,
                   const WriteOptions& write) {
  BenchWorker worker(run, share, counts);
  return worker.ForEachCall(
      [&](uint64_t) { return worker.Put(NumberKey(worker.RandomNumber()).view(), write); });
}
Status PutRandom(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts) {
  return PutRandomly(run, share, counts, {});
}
Status PutRandomSynced(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts) {
  return PutRandomly(run, share, counts, {.durability = Durability::kPower});
}

Status FillBatches(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts) {
  BenchWorker worker(run, share, counts);
  WriteBatch batch;
  return worker.ForEachCall([&](uint64_t i) {
    batch.Clear();
    const uint64_t begin = i * run.options.batch_records;
    const uint64_t end = std::min(begin + run.options.batch_records, run.options.num);
    for (uint64_t number = begin; number < end; ++number) {
      const NumberKey key(number);
      const std::string_view value = worker.NextValue();
      batch.Put(key.view(), value);
      worker.Count(NumberKey::kBytes + value.size());
    }
    return worker.db().Write(batch);
  });
}

Status ReadRandom(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts) {
  BenchWorker worker(run, share, counts);
  return worker.ForEachCall(
      [&](uint64_t) { return worker.Get(NumberKey(worker.RandomNumber()).view()); });
}

/// The keys lie between those that are there.
Status ReadMissing(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts) {
  BenchWorker worker(run, share, counts);
  std::string key;
  return worker.ForEachCall([&](uint64_t) {
    key.assign(NumberKey(worker.RandomNumber()).view()).append(".");
    return worker.Get(key);
  });
}

/// Walks from `it` on, which stands at the share's beginning, until the share or the records end.
template <class Step>
Status Walk(BenchWorker& worker, Iterator& it, const Step& step) {
  if (!it.Valid()) return it.status();
  return worker.ForEachCall([&](uint64_t) {
    worker.Count(it.key().size() + it.value().size());
    step();
    if (!it.Valid()) worker.End();
    return it.status();
  });
}

Status ReadInOrder(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts) {
  BenchWorker worker(run, share, counts);
  const std::unique_ptr<Iterator> it = run.db.NewIterator();
  if (share.is_first) {
    it->SeekToFirst();
  } else {
    it->Seek(NumberKey(share.begin).view());
  }
  return Walk(worker, *it, [&] { it->Next(); });
}

Status ReadInReverse(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts) {
  BenchWorker worker(run, share, counts);
  const std::unique_ptr<Iterator> it = run.db.NewIterator();
  if (share.is_last) {
    it->SeekToLast();
  } else {
    it->SeekForPrev(NumberKey(share.end - 1).view());
  }
  return Walk(worker, *it, [&] { it->Prev(); });
}

Status SeekRandom(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts) {
  BenchWorker worker(run, share, counts);
  return worker.ForEachCall([&](uint64_t) {
    const NumberKey key(worker.RandomNumber());
    const std::unique_ptr<Iterator> it = worker.db().NewIterator();
    it->Seek(key.view());
    worker.CountLookup(it->Valid() && it->key() == key.view());
    uint64_t bytes = 0;
    for (uint64_t left = run.options.nexts + 1; left > 0 && it->Valid(); --left) {
      bytes += it->key().size() + it->value().size();
      if (left > 1) it->Next();
    }
    worker.Count(bytes);
    return it->status();
  });
}

Status DeleteRandom(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts) {
  BenchWorker worker(run, share, counts);
  return worker.ForEachCall([&](uint64_t) {
    worker.Count(NumberKey::kBytes);
    return worker.db().Delete(NumberKey(worker.RandomNumber()).view());
  });
}

Status Compact(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts) {
  BenchWorker worker(run, share, counts);
  return worker.ForEachCall([&](uint64_t) {
    worker.Count(0);
    return worker.db().CompactRange();
  });
}

constexpr bool kEmpty = true;
constexpr bool kOneThread = true;

constexpr Workload kWorkloads[] = {
    {"fillseq", "puts in key order", kEmpty, !kOneThread, Num, FillInOrder, ""},
    {"fillrandom", "puts of random keys below --num", kEmpty, !kOneThread, Num, PutRandom, ""},
    {"fillsync", "--num / 1000 puts of random keys, each synced", kEmpty, !kOneThread,
     ThousandthOfNum, PutRandomSynced, ""},
    {"fillbatch", "puts in key order, --batch-size at once", kEmpty, !kOneThread, Batches,
     FillBatches, ""},
    {"overwrite", "puts of random keys into what is there", !kEmpty, !kOneThread, Num, PutRandom,
     ""},
    {"readrandom", "gets of random keys", !kEmpty, !kOneThread, Reads, ReadRandom, "fillseq"},
    {"readmissing", "gets of keys that are not there", !kEmpty, !kOneThread, Reads, ReadMissing,
     ""},
    {"readseq", "an iterator's steps from the first key on", !kEmpty, !kOneThread, Reads,
     ReadInOrder, ""},
    {"readreverse", "an iterator's steps back from the last key", !kEmpty, !kOneThread, Reads,
     ReadInReverse, ""},
    {"seekrandom", "new iterators, a seek each, and --nexts steps", !kEmpty, !kOneThread, Reads,
     SeekRandom, "fillseq"},
    {"deleterandom", "deletes of random keys", !kEmpty, !kOneThread, Num, DeleteRandom, ""},
    {"compact", "a merge of all tables", !kEmpty, kOneThread, One, Compact, ""},
    {"ycsbload", "the records of YCSB", kEmpty, !kOneThread, Num, RunYcsbLoad, ""},
    {"ycsba", "50 % reads, 50 % updates, Zipf", !kEmpty, !kOneThread, Reads, RunYcsbA, "ycsbload"},
    {"ycsbb", "95 % reads, 5 % updates, Zipf", !kEmpty, !kOneThread, Reads, RunYcsbB, "ycsbload"},
    {"ycsbc", "reads, Zipf", !kEmpty, !kOneThread, Reads, RunYcsbC, "ycsbload"},
    {"ycsbd", "95 % reads, 5 % inserts, the newest most", !kEmpty, !kOneThread, Reads, RunYcsbD,
     "ycsbload"},
    {"ycsbe", "95 % scans of 1 to 100, 5 % inserts, Zipf", !kEmpty, !kOneThread, Reads, RunYcsbE,
     "ycsbload"},
    {"ycsbf", "50 % reads, 50 % read-modify-writes, Zipf", !kEmpty, !kOneThread, Reads, RunYcsbF,
     "ycsbload"},
};

}  // namespace

void WorkloadCounts::Merge(const WorkloadCounts& other) {
  begin = std::min(begin, other.begin);
  end = std::max(end, other.end);
  latency_ns.Merge(other.latency_ns);
  operations += other.operations;
  bytes += other.bytes;
  lookups += other.lookups;
  found += other.found;
}

double WorkloadCounts::seconds() const {
  return begin < end ? std::chrono::duration<double>(end - begin).count() : 0;
}

std::span<const Workload> AllWorkloads() { return kWorkloads; }

const Workload* FindWorkload(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kWorkloads), std::end(kWorkloads),
                                         [&](const Workload& each) { return each.name == name; });
  return found == std::end(kWorkloads) ? nullptr : found;
}

}  // namespace basalt::tools
