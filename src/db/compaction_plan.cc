#include "db/compaction_plan.h"

#include <algorithm>
#include <limits>
#include <ranges>
#include <utility>

#include "db/key_range.h"
#include "db/key_ruler.h"
#include "db/tree_key.h"

// The policy
//
// The top is tiered, the rest leveled. Level 0 gathers flushed tables until there are
// `level0_tables` of them; then all of them are merged at once into the base level, so that a key
// is written once per `level0_tables` flushes there. (All of them: to leave an older one behind
// would put newer versions below it.) Only the oldest, when it overlaps nothing at all, goes down
// alone and as it is, so that keys which arrive in order are written once.
//
// Sizes are derived from the bottom, as RocksDB's dynamic level sizes are: the last level holds
// most of the data, and each level above aims at a tenth of the one below it. A level that would
// aim at less than `base_bytes` is not used. The first that is used is the base level; it aims at
// [base_bytes, 10 base_bytes). So the tree's depth follows from its data, and data of up to ten
// times `base_bytes` lies in one level. A level in use goes out of use only below half of
// `base_bytes`: a tree whose size swings around the limit does not rebuild its base each time. What
// lies above the base level then moves down.
//
// A level's score is its size over its aim, and beyond the aim 1 and the rounds that it is too
// large by. A round is what a due level 0 brings: `base_bytes`. So each level is held within the
// same few rounds of its aim while more is written than compaction can keep up with, and what it
// has yet to rewrite does not grow with the data. The highest score of all trees that is at least 1
// is served first. Level 0 scores by its number of tables, and once that is due by its bytes
// against `base_bytes` if they make more: after a burst it must not wait for levels that are a
// little over their aim. A due level 0 that waits for tables of the base level keeps others from
// taking more of them. From level n >= 1 one table goes to n + 1: that with the least overlap there
// for its own size (RocksDB's kMinOverlappingRatio), with neighbours that come for free.
//
// When no level is too large, tables are due for what rewriting them gives back:
//
//   tombstones  more than half deletes: pushed down, towards what the deletes hide. More than half
//               under range deletes that are newer than all of it, or of keyspaces that were
//               dropped: rewritten where it is, which costs what survives. In the last level:
//               rewritten there, at once if an eighth goes, else after a day, or when the tree
//               drags too many range deletes along.
//   expired     half of its bytes or more: pushed down, or rewritten in the last level.
//   snapshots   an eighth of its bytes or more was kept for snapshots that are gone: rewritten
//               where it is.
//   scans       level 0, as a whole: once iterators have spent as much on merging its tables as it
//               costs to compact it. So both together cost at most twice what the better of them
//               would, whatever comes next, and while many write it is size that makes level 0 due.
//   age         not rewritten for a month: pushed down, so that what was deleted above reaches
//               what it hides some day even if nothing else is written.
//
// Level 0 is pushed for the first three only as a whole, for tables that are mostly dead, and only
// if no more has to be read with it than the usual tenfold of what is dead.
//
// Costs: a key that arrives at random is written once by the flush, up to 1 + base level / level 0
// times into the base level, and about 4 to 10 times per level below it. A sequential one: once,
// plus once where tables are rewritten to drop something.
//
// Why it ends: every job moves data down, or rewrites tables in their own level for something that
// is gone afterwards. In the last level nothing else limits rewriting. A table there is due only if
// `oldest_needed` has reached its largest sequence, because then none of its deletes can survive.
// Only range deletes at or below `oldest_needed` count, which `ranges_applied` of the output then
// covers. One thing may survive: the values below merges that cannot be carried out. So a table
// with merges is not rewritten for its deletes within a day of its writing, nor one for what had
// expired when it was written. CompactRange rewrites all that may drop something.

namespace basalt::db {
namespace {

constexpr size_t kLastLevel = Tree::kLevels - 1;
constexpr uint64_t kFanout = 10;
constexpr uint64_t kDayMs = uint64_t{24} * 60 * 60 * 1000;
constexpr uint64_t kAgeMs = 30 * kDayMs;
constexpr uint64_t kDenseDeletesMin = 64;
constexpr uint64_t kWorthwhilePart = 8;    // of a table in the last level: this goes at once
constexpr size_t kRangeDeletesMany = 256;  // of a tree: they stand in the manifest
constexpr uint64_t kMovableParts = 64;     // of `base_bytes`: less is not moved out of level 0
constexpr uint64_t kRoundShareOfJob = 8;   // two tables: levels cannot keep closer to their aims

/// Tables [begin, end) of a level >= 1.
struct Run {
  size_t begin = 0;
  size_t end = 0;

