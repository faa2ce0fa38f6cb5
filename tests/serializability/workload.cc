#include "tests/serializability/workload.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "basalt/transaction.h"
#include "base/check.h"
#include "base/random.h"

namespace basalt::serializability {
namespace {

/// So large a value makes a batch that the store does not keep in its history of commits.
constexpr size_t kLargePad = 70'000;

/// What the threads share.
struct Shared {
  Store* store;
  const WorkloadOptions& options;
  KeyspaceId keyspaces[2];
  std::atomic<uint64_t> last_id{0};
  std::atomic<uint64_t> committed{0};
  std::atomic<uint64_t> acknowledged{0};  ///< The greatest sequence number.
  std::atomic<bool> failed{false};
};

class Worker {
 public:
  Worker(Shared* shared, uint64_t seed) : shared_(shared), store_(shared->store), random_(seed) {}

  void Run() {
    while (!shared_->failed && shared_->committed < shared_->options.transactions) {
      Status stepped = Step();
      if (stepped.ok()) continue;
      error_ = std::move(stepped);
      shared_->failed = true;
    }
  }

  const Status& error() const noexcept { return error_; }
  History& history() noexcept { return history_; }
  uint64_t aborted() const noexcept { return aborted_; }

 private:
  // Keys and values

  KeyNumber RandomKey() { return static_cast<KeyNumber>(random_.Below(2 * keys())); }
  KeyNumber keys() const noexcept { return shared_->options.keys; }
  KeyspaceId KeyspaceOf(KeyNumber key) const noexcept { return shared_->keyspaces[key / keys()]; }
  std::string KeyOf(KeyNumber key) const { return std::to_string(1000 + key % keys()); }
  /// The first key behind those of the same keyspace.
  KeyNumber EndOf(KeyNumber key) const noexcept { return (key / keys() + 1) * keys(); }
  /// The key before which a range ends that begins at `begin`.
  KeyNumber RandomEnd(KeyNumber begin) {
    return std::min(EndOf(begin), begin + static_cast<KeyNumber>(random_.Between(1, 12)));
  }
  /// As it is written in the store: `end` may be that of the keyspace.
  std::string EndKeyOf(KeyNumber begin, KeyNumber end) const {
    return std::to_string(1000 + end - begin / keys() * keys());
  }
  std::string Mark() const { return std::to_string(id()) + "."; }
  std::string RandomValue() {
    return Mark() + (random_.OneIn(1000) ? std::string(kLargePad, 'x') : std::string());
  }
  /// The value as histories have it, without what makes it large.
  static std::string ValueOf(std::string_view stored) {
    std::string value(stored);
    std::erase(value, 'x');
    return value;
  }
  static std::string ValueOf(const MaybeValue& stored) {
    return stored ? ValueOf(stored->view()) : std::string();
  }

  // One transaction at a time

  uint64_t id() const noexcept { return now_.id; }
  void BeginOne() {
    now_ = {};
    now_.id = ++shared_->last_id;
    now_.began_after = shared_->acknowledged;
    own_.clear();
  }
  Status End(const Result<Commit>& committed) {
    if (!committed) {
      if (committed.error().code() != StatusCode::kAborted) return committed.error();
      ++aborted_;
      return {};
    }
    now_.sequence = committed->sequence;
    uint64_t before = shared_->acknowledged;
    while (before < now_.sequence &&
           !shared_->acknowledged.compare_exchange_weak(before, now_.sequence)) {
    }
    history_.push_back(std::move(now_));
    ++shared_->committed;
    return {};
  }
  void NoteWrite(ObservedWrite::Kind kind, KeyNumber key) {
    now_.writes.push_back({kind, key});
    own_.insert(key);
  }
  void NoteRead(KeyNumber key, std::string_view value) {
    if (!own_.contains(key)) now_.Read(key, value);
  }

  Status Step() {
    BeginOne();
    const uint64_t draw = random_.Below(20);
    if (draw < 11) return RunTransaction();
    if (draw < 14) return RunPlainWrite();
    if (draw < 16) return RunBatch();
    return draw < 18 ? RunConditionalBatch() : RunUpdate();
  }

