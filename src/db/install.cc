#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/out_of_memory.h"
#include "db/edit.h"
#include "db/file_names.h"
#include "db/tree_key.h"

// Installs a new version: the edit is written to the manifest, and then shown to readers. All
// memory for the second step is allocated before the manifest is written, because nothing may fail
// afterwards. Otherwise readers would keep a version whose tables the next manifest does not name.

namespace basalt::db {
namespace {

bool Lies(const TableFile& file, const RangeDelete& range) noexcept {
  const table::TableProperties& properties = file.properties();
  return properties.smallest_key >= range.begin && properties.largest_key < range.end;
}
bool Touches(const TableFile& file, const RangeDelete& range) noexcept {
  const table::TableProperties& properties = file.properties();
  return properties.largest_key >= range.begin && properties.smallest_key < range.end;
}
bool IsNewer(const RangeDelete& range, const TableFile& file) noexcept {
  return range.sequence > file.properties().largest_sequence;
}

std::span<const RangeDelete> Near(const RangeDeletePart& part, const TableFile& file) noexcept {
  return part.Near(file.properties().smallest_key, file.properties().largest_key);
}

/// Takes away the tables that hold nothing but what a range delete covers for every reader.
void DropCovered(Tree* tree, base::SequenceNumber oldest_needed, TableFiles* removed) {
  for (TableFiles& level : tree->levels) {
    std::erase_if(level, [&](const std::shared_ptr<TableFile>& file) {
      const auto covers = [&](const RangeDelete& range) {
        return range.sequence <= oldest_needed && IsNewer(range, *file) && Lies(*file, range);
      };
      const table::TableProperties& properties = file->properties();
      const auto has_cover = [&](const auto& part) {
        return part->MayCoverBoth(properties.smallest_key, properties.largest_key,
                                  properties.largest_sequence) &&
               std::ranges::any_of(Near(*part, *file), covers);
      };
      const bool is_covered =
          !file->busy && std::ranges::any_of(tree->range_deletes.parts(), has_cover);
      if (is_covered) removed->push_back(file);
      return is_covered;
    });
  }
}

/// Whether each range delete of a part has still to be applied to a table that it touches.
std::vector<bool> NeededOf(const RangeDeletePart& part, const Tree& tree) {
  const std::vector<RangeDelete>& all = part.ranges();
  std::vector<bool> is_needed(all.size());
  for (const TableFiles& level : tree.levels) {
    for (const std::shared_ptr<TableFile>& file : level) {
      const base::SequenceNumber applied =
          std::max(file->ranges_applied(), file->properties().smallest_sequence);
      if (applied >= part.newest()) continue;
      for (const RangeDelete& range : Near(part, *file)) {
        if (range.sequence > applied && Touches(*file, range)) {
          is_needed[static_cast<size_t>(&range - all.data())] = true;
        }
      }
    }
  }
  return is_needed;
}

/// Takes away the range deletes of a part that are not needed. Of many it waits until an eighth
/// goes, because what is left is flattened anew.
void DropUnneeded(Tree* tree, size_t part, const std::vector<bool>& is_needed) {
  constexpr size_t kMany = 1000;
  const auto dropped = static_cast<size_t>(std::ranges::count(is_needed, false));
  if (dropped == 0 || (is_needed.size() >= kMany && dropped < is_needed.size() / 8)) return;
  const std::vector<RangeDelete>& all = tree->range_deletes.parts()[part]->ranges();
  std::vector<RangeDelete> needed;
  for (size_t i = 0; i < all.size(); ++i) {
    if (is_needed[i]) needed.push_back(all[i]);
  }
  tree->range_deletes.Replace(part, std::move(needed), tree->keyspace == kSharedTree);
}

/// Takes away the range deletes that have been applied to every table that they touch, and those of
/// keyspaces that are gone. `unchanged`: parts whose range deletes are all needed.
void DropApplied(Tree* tree, const Keyspaces& keyspaces, const RangeDeletes::Parts& unchanged) {
  const bool is_shared = tree->keyspace == kSharedTree;
  // A part that replaces one does not come to stand before it.
  for (size_t i = tree->range_deletes.parts().size(); i-- > 0;) {
    const std::shared_ptr<const RangeDeletePart> part = tree->range_deletes.parts()[i];
    if (std::ranges::find(unchanged, part) != unchanged.end()) continue;
    std::vector<bool> is_needed = NeededOf(*part, *tree);
    for (size_t range = 0; is_shared && range < is_needed.size(); ++range) {
      if (!keyspaces.Contains(KeyspaceOf(part->ranges()[range].begin))) is_needed[range] = false;
    }
    DropUnneeded(tree, i, is_needed);
  }
}

/// The dropped keyspaces that some table may hold.
std::vector<DroppedKeyspace> StillHeld(const Tree& tree) {
  std::vector<DroppedKeyspace> held = tree.dropped;
  const auto is_held = [&](const DroppedKeyspace& dropped) {
    return std::ranges::any_of(tree.levels, [&](const TableFiles& level) {
      return std::ranges::any_of(level, [&](const auto& file) { return MayHold(*file, dropped); });
    });
  };
  std::erase_if(held, [&](const DroppedKeyspace& dropped) { return !is_held(dropped); });
  return held;
}

/// Takes away the tables of which no keyspace is left.
void DropDead(Tree* tree, const Keyspaces& keyspaces, TableFiles* removed) {
  for (TableFiles& level : tree->levels) {
    std::erase_if(level, [&](const std::shared_ptr<TableFile>& file) {
      const table::TableProperties& properties = file->properties();
      const bool is_dead = !keyspaces.HasBetween(KeyspaceOf(properties.smallest_key),
                                                 KeyspaceOf(properties.largest_key));
      if (is_dead) removed->push_back(file);
      return is_dead;
    });
  }
}

/// Whether a version still has all that a job reads.
bool HasInputs(const Version& version, const CompactionJob& job) {
  const Tree* const tree = version.tree(job.keyspace);
  if (tree == nullptr) return false;
  for (size_t level = 0; level < Tree::kLevels; ++level) {
    std::set<const TableFile*> present;
    if (job.inputs[level].empty()) continue;
    for (const auto& file : tree->levels[level]) present.insert(file.get());
    for (const auto& file : job.inputs[level]) {
      if (!present.contains(file.get())) return false;
    }
  }
  return true;
}

}  // namespace

std::shared_ptr<const ReadState> Core::Replace(std::shared_ptr<const ReadState> state) noexcept {
  std::shared_ptr<const ReadState> old = std::exchange(state_, std::move(state));
  current_.store(state_.get(), std::memory_order_seq_cst);
  if (state_->sealed.empty()) flush_pace_.End();
  changed_.notify_all();
  return old;
}

// Readers inside an epoch may still look at it.
void Core::Retire(std::shared_ptr<const ReadState> state) noexcept {
  if (state == nullptr) return;
  Retirement& retirement = state->retirement;
  retirement.held = std::move(state);
  retired_.Retire(std::move(retirement.note), &retirement, sizeof(ReadState), [](void* retired) {
    // It lies in the state, which may go with this reference.
    const auto last = std::exchange(static_cast<Retirement*>(retired)->held, nullptr);
  });
  retired_.Collect();
}

void Core::PublishState(std::shared_ptr<const ReadState> state) {
  std::shared_ptr<const ReadState> old;
  {
    const std::scoped_lock lock(mutex_);
    old = Replace(std::move(state));
  }
  Retire(std::move(old));
}

std::shared_ptr<const Version> Core::Edited(const Version& present, const Keyspaces& keyspaces,
                                            const Edit& edit, base::SequenceNumber flushed_sequence,
                                            TableFiles* removed) const {
  std::map<uint32_t, std::shared_ptr<Tree>> changed;
  const auto tree_of = [&](uint32_t keyspace) {
    std::shared_ptr<Tree>& tree = changed[TreeOf(keyspace)];
    if (tree == nullptr) {
      const Tree* const old = present.tree(keyspace);
      tree = old == nullptr ? std::make_shared<Tree>() : std::make_shared<Tree>(*old);
      tree->keyspace = TreeOf(keyspace);
    }
    return tree.get();
  };
  std::set<uint32_t> shrunk;  // Trees that lose tables.
  for (const std::shared_ptr<TableFile>& file : edit.removed) {
    shrunk.insert(TreeOf(file->properties().keyspace));
    for (TableFiles& level : tree_of(file->properties().keyspace)->levels) {
      std::erase(level, file);
    }
  }
  for (const Edit::Addition& addition : edit.added) {
    TableFiles& level = tree_of(addition.keyspace)->levels[addition.level];
    if (addition.level == 0) {
      level.insert(level.begin(), addition.file);
      continue;
    }
    const auto place = std::ranges::lower_bound(
        level, addition.file->properties().smallest_key, {},
        [](const auto& file) -> const std::string& { return file->properties().smallest_key; });
    level.insert(place, addition.file);
  }
  if (edit.without_covered) tree_of(*edit.without_covered);
  std::map<uint32_t, std::vector<RangeDelete>> ranges;
  for (const ManifestRangeDelete& added : edit.range_deletes) {
    ranges[TreeOf(added.keyspace)].push_back(InTree(added));
  }
  for (auto& [id, added] : ranges) {
    tree_of(id)->range_deletes.Add(std::move(added), id == kSharedTree);
  }
  if (edit.dropped_keyspace) {
    std::vector<DroppedKeyspace>& dropped = tree_of(kSharedTree)->dropped;
    dropped.insert(
        std::ranges::lower_bound(dropped, edit.dropped_keyspace->id, {}, &DroppedKeyspace::id),
        *edit.dropped_keyspace);
  }

  base::SurvivingRecords::Rules rules;
  RetainForReaders(&rules);
  const base::SequenceNumber oldest_boundary = rules.boundaries.front();
  Version::Trees trees;
  for (auto& [id, tree] : changed) {
    const size_t removed_before = removed->size();
    if (id == kSharedTree) DropDead(tree.get(), keyspaces, removed);
    if (!tree->range_deletes.empty()) {
      const base::SequenceNumber oldest_needed = std::min(oldest_boundary, flushed_sequence);
      DropCovered(tree.get(), oldest_needed, removed);
      if (removed->size() > removed_before) shrunk.insert(id);
      // A range delete is needed no more only if tables go, or its keyspace.
      const Tree* const old = present.tree(id);
      RangeDeletes::Parts unchanged;
      if (old != nullptr && edit.keyspaces == nullptr && !shrunk.contains(id)) {
        unchanged = old->range_deletes.parts();
      }
      DropApplied(tree.get(), keyspaces, unchanged);
    }
    tree->dropped = StillHeld(*tree);
    tree->IndexLevels();
    if (!tree->empty()) trees.push_back(tree);
  }
  for (const auto& tree : present.trees()) {
    if (!changed.contains(tree->keyspace)) trees.push_back(tree);
  }
  std::ranges::sort(trees, {}, [](const auto& tree) { return tree->keyspace; });
  return std::make_shared<const Version>(std::move(trees));
}

Status Core::Install(const Edit& edit) {
  const std::scoped_lock install(install_mutex_);
  return InstallLocked(edit);
}

/// What an edit makes of the present version.
struct Core::Installation {
  Manifest manifest;
  std::string manifest_bytes;
  TableFiles removed;
  base::SequenceNumber flushed_sequence = 0;
  double compaction_lag = 0;
  std::shared_ptr<ReadState> state;  ///< Without the memtables, for which it has room.
};

Status Core::InstallLocked(const Edit& edit) {
  const auto for_each_new = [&](const auto& visit) {
    for (const Edit::Addition& addition : edit.added) {
      // A table that was only to be moved is where it was.
      if (std::ranges::find(edit.removed, addition.file) == edit.removed.end())
        visit(addition.file);
    }
  };
  auto next = base::OrOutOfMemory([&]() -> Result<Installation> {
    BASALT_ASSIGN_OR_RETURN(Installation prepared, Prepare(edit));
    BASALT_RETURN_IF_ERROR(WriteEncoded(environment_.fs, path_, prepared.manifest_bytes));
    return prepared;
  });
  if (!next) {  // on a full disk the room of the new tables is needed for the next attempt
    for_each_new([](const std::shared_ptr<TableFile>& file) { file->MarkObsolete(); });
    return next.error();
  }
  Status written = base::OrOutOfMemory([&] { return InstallWritten(environment_.fs, path_); });
  if (!written.ok()) {
    // The manifest on disk may be the new one: what it names has to stay until one is written
    // again.
    for_each_new([&](const std::shared_ptr<TableFile>& file) { orphans_.push_back(file); });
    if (edit.keyspaces != nullptr)
      write_stops_.fetch_or(kManifestIsUnsure, std::memory_order_release);
    return written;
  }
  Publish(edit, std::move(*next));
  return {};
}

Result<Core::Installation> Core::Prepare(const Edit& edit) {
  Installation next;
  next.state = std::make_shared<ReadState>();
  std::shared_ptr<const Version> present;
  {
    const std::shared_ptr<const ReadState> state = State();
    next.state->keyspaces = edit.keyspaces != nullptr ? edit.keyspaces : state->keyspaces;
    // One may be sealed meanwhile, and no more: see CanSeal.
    next.state->sealed.reserve(state->sealed.size() + 1);
    present = state->version;
  }
  if (edit.job != nullptr && !HasInputs(*present, *edit.job)) {
    return Status(StatusCode::kAborted, "a table that was to be merged has been dropped");
  }
  orphans_.reserve(orphans_.size() + edit.added.size());
  next.removed = edit.removed;
  next.flushed_sequence = flushed_sequence_;
  if (edit.flushed != nullptr) {
    next.flushed_sequence = std::max(next.flushed_sequence, edit.flushed->last_sequence.load());
  }
  next.state->version =
      Edited(*present, *next.state->keyspaces, edit, next.flushed_sequence, &next.removed);
  for (const Edit::Addition& addition : edit.added) std::erase(next.removed, addition.file);
  {
    const std::scoped_lock lock(mutex_);
    next.compaction_lag = CompactionLag(*next.state->version, Limits(), running_);
  }
  next.manifest = ManifestOf(*next.state, edit);
  BASALT_ASSIGN_OR_RETURN(next.manifest_bytes, EncodeReadable(next.manifest, path_));
  return next;
}

Manifest Core::ManifestOf(const ReadState& state, const Edit& edit) const {
  Manifest next = manifest_;
  next.keyspaces = state.keyspaces->entries();
  if (edit.next_keyspace_id != 0) next.next_keyspace_id = edit.next_keyspace_id;
  for (const auto& tree : state.version->trees()) {
    for (size_t level = 0; level < Tree::kLevels; ++level) {
      for (const std::shared_ptr<TableFile>& file : tree->levels[level]) {
        next.tables.push_back({.place = file->place(),
                               .level = static_cast<uint32_t>(level),
                               .properties = file->OwnProperties()});
        next.last_sequence = std::max(next.last_sequence, file->properties().largest_sequence);
      }
    }
    if (!tree->range_deletes.empty()) next.tree_range_deletes.push_back(tree->range_deletes);
    next.last_sequence = std::max(next.last_sequence, tree->range_deletes.newest());
    if (!tree->dropped.empty()) next.dropped_keyspaces = tree->dropped;
  }
  if (edit.flushed != nullptr) {
    next.flushed_lsn = std::max(next.flushed_lsn, edit.flushed->last_lsn.load());
    next.last_sequence = std::max(next.last_sequence, edit.flushed->last_sequence.load());
  }
  if (log_ != nullptr) next.durable_lsn = std::max(next.durable_lsn, log_->durable_lsn());
  next.durable_lsn = std::max(next.durable_lsn, next.flushed_lsn);
  next.wall_ms = std::max(next.wall_ms, WallMillis());
  const std::scoped_lock lock(mutex_);
  next.next_table_number = next_table_number_;
  return next;
}

void Core::Publish(const Edit& edit, Installation next) noexcept {
  write_stops_.fetch_and(~kManifestIsUnsure, std::memory_order_release);
  manifest_bytes_.store(next.manifest_bytes.size(), std::memory_order_relaxed);
  next.manifest.tables.clear();
  next.manifest.tree_range_deletes.clear();
  next.manifest.dropped_keyspaces.clear();
  manifest_ = std::move(next.manifest);
  flushed_lsn_.store(manifest_.flushed_lsn, std::memory_order_release);
  pacer_.SetLag(next.compaction_lag);

  // What goes is marked before readers lose sight of it, so that its last reader removes it.
  for (const std::shared_ptr<TableFile>& file : next.removed) file->MarkObsolete();
  for (const std::shared_ptr<TableFile>& file : orphans_) file->MarkObsolete();
  orphans_.clear();
  std::shared_ptr<const ReadState> old;
  {
    const std::scoped_lock lock(mutex_);
    next.state->active = state_->active;
    BASALT_CHECK(state_->sealed.size() <= next.state->sealed.capacity());
    std::ranges::remove_copy(state_->sealed, std::back_inserter(next.state->sealed), edit.flushed);
    old = Replace(std::move(next.state));
  }
  flushed_sequence_.store(next.flushed_sequence, std::memory_order_release);
  Retire(std::move(old));
}

}  // namespace basalt::db