  bool empty() const { return begin == end; }
  bool operator==(const Run&) const = default;
};

Run Overlap(const TableFiles& level, const KeyRange& range) {
  const auto begin = std::ranges::lower_bound(level, range.smallest, {}, [](const auto& table) {
    return std::string_view(table->properties().largest_key);
  });
  const auto end = std::ranges::upper_bound(
      begin, level.end(), range.largest, {},
      [](const auto& table) { return std::string_view(table->properties().smallest_key); });
  return {static_cast<size_t>(begin - level.begin()), static_cast<size_t>(end - level.begin())};
}

uint64_t BytesOf(const TableFile& table) { return table.properties().file_bytes; }

uint64_t BytesOf(const TableFiles& tables) {
  uint64_t bytes = 0;
  for (const auto& table : tables) bytes += BytesOf(*table);
  return bytes;
}

bool AnyBusy(const TableFiles& tables) {
  return std::ranges::any_of(tables, [](const auto& table) { return table->busy.load(); });
}

/// A tree, and what decides about it.
struct Planning {
  const Tree& tree;
  const CompactionLimits& limits;
  RunningJobs running;
  LevelAims aims;
  base::SequenceNumber newest_range_delete = 0;  // of those that nobody needs to look behind

  Planning(const Tree& of, const CompactionLimits& by, RunningJobs beside)
      : tree(of), limits(by), running(beside), aims(AimsOf(of, by)) {
    for (const auto& part : tree.range_deletes.parts()) {
      newest_range_delete = std::max(newest_range_delete, part->NewestUpTo(limits.oldest_needed()));
    }
  }

  /// The range deletes newer than `applied` that cover some of the keys and that nobody needs to
  /// look behind, by their beginning.
  std::vector<const RangeDelete*> RangeDeletesOver(const KeyRange& keys,
                                                   base::SequenceNumber applied) const {
    std::vector<const RangeDelete*> over;
    for (const auto& part : tree.range_deletes.parts()) {
      for (const RangeDelete& range : part->Near(keys.smallest, keys.largest)) {
        if (IsOver(range, keys, applied)) over.push_back(&range);
      }
    }
    if (tree.range_deletes.parts().size() > 1) {
      std::ranges::sort(
          over, {}, [](const RangeDelete* range) -> const std::string& { return range->begin; });
    }
    return over;
  }
  bool AnyRangeDeleteOver(const KeyRange& keys, base::SequenceNumber applied) const {
    return std::ranges::any_of(tree.range_deletes.parts(), [&](const auto& part) {
      return std::ranges::any_of(
          part->Near(keys.smallest, keys.largest),
          [&](const RangeDelete& range) { return IsOver(range, keys, applied); });
    });
  }
  bool IsOver(const RangeDelete& range, const KeyRange& keys, base::SequenceNumber applied) const {
    return range.sequence > applied && range.sequence <= limits.oldest_needed() &&
           range.end > keys.smallest;
  }

  /// Whether a running job may write tables of `level` that overlap.
  bool IsWritten(size_t level, const KeyRange& range) const {
    return std::ranges::any_of(running, [&](const CompactionJob* job) {
      return job->keyspace == tree.keyspace && job->output_level == level &&
             range.Overlaps({job->smallest_key(), job->largest_key()});
    });
  }

  /// Nothing that overlaps lies in a level below.
  bool IsBottom(size_t level, const KeyRange& range) const {
    for (size_t below = level + 1; below < Tree::kLevels; ++below) {
      if (!Overlap(tree.levels[below], range).empty()) return false;
    }
    return true;
  }