  Status RunTransaction() {
    TransactionOptions options;
    if (random_.OneIn(10)) options.memory_limit = 1000;  // Few reads fit.
    BASALT_ASSIGN_OR_RETURN(Transaction tx, store_->Begin(options));
    const bool is_read_only = random_.OneIn(5);
    for (uint64_t left = random_.Between(1, 6); left > 0; --left) {
      if (random_.OneIn(40)) std::this_thread::yield();
      Status done = is_read_only || random_.OneIn(2) ? ReadSomething(&tx) : WriteSomething(&tx);
      if (done.code() == StatusCode::kResourceExhausted) continue;  // memory_limit
      BASALT_RETURN_IF_ERROR(done);
    }
    return End(tx.Commit());
  }

  Status ReadSomething(Transaction* tx) {
    const KeyNumber key = RandomKey();
    if (random_.OneIn(3)) return ScanSomething(tx, key);
    BASALT_ASSIGN_OR_RETURN(const MaybeValue value,
                            tx->Get(KeyOf(key), {.keyspace = KeyspaceOf(key)}));
    NoteRead(key, ValueOf(value));
    return {};
  }

  /// A walk of some steps from `from` in either direction; all that it passes was read.
  Status ScanSomething(Transaction* tx, KeyNumber from) {
    const bool forward = random_.OneIn(2);
    uint64_t steps = random_.Between(1, 10);
    const KeyNumber base = from / keys() * keys();
    const auto it = tx->NewIterator({.keyspace = KeyspaceOf(from)});
    std::vector<ObservedRead> found;
    forward ? it->Seek(KeyOf(from)) : it->SeekForPrev(KeyOf(from));
    std::optional<KeyNumber> last;
    for (; it->Valid() && steps > 0; --steps) {
      last = base +
             static_cast<KeyNumber>(std::strtoul(std::string(it->key()).c_str(), nullptr, 10)) -
             1000;
      found.push_back({.key = *last, .value = ValueOf(it->value())});
      if (steps > 1) forward ? it->Next() : it->Prev();
    }
    BASALT_RETURN_IF_ERROR(it->status());
    const bool is_at_end = !it->Valid();
    if (!forward) std::ranges::reverse(found);
    KeyNumber begin = forward ? from : (is_at_end ? base : *last);
    KeyNumber end = !forward ? from + 1 : (is_at_end ? EndOf(from) : *last + 1);
    ObservedTransaction scanned;
    scanned.Scan(begin, end, found);
    for (const ObservedRead& read : scanned.reads) NoteRead(read.key, read.value);
    return {};
  }

  Status WriteSomething(Transaction* tx) {
    const KeyNumber key = RandomKey();
    const WriteOptions options{.keyspace = KeyspaceOf(key)};
    switch (random_.Below(6)) {
      case 0: {
        const KeyNumber end = RandomEnd(key);
        BASALT_RETURN_IF_ERROR(tx->DeleteRange(KeyOf(key), EndKeyOf(key, end), options));
        for (KeyNumber each = key; each < end; ++each) {
          NoteWrite(ObservedWrite::Kind::kDelete, each);
        }
        return {};
      }
      case 1:
        BASALT_RETURN_IF_ERROR(tx->Merge(KeyOf(key), MergeOperator::kAppend, Mark(), options));
        NoteWrite(ObservedWrite::Kind::kAppend, key);
        return {};
      case 2: {
        BASALT_ASSIGN_OR_RETURN(const bool put,
                                tx->PutIfAbsent(KeyOf(key), RandomValue(), options));
        if (put) {
          NoteRead(key, "");
          NoteWrite(ObservedWrite::Kind::kPut, key);
        }
        return {};
      }
      case 3: {
        std::string seen;
        BASALT_RETURN_IF_ERROR(tx->Update(
            KeyOf(key),
            [&](EntryUpdate& entry) {
              seen = ValueOf(entry.value());
              entry.Set(std::string(entry.value()) + Mark());
              return Status();
            },
            options));
        NoteRead(key, seen);
        NoteWrite(ObservedWrite::Kind::kAppend, key);
        return {};
      }
      case 4:
        BASALT_RETURN_IF_ERROR(tx->Delete(KeyOf(key), options));
        NoteWrite(ObservedWrite::Kind::kDelete, key);
        return {};
      default:
        BASALT_RETURN_IF_ERROR(tx->Put(KeyOf(key), RandomValue(), options));
        NoteWrite(ObservedWrite::Kind::kPut, key);
        return {};
    }
  }

