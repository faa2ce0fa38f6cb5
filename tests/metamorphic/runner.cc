#include "tests/metamorphic/runner.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "base/test_update.h"
#include "db/environment.h"
#include "io/descriptor_pool.h"
#include "io/manual_executor.h"
#include "io/sim_clock.h"
#include "io/sim_file_system.h"
#include "tests/metamorphic/iterator_pair.h"
#include "tests/metamorphic/model.h"

namespace basalt::metamorphic {
namespace {

constexpr std::string_view kPath = "/db";
constexpr uint64_t kJobOrderSeed = 1;
constexpr size_t kDescriptors = 2;   ///< Of tables: so that they are closed and opened again.
constexpr size_t kJobsMax = 10'000;  ///< More than this without an end is a failure.
constexpr size_t kHeldValues = 4;
constexpr std::string_view kSecondName = "second";
constexpr size_t kAppendedBytesMax = 30'000;
/// After a cut that no call has noticed, this many operations go on before the power is really cut.
constexpr size_t kOperationsAfterCutMax = 16;

/// What is wrong, or nothing. In this file nothing wrong is `{}`.
using Problem = std::optional<std::string>;

/// What the function of an Update throws.
struct ThrownByUpdate {};

struct SnapshotPair {
  Snapshot snapshot;
  SpaceContents view;
  uint64_t renewals;  ///< Of the second keyspace, until then.
  uint64_t time_ms;   ///< What expires later is seen.
};

/// A Value that outlives what it came from, and what it must go on to show.
struct HeldValue {
  Value value;
  std::shared_ptr<const std::string> expected;
};

/// A power cut that is to come at a certain call of the file system.
struct ComingCut {
  uint64_t seed;
  io::CrashMode mode;
  size_t operations_since = 0;
};

class Runner {
 public:
  explicit Runner(const OperationList& list) : list_(list) {}

  std::optional<Failure> Run() {
    size_t at = 0;
    Problem problem = Open();
    for (; !problem && at < list_.operations.size(); ++at) {
      clock_.Advance(500);
      problem = Step(list_.operations[at]);
      if (problem) break;
    }
    if (!problem) problem = Finish();
    if (!problem) return std::nullopt;
    return Failure{at, *std::move(problem)};
  }

 private:
  // The database's life.

  db::Environment Environment() {
    db::Environment environment;
    environment.fs = &fs_;
    environment.descriptors = &descriptors_;
    environment.clock = &clock_;
    environment.executor = &executor_;
    environment.memtable_bytes = list_.settings.memtable_bytes;
    environment.table_bytes = list_.settings.table_bytes;
    return environment;
  }

  Result<std::unique_ptr<DB>> TryOpen() {
    DBOptions options;
    options.memory_budget = list_.settings.memory_budget;
    options.compression = list_.settings.compression;
    options.durability = list_.settings.durability;
    options.default_ttl = std::chrono::milliseconds(list_.settings.default_ttl_ms);
    options.on_event = [this](const Event& event) {
      if (event.kind == Event::Kind::kBackgroundError && !fs_.FaultHappened() &&
          !background_error_) {
        background_error_ = "background work failed though no call of the file system did: " +
                            event.status.ToString();
      }
    };
    return db::OpenDatabase(kPath, options, Environment());
  }

  Problem Open() {
    auto opened = TryOpen();
    if (!opened) return Tolerate(opened.error(), "Open");
    db_ = std::move(*opened);
    auto second = db_->OpenKeyspace(kSecondName);
    if (!second && second.error().code() == StatusCode::kNotFound) return MakeSecond();
    if (!second) return Tolerate(second.error(), "OpenKeyspace");
    second_ = *second;
    return {};
  }

  Problem MakeSecond() {
    auto made = db_->CreateKeyspace(kSecondName);
    if (!made) return Tolerate(made.error(), "CreateKeyspace");
    second_ = *made;
    return MakeDurable(Status(), "CreateKeyspace");
  }