  /// Where tables of a level >= 1 go. Levels between it and this one are empty.
  size_t LevelBelow(size_t level) const {
    size_t below = level + 1;
    while (below < aims.base_level && tree.levels[below].empty()) ++below;
    return below;
  }
};

// What a table is worth to be rewritten for

/// Roughly the part of a table that lies under range deletes newer than all of it.
double PartUnderRangeDeletes(const Planning& planning, const TableFile& table) {
  const base::SequenceNumber applied =
      std::max(table.ranges_applied(), table.properties().largest_sequence);
  if (planning.newest_range_delete <= applied) return 0;
  const KeyRange keys(table);
  KeyRuler ruler(keys);
  const std::vector<const RangeDelete*> over = planning.RangeDeletesOver(keys, applied);
  for (const RangeDelete* const range : over) {
    ruler.Learn(range->begin);
    ruler.Learn(range->end);
  }
  double part = 0;
  double reached = 0;
  for (const RangeDelete* const range : over) {
    const double end = ruler.PositionOf(range->end);
    if (end <= reached) continue;
    part += end - std::max(reached, ruler.PositionOf(range->begin));
    reached = end;
  }
  return part;
}

/// Whether some range delete may cover something of a table.
bool HasUnappliedRangeDelete(const Planning& planning, const TableFile& table) {
  const base::SequenceNumber applied =
      std::max(table.ranges_applied(), table.properties().smallest_sequence);
  if (planning.newest_range_delete <= applied) return false;
  return planning.AnyRangeDeleteOver(KeyRange(table), applied);
}

/// Roughly the part of a table that dropped keyspaces have left in it.
double PartOfDropped(const Planning& planning, const TableFile& table) {
  const std::vector<DroppedKeyspace>& dropped = planning.tree.dropped;
  if (dropped.empty() || planning.limits.keyspaces == nullptr) return 0;
  const auto may_hold = [&](const DroppedKeyspace& each) { return MayHold(table, each); };
  const auto dead = static_cast<double>(std::ranges::count_if(dropped, may_hold));
  const auto there = static_cast<double>(planning.limits.keyspaces->CountBetween(
      KeyspaceOf(table.properties().smallest_key), KeyspaceOf(table.properties().largest_key)));
  return dead == 0 ? 0 : dead / (dead + there);
}

/// Roughly the part that is gone when the table is written anew.
double PartDropped(const Planning& planning, const TableFile& table) {
  return std::max(PartUnderRangeDeletes(planning, table), PartOfDropped(planning, table));
}

bool IsDense(const TableFile& table) {
  const table::TableProperties& properties = table.properties();
  return properties.deletes >= kDenseDeletesMin && properties.deletes > properties.records / 2;
}

bool HasExpired(const TableFile& table, uint64_t now_ms) {
  const uint64_t earliest_ms = table.properties().earliest_expiry_ms;
  return earliest_ms > 0 && earliest_ms <= now_ms;
}

/// Whether half of it has expired since it was written, or more.
bool IsMostlyExpired(const TableFile& table, uint64_t now_ms) {
  const uint64_t half_ms = table.place().half_expired_ms;
  return half_ms > 0 && half_ms <= now_ms;
}

/// Whether most of its records are puts that had expired when it was written: merges may have been
/// there that build on them.
bool WasWrittenExpired(const TableFile& table) {
  const table::TableProperties& properties = table.properties();
  return properties.latest_expiry_ms <= table.created_ms() &&
         properties.expiring > properties.records / 2;
}

uint64_t BytesInVain(const Planning& planning, const TableFile& table) {
  return table.BytesInVain(planning.limits.boundaries);
}

/// Whether so much of it was kept for snapshots that are gone that it is rewritten at once. Once it
/// has been rewritten, this is false.
bool HasMuchInVain(const Planning& planning, const TableFile& table) {
  const uint64_t in_vain = BytesInVain(planning, table);
  return in_vain > 0 && in_vain >= table.raw_bytes() / kWorthwhilePart;
}

/// A time of 0 is not known.
bool IsOlder(const TableFile& table, uint64_t age_ms, uint64_t now_ms) {
  return table.created_ms() > 0 && now_ms >= age_ms && table.created_ms() <= now_ms - age_ms;
}

/// Whether all that is dead in a table where nothing lies below goes when it is written anew: no
/// reader is left that needs some of it.
bool IsSettled(const Planning& planning, const TableFile& table) {
  return table.properties().largest_sequence <= planning.limits.oldest_needed();
}

/// Of a table where nothing lies below. Once it has been rewritten, this is false unless it has
/// merges.
bool DropsTombstones(const Planning& planning, const TableFile& table) {
  return (table.properties().deletes > 0 && IsSettled(planning, table)) ||
         HasUnappliedRangeDelete(planning, table) || PartOfDropped(planning, table) > 0;
}

/// The same, for so many that it is done at once. Once it has been rewritten, this is false.
bool DropsManyTombstones(const Planning& planning, const TableFile& table) {
  const table::TableProperties& properties = table.properties();
  if (properties.deletes > 0 && properties.deletes >= properties.records / kWorthwhilePart &&
      properties.merges == 0 && IsSettled(planning, table)) {
    return true;
  }
  return PartDropped(planning, table) * kWorthwhilePart >= 1;
}

/// Of a table where nothing lies below.
bool DropsMuchExpired(const Planning& planning, const TableFile& table) {
  const uint64_t now_ms = planning.limits.now_ms;
  return IsMostlyExpired(table, now_ms) ||
         (WasWrittenExpired(table) && IsSettled(planning, table) && IsOlder(table, kDayMs, now_ms));
}

/// Whether a table that overlaps nothing in `output` had better be written anew than moved.
bool DropsMuch(const Planning& planning, const TableFile& table, size_t output) {
  if (PartDropped(planning, table) > 0.5 || HasMuchInVain(planning, table)) return true;
  return planning.IsBottom(output, KeyRange(table)) &&
         (DropsManyTombstones(planning, table) || DropsMuchExpired(planning, table));
}

// Making jobs

CompactionJob NewJob(const Planning& planning, size_t output, CompactionReason reason) {
  CompactionJob job;
  job.keyspace = planning.tree.keyspace;
  job.output_level = output;
  job.reason = reason;
  return job;
}

/// Adds what overlaps from level `first` down to the output level, each level also what those above
/// it reach. False: some of it is busy or being written.
bool AddOverlapping(const Planning& planning, size_t first, KeyRange range, CompactionJob* job) {
  for (size_t level = first; level <= job->output_level; ++level) {
    const TableFiles& tables = planning.tree.levels[level];
    const Run overlap = Overlap(tables, range);
    for (size_t i = overlap.begin; i < overlap.end; ++i) {
      if (tables[i]->busy) return false;
      job->inputs[level].push_back(tables[i]);
      range.Include(KeyRange(*tables[i]));
    }
  }
  return !planning.IsWritten(job->output_level, range);
}

/// The oldest table of level 0, if it may go to the base level as it is.
std::optional<CompactionJob> MoveOldest(const Planning& planning) {
  const TableFiles& level0 = planning.tree.levels[0];
  const size_t base = planning.aims.base_level;
  const std::shared_ptr<TableFile>& oldest = level0.back();
  const KeyRange range(*oldest);
  // Small ones are better merged: without overlap nothing would ever make fewer of them.
  if (BytesOf(*oldest) < planning.limits.base_bytes / kMovableParts) return {};
  for (size_t i = 0; i + 1 < level0.size(); ++i) {
    if (range.Overlaps(KeyRange(*level0[i]))) return {};
  }
  CompactionJob job = NewJob(planning, base, CompactionReason::kSize);
  job.inputs[0].push_back(oldest);
  if (!AddOverlapping(planning, 1, range, &job)) return {};
  job.drops = DropsMuch(planning, *oldest, base);
  if (!job.is_move()) return {};
  return job;
}

/// All of level 0. Nothing: some table that it needs is busy.
std::optional<CompactionJob> MergeLevel0(const Planning& planning, CompactionReason reason) {
  const TableFiles& level0 = planning.tree.levels[0];
  if (level0.empty() || AnyBusy(level0)) return {};
  CompactionJob job = NewJob(planning, planning.aims.base_level, reason);
  KeyRange range(*level0.front());
  for (const auto& table : level0) range.Include(KeyRange(*table));
  job.inputs[0] = level0;
  if (!AddOverlapping(planning, 1, range, &job)) return {};
  job.drops = std::ranges::any_of(
      level0, [&](const auto& table) { return DropsMuch(planning, *table, job.output_level); });
  return job;
}

/// Whether nothing is added to the job but the neighbour itself, which is free.
bool CanTakeNeighbour(const Planning& planning, const TableFile& neighbour, size_t output,
                      const Run& overlap, const KeyRange& range, uint64_t job_bytes) {
  if (neighbour.busy || job_bytes + BytesOf(neighbour) > planning.limits.job_bytes_max) {
    return false;
  }
  KeyRange wider = range;
  wider.Include(KeyRange(neighbour));
  return Overlap(planning.tree.levels[output], wider) == overlap &&
         !planning.IsWritten(output, wider);
}

/// One table of a level >= 1 and what it overlaps below, with the neighbours that share the
/// overlap.
std::optional<CompactionJob> PushDown(const Planning& planning, size_t level, size_t index,
                                      CompactionReason reason) {
  const TableFiles& tables = planning.tree.levels[level];
  const TableFile& chosen = *tables[index];
  if (chosen.busy) return {};
  const size_t output = planning.LevelBelow(level);
  CompactionJob job = NewJob(planning, output, reason);
  if (!AddOverlapping(planning, output, KeyRange(chosen), &job)) return {};
  Run run{index, index + 1};
  if (!job.inputs[output].empty()) {
    const Run overlap = Overlap(planning.tree.levels[output], KeyRange(chosen));
    uint64_t bytes = BytesOf(chosen) + BytesOf(job.inputs[output]);
    KeyRange range(chosen);
    range.Include({job.smallest_key(), job.largest_key()});
    const auto take = [&](const TableFile& neighbour) {
      if (!CanTakeNeighbour(planning, neighbour, output, overlap, range, bytes)) return false;
      bytes += BytesOf(neighbour);
      range.Include(KeyRange(neighbour));
      return true;
    };
    while (run.begin > 0 && take(*tables[run.begin - 1])) --run.begin;
    while (run.end < tables.size() && take(*tables[run.end])) ++run.end;
  }
  job.inputs[level].assign(tables.begin() + static_cast<ptrdiff_t>(run.begin),
                           tables.begin() + static_cast<ptrdiff_t>(run.end));
  job.drops = DropsMuch(planning, chosen, output);
  return job;
}

// What size makes due

double ScoreOfLevel0(const Planning& planning) {
  const TableFiles& tables = planning.tree.levels[0];
  const auto due = static_cast<double>(std::max<size_t>(planning.limits.level0_tables, 1));
  const double by_number = static_cast<double>(tables.size()) / due;
  if (by_number < 1) return by_number;
  const auto base_bytes = static_cast<double>(std::max<uint64_t>(planning.limits.base_bytes, 1));
  return std::max(by_number, static_cast<double>(BytesOf(tables)) / base_bytes);
}

/// What a round brings: the unit of what lies beyond the aim of a level.
double RoundBytes(const CompactionLimits& limits) {
  return static_cast<double>(std::max<uint64_t>(
      {limits.base_bytes, limits.job_bytes_max / kRoundShareOfJob, uint64_t{1}}));
}

double ScoreOfBytes(uint64_t bytes, uint64_t aim, const CompactionLimits& limits) {
  if (bytes < aim) return static_cast<double>(bytes) / static_cast<double>(aim);
  if (bytes == 0) return 0;
  return 1 + static_cast<double>(bytes - aim) / RoundBytes(limits);
}

/// Tables that are busy are on their way to somewhere else, or rewritten where they are.
double ScoreOfLevel(const Planning& planning, size_t level) {
  uint64_t bytes = 0;
  for (const auto& table : planning.tree.levels[level]) bytes += table->busy ? 0 : BytesOf(*table);
  return ScoreOfBytes(bytes, planning.aims.bytes[level], planning.limits);
}

std::optional<CompactionJob> PickFromLevel(const Planning& planning, size_t level) {
  const TableFiles& tables = planning.tree.levels[level];
  const size_t output = planning.LevelBelow(level);
  const TableFiles& below = planning.tree.levels[output];
  size_t best = tables.size();
  double best_ratio = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < tables.size(); ++i) {
    if (tables[i]->busy) continue;
    KeyRange range(*tables[i]);
    const Run overlap = Overlap(below, range);
    uint64_t bytes = 0;
    bool busy = false;
    for (size_t j = overlap.begin; j < overlap.end; ++j) {
      busy = busy || below[j]->busy;
      bytes += BytesOf(*below[j]);
      range.Include(KeyRange(*below[j]));
    }
    const double ratio = static_cast<double>(bytes) /
                         static_cast<double>(std::max<uint64_t>(BytesOf(*tables[i]), 1));
    if (busy || ratio >= best_ratio || planning.IsWritten(output, range)) continue;
    best = i;
    best_ratio = ratio;
  }
  if (best == tables.size()) return {};
  return PushDown(planning, level, best, CompactionReason::kSize);
}

/// By tree: whether level 0 is due but waits for others.
using Waiting = std::vector<bool>;

std::optional<CompactionJob> PickBySize(const std::vector<Planning>& trees, Waiting* waiting) {
  struct Candidate {
    double score;
    size_t tree;
    size_t level;
  };
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < trees.size(); ++i) {
    if (const double score = ScoreOfLevel0(trees[i]); score >= 1) {
      candidates.push_back({score, i, 0});
    }
    for (size_t level = 1; level < kLastLevel; ++level) {
      const double score = ScoreOfLevel(trees[i], level);
      if (score >= 1) candidates.push_back({score, i, level});
    }
  }
  std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) {
    if (a.score != b.score) return a.score > b.score;
    return a.tree != b.tree ? a.tree < b.tree : a.level < b.level;
  });
  for (const Candidate& candidate : candidates) {
    const Planning& planning = trees[candidate.tree];
    std::optional<CompactionJob> job;
    if (candidate.level == 0) {
      if (AnyBusy(planning.tree.levels[0])) continue;
      job = MoveOldest(planning);
      if (!job) job = MergeLevel0(planning, CompactionReason::kSize);
      (*waiting)[candidate.tree] = !job.has_value();
    } else if (candidate.level != planning.aims.base_level || !(*waiting)[candidate.tree]) {
      job = PickFromLevel(planning, candidate.level);
    }
    if (job) return job;
  }
  return {};
}

