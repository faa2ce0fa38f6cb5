#include "tests/metamorphic/runner.h"

#include <array>
#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "db/environment.h"
#include "io/manual_executor.h"
#include "io/sim_clock.h"
#include "io/sim_file_system.h"
#include "tests/metamorphic/iterator_pair.h"
#include "tests/metamorphic/model.h"

namespace basalt::metamorphic {
namespace {

constexpr std::string_view kPath = "/db";
constexpr uint64_t kJobOrderSeed = 1;
constexpr size_t kJobsMax = 10'000;  ///< More than this without an end is a failure.
constexpr size_t kHeldValues = 4;
constexpr size_t kAppendedBytesMax = 30'000;
/// After a cut that no call has noticed, this many operations go on before the power is really cut.
constexpr size_t kOperationsAfterCutMax = 16;

/// What is wrong, or nothing. In this file nothing wrong is `{}`.
using Problem = std::optional<std::string>;

/// What the function of an Update throws.
struct ThrownByUpdate {};

struct SnapshotPair {
  Snapshot snapshot;
  std::shared_ptr<const Contents> view;
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
    auto found = ReadAll();
    if (!found) return "reading all after a power cut: " + found.error().ToString();
    if (Problem problem = model_.Recover(*found)) return "after a power cut " + *problem;
    return CompareAll({}, model_.Freeze());
  }

  Problem Reopen() {
    const Status closed = db_->Close();
    if (!closed.ok()) return Tolerate(closed, "Close");
    model_.SetDurable();
    ever_durable_ = true;
    if (Problem problem = ExpectAllClosed()) return problem;
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
    return CompareAll({}, model_.Freeze());
  }

  Problem Finish() {
    if (coming_cut_) {
      if (Problem problem = Crash(coming_cut_->seed, coming_cut_->mode)) return problem;
    }
    if (Problem problem = CompareAll({}, model_.Freeze())) return problem;
    if (Problem problem = CheckHeldValues()) return problem;
    DropReaders();
    const Status closed = db_->Close();
    if (!closed.ok()) return "Close at the end: " + closed.ToString();
    db_.reset();
    if (Problem problem = RunAllJobs()) return problem;
    if (Problem problem = CheckEveryByte()) return problem;
    return CheckHeldValues();
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
      case OperationKind::kBatch:
        return Write(operation);
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
        return MakeDurable(db_->CompactRange(operation.lower, operation.upper), "CompactRange");
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

  Problem Write(const Operation& operation) {
    const WriteOptions options{operation.durability};
    std::vector<Change> changes;
    WriteBatch batch;
    for (const Record& record : operation.records) {
      Change& change = changes.emplace_back(Change{record.key, nullptr});
      if (record.is_delete) {
        batch.Delete(record.key);
      } else {
        change.value = std::make_shared<const std::string>(record.value.Bytes());
        batch.Put(record.key, *change.value);
      }
    }
    Status status;
    if (operation.kind == OperationKind::kPut) {
      status = db_->Put(changes[0].key, *changes[0].value, options);
    } else if (operation.kind == OperationKind::kDelete) {
      status = db_->Delete(changes[0].key, options);
    } else {
      status = db_->Write(batch, options);
    }
    return Written(changes, status, operation.durability.value_or(list_.settings.durability));
  }

  Problem Written(const std::vector<Change>& changes, const Status& status, Durability level) {
    // A write that was answered by an error, because the power is gone, may have reached the disk.
    model_.Write(changes);
    if (!status.ok()) return Tolerate(status, "a write");
    if (level == Durability::kPower) {
      model_.SetDurable();
      ever_durable_ = true;
    }
    return {};
  }

  Problem Update(const Operation& operation) {
    const Record& record = operation.records[0];
    const auto at = model_.contents().find(record.key);
    const std::string* const present = at == model_.contents().end() ? nullptr : at->second.get();
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
      status = db_->Update(record.key, function);
    } catch (const ThrownByUpdate&) {
      thrown = true;
    }
    if (problem) return problem;
    if (thrown && operation.action == UpdateAction::kThrow) return {};
    if (operation.action == UpdateAction::kThrow || operation.action == UpdateAction::kRefuse) {
      if (status.code() == StatusCode::kAborted && status.message() == "refused by the test")
        return {};
      if (status.ok()) return "Update answered ok though its function gave no value";
      return Tolerate(status, "Update");
    }
    return Written({{record.key, next}}, status, list_.settings.durability);
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
  std::shared_ptr<const Contents> ViewFor(const Operation& operation) const {
    const SnapshotPair* pair = SnapshotFor(operation);
    return pair == nullptr ? model_.Freeze() : pair->view;
  }
  ScanOptions ScanFor(const Operation& operation) const {
    ScanOptions options;
    const SnapshotPair* pair = SnapshotFor(operation);
    options.snapshot = pair == nullptr ? nullptr : &pair->snapshot;
    options.lower = operation.lower;
    options.upper = operation.upper;
    options.prefix = operation.prefix;
    options.keys_only = operation.keys_only;
    return options;
  }

  Problem TakeSnapshot(const Operation& operation) {
    if (!operation.snapshot) return {};
    auto snapshot = db_->GetSnapshot();
    if (!snapshot) return Tolerate(snapshot.error(), "GetSnapshot");
    snapshots_[*operation.snapshot].emplace(SnapshotPair{std::move(*snapshot), model_.Freeze()});
    return {};
  }

  Problem NewIterator(const Operation& operation) {
    if (!operation.iterator) return {};
    const ScanOptions options = ScanFor(operation);
    iterators_[*operation.iterator].emplace(db_->NewIterator(options), ViewFor(operation), options);
    return {};
  }

  Problem Get(const Operation& operation) {
    if (operation.keys.empty()) return {};
    const SnapshotPair* pair = SnapshotFor(operation);
    ReadOptions options;
    options.snapshot = pair == nullptr ? nullptr : &pair->snapshot;
    auto value = db_->Get(operation.keys[0], options);
    const Contents& view = pair == nullptr ? model_.contents() : *pair->view;
    if (Problem problem = CompareValue(operation.keys[0], value, view)) return problem;
    if (!value || !*value) return {};
    HeldValue& held = held_values_[next_held_value_++ % kHeldValues];
    if (Problem problem = CheckHeldValue(held)) return problem;
    held = {std::move(**value), view.find(operation.keys[0])->second};
    return {};
  }

  Problem MultiGet(const Operation& operation) {
    const SnapshotPair* pair = SnapshotFor(operation);
    ReadOptions options;
    options.snapshot = pair == nullptr ? nullptr : &pair->snapshot;
    const std::vector<std::string_view> keys(operation.keys.begin(), operation.keys.end());
    std::vector<Result<MaybeValue>> results(keys.size());
    const Status status = db_->MultiGet(keys, results, options);
    if (!status.ok()) return Tolerate(status, "MultiGet");
    const Contents& view = pair == nullptr ? model_.contents() : *pair->view;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (Problem problem = CompareValue(keys[i], results[i], view)) return problem;
    }
    return {};
  }