  Problem RenewSecond() {
    const KeyspaceId old = second_;
    const Status dropped = db_->DropKeyspace(old);
    // What was answered by an error, because the power is gone, may have reached the disk.
    model_.Clear(Space::kSecond);
    ++renewals_;
    if (!dropped.ok()) return Tolerate(dropped, "DropKeyspace");
    if (Problem problem = MakeDurable(dropped, "DropKeyspace")) return problem;
    const Status found = db_->Get("user/0", {.keyspace = old}).status();
    if (found.code() != StatusCode::kNotFound) {
      return "Get in a keyspace that was dropped answered " + found.ToString();
    }
    if (Problem problem = MakeSecond()) return problem;
    if (!power_lost_ && second_ == old) return "a keyspace has the id of one that was dropped";
    return {};
  }

  /// The end of the process, on a machine that has lost power: nothing that it still does has any
  /// effect. Then the power returns.
  Problem Crash(uint64_t seed, io::CrashMode mode) {
    coming_cut_.reset();
    power_lost_ = false;
    fs_.SetFault({.at_call = 1, .error = EIO, .sticky = true});
    const bool handle_first = seed % 2 == 0;
    if (handle_first) db_.reset();
    DropReaders();
    db_.reset();
    if (Problem problem = RunAllJobs()) return problem;
    fs_.Crash(seed, mode);
    fs_.ClearFault();
    background_error_.reset();
    // The database may not have been made yet, when the cut came right after the beginning.
    if (seed % 4 == 0 && ever_durable_) {
      if (Problem problem = CheckEveryByte()) return problem;
    }
    if (Problem problem = Open()) return problem;
    SpaceContents found;
    for (size_t space = 0; space < kSpaces; ++space) {
      auto contents = ReadAll(static_cast<Space>(space));
      if (!contents) return "reading all after a power cut: " + contents.error().ToString();
      found[space] = std::make_shared<const Contents>(std::move(*contents));
    }
    Model::UncertainKeys uncertain;
    if (Problem problem = model_.Recover(found, clock_.WallMillis(), &uncertain)) {
      return "after a power cut " + *problem;
    }
    if (Problem problem = Settle(uncertain)) return problem;
    return CompareEverything();
  }

  /// Overwrites keys of which the model cannot know when they expire.
  Problem Settle(const Model::UncertainKeys& uncertain) {
    const auto value = std::make_shared<const std::string>("settled");
    for (const auto& [space, key] : uncertain) {
      const Status status = db_->Put(key, *value, {.keyspace = KeyspaceOf(space)});
      const std::vector<Change> changes = {
          {.space = space, .key = key, .value = value, .expiry_ms = ExpiryOf(0)}};
      if (Problem problem = Written(changes, status, list_.settings.durability)) return problem;
    }
    return {};
  }

  Problem Reopen() {
    const Status closed = db_->Close();
    if (!closed.ok()) return Tolerate(closed, "Close");
    model_.SetDurable();
    ever_durable_ = true;
    if (Problem problem = ExpectAllClosed()) return problem;
    if (power_lost_) return {};
    db_.reset();
    if (Problem problem = RunAllJobs()) return problem;
    if (!coming_cut_) {
      if (Problem problem = CheckEveryByte()) return problem;
    }
    if (Problem problem = Open()) return problem;
    if (Problem problem = ExpectForeignSnapshotsRefused()) return problem;
    DropReaders();
    return {};
  }

  /// A handle that goes away without Close, while iterators and snapshots still use the database.
  Problem DropHandle() {
    db_.reset();
    const bool in_use = HasReaders();
    for (auto& pair : iterators_) {
      if (!pair) continue;
      if (Problem problem = Judge(pair->CompareAll())) return problem;
      if (power_lost_) return {};
    }
    if (in_use) {
      auto second = TryOpen();
      if (second) return "opened a second time while iterators or snapshots keep it open";
      if (second.error().code() != StatusCode::kBusy) {
        if (Problem problem = Tolerate(second.error(), "Open while in use")) return problem;
      }
    }
    DropReaders();
    if (Problem problem = RunAllJobs()) return problem;
    if (power_lost_) return {};
    if (Problem problem = Open()) return problem;
    if (power_lost_) return {};
    return CompareEverything();
  }

