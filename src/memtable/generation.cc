#include "memtable/generation.h"

#include <algorithm>
#include <array>
#include <bit>
#include <condition_variable>
#include <new>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "base/batch_cursor.h"
#include "base/check.h"
#include "base/short_hash.h"
#include "memtable/generation_iterator.h"
#include "memtable/run_set.h"
#include "memtable/segment.h"
#include "memtable/shard.h"
#include "memtable/sorted_run.h"

namespace basalt::memtable {
namespace {

constexpr size_t kOwnSegmentsMax = 16;
constexpr size_t kSegmentsMax = 2 * kOwnSegmentsMax;
constexpr size_t kPinnedValueBytesMin = (size_t{64} << 10) + 1;

size_t ShardsOf(const GenerationOptions& options) noexcept {
  if (options.shards != 0) return options.shards;
  return std::bit_floor(std::clamp<uint64_t>(options.budget_bytes / (512 << 10), 1, 16));
}

size_t SegmentsOf(const GenerationOptions& options) noexcept {
  return 2 * std::min(ShardsOf(options), kOwnSegmentsMax);
}

// A value that stays where it is, and the table with it.
struct TablePin : Value::Pin {
  std::shared_ptr<const Generation> table;

  static void Release(Value::Pin* pin) noexcept { delete static_cast<TablePin*>(pin); }
};

Status DoesNotFit(const base::ByteBudget& budget, uint64_t bytes, size_t count) {
  return Status(StatusCode::kResourceExhausted,
                "reserve " + std::to_string(count) + " records (" + std::to_string(bytes) +
                    " bytes) in a memtable with " + std::to_string(budget.used_bytes()) + " of " +
                    std::to_string(budget.limit_bytes()) +
                    " bytes taken: flush it, or raise its budget");
}

/// The first record of a batch.
RecordSource SourceAt(std::string_view batch, bool is_of_several) noexcept {
  base::BatchCursor cursor(batch);
  cursor.Next();
  return {.kind = cursor.kind(),
          .keyspace = cursor.keyspace(),
          .key = cursor.key(),
          .value = cursor.value(),
          .time_ms = cursor.time_ms(),
          .is_of_several = is_of_several};
}

/// False: it is not done. The runs are in order as they are, only more of them.
bool RunIfMemoryAllows(RunSet::Merge* merge) noexcept {
  try {
    merge->Run();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace

/// What has been sorted so far. All under the mutex, but `covered` and the counters of `set`.
struct Generation::Runs {
  Runs(Sorter sorter, size_t segments)
      : set(sorter), watermarks(segments), next_watermarks(segments) {}

  std::mutex mutex;
  RunSet set;
  std::vector<uint32_t> watermarks;  // a segment each: how many of its order entries are covered
  std::atomic<uint64_t> covered{0};  // their sum
  bool is_merging = false;           // somebody has a merge out, and goes on until none is left
  std::condition_variable merged;    // is_merging has become false
  // Iterators that gather what lies beyond a watermark; grows only under the mutex.
  std::atomic<uint32_t> tail_readers{0};

  // Used by each extension; members, so that a small one allocates less.
  std::vector<uint32_t> next_watermarks;  // of segments with something new
  std::vector<RunSet::Tail> tails;
  std::vector<SortEntry> spare_entries;
};

Generation::Reservation& Generation::Reservation::operator=(Reservation&& other) noexcept {
  BASALT_CHECK(count_ == 0);
  count_ = std::exchange(other.count_, 0);
  is_first_ = other.is_first_;
  only_ = other.only_;
  several_ = std::move(other.several_);
  return *this;
}

Generation::Reservation::~Reservation() { BASALT_CHECK(count_ == 0); }

std::shared_ptr<Generation> Generation::Create(const GenerationOptions& options) {
  return std::make_shared<Generation>(Private{}, options);
}

Generation::Generation(Private, const GenerationOptions& options)
    : pool_(options.pool != nullptr ? options.pool : ChunkPool::Process()),
      budget_(options.budget_bytes),
      records_(pool_.get(), &budget_, base::Arena::ChunkBytesMax(options.budget_bytes)),
      runs_(std::make_unique<Runs>(options.sorter, SegmentsOf(options))) {
  const size_t shards = ShardsOf(options);
  BASALT_CHECK(std::has_single_bit(shards) && shards <= kShardsMax);
  shard_shift_ = 63 - static_cast<uint32_t>(std::countr_zero(shards));
  const size_t chunk_bytes_max = base::Arena::ChunkBytesMax(options.budget_bytes);
  for (size_t i = 0; i < SegmentsOf(options); ++i) {
    const bool is_shared = i >= SegmentsOf(options) / 2;
    segments_.push_back(std::make_unique<Segment>(pool_.get(), &budget_, chunk_bytes_max, &records_,
                                                  shards, is_shared));
  }
  for (const auto& segment : segments_) places_.push_back(segment->place());
  for (size_t i = 0; i < shards; ++i) {
    shards_.push_back(std::make_unique<Shard>(pool_, &budget_, &retired_, places_, &records_));
  }
}

Generation::~Generation() = default;

// Whoever can see what a thread has written sees this, too.
void Generation::CountThreads(uint32_t threads) const noexcept {
  uint32_t counted = threads_.load(std::memory_order_relaxed);
  while (counted < threads &&
         !threads_.compare_exchange_weak(counted, threads, std::memory_order_relaxed)) {
  }
}

bool Generation::IsFirst() noexcept {
  return !first_taken_.load(std::memory_order_relaxed) &&
         !first_taken_.exchange(true, std::memory_order_relaxed) && empty();
}

Result<Generation::Reservation> Generation::Reserve(const RecordSource& source) {
  Reservation reservation;
  reservation.is_first_ = IsFirst();
  const bool within_limit = !reservation.is_first_;
  const uint64_t hash = MixKeyspace(base::HashShort(source.key), source.keyspace);
  const size_t shard = ShardNumber(hash);
  Segment::Placed placed;
  {
    const base::EpochGuard inside;
    Segment& segment = SegmentOf(inside.thread_number());
    const std::lock_guard lock(segment);
    if (PrepareRoom(&segment, shard, within_limit)) placed = segment.Place(source, within_limit);
    if (placed.position != 0) {
      --segment.room_in(shard);
      segment.ShowOrder();
    }
  }
  if (placed.position == 0) {
    Drop(&reservation);
    return DoesNotFit(budget_, source.ByteSize(), 1);
  }
  shards_[shard]->Prefetch(hash);
  Segment::Fill(placed.record, source);
  reservation.only_ = {
      .hash = hash, .record = placed.record, .position = placed.position, .index = 0};
  reservation.count_ = 1;
  CollectRetired();
  return reservation;
}

bool Generation::Place(std::string_view batch, bool is_of_several, bool within_limit,
                       std::span<Shard::Taken> placed, std::span<uint32_t> ends) const {
  const base::EpochGuard inside;
  Segment& segment = SegmentOf(inside.thread_number());
  base::BatchCursor cursor(batch);
  for (uint32_t index = 0; index < placed.size(); ++index) {
    BASALT_CHECK(cursor.Next());
    const uint64_t hash = MixKeyspace(base::HashShort(cursor.key()), cursor.keyspace());
    Shard::Taken& taken = placed[index];
    taken = {.hash = hash, .record = nullptr, .position = 0, .index = index};
    if (cursor.kind() == RecordKind::kDeleteRange) continue;
    ++ends[ShardNumber(hash)];
    ShardOf(hash).Prefetch(hash);
    const RecordSource source{.kind = cursor.kind(),
                              .keyspace = cursor.keyspace(),
                              .key = cursor.key(),
                              .value = cursor.value(),
                              .time_ms = cursor.time_ms(),
                              .is_of_several = is_of_several};
    Segment::Placed place;
    {
      const std::lock_guard lock(segment);
      place = segment.Place(source, within_limit);
      segment.ShowOrder();
    }
    if (place.position == 0) {
      for (Shard::Taken& missing : placed.subspan(index)) missing.record = nullptr;
      return false;
    }
    Segment::Fill(place.record, source);
    taken.record = place.record;
    taken.position = place.position;
  }
  BASALT_CHECK(!cursor.Next());
  return true;
}

Result<Generation::Reservation> Generation::Reserve(std::string_view batch, size_t count,
                                                    bool is_of_several) {
  if (count == 1) {
    const RecordSource only = SourceAt(batch, is_of_several);
    if (only.kind != RecordKind::kDeleteRange) return Reserve(only);
  }
  Reservation reservation;
  reservation.is_first_ = IsFirst();
  const bool within_limit = !reservation.is_first_;
  // A batch that cannot fit should not take half of its space before that shows.
  const uint64_t needed_bytes = batch.size() + count * (sizeof(OrderEntry) + sizeof(uint64_t));
  const bool has_room = budget_.used_bytes() + needed_bytes <= budget_.limit_bytes();
  if (within_limit && needed_bytes > base::Arena::ChunkBytesMax(budget_.limit_bytes()) &&
      !has_room) {
    return DoesNotFit(budget_, batch.size(), count);
  }
  reservation.several_.reset(new (std::nothrow) Shard::Taken[count]);
  const std::unique_ptr<Shard::Taken[]> memory(new (std::nothrow) Shard::Taken[count]);
  const std::span<Shard::Taken> placed(memory.get(), memory == nullptr ? 0 : count);
  std::array<uint32_t, kShardsMax> ends;  // how many a shard has, then where they end
  std::fill_n(ends.begin(), shards_.size(), 0);
  const bool has_memory = reservation.several_ != nullptr && memory != nullptr;
  if (!has_memory ||
      !Place(batch, is_of_several, within_limit, placed, {ends.data(), shards_.size()})) {
    for (const Shard::Taken& taken : placed.first(has_memory ? count : 0)) {
      if (taken.record != nullptr) Forget(taken.record);
    }
    Drop(&reservation);
    return DoesNotFit(budget_, batch.size(), count);
  }

  // By shard, so that its room is taken and its lines are fetched once for many records.
  const auto ends_end = ends.begin() + static_cast<ptrdiff_t>(shards_.size());
  std::inclusive_scan(ends.begin(), ends_end, ends.begin());
  reservation.count_ = ends[shards_.size() - 1];
  const std::span<Shard::Taken> taken = reservation.records();
  for (size_t i = count; i-- > 0;) {
    if (placed[i].record != nullptr) taken[--ends[ShardNumber(placed[i].hash)]] = placed[i];
  }
  size_t reserved = 0;
  const bool fits = ForEachShard(taken, [&](size_t shard, std::span<Shard::Taken> its) {
    if (!shards_[shard]->Reserve(its.size(), within_limit)) return false;
    reserved += its.size();
    return true;
  });
  if (!fits) {
    for (const Shard::Taken& record : taken.subspan(reserved)) Forget(record.record);
    reservation.count_ = reserved;
    Drop(&reservation);
    return DoesNotFit(budget_, batch.size(), count);
  }
  CollectRetired();
  return reservation;
}

template <class Visit>
bool Generation::ForEachShard(std::span<Shard::Taken> records, const Visit& visit) const {
  while (!records.empty()) {
    const size_t number = ShardNumber(records.front().hash);
    size_t count = 1;
    while (count < records.size() && ShardNumber(records[count].hash) == number) ++count;
    if (!visit(number, records.first(count))) return false;
    records = records.subspan(count);
  }
  return true;
}

void Generation::Insert(Reservation reservation, base::SequenceNumber first_sequence) noexcept {
  const base::EpochGuard inside;
  Segment& segment = SegmentOf(inside.thread_number());
  ForEachShard(reservation.records(), [&](size_t shard, std::span<Shard::Taken> records) {
    const std::lock_guard lock(segment);
    const size_t new_keys = shards_[shard]->Finish(records, first_sequence, &segment);
    if (new_keys != records.size()) ReturnRoom(&segment, shard, records.size() - new_keys);
    return true;
  });
  reservation.count_ = 0;
}

void Generation::Abandon(Reservation reservation) noexcept { Drop(&reservation); }

void Generation::Drop(Reservation* reservation) noexcept {
  ForEachShard(reservation->records(), [this](size_t shard, std::span<Shard::Taken> records) {
    for (const Shard::Taken& taken : records) Forget(taken.record);
    shards_[shard]->GiveBack(records.size());
    return true;
  });
  reservation->count_ = 0;
  if (reservation->is_first_) first_taken_.store(false, std::memory_order_relaxed);
}

// Frees words that doublings left behind, once they are worth a look at all readers.
void Generation::CollectRetired() noexcept {
  constexpr uint64_t kRetiredBytesMin = 64 << 10;
  if (retired_.bytes() > std::max(budget_.limit_bytes() / 64, kRetiredBytesMin)) {
    retired_.Collect();
  }
}

bool Generation::Get(uint32_t keyspace, std::string_view key, uint64_t hash,
                     base::SequenceNumber at, FoundRecord* found) const {
  const Record* record;
  {
    const base::EpochGuard inside;
    record = Find(keyspace, key, hash, at, nullptr);
  }
  if (record == nullptr) return false;
  found->tag = record->tag.load(std::memory_order_relaxed);
  found->time_ms = record->time_ms();
  found->value = base::TagKind(found->tag) != RecordKind::kDelete ? ValueOf(*record) : Value();
  return true;
}

Value Generation::ValueOf(const Record& record) const {
  const std::string_view value = record.value();
  if (value.size() < kPinnedValueBytesMin) return Value::Copy(value);
  auto* const pin = new TablePin;
  pin->data = value.data();
  pin->release = &TablePin::Release;
  pin->table = shared_from_this();
  return Value::Pinned(pin, value.size());
}

std::unique_ptr<base::RecordIterator> Generation::NewIterator(uint32_t keyspace,
                                                              base::SequenceNumber visible) const {
  struct TailReader {
    ~TailReader() {
      if (readers != nullptr) readers->fetch_sub(1, std::memory_order_release);
    }
    std::atomic<uint32_t>* readers = nullptr;
  };

  std::shared_ptr<const RunList> runs;
  SortedRun own;
  std::vector<uint32_t> watermarks;  // only when the runs do not cover all
  TailReader reader;
  {
    std::unique_lock lock(runs_->mutex);
    const bool all_covered = ExtendRuns();
    MergeRuns(&lock, /*all=*/false);
    runs = runs_->set.Of(keyspace);
    own = runs_->set.FreshOf(keyspace);
    if (!all_covered) {
      watermarks = runs_->watermarks;
      reader.readers = &runs_->tail_readers;
      reader.readers->fetch_add(1, std::memory_order_relaxed);
    }
  }

  std::vector<SortEntry> beyond;
  for (size_t i = 0; i < watermarks.size(); ++i) {
    segments_[i]->VisitOrder(
        watermarks[i], segments_[i]->order_count(),
        [&](uint32_t, const OrderEntry& entry, const Record* record, base::Tag tag) {
          const bool seen =
              tag != 0 && tag != Record::kAbandonedTag && base::TagSequence(tag) <= visible;
          if (seen && entry.keyspace == keyspace) beyond.push_back({record, entry.prefix});
          return true;
        });
  }
  if (!beyond.empty()) own = SortedRun::Merge(own, SortedRun::Sort(std::move(beyond)));
  return std::make_unique<GenerationIterator>(shared_from_this(), std::move(runs), std::move(own),
                                              visible);
}

Generation::Tail Generation::OpenTail() const {
  const std::lock_guard lock(runs_->mutex);
  ExtendRuns();
  Tail tail(shared_from_this(), runs_->watermarks);
  runs_->tail_readers.fetch_add(1, std::memory_order_relaxed);
  return tail;
}

Generation::Tail::~Tail() {
  if (table_ != nullptr) table_->runs_->tail_readers.fetch_sub(1, std::memory_order_release);
}

void Generation::SortTail() const {
  std::unique_lock lock(runs_->mutex);
  ExtendRuns();
  MergeRuns(&lock, /*all=*/false);
}

void Generation::SortAll() const {
  std::unique_lock lock(runs_->mutex);
  ExtendRuns();
  runs_->merged.wait(lock, [this] { return !runs_->is_merging; });
  MergeRuns(&lock, /*all=*/true);
  for (size_t i = 0; i < segments_.size(); ++i) FreeCovered(i);
}

// Under the mutex: sorts what is finished beyond the watermarks, up to each segment's first
// unfinished record, into runs. False: there was one.
bool Generation::ExtendRuns() const {
  constexpr size_t kSpareEntriesMax = 1024;
  Runs& runs = *runs_;
  std::array<uint8_t, kSegmentsMax> new_in;  // the segments that have some
  size_t segments = 0;
  size_t tail = 0;
  for (size_t i = 0; i < segments_used(); ++i) {
    const uint32_t count = segments_[i]->order_count();
    if (count == runs.watermarks[i]) continue;
    runs.next_watermarks[i] = count;
    tail += count - runs.watermarks[i];
    new_in[segments++] = static_cast<uint8_t>(i);
  }
  if (tail == 0) return true;
  if (tail == 1 && ExtendRunsByOne(new_in[0])) return true;
  const std::span<const uint8_t> extended(new_in.data(), segments);

  runs.tails.clear();
  std::unordered_map<uint32_t, size_t> tail_numbers;  // of all keyspaces but the first
  RunSet::Tail* latest = nullptr;                     // most records follow one of their keyspace
  const auto tail_of = [&](uint32_t keyspace) {
    if (runs.tails.empty()) {
      runs.tails.push_back({keyspace, std::move(runs.spare_entries)});
      runs.tails.front().entries.reserve(tail);
    } else if (keyspace != runs.tails.front().keyspace) {
      const auto [found, is_new] = tail_numbers.try_emplace(keyspace, runs.tails.size());
      if (is_new) runs.tails.push_back({keyspace, {}});
      return &runs.tails[found->second];
    }
    return &runs.tails.front();
  };
  bool all_covered = true;
  uint64_t covered = 0;
  for (const uint8_t i : extended) {
    const uint32_t begin = runs.watermarks[i];
    uint32_t& end = runs.next_watermarks[i];
    segments_[i]->VisitOrder(
        begin, end,
        [&](uint32_t index, const OrderEntry& entry, const Record* record, base::Tag tag) {
          if (tag == 0) {  // it could not be added later: the run ends before it
            all_covered = false;
            end = index;
            return false;
          }
          if (tag != Record::kAbandonedTag) {
            if (latest == nullptr || latest->keyspace != entry.keyspace) {
              latest = tail_of(entry.keyspace);
            }
            latest->entries.push_back({record, entry.prefix});
          }
          return true;
        });
    covered += end - begin;
  }
  if (covered == 0) return all_covered;

  runs.set.Append(runs.tails);
  if (!runs.tails.empty() && runs.tails.front().entries.capacity() <= kSpareEntriesMax) {
    runs.spare_entries = std::move(runs.tails.front().entries);
    runs.spare_entries.clear();
  }
  runs.tails.clear();
  for (const uint8_t i : extended) {
    if (runs.watermarks[i] == runs.next_watermarks[i]) continue;
    runs.watermarks[i] = runs.next_watermarks[i];
    FreeCovered(i);
  }
  runs.covered.store(runs.covered.load(std::memory_order_relaxed) + covered,
                     std::memory_order_release);
  return all_covered;
}

// The same for the next record of a segment, as there is a scan after every insert. False: it has
// to be done the other way.
bool Generation::ExtendRunsByOne(size_t segment) const noexcept {
  uint32_t& watermark = runs_->watermarks[segment];
  bool is_appended = false;
  segments_[segment]->VisitOrder(
      watermark, watermark + 1,
      [&](uint32_t, const OrderEntry& entry, const Record* record, base::Tag tag) {
        is_appended = tag != 0 && tag != Record::kAbandonedTag &&
                      runs_->set.AppendOne(entry.keyspace, *record);
        return false;
      });
  if (!is_appended) return false;
  ++watermark;
  FreeCovered(segment);
  runs_->covered.store(runs_->covered.load(std::memory_order_relaxed) + 1,
                       std::memory_order_release);
  return true;
}

// Under the mutex: gives back order entries that runs cover, unless somebody may be reading them;
// then the next time.
void Generation::FreeCovered(size_t segment) const noexcept {
  if (runs_->tail_readers.load(std::memory_order_acquire) != 0) return;
  segments_[segment]->FreeOrderBefore(runs_->watermarks[segment]);
}

// Under the mutex, which is let go while runs are merged. Returns at once while another thread
// merges: that one goes on with what there is to merge by then.
void Generation::MergeRuns(std::unique_lock<std::mutex>* lock, bool all) const {
  Runs& runs = *runs_;
  if (runs.is_merging) return;
  struct Turn {
    explicit Turn(Runs* its_runs) : runs(its_runs) { runs->is_merging = true; }
    ~Turn() {
      runs->is_merging = false;
      runs->merged.notify_all();
    }
    Runs* runs;
  };

  const auto carry_out = [&](RunSet::Merge merge) {
    lock->unlock();
    const bool has_run = RunIfMemoryAllows(&merge);
    lock->lock();
    runs.set.PutBack(&merge);
    lock->unlock();
    merge = {};  // frees what has been merged
    lock->lock();
    return has_run;
  };
  std::optional<RunSet::Merge> merge = runs.set.TakeMerge();
  if (!merge && !all) return;
  const Turn turn(&runs);
  for (; merge; merge = runs.set.TakeMerge()) carry_out(*std::move(merge));
  if (!all) return;
  for (const uint32_t keyspace : runs.set.Keyspaces()) {
    while ((merge = runs.set.TakeMergeOfAll(keyspace)) && carry_out(*std::move(merge))) {
    }
  }
  while ((merge = runs.set.TakeMerge())) carry_out(*std::move(merge));
}

uint64_t Generation::unsorted_count() const noexcept {
  const uint64_t covered = runs_->covered.load(std::memory_order_acquire);
  uint64_t count = 0;
  for (const auto& segment : segments_) count += segment->order_count();
  return count - covered;
}

std::vector<uint32_t> Generation::SegmentCounts() const {
  std::vector<uint32_t> counts;
  counts.reserve(segments_.size());
  for (const auto& segment : segments_) counts.push_back(segment->order_count());
  return counts;
}

uint64_t Generation::sorted_count() const noexcept { return runs_->set.entry_count(); }

uint64_t Generation::run_count() const noexcept { return runs_->set.run_count(); }

uint64_t Generation::memory_bytes() const noexcept {
  return budget_.used_bytes() + retired_.bytes() + runs_->set.memory_bytes();
}

RangeDelete* Generation::PrepareRangeDelete(uint32_t keyspace, std::string_view begin,
                                            std::string_view end, bool is_of_several,
                                            bool within_limit) noexcept {
  try {
    auto range = std::make_unique<RangeDelete>();
    range->keyspace = keyspace;
    range->is_of_several = is_of_several;
    range->begin = begin;
    range->end = end;
    return budget_.Charge(range->ByteSize(), within_limit) ? range.release() : nullptr;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void Generation::Finish(RangeDelete* range, base::SequenceNumber sequence) noexcept {
  if (sequence == 0) {
    budget_.Refund(range->ByteSize());
    delete range;
    return;
  }
  range->sequence.store(sequence, std::memory_order_relaxed);
  range_deletes_.Add(range);
}

void Generation::AddKeyspacesTo(std::set<uint32_t>* keyspaces) const {
  const std::lock_guard lock(runs_->mutex);
  ExtendRuns();  // whoever asks will want them in order
  for (const uint32_t keyspace : runs_->set.Keyspaces()) keyspaces->insert(keyspace);
  for (size_t i = 0; i < segments_.size(); ++i) {
    segments_[i]->VisitOrder(runs_->watermarks[i], segments_[i]->order_count(),
                             [&](uint32_t, const OrderEntry& entry, const Record*, base::Tag) {
                               keyspaces->insert(entry.keyspace);
                               return true;
                             });
  }
}

uint64_t Generation::logical_bytes() const noexcept {
  uint64_t bytes = 0;
  for (const auto& segment : segments_) bytes += segment->logical_bytes();
  return bytes;
}

uint64_t Generation::record_count() const noexcept {
  uint64_t count = 0;
  for (const auto& segment : segments_) count += segment->finished_count();
  return count;
}

double Generation::MeanIndexProbes() const noexcept {
  HashIndex::ProbeCounts total;
  for (const auto& shard : shards_) {
    const HashIndex::ProbeCounts counts = shard->CountProbes();
    total.buckets += counts.buckets;
    total.words += counts.words;
  }
  return total.words == 0 ? 0
                          : static_cast<double>(total.buckets) / static_cast<double>(total.words);
}

}  // namespace basalt::memtable
