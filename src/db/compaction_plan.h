#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/internal_key.h"
#include "db/keyspaces.h"
#include "db/version.h"

// Which tables are merged next: pure functions of a version, without I/O or a clock. The policy is
// told at the head of compaction_plan.cc.

namespace basalt::db {

/// As many tables start a compaction of level 0.
inline constexpr size_t kLevel0Tables = 8;

/// What plans are made by.
struct CompactionLimits {
  size_t level0_tables = kLevel0Tables;
  uint64_t base_bytes = 0;               ///< The least that a level below level 0 aims at.
  uint64_t job_bytes_max = 0;            ///< What a job reads, where there is a choice.
  uint64_t now_ms = 0;                   ///< Wall time.
  const Keyspaces* keyspaces = nullptr;  ///< Those that there are; null: nobody dropped one.
  /// Where somebody reads or may come to read: ascending, at least one.
  std::vector<base::SequenceNumber> boundaries = {0};

  /// Nobody reads below it.
  base::SequenceNumber oldest_needed() const noexcept { return boundaries.front(); }
};

enum class CompactionReason : uint8_t {
  kSize,        ///< A level has more than it aims at.
  kTombstones,  ///< A table is mostly deletes, or lies under range deletes.
  kExpired,     ///< Most of a table has expired.
  kSnapshots,   ///< Much of a table was kept for snapshots that are gone.
  kScans,       ///< To compact level 0 costs no more than scans over its tables have.
  kAge,         ///< Not rewritten for a month.
  kManual,      ///< CompactRange.
};

/// Tables to be merged into one level of one tree.
///
/// It is closed: for every key in an input, all older versions above the output level are in inputs
/// too, and so is every table of the output level that lies in the inputs' key range as a whole, so
/// that an output may reach from any input key to any other.
struct CompactionJob {
  uint32_t keyspace = 0;  ///< That of the tree.
  size_t output_level = 1;
  TableFiles inputs[Tree::kLevels];  ///< By level; level 0 newest first, others in key order.
  /// What it has installed already, in key order; the inputs that this replaces are gone from
  /// above.
  TableFiles outputs{};
  /// Of the inputs in the output level when it began. Those that outputs have replaced are gone.
  uint64_t replaceable_bytes = 0;
  CompactionReason reason = CompactionReason::kSize;
  bool drops = false;  ///< Writing the inputs anew is known to leave out some of them.

  uint64_t input_bytes() const noexcept;
  /// How much of its work is still to be done, as far as outputs that are installed tell: 1 at the
  /// beginning.
  double part_left() const noexcept;
  /// Of all inputs and outputs; valid as long as they are. There must be one.
  std::string_view smallest_key() const noexcept;
  std::string_view largest_key() const noexcept;
  /// Nothing overlaps, and nothing would be dropped: the only input may go to the output level as
  /// it is.
  bool is_move() const noexcept;
  /// Whether it may install its outputs piece by piece: see compaction.cc.
  bool may_install_pieces() const noexcept;
};

/// What levels aim at.
struct LevelAims {
  size_t base_level = Tree::kLevels - 1;  ///< Where level 0 goes; levels between should be empty.
  uint64_t bytes[Tree::kLevels] = {};     ///< 0 above the base level.
};
LevelAims AimsOf(const Tree& tree, const CompactionLimits& limits);

/// Jobs that run; their inputs and outputs are busy. A new one shares no table with them, and none
/// of its outputs can overlap one of theirs.
using RunningJobs = std::span<const CompactionJob* const>;

/// The most urgent job among tables that are not busy; nothing: none is due. O(tables), and tables
/// times range deletes where those have not been applied yet.
///
/// What runs a job promises that its output has no delete, expired put or version under a range
/// delete that `oldest_needed` allows to drop, where nothing lies below and no merge builds on it;
/// that `half_expired_ms` and `retained_bytes` do not count what had expired, or was in vain, when
/// the job began; and that `ranges_applied` of its outputs reaches at least the tree's newest range
/// delete <= `oldest_needed`. Else a table may be chosen again and again.
std::optional<CompactionJob> PickCompaction(const Version& version, const CompactionLimits& limits,
                                            RunningJobs running = {});

/// The next moment (wall ms) after `now_ms` at which time alone may make a table due: ask
/// PickCompaction then. 0: there is none, but for tables of the last level with merges, whose
/// deletes wait for something else to happen. O(tables).
uint64_t NextDueMs(const Version& version, uint64_t now_ms);

/// Merges all that holds keys in [begin, end] (unset: open) into the tree's last level; nothing
/// when there is nothing to merge, or a table of it is busy (`is_busy` then says so). What lies in
/// the last level already is rewritten only when that drops something (`limits`; defaults:
/// nothing), so that a repeated call comes to an end.
std::optional<CompactionJob> PickRange(const Tree& tree, std::optional<std::string_view> begin,
                                       std::optional<std::string_view> end, bool* is_busy,
                                       const CompactionLimits& limits = {},
                                       RunningJobs running = {});

/// How far compaction lags behind what was flushed: the highest score of all levels, in rounds (see
/// compaction_plan.cc). Up to two where compaction keeps up: one round is being merged while the
/// next gathers. Of level 0 what a running job has merged does not count, so that the lag falls
/// steadily, and not at the ends of jobs. O(tables).
double CompactionLag(const Version& version, const CompactionLimits& limits, RunningJobs running);

/// Bytes that compaction would have to rewrite for every level to be at its aim.
uint64_t CompactionDebt(const Version& version, const CompactionLimits& limits);

}  // namespace basalt::db
