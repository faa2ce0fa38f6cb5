#include "shared_map/writer.h"

#include <unistd.h>

#include <algorithm>

#include "base/check.h"
#include "base/fork_count.h"
#include "base/option_value.h"
#include "base/out_of_memory.h"
#include "base/random.h"
#include "base/update_function.h"
#include "shared_map/file_names.h"
#include "shared_map/new_files.h"

namespace basalt::shared_map {
namespace {

Status CheckOptions(const WriteOptions& options) {
  if (options.durability == Durability::kMemory) {
    return Status(StatusCode::kInvalidArgument,
                  "WriteOptions::durability: a write cannot have kMemory; leave it unset");
  }
  if (options.durability) {
    BASALT_RETURN_IF_ERROR(base::CheckDurability("WriteOptions::durability", *options.durability));
  }
  if (options.keyspace != KeyspaceId::kDefault) {
    return Status(StatusCode::kUnsupported,
                  "WriteOptions::keyspace: a shared map has no keyspaces; make a map for each, or "
                  "use a DB");
  }
  if ((options.ttl && options.ttl->count() != 0) || options.expiry) {
    return Status(StatusCode::kUnsupported,
                  "WriteOptions::ttl: a shared map has no expiry; leave it out, or keep what "
                  "expires in a DB or a Cache");
  }
  return Status();
}

}  // namespace

Writer::Writer(Core* core, const SharedMapOptions& options, std::unique_ptr<io::FileLock> lock)
    : core_(core),
      fs_(core->environment().fs),
      options_(options),
      fork_count_(base::ForkCount()),
      lock_(std::move(lock)),
      // A map in memory has no disk.
      reserve_(fs_, core->PathOf(std::string(kReserveName)),
               core->environment().owned_fs == nullptr) {}

Writer::~Writer() = default;

// Opening -----------------------------------------------------------------------------------------

namespace {

/// The control page, made anew when it is damaged or gone: the map's lists know all that it says.
Result<std::shared_ptr<ControlPage>> OpenControl(Core* core, uint64_t map_id) {
  const std::string path = core->PathOf(std::string(kControlName));
  auto control = ControlPage::Open(core->environment().fs, path, /*to_write=*/true);
  if (control && (*control)->map_id() == map_id) return control;
  if (!control && control.error().code() != StatusCode::kCorruption &&
      control.error().code() != StatusCode::kNotFound) {
    return control;
  }
  BASALT_RETURN_IF_ERROR(ControlPage::Write(core->environment().fs, path, map_id));
  BASALT_RETURN_IF_ERROR(core->environment().fs->SyncDirectory(core->directory()));
  return ControlPage::Open(core->environment().fs, path, /*to_write=*/true);
}

}  // namespace

uint64_t Writer::MapIdFor(const Core& core) {
  const Environment& environment = core.environment();
  io::FileSystem* const fs = environment.fs;
  const auto control =
      ControlPage::Open(fs, core.PathOf(std::string(kControlName)), /*to_write=*/false);
  if (control) return (*control)->map_id();
  if (const auto number = NewestVersionNumber(fs, core.directory())) {
    const auto listed = ListFile::Open(fs, core.directory(), *number, std::nullopt);
    if (listed) return listed->list.map_id;
  }
  return environment.new_map_id != 0 ? environment.new_map_id : base::RandomSeed();
}

Status Writer::Create(Core* core, const SharedMapOptions& options, NewPlace* place, uint64_t map_id,
                      std::vector<ShardEntry> shards, uint64_t entries) {
  std::unique_ptr<Writer> writer(new Writer(core, options, nullptr));
  NewFiles files(core);
  for (const ShardEntry& shard : shards) {
    if (shard.base_file != 0) files.Add(FileKind::kBase, shard.base_file);
  }
  VersionFiles list;
  list.map_id = map_id;
  list.is_seeded = true;
  // Numbers go on from what is there, so that readers of a map that is replaced follow.
  BASALT_ASSIGN_OR_RETURN(const auto names, writer->fs_->List(core->directory()));
  for (const std::string& name : names) {
    const std::optional<FileName> parsed = ParseFileName(name);
    if (!parsed) continue;
    uint64_t* const number = parsed->kind == FileKind::kVersion ? &list.number : &list.next_file;
    *number = std::max(*number, parsed->number + (parsed->kind == FileKind::kVersion ? 0 : 1));
  }
  BASALT_ASSIGN_OR_RETURN(auto control, OpenControl(core, list.map_id));
  if (const auto known = Unguarded(control->word())) list.number = std::max(list.number, *known);
  core->SetControl(std::move(control));

  const std::lock_guard guard(writer->mutex_);
  list.shard_bits = static_cast<uint32_t>(std::countr_zero(shards.size()));
  list.shards = std::move(shards);
  writer->entries_ = entries;
  // It replaces what is there as a whole: nothing of that is unlinked before it is published.
  writer->list_.number = list.number;
  writer->list_.next_file = list.next_file;
  BASALT_RETURN_IF_ERROR(writer->AddChangeSet(&list, writer->UsualSegmentBytes(nullptr), &files));
  BASALT_RETURN_IF_ERROR(writer->PublishWithFreshLog(std::move(list), &files));
  BASALT_RETURN_IF_ERROR(writer->TakeControl());
  BASALT_RETURN_IF_ERROR(writer->RemoveOrphans(writer->list_));
  writer->lock_ = place->Keep();
  if (!writer->FillReserve()) writer->reserve_is_owed_ = true;
  core->SetWriter(std::move(writer));
  return Status();
}

Status Writer::Open(Core* core, const SharedMapOptions& options,
                    std::unique_ptr<io::FileLock> lock) {
  std::unique_ptr<Writer> writer(new Writer(core, options, std::move(lock)));
  Status opened = writer->OpenNewest();
  // The new indexes may need more space than a full disk has.
  if (io::IsDiskFull(opened) && writer->reserve_.Release()) {
    writer.reset(new Writer(core, options, std::move(writer->lock_)));
    opened = writer->OpenNewest();
  }
  BASALT_RETURN_IF_ERROR(opened);
  Writer* const ready = writer.get();
  core->SetWriter(std::move(writer));
  const std::lock_guard guard(ready->mutex_);
  if (ready->CompactionIsDue()) ready->ScheduleCompaction();
  return Status();
}

Status Writer::OpenNewest() {
  const std::lock_guard guard(mutex_);
  const uint64_t boot_id = core_->environment().boot_id;

  auto control =
      ControlPage::Open(fs_, core_->PathOf(std::string(kControlName)), /*to_write=*/true);
  std::optional<uint64_t> number = control ? (*control)->Number(boot_id) : std::nullopt;
  const uint64_t known = control ? Unguarded((*control)->word()).value_or(0) : 0;
  bool same_boot = number.has_value();
  if (!same_boot) {
    BASALT_ASSIGN_OR_RETURN(number, NewestVersionNumber(fs_, core_->directory()));
  }
  ListFile listed;
  {
    const auto map_id = control ? std::optional((*control)->map_id()) : std::nullopt;
    auto opened = ListFile::Open(fs_, core_->directory(), *number, map_id);
    if (same_boot && !opened && opened.error().code() == StatusCode::kNotFound) {
      // A list is removed only when a newer one is published. So this CONTROL is of before that: a
      // copy was brought up to date without it.
      BASALT_ASSIGN_OR_RETURN(const uint64_t newest, NewestVersionNumber(fs_, core_->directory()));
      if (newest > *number) opened = ListFile::Open(fs_, core_->directory(), newest, map_id);
      same_boot = false;
    }
    if (!opened && opened.error().code() == StatusCode::kNotFound) {
      return Status(StatusCode::kCorruption,
                    std::string(opened.error().message()) + ": the newest version is missing");
    }
    if (!opened) return opened.error();
    listed = std::move(*opened);
  }
  VersionFiles next = listed.list;
  BASALT_ASSIGN_OR_RETURN(auto usable, OpenControl(core_, next.map_id));
  core_->SetControl(std::move(usable));
  // A version that was not published must be gone before anything is written on this one.
  BASALT_RETURN_IF_ERROR(RemoveOrphans(next));

  NewFiles files(core_);
  for (size_t set = next.change_sets.size(); set-- > 0;) {
    BASALT_ASSIGN_OR_RETURN(const Rebuilt rebuilt, Rebuild(&next, set, same_boot, &files));
    if (set != 0) continue;
    end_ = rebuilt.end;
    entries_ = rebuilt.count.entries();
    changes_ = rebuilt.count.changes();
    keys_ = rebuilt.count.keys();
  }
  // The log goes on where it ended.
  next.change_sets.front().segments.back().end = 0;
  next.change_sets.front().segments.back().last_checksum = 0;
  next.number = std::max(next.number, known);
  next.entries = entries_;
  next.counted = end_.end;
  list_ = std::move(listed.list);
  list_.number = next.number;
  BASALT_RETURN_IF_ERROR(UseLog(next));
  BASALT_RETURN_IF_ERROR(SyncLog());
  BASALT_RETURN_IF_ERROR(Publish(std::move(next), &files));
  BASALT_RETURN_IF_ERROR(TakeControl());
  // Log and index may have space that was made with the reserve, for deletes.
  if (!FillReserve()) reserve_is_owed_ = true;
  return Status();
}

Result<Writer::Rebuilt> Writer::Rebuild(VersionFiles* next, size_t set, bool same_boot,
                                        NewFiles* files) {
  const uint64_t boot_id = core_->environment().boot_id;
  ChangeSetEntry& entry = next->change_sets[set];
  BASALT_ASSIGN_OR_RETURN(const auto segments, core_->opener().OpenSegments(entry));
  Location at_least = 0;
  if (same_boot) {
    const auto index =
        ChangeIndex::Open(fs_, core_->PathOf(NameOf(FileKind::kIndex, entry.index_file)), boot_id);
    const uint64_t visible = index && *index ? (*index)->visible_end().value_or(0) : 0;
    if (visible <= kLocationMax) at_least = static_cast<Location>(visible);
  }
  ChangeCount count(*next, entry);
  BASALT_ASSIGN_OR_RETURN(
      const LogEnd end,
      WalkChanges(segments, entry, at_least,
                  [&](Location location, const Change& change) { count.Add(location, change); }));
  entry.index_file = next->next_file++;
  BASALT_ASSIGN_OR_RETURN(
      const auto index, NewIndex(entry.index_file, ChangeIndex::CapacityFor(count.keys()), files));
  BASALT_RETURN_IF_ERROR(FillIndex(ChangeSet(index, segments), entry, end.end,
                                   base::SeededHash(next->hash_seed()), count));
  return Rebuilt{.end = end, .count = count};
}

Status Writer::TakeControl() {
  ControlPage& control = core_->control();
  const uint64_t boot_id = core_->environment().boot_id;
  const bool was_believed = control.Number(boot_id).has_value();
  control.StoreWriter(boot_id, static_cast<uint64_t>(getpid()));
  if (was_believed) return Status();
  // Whoever attached before that has built an index of its own, which is not written to: one more
  // version makes it turn to the common one.
  NewFiles files(core_);
  return Publish(list_, &files);
}

Status Writer::RemoveOrphans(const VersionFiles& list) {
  const std::vector<std::string> kept = list.FileNames();
  BASALT_ASSIGN_OR_RETURN(const auto names, fs_->List(core_->directory()));
  std::vector<std::string> lists;
  std::vector<std::string> others;
  for (const std::string& name : names) {
    const std::optional<FileName> parsed = ParseFileName(name);
    const bool temporary = name.ends_with(".tmp") && IsMapFileName(name);
    if (!temporary && (!parsed || std::binary_search(kept.begin(), kept.end(), name))) continue;
    const bool is_list = parsed && parsed->kind == FileKind::kVersion;
    (is_list ? lists : others).push_back(name);
  }
  if (lists.empty() && others.empty()) return Status();
  // The names on which the map stands may be those of a process that was killed before it synced
  // them; then a power cut would leave neither them nor what is removed.
  BASALT_RETURN_IF_ERROR(fs_->SyncDirectory(core_->directory()));
  // A list goes before the files in it: after a power cut it might be the highest.
  for (const std::vector<std::string>& orphans : {lists, others}) {
    if (orphans.empty()) continue;
    for (const std::string& name : orphans) {
      BASALT_RETURN_IF_ERROR(fs_->RemoveFile(core_->PathOf(name)));
    }
    BASALT_RETURN_IF_ERROR(fs_->SyncDirectory(core_->directory()));
  }
  return Status();
}

// Versions -------------------------------------------------------------------------------------

Result<std::shared_ptr<ChangeIndex>> Writer::NewIndex(uint64_t file, uint64_t capacity,
                                                      NewFiles* files) {
  BASALT_ASSIGN_OR_RETURN(auto index, ChangeIndex::Create(fs_, files->Add(FileKind::kIndex, file),
                                                          capacity, core_->environment().boot_id));
  core_->opener().Remember(file, index);
  files->Hold(index);
  return index;
}

void Writer::SealLog(VersionFiles* list) const {
  SegmentEntry& last = list->change_sets.front().segments.back();
  last.end = end_.end;
  last.last_checksum = end_.last_checksum;
}

Status Writer::UseLog(const VersionFiles& list) {
  const SegmentEntry& segment = list.change_sets.front().segments.back();
  BASALT_ASSIGN_OR_RETURN(log_, fs_->Open(core_->PathOf(NameOf(FileKind::kLog, segment.file)),
                                          io::OpenMode::kReadWrite));
  return Status();
}

Status Writer::PublishWithFreshLog(VersionFiles next, NewFiles* files) {
  const SegmentEntry& entry = next.change_sets.front().segments.back();
  BASALT_ASSIGN_OR_RETURN(auto log, fs_->Open(core_->PathOf(NameOf(FileKind::kLog, entry.file)),
                                              io::OpenMode::kReadWrite));
  // A copy into mapped memory costs less than a call, but a page fault after every sync.
  if (options_.durability != Durability::kPower) log->WriteThroughMemory(entry.capacity_bytes);
  BASALT_RETURN_IF_ERROR(Publish(std::move(next), files));
  log_ = std::move(log);
  const LogSegment& segment = *version_->newest().segments().back();
  end_ = {.end = segment.begin(), .last_checksum = static_cast<uint32_t>(segment.file_id())};
  synced_ = end_.end;
  return Status();
}

Status Writer::Publish(VersionFiles next, NewFiles* files) {
  next.number = list_.number + 1;
  // Numbers that were given out meanwhile are in use.
  next.next_file = std::max(next.next_file, list_.next_file);
  list_.next_file = next.next_file;
  auto version = base::OrOutOfMemory([&] { return WriteList(next); });
  if (!version) {
    // Nobody knows of it yet, but after a restart of the machine it would be the newest. So it goes
    // before the files that it names, or these stay.
    const Status undone =
        base::OrOutOfMemory([&] { return ListFile::Remove(fs_, core_->directory(), next.number); });
    if (!undone.ok()) {
      failed_ = undone;
      files->Keep();
    }
    return version.error();
  }
  // From here on nothing may fail.
  files->Keep();
  version_ = *version;
  SetCompactionThresholds();
  core_->Publish(std::move(*version));
  const VersionFiles before = std::exchange(list_, std::move(next));
  // A file that stays is removed when the map is opened to write next.
  static_cast<void>(base::OrOutOfMemory([&] {
    RemoveObsolete(before, list_);
    return Status();
  }));
  return Status();
}

Result<std::shared_ptr<const Version>> Writer::WriteList(const VersionFiles& list) {
  BASALT_RETURN_IF_ERROR(ListFile::Write(fs_, core_->directory(), list));
  BASALT_ASSIGN_OR_RETURN(ListFile listed,
                          ListFile::Open(fs_, core_->directory(), list.number, list.map_id));
  return core_->opener().Open(std::move(listed), VersionOpener::Trust::kPublished);
}

void Writer::RemoveObsolete(const VersionFiles& before, const VersionFiles& after) {
  ForgetFreeLists();
  // Through this the stats see whether a reader still holds it.
  auto held =
      fs_->Open(core_->PathOf(NameOf(FileKind::kVersion, before.number)), io::OpenMode::kRead);
  if (held) held_lists_.push_back(std::move(*held));
  constexpr size_t kHeldMax = 64;
  if (held_lists_.size() > kHeldMax) held_lists_.erase(held_lists_.begin());

  const std::vector<std::string> kept = after.FileNames();
  for (const std::string& name : before.FileNames()) {
    if (std::binary_search(kept.begin(), kept.end(), name)) continue;
    static_cast<void>(fs_->RemoveFile(core_->PathOf(name)));
  }
}

// Writes ------------------------------------------------------------------------------------------

Status Writer::RefuseFork() const {
  if (base::ForkCount() == fork_count_) return Status();
  return Status(StatusCode::kFailedPrecondition,
                core_->directory() +
                    ": a forked child cannot write to its parent's map; open the map in the "
                    "process that writes");
}

Status Writer::Refusal() const {
  if (closed_) {
    return Status(StatusCode::kFailedPrecondition,
                  core_->directory() + ": the map is closed; open it again");
  }
  if (!failed_.ok()) {
    return Status(failed_.code(),
                  "an earlier error ended writing; close the map and open it again: " +
                      std::string(failed_.message()));
  }
  return Status();
}

Status Writer::SyncLog() {
  if (Status status = base::OrOutOfMemory([this] { return log_->Sync(); }); !status.ok()) {
    failed_ = status;
    return status;
  }
  synced_ = end_.end;
  return Status();
}

Result<bool> Writer::HasValueBelow(uint64_t hash, std::string_view key) const {
  const VersionFiles& list = version_->list();
  if (list.compacting() && list.shards[version_->ShardOf(hash)].change_sets > 1) {
    RecordRef change;
    const Found found = version_->change_sets()[1].Find(hash, key, &change);
    if (found == Found::kCorrupt) return version_->WhyCorrupt(hash, key, {});
    if (found == Found::kPresent) return change.is_put();
  }
  const BaseFile* const base = version_->BaseOf(hash);
  if (base == nullptr) return false;
  std::string_view value;
  const Found found = base->Find(key, hash, &value);
  if (found == Found::kCorrupt) return base->Damage(base->Slot(hash, key));
  return found == Found::kPresent;
}

Result<Writer::Planned> Writer::Plan(const Operation& operation, uint64_t hash) {
  if (const auto at = in_batch_.find(operation.key); at != in_batch_.end()) return at->second;
  Change change;
  uint64_t position = 0;
  const Found found = version_->newest().FindWord(hash, operation.key, &position, &change);
  if (found == Found::kCorrupt) return version_->WhyCorrupt(hash, operation.key, {});
  if (found == Found::kPresent) {
    return Planned{.replaces = change.location, .had_value = change.is_put()};
  }
  BASALT_ASSIGN_OR_RETURN(const bool had_value, HasValueBelow(hash, operation.key));
  return Planned{.replaces = 0, .had_value = had_value};
}

/// Fills buffer_ with the changes that the operations are, finished but for the chain.
Status Writer::EncodeOperations(std::span<const Operation> operations) {
  const base::SeededHash& hash_of = version_->hash_of();
  buffer_.clear();
  plans_.clear();
  in_batch_.clear();
  for (const Operation& operation : operations) {
    BASALT_ASSIGN_OR_RETURN(const Planned planned, Plan(operation, hash_of(operation.key)));
    const bool puts = operation.kind == RecordKind::kPut;
    if (!puts && !planned.had_value) continue;
    const auto location = static_cast<Location>(end_.end + buffer_.size() / kLogUnit);
    const uint8_t flags = planned.had_value ? kFlagReplacesValue : 0;
    AppendChange(&buffer_, operation.kind, flags, planned.replaces, synced_, operation.key,
                 operation.value);
    plans_.push_back(planned);
    if (operations.size() > 1) {
      in_batch_[operation.key] = Planned{.replaces = location, .had_value = puts};
    }
  }
  return Status();
}

/// Chains the changes of buffer_ and appends them to the log.
Status Writer::AppendToLog(Durability durability) {
  const LogSegment& segment = *version_->newest().segments().back();
  const uint64_t offset = segment.OffsetOf(end_.end);
  uint32_t checksum = end_.last_checksum;
  for (size_t at = 0; at < buffer_.size();) {
    char* const change = buffer_.data() + at;
    RecordHeader header{};
    std::memcpy(&header, change + kChangeHeaderBytes, sizeof header);
    const uint64_t bytes =
        kChangeHeaderBytes + PaddedRecordBytes(header.key_bytes, header.value_bytes);
    if (at + bytes < buffer_.size()) header.flags |= kFlagMoreFollows;
    std::memcpy(change + kChangeHeaderBytes, &header, sizeof header);
    checksum = FinishChange(change, bytes, segment.file_id(), offset + at, checksum);
    at += bytes;
  }
  BASALT_RETURN_IF_ERROR(log_->WriteAt(offset, buffer_));
  const LogEnd before =
      std::exchange(end_, LogEnd{.end = static_cast<Location>(end_.end + buffer_.size() / kLogUnit),
                                 .last_checksum = checksum});
  if (durability != Durability::kPower) return Status();
  const Status synced = SyncLog();
  if (!synced.ok()) end_ = before;
  return synced;
}

Status Writer::WriteLocked(std::span<const Operation> operations, Durability durability) {
  if (Status room = MakeRoom(operations); !room.ok()) {
    if (lacks_room_) CompactForRoom();
    return room;
  }
  BASALT_RETURN_IF_ERROR(EncodeOperations(operations));
  if (buffer_.empty()) return durability == Durability::kPower ? SyncLog() : Status();
  Location location = end_.end;
  BASALT_RETURN_IF_ERROR(AppendToLog(durability));

  const ChangeSet& set = version_->newest();
  Change change;
  for (size_t i = 0; location < end_.end; ++i, location = change.end) {
    BASALT_CHECK(set.At(location, &change));
    const std::string_view key = change.record.key();
    const uint64_t hash = version_->hash_of()(key);
    uint64_t position = 0;
    Change older;
    if (set.FindWord(hash, key, &position, &older) == Found::kAbsent) ++keys_;
    set.index().StoreWord(hash, position, location);
    if (change.is_put() != plans_[i].had_value) entries_ += change.is_put() ? 1 : ~uint64_t{0};
    ++changes_;
  }
  set.index().StoreState(
      {.visible_end = end_.end, .entries = entries_, .changes = changes_, .keys = keys_});
  if (CompactionIsDue()) ScheduleCompaction();
  return Status();
}

Status Writer::Write(std::span<const Operation> operations, const WriteOptions& options) {
  BASALT_RETURN_IF_ERROR(RefuseFork());
  BASALT_RETURN_IF_ERROR(CheckOptions(options));
  std::unique_lock lock(mutex_);
  WaitForCompaction(&lock);
  for (const Operation& operation : operations) turns_.WaitFor(operation.key, &lock);
  BASALT_RETURN_IF_ERROR(Refusal());
  return WriteLocked(operations, options.durability.value_or(options_.durability));
}

Status Writer::ReadNow(std::string_view key, std::optional<std::string>* present) const {
  const uint64_t hash = version_->hash_of()(key);
  std::string_view value;
  ReadLimit all;
  const Found found = version_->Find(hash, key, &all, &value);
  if (found == Found::kCorrupt) return version_->WhyCorrupt(hash, key, {});
  present->reset();
  if (found == Found::kPresent) *present = std::string(value);
  return Status();
}

Status Writer::Update(std::string_view key, const UpdateFunction& fn, const WriteOptions& options) {
  using Clock = UpdateTurns::Clock;
  constexpr int kRoundsWithoutTurn = 3;
  constexpr int kTurnRounds = 4;
  constexpr std::chrono::milliseconds kTurnSlack(100);
  BASALT_RETURN_IF_ERROR(RefuseFork());
  BASALT_RETURN_IF_ERROR(CheckOptions(options));
  std::optional<std::string> present;
  {
    std::unique_lock lock(mutex_);
    turns_.WaitFor(key, &lock);
    BASALT_RETURN_IF_ERROR(Refusal());
    BASALT_RETURN_IF_ERROR(ReadNow(key, &present));
  }
  UpdateTurns::Turn turn;
  Clock::duration longest{};
  for (int round = 1;; ++round) {
    const auto begin = round == 1 ? Clock::time_point() : Clock::now();
    EntryUpdate update(present ? std::optional<std::string_view>(*present) : std::nullopt, 0,
                       std::nullopt);
    BASALT_RETURN_IF_ERROR(fn(update));
    const std::optional<base::UpdatedRecord> made = base::RecordOf(update, options);
    if (!made) return {};
    if (made->value && made->value->size() > kMaxValueBytes) {
      return Status(StatusCode::kInvalidArgument,
                    "Update: its function gave a value of " + std::to_string(made->value->size()) +
                        " bytes; at most " + std::to_string(kMaxValueBytes) + " are possible");
    }
    if (round != 1) longest = std::max(longest, Clock::now() - begin);
    std::unique_lock lock(mutex_);
    WaitForCompaction(&lock);
    turns_.WaitFor(key, &lock);
    BASALT_RETURN_IF_ERROR(Refusal());
    std::optional<std::string> now;
    BASALT_RETURN_IF_ERROR(ReadNow(key, &now));
    if (now != present) {
      present = std::move(now);
      if (round < kRoundsWithoutTurn) continue;
      turn = UpdateTurns::Turn();  // Whoever has waited for the last one does not for the next.
      turn = turns_.Begin(key, kTurnRounds * longest + kTurnSlack);
      continue;
    }
    const Operation operation{.kind = made->value ? RecordKind::kPut : RecordKind::kDelete,
                              .key = key,
                              .value = made->value.value_or(std::string_view())};
    return WriteLocked(std::span(&operation, 1), options.durability.value_or(options_.durability));
  }
}

Status Writer::Sync() {
  BASALT_RETURN_IF_ERROR(RefuseFork());
  const std::lock_guard guard(mutex_);
  BASALT_RETURN_IF_ERROR(Refusal());
  return SyncLog();
}

Status Writer::Close() {
  // A forked child has neither the lock nor the threads that may hold a mutex.
  if (base::ForkCount() != fork_count_) return Status();
  cancel_compactions_.store(true);
  const std::lock_guard compaction_guard(compaction_mutex_);
  std::unique_lock guard(mutex_);
  if (closed_) return close_status_;
  close_status_ = base::OrOutOfMemory([this] { return PublishClosed(); });
  static constexpr uint64_t kReserveOfClosedMax = uint64_t{1} << 20;
  reserve_.Trim([this] { return std::min(ReserveBytes(), kReserveOfClosedMax); });
  closed_ = true;
  log_.reset();
  lock_.reset();
  return close_status_;
}

Status Writer::PublishClosed() {
  BASALT_RETURN_IF_ERROR(failed_);
  BASALT_RETURN_IF_ERROR(SyncLog());
  // From now on any missing or damaged change is noticed, also the last one.
  NewFiles files(core_);
  VersionFiles next = list_;
  SealLog(&next);
  next.entries = entries_;
  next.counted = end_.end;
  const Status status = Publish(std::move(next), &files);
  MarkChanged();
  return status;
}

void Writer::MarkChanged() {
  std::vector<std::string> names{std::string(kControlName)};
  for (const ChangeSetEntry& set : list_.change_sets) {
    names.push_back(NameOf(FileKind::kIndex, set.index_file));
    for (const SegmentEntry& segment : set.segments) {
      names.push_back(NameOf(FileKind::kLog, segment.file));
    }
  }
  // The map itself is as good without it.
  for (const std::string& name : names) static_cast<void>(fs_->MarkChanged(core_->PathOf(name)));
}

void Writer::AddStats(SharedMapStats* stats) {
  const std::lock_guard guard(mutex_);
  stats->optimizations = compactions_;
  if (!compaction_error_.ok()) stats->compact_error = compaction_error_.ToString();
  stats->compact_waits = compaction_waits_;
  ForgetFreeLists();
  stats->versions_held = held_lists_.size();
}

void Writer::ForgetFreeLists() {
  // A list that nobody holds now is never held again: it has no name.
  std::erase_if(held_lists_, [](const std::unique_ptr<io::File>& file) {
    const Result<bool> in_use = file->IsInUse();
    return in_use && !*in_use;
  });
}

}  // namespace basalt::shared_map