// What makes single tables due

/// Whether a table of a level >= 1 that is not the last is due.
bool IsDueAbove(const Planning& planning, const TableFile& table, CompactionReason reason) {
  switch (reason) {
    case CompactionReason::kTombstones:
      return IsDense(table);
    case CompactionReason::kExpired:
      return IsMostlyExpired(table, planning.limits.now_ms);
    case CompactionReason::kAge:
      return IsOlder(table, kAgeMs, planning.limits.now_ms);
    case CompactionReason::kSnapshots:
    case CompactionReason::kScans:
    case CompactionReason::kSize:
    case CompactionReason::kManual:
      break;
  }
  return false;
}

bool IsDueAtLast(const Planning& planning, const TableFile& table, CompactionReason reason) {
  switch (reason) {
    case CompactionReason::kTombstones:
      if (DropsManyTombstones(planning, table)) return true;
      if (planning.tree.range_deletes.size() >= kRangeDeletesMany &&
          HasUnappliedRangeDelete(planning, table)) {
        return true;
      }
      return IsOlder(table, kDayMs, planning.limits.now_ms) && DropsTombstones(planning, table);
    case CompactionReason::kExpired:
      return DropsMuchExpired(planning, table);
    case CompactionReason::kSnapshots:
      return HasMuchInVain(planning, table);
    case CompactionReason::kAge:
    case CompactionReason::kScans:
    case CompactionReason::kSize:
    case CompactionReason::kManual:
      break;
  }
  return false;
}