  Problem CompareValue(std::string_view key, const Result<MaybeValue>& found,
                       const Contents& view) {
    if (!found) return Tolerate(found.error(), "reading " + Quoted(key));
    const auto expected = view.find(key);
    if (expected == view.end()) {
      if (!*found) return {};
      return Quoted(key) + " should be absent, but has a value of " +
             std::to_string((*found)->size()) + " bytes";
    }
    if (!*found) return Quoted(key) + " should have a value, but is absent";
    if ((*found)->view() == *expected->second) return {};
    return Quoted(key) + " has another value than was written";
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

  Problem CompareAll(const ScanOptions& options, const std::shared_ptr<const Contents>& view) {
    return Judge(IteratorPair(db_->NewIterator(options), view, options).CompareAll());
  }

  Result<Contents> ReadAll() const {
    Contents found;
    const auto iterator = db_->NewIterator();
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      found.emplace(iterator->key(), std::make_shared<const std::string>(iterator->value()));
    }
    if (!iterator->status().ok()) return iterator->status();
    return found;
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
      if (status.code() != StatusCode::kFailedPrecondition) {
        return "an iterator after Close answered " + status.ToString();
      }
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
  io::SimClock clock_;
  io::ManualExecutor executor_{kJobOrderSeed};
  Model model_;
  Problem background_error_;
  std::optional<ComingCut> coming_cut_;
  bool power_lost_ = false;  ///< An operation has noticed it.
  bool ever_durable_ = false;
  std::unique_ptr<DB> db_;
  std::array<std::optional<SnapshotPair>, kSlots> snapshots_;
  std::array<std::optional<IteratorPair>, kSlots> iterators_;
  std::array<HeldValue, kHeldValues> held_values_;
  size_t next_held_value_ = 0;
};

}  // namespace

std::optional<Failure> Run(const OperationList& list) { return Runner(list).Run(); }

}  // namespace basalt::metamorphic