  Problem Finish() {
    if (coming_cut_) {
      if (Problem problem = Crash(coming_cut_->seed, coming_cut_->mode)) return problem;
    }
    if (Problem problem = CompareEverything()) return problem;
    if (Problem problem = CheckHeldValues()) return problem;
    if (Problem problem = CheckSpace()) return problem;
    const Status closed = db_->Close();
    if (!closed.ok()) return "Close at the end: " + closed.ToString();
    db_.reset();
    if (Problem problem = RunAllJobs()) return problem;
    if (Problem problem = CheckEveryByte()) return problem;
    return CheckHeldValues();
  }

  Problem CompactAll() {
    for (const KeyspaceId keyspace : {KeyspaceId::kDefault, second_}) {
      const Status compacted = db_->CompactRange(std::nullopt, std::nullopt, keyspace);
      if (!compacted.ok()) return "CompactRange at the end: " + compacted.ToString();
    }
    return CompareEverything();
  }

  /// Once nobody looks back, and all that expires has expired, compaction leaves one record for
  /// each key that is there; also in tables of the last level, where it has kept more before.
  Problem CheckSpace() {
    if (Problem problem = CompactAll()) return problem;
    DropReaders();
    constexpr uint64_t kLongMs = 10'000;
    clock_.Advance(1'000 * kLongMs);
    if (Problem problem = CompactAll()) return problem;
    uint64_t expected = 0;
    for (size_t space = 0; space < kSpaces; ++space) {
      for (const auto& [key, cell] : model_.contents(static_cast<Space>(space))) {
        // Its merges stay, however many they are.
        if (cell.is_unreadable) return {};
        expected += cell.HasExpired(clock_.WallMillis()) ? 0 : 1;
      }
    }
    uint64_t found = 0;
    for (const LevelStats& level : db_->GetStats().levels) found += level.records;
    if (found == expected) return {};
    return "compacted tables hold " + std::to_string(found) + " records for " +
           std::to_string(expected) + " keys";
  }

  Problem RunAllJobs() {
    for (size_t jobs = 0; executor_.RunOne(); ++jobs) {
      if (jobs == kJobsMax) return "background jobs go on and on without an end";
    }
    return {};
  }

  bool HasReaders() const {
    for (size_t slot = 0; slot < kSlots; ++slot) {
      if (iterators_[slot] || snapshots_[slot]) return true;
    }
    return false;
  }
  void DropReaders() {
    for (auto& iterator : iterators_) iterator.reset();
    for (auto& snapshot : snapshots_) snapshot.reset();
  }

  // One operation.

  Problem Step(const Operation& operation) {
    if (Problem problem = Apply(operation)) return problem;
    if (background_error_) return background_error_;
    if (!coming_cut_ || !fs_.FaultHappened()) {
      return power_lost_ ? Problem("power was lost though nobody cut it") : Problem();
    }
    if (!power_lost_ && ++coming_cut_->operations_since < kOperationsAfterCutMax) return {};
    return Crash(coming_cut_->seed, coming_cut_->mode);
  }

  Problem Apply(const Operation& operation) {
    switch (operation.kind) {
      case OperationKind::kPut:
      case OperationKind::kDelete:
      case OperationKind::kDeleteRange:
      case OperationKind::kMerge:
      case OperationKind::kBatch:
        return Write(operation);
      case OperationKind::kPutIfAbsent:
        return PutIfAbsent(operation);
      case OperationKind::kUpdate:
        return Update(operation);
      case OperationKind::kGet:
        return Get(operation);
      case OperationKind::kMultiGet:
        return MultiGet(operation);
      case OperationKind::kScan:
        return CompareAll(ScanFor(operation), ViewFor(operation));
      case OperationKind::kIterator:
        return NewIterator(operation);
      case OperationKind::kMove:
        if (!operation.iterator || !iterators_[*operation.iterator]) return {};
        return Judge(iterators_[*operation.iterator]->Apply(operation.moves));
      case OperationKind::kEnd:
        if (operation.iterator) iterators_[*operation.iterator].reset();
        return {};
      case OperationKind::kSnapshot:
        return TakeSnapshot(operation);
      case OperationKind::kRelease:
        if (operation.snapshot) snapshots_[*operation.snapshot].reset();
        return {};
      case OperationKind::kFlush:
        return MakeDurable(db_->Flush(), "Flush");
      case OperationKind::kSync:
        return MakeDurable(db_->Sync(), "Sync");
      case OperationKind::kCompact:
        return MakeDurable(
            db_->CompactRange(operation.lower, operation.upper, KeyspaceOf(operation.space)),
            "CompactRange");
      case OperationKind::kJobs:
        for (uint64_t i = 0; i < operation.count && executor_.RunOne(); ++i) continue;
        return {};
      case OperationKind::kReopen:
        return Reopen();
      case OperationKind::kDrop:
        return DropHandle();
      case OperationKind::kCrash:
        return Crash(operation.seed, operation.mode);
      case OperationKind::kCut:
        if (coming_cut_) return {};
        coming_cut_ = ComingCut{operation.seed, operation.mode};
        fs_.SetFault({.at_call = operation.count, .error = EIO, .sticky = true});
        return {};
      case OperationKind::kWait:
        clock_.Advance(1'000 * operation.count);
        executor_.Elapse(std::chrono::milliseconds(operation.count));
        return {};
      case OperationKind::kRenew:
        return RenewSecond();
    }
    return "an operation that is unknown";
  }

  /// An error is what happens to a machine without power, and a failure on any other.
  Problem Tolerate(const Status& status, std::string_view what) {
    if (coming_cut_ && fs_.FaultHappened()) {
      power_lost_ = true;
      return {};
    }
    return std::string(what) + ": " + status.ToString();
  }
  Problem Judge(const Outcome& outcome) {
    if (!outcome.error.ok()) return Tolerate(outcome.error, "an iterator");
    return outcome.problem;
  }

  Problem MakeDurable(const Status& status, std::string_view what) {
    if (!status.ok()) return Tolerate(status, what);
    model_.SetDurable();
    ever_durable_ = true;
    return {};
  }

  // Writes.

  KeyspaceId KeyspaceOf(Space space) const {
    return space == Space::kSecond ? second_ : KeyspaceId::kDefault;
  }
  uint64_t ExpiryOf(uint64_t ttl_ms) {
    if (ttl_ms == 0) ttl_ms = list_.settings.default_ttl_ms;
    return ttl_ms == 0 ? 0 : clock_.WallMillis() + ttl_ms;
  }

  Change ChangeOf(const Record& record) {
    Change change{.kind = record.kind, .space = record.space, .key = record.key, .end = record.end};
    if (record.kind == RecordKind::kPut) {
      change.value = std::make_shared<const std::string>(record.value.Bytes());
      change.expiry_ms = ExpiryOf(record.ttl_ms);
    } else if (record.kind == RecordKind::kMerge) {
      change.value = std::make_shared<const std::string>(record.Operand());
      change.merge_operator = record.merge_operator;
    }
    return change;
  }

  /// Unset: as the database's default says.
  static std::optional<std::chrono::milliseconds> TtlOf(const Record& record) {
    if (record.ttl_ms == 0) return std::nullopt;
    return std::chrono::milliseconds(record.ttl_ms);
  }

  void AddTo(WriteBatch* batch, const Record& record, const Change& change) const {
    const KeyspaceId keyspace = KeyspaceOf(record.space);
    switch (record.kind) {
      case RecordKind::kPut:
        return batch->Put(record.key, *change.value, {.keyspace = keyspace, .ttl = TtlOf(record)});
      case RecordKind::kDeleteRange:
        return batch->DeleteRange(record.key, record.end, keyspace);
      case RecordKind::kMerge:
        return batch->Merge(record.key, record.merge_operator, *change.value,
                            {.keyspace = keyspace});
      default:
        return batch->Delete(record.key, keyspace);
    }
  }

  /// A single record, by the function that is for it.
  Status WriteOne(const Record& record, const Change& change,
                  std::optional<Durability> durability) {
    WriteOptions options{.durability = durability, .keyspace = KeyspaceOf(record.space)};
    switch (record.kind) {
      case RecordKind::kPut:
        options.ttl = TtlOf(record);
        return db_->Put(record.key, *change.value, options);
      case RecordKind::kDeleteRange:
        return db_->DeleteRange(record.key, record.end, options);
      case RecordKind::kMerge:
        return db_->Merge(record.key, record.merge_operator, *change.value, options);
      default:
        return db_->Delete(record.key, options);
    }
  }

  Problem Write(const Operation& operation) {
    std::vector<Change> changes;
    WriteBatch batch;
    for (const Record& record : operation.records) {
      AddTo(&batch, record, changes.emplace_back(ChangeOf(record)));
    }
    const Status status = operation.kind == OperationKind::kBatch
                              ? Status(db_->Write(batch, {.durability = operation.durability}))
                              : WriteOne(operation.records[0], changes[0], operation.durability);
    return Written(changes, status, operation.durability.value_or(list_.settings.durability));
  }

  Problem PutIfAbsent(const Operation& operation) {
    const Record& record = operation.records[0];
    const Change change = ChangeOf(record);
    const Cell* const present =
        FindAt(model_.contents(record.space), record.key, clock_.WallMillis());
    const auto put = db_->PutIfAbsent(record.key, *change.value,
                                      {.durability = operation.durability,
                                       .keyspace = KeyspaceOf(record.space),
                                       .ttl = TtlOf(record)});
    if (present != nullptr && present->is_unreadable)
      return ExpectMisfit(put.status(), "PutIfAbsent");
    if (!put) {
      if (present == nullptr) model_.Write({&change, 1}, clock_.WallMillis());
      return Tolerate(put.error(), "PutIfAbsent");
    }
    if (put->has_value() == (present != nullptr)) {
      return "PutIfAbsent answered that the key was " + std::string(*put ? "absent" : "there");
    }
    if (!*put) return {};
    return Written({change}, Status(), operation.durability.value_or(list_.settings.durability));
  }

  /// Of a key with a merge that does not fit.
  Problem ExpectMisfit(const Status& status, std::string_view what) {
    if (status.code() == StatusCode::kFailedPrecondition) return {};
    if (!status.ok()) return Tolerate(status, what);
    return std::string(what) + " did not tell of a merge that does not fit";
  }

  Problem Written(const std::vector<Change>& changes, const Status& status, Durability level) {
    // A write that was answered by an error, because the power is gone, may have reached the disk.
    model_.Write(changes, clock_.WallMillis());
    for (const Change& change : changes) {
      const Cell* const cell =
          FindAt(model_.contents(change.space), change.key, clock_.WallMillis());
      if (cell != nullptr && cell->is_unreadable) misfits_.insert(change.key);
    }
    if (!status.ok()) return Tolerate(status, "a write");
    if (level == Durability::kPower) {
      model_.SetDurable();
      ever_durable_ = true;
    }
    return {};
  }

  Problem Update(const Operation& operation) {
    const Record& record = operation.records[0];
    const Cell* const cell = FindAt(model_.contents(record.space), record.key, clock_.WallMillis());
    const bool is_misfit = cell != nullptr && cell->is_unreadable;
    const std::string* const present = cell == nullptr ? nullptr : cell->value.get();
    const std::shared_ptr<const std::string> next = UpdatedValue(operation, present);
    Problem problem;
    const auto function =
        [&](std::optional<std::string_view> shown) -> Result<std::optional<std::string>> {
      if (shown.has_value() != (present != nullptr) || (shown && *shown != *present)) {
        problem = "Update showed its function a value that is not the present one";
      }
      if (operation.action == UpdateAction::kThrow) throw ThrownByUpdate();
      if (operation.action == UpdateAction::kRefuse) {
        return Status(StatusCode::kAborted, "refused by the test");
      }
      return next == nullptr ? std::optional<std::string>() : *next;
    };
    bool thrown = false;
    Status status;
    try {
      status =
          db_->Update(record.key, base::ByValue(function), {.keyspace = KeyspaceOf(record.space)});
    } catch (const ThrownByUpdate&) {
      thrown = true;
    }
    if (is_misfit && !thrown) return ExpectMisfit(status, "Update");
    if (problem) return problem;
    if (thrown && operation.action == UpdateAction::kThrow) return {};
    if (operation.action == UpdateAction::kThrow || operation.action == UpdateAction::kRefuse) {
      if (status.code() == StatusCode::kAborted && status.message() == "refused by the test")
        return {};
      if (status.ok()) return "Update answered ok though its function gave no value";
      return Tolerate(status, "Update");
    }
    Change change{.kind = RecordKind::kDelete, .space = record.space, .key = record.key};
    if (next != nullptr) {
      change.kind = RecordKind::kPut;
      change.value = next;
      change.expiry_ms = cell == nullptr ? ExpiryOf(0) : cell->expiry_ms;
    }
    return Written({change}, status, list_.settings.durability);
  }

  static std::shared_ptr<const std::string> UpdatedValue(const Operation& operation,
                                                         const std::string* present) {
    std::string value = operation.records[0].value.Bytes();
    switch (operation.action) {
      case UpdateAction::kSet:
        break;
      case UpdateAction::kAppend:
        if (present != nullptr && present->size() < kAppendedBytesMax) value.insert(0, *present);
        break;
      default:
        return nullptr;
    }
    return std::make_shared<const std::string>(std::move(value));
  }

  // Reads.

  const SnapshotPair* SnapshotFor(const Operation& operation) const {
    if (!operation.snapshot || !snapshots_[*operation.snapshot]) return nullptr;
    return &*snapshots_[*operation.snapshot];
  }
  /// When the operation's reader lives.
  uint64_t TimeFor(const Operation& operation) {
    const SnapshotPair* pair = SnapshotFor(operation);
    return pair == nullptr ? clock_.WallMillis() : pair->time_ms;
  }
  /// What is there at the operation's snapshot, or now; of what has expired then, too.
  std::shared_ptr<const Contents> ContentsFor(const Operation& operation) const {
    const auto index = static_cast<size_t>(operation.space);
    const SnapshotPair* pair = SnapshotFor(operation);
    if (pair == nullptr) return model_.Freeze()[index];
    // The keyspace of then is gone, and the present one had not been made.
    const bool is_gone = operation.space == Space::kSecond && pair->renewals != renewals_;
    return is_gone ? std::make_shared<const Contents>() : pair->view[index];
  }
  std::shared_ptr<const Contents> ViewFor(const Operation& operation) {
    return ReadAt(ContentsFor(operation), TimeFor(operation));
  }
  ReadOptions ScanFor(const Operation& operation) const {
    ReadOptions options;
    const SnapshotPair* pair = SnapshotFor(operation);
    options.snapshot = pair == nullptr ? nullptr : &pair->snapshot;
    options.keyspace = KeyspaceOf(operation.space);
    options.lower = operation.lower;
    options.upper = operation.upper;
    options.prefix = operation.prefix;
    options.keys_only = operation.keys_only;
    return options;
  }
  ReadOptions ReadFor(const Operation& operation) const {
    const SnapshotPair* pair = SnapshotFor(operation);
    return {.snapshot = pair == nullptr ? nullptr : &pair->snapshot,
            .keyspace = KeyspaceOf(operation.space)};
  }

  Problem TakeSnapshot(const Operation& operation) {
    if (!operation.snapshot) return {};
    auto snapshot = db_->GetSnapshot();
    if (!snapshot) return Tolerate(snapshot.error(), "GetSnapshot");
    snapshots_[*operation.snapshot].emplace(
        SnapshotPair{std::move(*snapshot), model_.Freeze(), renewals_, clock_.WallMillis()});
    return {};
  }

  Problem NewIterator(const Operation& operation) {
    if (!operation.iterator) return {};
    const ReadOptions options = ScanFor(operation);
    iterators_[*operation.iterator].emplace(db_->NewIterator(options), ViewFor(operation), options);
    return {};
  }

  Problem Get(const Operation& operation) {
    if (operation.keys.empty()) return {};
    auto value = db_->Get(operation.keys[0], ReadFor(operation));
    const auto contents = ContentsFor(operation);
    const Cell* const expected = FindAt(*contents, operation.keys[0], TimeFor(operation));
    if (Problem problem = CompareValue(operation.keys[0], value, expected)) return problem;
    if (!value || !*value) return {};
    HeldValue& held = held_values_[next_held_value_++ % kHeldValues];
    if (Problem problem = CheckHeldValue(held)) return problem;
    held = {std::move(**value), expected->value};
    return {};
  }

  Problem MultiGet(const Operation& operation) {
    const std::vector<std::string_view> keys(operation.keys.begin(), operation.keys.end());
    std::vector<Result<MaybeValue>> results(keys.size());
    const Status status = db_->MultiGet(keys, results, ReadFor(operation));
    if (!status.ok()) return Tolerate(status, "MultiGet");
    const auto contents = ContentsFor(operation);
    for (size_t i = 0; i < keys.size(); ++i) {
      const Cell* const expected = FindAt(*contents, keys[i], TimeFor(operation));
      if (Problem problem = CompareValue(keys[i], results[i], expected)) return problem;
    }
    return {};
  }

  /// `expected`: null when the key should be absent.
  Problem CompareValue(std::string_view key, const Result<MaybeValue>& found,
                       const Cell* expected) {
    if (expected != nullptr && expected->is_unreadable) {
      return ExpectMisfit(found.status(), "reading " + Quoted(key));
    }
    if (!found) {
      if (found.error().code() != StatusCode::kFailedPrecondition) {
        return Tolerate(found.error(), "reading " + Quoted(key));
      }
      return "reading " + Quoted(key) + " answered " + found.error().ToString();
    }
    if (expected == nullptr) {
      if (!*found) return {};
      return Quoted(key) + " should be absent, but has a value of " +
             std::to_string((*found)->size()) + " bytes";
    }
    if (!*found) return Quoted(key) + " should have a value, but is absent";
    if ((*found)->view() == *expected->value) return {};
    return Quoted(key) +
           " has another value than was written: " + Quoted((*found)->view().substr(0, 24)) +
           " instead of " + Quoted(std::string_view(*expected->value).substr(0, 24));
  }

  static Problem CheckHeldValue(const HeldValue& held) {
    if (held.expected == nullptr || held.value.view() == *held.expected) return {};
    return "a Value changed while it was held";
  }
  Problem CheckHeldValues() const {
    for (const HeldValue& held : held_values_) {
      if (Problem problem = CheckHeldValue(held)) return problem;
    }
    return {};
  }

  // The whole.

  Problem CompareAll(const ReadOptions& options, const std::shared_ptr<const Contents>& view) {
    return Judge(IteratorPair(db_->NewIterator(options), view, options).CompareAll());
  }

  Problem CompareEverything() {
    for (size_t space = 0; space < kSpaces; ++space) {
      Operation whole;
      whole.space = static_cast<Space>(space);
      if (Problem problem = CompareAll(ScanFor(whole), ViewFor(whole))) return problem;
    }
    return {};
  }

  /// An iterator says in words at which key a merge does not fit: keys are tried until it goes on.
  Result<Contents> ReadAll(Space space) const {
    const KeyspaceId keyspace = KeyspaceOf(space);
    Contents found;
    const auto iterator = db_->NewIterator({.keyspace = keyspace});
    std::string last;
    iterator->SeekToFirst();
    while (true) {
      for (; iterator->Valid(); iterator->Next()) {
        last = iterator->key();
        found.emplace(last, Cell{std::make_shared<const std::string>(iterator->value())});
      }
      const Status status = iterator->status();
      if (status.ok()) return found;
      if (status.code() != StatusCode::kFailedPrecondition) return status;
      const auto candidate = misfits_.lower_bound(last);
      auto misfit = candidate;
      while (misfit != misfits_.end() &&
             db_->Get(*misfit, {.keyspace = keyspace}).status().code() !=
                 StatusCode::kFailedPrecondition) {
        ++misfit;
      }
      if (misfit == misfits_.end()) return status;
      last = *misfit;
      found.emplace(last, Cell{.is_unreadable = true});
      iterator->Seek(last + '\0');
      last += '\0';
    }
  }

  Problem CheckEveryByte() {
    auto report = db::CheckDatabase(kPath, Environment(), {});
    if (!report) return "Check: " + report.error().ToString();
    if (report->ok()) return {};
    const FileFinding& finding = report->findings.front();
    return "Check found " + finding.file + " at " + std::to_string(finding.offset) + ": " +
           finding.status.ToString();
  }

  Problem ExpectAllClosed() {
    auto value = db_->Get("user/0");
    if (value || value.error().code() != StatusCode::kFailedPrecondition) {
      return "Get after Close answered " + value.status().ToString();
    }
    for (auto& pair : iterators_) {
      if (!pair) continue;
      const Status status = pair->StatusAfterSeek();
      if (status.code() == StatusCode::kFailedPrecondition) continue;
      if (status.ok()) return "an iterator goes on after Close";
      // One that a power cut kept from being made goes on telling so.
      if (Problem problem = Tolerate(status, "an iterator after Close")) return problem;
    }
    return {};
  }

  Problem ExpectForeignSnapshotsRefused() {
    if (db_ == nullptr) return {};
    for (const auto& pair : snapshots_) {
      if (!pair) continue;
      const auto value = db_->Get("user/0", {.snapshot = &pair->snapshot});
      if (value || value.error().code() != StatusCode::kInvalidArgument) {
        return "a snapshot of the database before it was reopened answered " +
               value.status().ToString();
      }
    }
    return {};
  }

  const OperationList& list_;
  io::SimFileSystem fs_;
  io::DescriptorPool descriptors_{kDescriptors};
  io::SimClock clock_;
  io::ManualExecutor executor_{kJobOrderSeed};
  Model model_;
  Problem background_error_;
  std::optional<ComingCut> coming_cut_;
  bool power_lost_ = false;  ///< An operation has noticed it.
  bool ever_durable_ = false;
  KeyspaceId second_ = KeyspaceId::kDefault;
  uint64_t renewals_ = 0;
  std::set<std::string, std::less<>> misfits_;  ///< Keys that merges did not fit at some time.
  std::unique_ptr<DB> db_;
  std::array<std::optional<SnapshotPair>, kSlots> snapshots_;
  std::array<std::optional<IteratorPair>, kSlots> iterators_;
  std::array<HeldValue, kHeldValues> held_values_;
  size_t next_held_value_ = 0;
};

}  // namespace

std::optional<Failure> Run(const OperationList& list) { return Runner(list).Run(); }

}  // namespace basalt::metamorphic