/// Whether a table of a level >= 1 is due to be rewritten where it is.
bool IsDueInPlace(const Planning& planning, size_t level, const TableFile& table,
                  CompactionReason reason) {
  if (level == kLastLevel) return IsDueAtLast(planning, table, reason);
  if (reason == CompactionReason::kSnapshots) return HasMuchInVain(planning, table);
  return reason == CompactionReason::kTombstones && PartDropped(planning, table) > 0.5;
}

/// A table that is due, into its own level, with those behind it that are due, too: what is left of
/// them makes fewer tables. One alone is in no running job's way: what lies in the key range of a
/// job, in its output level, is among its inputs.
std::optional<CompactionJob> RewriteInPlace(const Planning& planning, size_t level, size_t index,
                                            CompactionReason reason) {
  const TableFiles& tables = planning.tree.levels[level];
  if (tables[index]->busy) return {};
  CompactionJob job = NewJob(planning, level, reason);
  job.drops = true;
  KeyRange range(*tables[index]);
  uint64_t bytes = 0;
  for (size_t i = index; i < tables.size(); ++i) {
    range.Include(KeyRange(*tables[i]));
    bytes += BytesOf(*tables[i]);
    if (i > index &&
        (tables[i]->busy || bytes > planning.limits.job_bytes_max ||
         !IsDueInPlace(planning, level, *tables[i], reason) || planning.IsWritten(level, range))) {
      break;
    }
    job.inputs[level].push_back(tables[i]);
  }
  return job;
}