  Status RunPlainWrite() {
    const KeyNumber key = RandomKey();
    const WriteOptions options{.keyspace = KeyspaceOf(key)};
    switch (random_.Below(5)) {
      case 0: {
        const KeyNumber end = RandomEnd(key);
        now_.DeleteRange(key, end);
        return End(store_->DeleteRange(KeyOf(key), EndKeyOf(key, end), options));
      }
      case 1:
        now_.Append(key);
        return End(store_->Merge(KeyOf(key), MergeOperator::kAppend, Mark(), options));
      case 2:
        now_.Delete(key);
        return End(store_->Delete(KeyOf(key), options));
      default:
        now_.Put(key);
        return End(store_->Put(KeyOf(key), RandomValue(), options));
    }
  }

  void FillBatch(WriteBatch* batch) {
    for (uint64_t left = random_.Between(1, 4); left > 0; --left) {
      const KeyNumber key = RandomKey();
      if (random_.OneIn(4)) {
        const KeyNumber end = RandomEnd(key);
        batch->DeleteRange(KeyOf(key), EndKeyOf(key, end), KeyspaceOf(key));
        now_.DeleteRange(key, end);
      } else if (random_.OneIn(2)) {
        batch->Merge(KeyOf(key), MergeOperator::kAppend, Mark(), {.keyspace = KeyspaceOf(key)});
        now_.Append(key);
      } else {
        batch->Put(KeyOf(key), RandomValue(), {.keyspace = KeyspaceOf(key)});
        now_.Put(key);
      }
    }
  }

  Status RunBatch() {
    WriteBatch batch;
    FillBatch(&batch);
    return End(store_->Write(batch));
  }

  Status RunConditionalBatch() {
    WriteBatch batch;
    for (uint64_t left = random_.Between(1, 2); left > 0; --left) {
      const KeyNumber key = RandomKey();
      BASALT_ASSIGN_OR_RETURN(const std::optional<Entry> entry,
                              store_->GetEntry(KeyOf(key), {.keyspace = KeyspaceOf(key)}));
      if (!entry) {
        batch.RequireAbsent(KeyOf(key), KeyspaceOf(key));
        now_.Read(key, "");
      } else if (random_.OneIn(2)) {
        batch.RequirePresent(KeyOf(key), KeyspaceOf(key));
        now_.reads.push_back({.key = key, .value = {}, .any_present = true});
      } else {
        batch.RequireUnchanged(KeyOf(key), entry->version, KeyspaceOf(key));
        now_.Read(key, ValueOf(entry->value.view()));
      }
    }
    FillBatch(&batch);
    return End(store_->Write(batch));
  }

  Status RunUpdate() {
    const KeyNumber key = RandomKey();
    const WriteOptions options{.keyspace = KeyspaceOf(key)};
    if (random_.OneIn(3)) {
      BASALT_ASSIGN_OR_RETURN(const std::optional<Commit> put,
                              store_->PutIfAbsent(KeyOf(key), RandomValue(), options));
      if (!put) return {};
      now_.Read(key, "");
      now_.Put(key);
      return End(*put);
    }
    std::string seen;
    const Result<Commit> updated = store_->Update(
        KeyOf(key),
        [&](EntryUpdate& entry) {
          seen = ValueOf(entry.value());
          entry.Set(std::string(entry.value()) + Mark());
          return Status();
        },
        options);
    now_.Read(key, seen);
    now_.Append(key);
    return End(updated);
  }

  Shared* const shared_;
  Store* const store_;
  base::Random random_;
  ObservedTransaction now_;
  std::set<KeyNumber> own_;  // keys that it has written itself
  History history_;
  uint64_t aborted_ = 0;
  Status error_;
};

}  // namespace

Result<WorkloadResult> RunWorkload(Store* store, const WorkloadOptions& options) {
  Shared shared{.store = store, .options = options, .keyspaces = {}};
  shared.keyspaces[0] = KeyspaceId::kDefault;
  BASALT_ASSIGN_OR_RETURN(shared.keyspaces[1], store->OpenOrCreateKeyspace("second"));
  std::vector<std::unique_ptr<Worker>> workers;
  for (unsigned i = 0; i < options.threads; ++i) {
    workers.push_back(std::make_unique<Worker>(&shared, options.seed * 1000 + i));
  }
  std::vector<std::thread> threads;
  for (const auto& worker : workers) threads.emplace_back([&worker] { worker->Run(); });
  for (std::thread& thread : threads) thread.join();
  WorkloadResult result;
  for (const auto& worker : workers) {
    BASALT_RETURN_IF_ERROR(worker->error());
    result.aborted += worker->aborted();
    std::ranges::move(worker->history(), std::back_inserter(result.history));
  }
  return result;
}

}  // namespace basalt::serializability