/// Of all inputs together.
template <class CountOf>
uint64_t SumOf(const CompactionJob& job, const CountOf& count_of) {
  uint64_t sum = 0;
  for (const TableFiles& level : job.inputs) {
    for (const auto& table : level) sum += count_of(*table);
  }
  return sum;
}

/// Records of a table of level 0 that are mostly deletes, or go with range deletes and dropped
/// keyspaces; else 0.
uint64_t DeadRecords(const Planning& planning, const TableFile& table) {
  const table::TableProperties& properties = table.properties();
  if (PartDropped(planning, table) > 0.5) return properties.records;
  return 2 * properties.deletes > properties.records ? properties.deletes : 0;
}

/// Bytes of a table of level 0 that are dead for this reason, at least; 0 where that is not most.
uint64_t DeadBytes(const Planning& planning, const TableFile& table, CompactionReason reason) {
  const uint64_t half = table.raw_bytes() / 2;
  if (reason == CompactionReason::kExpired) {
    return IsMostlyExpired(table, planning.limits.now_ms) ? half : 0;
  }
  const uint64_t in_vain = BytesInVain(planning, table);
  return in_vain > half ? in_vain : 0;
}

/// Level 0 as a whole, if that pays for what is dead in its tables.
std::optional<CompactionJob> PickDeadLevel0(const Planning& planning, CompactionReason reason) {
  const bool by_records = reason == CompactionReason::kTombstones;
  uint64_t dead = 0;
  for (const auto& table : planning.tree.levels[0]) {
    dead += by_records ? DeadRecords(planning, *table) : DeadBytes(planning, *table, reason);
  }
  if (dead < (by_records ? kDenseDeletesMin : 1)) return {};
  std::optional<CompactionJob> job = MergeLevel0(planning, reason);
  if (!job) return {};
  const uint64_t read = SumOf(*job, [&](const TableFile& table) {
    return by_records ? table.properties().records : table.raw_bytes();
  });
  return read <= (1 + kFanout) * dead ? std::move(job) : std::nullopt;
}

std::optional<CompactionJob> PickDueLevel0(const Planning& planning, CompactionReason reason) {
  const TableFiles& tables = planning.tree.levels[0];
  if (tables.empty()) return {};
  if (reason == CompactionReason::kAge) {
    if (!IsOlder(*tables.back(), kAgeMs, planning.limits.now_ms)) return {};
    return MergeLevel0(planning, reason);
  }
  if (reason == CompactionReason::kScans) {
    const uint64_t cost = tables.back()->scan_cost();
    if (cost < BytesOf(tables)) return {};
    std::optional<CompactionJob> job = MergeLevel0(planning, reason);
    if (job && job->input_bytes() > cost) return {};
    return job;
  }
  return PickDeadLevel0(planning, reason);
}

std::optional<CompactionJob> PickDue(const Planning& planning, CompactionReason reason) {
  if (std::optional<CompactionJob> job = PickDueLevel0(planning, reason)) return job;
  for (size_t level = 1; level < Tree::kLevels; ++level) {
    const TableFiles& tables = planning.tree.levels[level];
    for (size_t i = 0; i < tables.size(); ++i) {
      std::optional<CompactionJob> job;
      if (IsDueInPlace(planning, level, *tables[i], reason)) {
        job = RewriteInPlace(planning, level, i, reason);
      } else if (level < kLastLevel && IsDueAbove(planning, *tables[i], reason)) {
        job = PushDown(planning, level, i, reason);
      }
      if (job) return job;
    }
  }
  return {};
}

// Debt

double DebtOf(const Tree& tree, const CompactionLimits& limits) {
  const LevelAims aims = AimsOf(tree, limits);
  const TableFiles& base = tree.levels[aims.base_level];
  double debt = 0;
  double arriving = 0;  // at the level in question, from those above it
  for (size_t level = 0; level < aims.base_level; ++level) {
    const TableFiles& tables = tree.levels[level];
    if (tables.empty()) continue;
    if (level == 0 && tables.size() < std::max<size_t>(limits.level0_tables, 1)) continue;
    KeyRange range(*tables.front());
    for (const auto& table : tables) range.Include(KeyRange(*table));
    const Run met = Overlap(base, range);
    for (size_t i = met.begin; i < met.end; ++i) debt += static_cast<double>(BytesOf(*base[i]));
    arriving += static_cast<double>(BytesOf(tables));
  }
  debt += arriving;
  for (size_t level = aims.base_level; level < kLastLevel; ++level) {
    const double bytes = static_cast<double>(BytesOf(tree.levels[level])) + arriving;
    arriving = std::max(0.0, bytes - static_cast<double>(aims.bytes[level]));
    if (arriving == 0) continue;
    // What leaves meets its share of the level below.
    const auto below = static_cast<double>(BytesOf(tree.levels[level + 1]));
    debt += arriving + below * (arriving / bytes);
  }
  return debt;
}

// Lag

/// `part_left`: of the job that merges tables of level 0, if one does.
double LagOfLevel0(const Tree& tree, const CompactionLimits& limits, double part_left) {
  double tables = 0;
  double bytes = 0;
  for (const auto& table : tree.levels[0]) {
    const double weight = table->busy ? part_left : 1;
    tables += weight;
    bytes += weight * static_cast<double>(BytesOf(*table));
  }
  const auto round_tables = static_cast<double>(std::max<size_t>(limits.level0_tables, 1));
  return std::max(tables / round_tables, bytes / RoundBytes(limits));
}

}  // namespace

LevelAims AimsOf(const Tree& tree, const CompactionLimits& limits) {
  const uint64_t base_bytes = std::max<uint64_t>(limits.base_bytes, 1);
  // What the last level will have when all is at its place, or soon.
  uint64_t largest = base_bytes;
  for (size_t level = 1; level < Tree::kLevels; ++level) {
    largest = std::max(largest, BytesOf(tree.levels[level]));
  }
  LevelAims aims;
  aims.bytes[kLastLevel] = largest;
  while (aims.base_level > 1) {
    const size_t above = aims.base_level - 1;
    const uint64_t aim = aims.bytes[aims.base_level] / kFanout;
    if (aim < (tree.levels[above].empty() ? base_bytes : (base_bytes + 1) / 2)) break;
    aims.bytes[above] = aim;
    aims.base_level = above;
  }
  return aims;
}

std::optional<CompactionJob> PickCompaction(const Version& version, const CompactionLimits& limits,
                                            RunningJobs running) {
  std::vector<Planning> trees;
  trees.reserve(version.trees().size());
  for (const auto& tree : version.trees()) trees.emplace_back(*tree, limits, running);
  Waiting waiting(trees.size(), false);
  if (std::optional<CompactionJob> job = PickBySize(trees, &waiting)) return job;
  for (const CompactionReason reason :
       {CompactionReason::kTombstones, CompactionReason::kExpired, CompactionReason::kSnapshots,
        CompactionReason::kScans, CompactionReason::kAge}) {
    for (size_t i = 0; i < trees.size(); ++i) {
      if (waiting[i]) continue;
      if (std::optional<CompactionJob> job = PickDue(trees[i], reason)) return job;
    }
  }
  return {};
}

// A moment too many does no harm: nothing is found to be due then.
uint64_t NextDueMs(const Version& version, uint64_t now_ms) {
  uint64_t next_ms = 0;
  const auto consider = [&](uint64_t due_ms) {
    if (due_ms > now_ms && (next_ms == 0 || due_ms < next_ms)) next_ms = due_ms;
  };
  for (const auto& tree : version.trees()) {
    for (size_t level = 0; level < Tree::kLevels; ++level) {
      for (const auto& table : tree->levels[level]) {
        consider(table->place().half_expired_ms);
        if (table->created_ms() == 0) continue;
        if (level < kLastLevel) {
          consider(table->created_ms() + kAgeMs);
        } else if (table->properties().merges == 0) {
          // What merges keep may make a table due day after day, which is not worth waking for.
          consider(table->created_ms() + kDayMs);
        }
      }
    }
  }
  return next_ms;
}

std::optional<CompactionJob> PickRange(const Tree& tree, std::optional<std::string_view> begin,
                                       std::optional<std::string_view> end, bool* is_busy,
                                       const CompactionLimits& limits, RunningJobs running) {
  *is_busy = false;
  const Planning planning(tree, limits, running);
  CompactionJob job = NewJob(planning, kLastLevel, CompactionReason::kManual);
  std::optional<KeyRange> range;  // of the inputs
  const auto widen = [&](const KeyRange& by) { range ? range->Include(by) : void(range = by); };
  const auto wanted = [&](const KeyRange& keys) {
    return ((!begin || keys.largest >= *begin) && (!end || keys.smallest <= *end)) ||
           (range && keys.Overlaps(*range));
  };

  // From the newest on, so that what is older follows what reaches over it.
  for (const auto& table : tree.levels[0]) {
    if (!wanted(KeyRange(*table))) continue;
    job.inputs[0].push_back(table);
    widen(KeyRange(*table));
  }
  for (size_t level = 1; level < Tree::kLevels; ++level) {
    for (const auto& table : tree.levels[level]) {
      if (!wanted(KeyRange(*table))) continue;
      job.inputs[level].push_back(table);
    }
    for (const auto& table : job.inputs[level]) widen(KeyRange(*table));
  }
  if (!range) return {};

  const auto has_dead = [&](const std::shared_ptr<TableFile>& table) {
    return DropsTombstones(planning, *table) || HasExpired(*table, limits.now_ms) ||
           BytesInVain(planning, *table) > 0;
  };
  TableFiles& last = job.inputs[kLastLevel];
  const auto is_empty = [](const TableFiles& tables) { return tables.empty(); };
  if (std::all_of(job.inputs, job.inputs + kLastLevel, is_empty)) {
    last.erase(last.begin(), std::ranges::find_if(last, has_dead));
    while (!last.empty() && !has_dead(last.back())) last.pop_back();
    if (last.empty()) return {};
  }
  job.drops = std::ranges::any_of(
      job.inputs, [&](const TableFiles& tables) { return std::ranges::any_of(tables, has_dead); });
  const KeyRange written(job.smallest_key(), job.largest_key());
  *is_busy = std::ranges::any_of(job.inputs, AnyBusy) || planning.IsWritten(kLastLevel, written);
  if (*is_busy) return {};
  return job;
}

double CompactionLag(const Version& version, const CompactionLimits& limits, RunningJobs running) {
  double lag = 0;
  for (const auto& tree : version.trees()) {
    double part_left = 1;
    for (const CompactionJob* const job : running) {
      const bool merges_level0 = job->keyspace == tree->keyspace && !job->inputs[0].empty();
      if (merges_level0) part_left = job->part_left();
    }
    lag = std::max(lag, LagOfLevel0(*tree, limits, part_left));
    const LevelAims aims = AimsOf(*tree, limits);
    for (size_t level = 1; level < kLastLevel; ++level) {
      const uint64_t bytes = BytesOf(tree->levels[level]);
      lag = std::max(lag, ScoreOfBytes(bytes, aims.bytes[level], limits));
    }
  }
  return lag;
}

uint64_t CompactionDebt(const Version& version, const CompactionLimits& limits) {
  double debt = 0;
  for (const auto& tree : version.trees()) debt += DebtOf(*tree, limits);
  return static_cast<uint64_t>(debt);
}

}  // namespace basalt::db
