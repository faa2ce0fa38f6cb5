#include "tests/metamorphic/generator.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"

namespace basalt::metamorphic {
namespace {

/// A batch may fill at most an eighth of the memory budget, which is 128 KiB in the smallest case.
constexpr size_t kBatchBytesMax = 100'000;
constexpr uint64_t kLargeValueBytesMax = 20'000;
constexpr uint32_t kMergedBytesMax = 400;
constexpr std::string_view kNumberPrefix = "count/";

/// How often each kind comes, in the order of OperationKind.
constexpr std::array<uint64_t, kOperationKinds> kUsualFrequencies = {
    260,  // put
    80,   // delete
    60,   // batch
    60,   // update
    30,   // put_if_absent
    12,   // delete_range
    80,   // merge
    200,  // get
    40,   // multiget
    4,    // scan
    40,   // iterator
    160,  // move
    15,   // end
    12,   // snapshot
    10,   // release
    3,    // flush
    6,    // sync
    2,    // compact
    20,   // jobs
    2,    // reopen
    1,    // drop
    2,    // crash
    2,    // cut
    10,   // wait
    1,    // renew
};

constexpr bool IsWrite(OperationKind kind) { return kind <= OperationKind::kMerge; }

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {
    ChooseSettings();
    ChooseKeys();
    ChooseFrequencies();
  }

  OperationList Run(size_t operations) {
    list_.operations.reserve(operations);
    while (list_.operations.size() < operations) list_.operations.push_back(Next());
    return std::move(list_);
  }

 private:
  template <class T, size_t Size>
  T OneOf(const std::array<T, Size>& choices) {
    return choices[random_.Below(Size)];
  }

  void ChooseSettings() {
    Settings& settings = list_.settings;
    settings.memtable_bytes =
        OneOf(std::array<uint64_t, 5>{1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10});
    settings.table_bytes = OneOf(std::array<uint64_t, 4>{1 << 10, 4 << 10, 16 << 10, 64 << 10});
    settings.memory_budget = OneOf(std::array<uint64_t, 2>{1 << 20, 8 << 20});
    settings.compression = OneOf(std::array{Compression::kLz4, Compression::kNone});
    settings.durability = random_.OneIn(4) ? Durability::kPower : Durability::kProcess;
    if (random_.OneIn(8)) settings.default_ttl_ms = random_.Between(1, 500);
    ttl_one_in_ = OneOf(std::array<uint64_t, 4>{3, 10, 50, 100'000});
    second_one_in_ = OneOf(std::array<uint64_t, 4>{2, 5, 5, 100'000});
    misfit_one_in_ = OneOf(std::array<uint64_t, 3>{50, 100'000, 100'000});
    large_value_one_in_ = OneOf(std::array<uint64_t, 3>{30, 200, 100'000});
    new_merge_one_in_ = OneOf(std::array<uint64_t, 3>{1, 1, 30});
  }

  /// Keys that meet: few of them, with shared prefixes, equal first eight bytes, bytes at both ends
  /// of the order, one inside the other.
  void ChooseKeys() {
    const std::vector<std::string> odd = {"",
                                          std::string(1, '\0'),
                                          std::string(2, '\0'),
                                          std::string("a\0b", 3),
                                          "a",
                                          "ab",
                                          "\xFF",
                                          "\xFF\xFF",
                                          "\xFF\xFFz",
                                          "\x7F\x80",
                                          "prefix08",
                                          "prefix08" + std::string(1, '\0'),
                                          "prefix08a",
                                          "prefix08b",
                                          std::string(300, 'p'),
                                          std::string(300, 'p') + "q",
                                          std::string(5'000, 'L')};
    for (const std::string& key : odd) {
      if (random_.OneIn(2)) keys_.push_back(key);
    }
    const uint64_t users = random_.Between(2, 40);
    for (uint64_t i = 0; i < users; ++i) {
      keys_.push_back("user/" + std::to_string(i));
      if (random_.OneIn(3)) keys_.push_back("user/" + std::to_string(i) + "/name");
    }
    const uint64_t numbered = random_.OneIn(3) ? random_.Between(100, 400) : random_.Below(20);
    for (uint64_t i = 0; i < numbered; ++i) keys_.push_back("n" + std::to_string(10'000 + 7 * i));
    merged_keys_ = random_.Between(1, 12);
    for (uint64_t i = 0; i < merged_keys_; ++i) keys_.push_back(NumberKey(i));
    for (uint64_t i = 0; i < merged_keys_; ++i) keys_.push_back("text/" + std::to_string(i));
  }

  void ChooseFrequencies() {
    for (size_t i = 0; i < kOperationKinds; ++i) {
      const uint64_t factor = OneOf(std::array<uint64_t, 6>{0, 1, 4, 4, 4, 12});
      // Every list writes, and most take moments to look at the whole.
      const bool needed = i == static_cast<size_t>(OperationKind::kPut) ||
                          i == static_cast<size_t>(OperationKind::kScan);
      frequencies_[i] = kUsualFrequencies[i] * (needed ? std::max<uint64_t>(factor, 1) : factor);
      total_frequency_ += frequencies_[i];
    }
  }

  OperationKind NextKind() {
    uint64_t draw = random_.Below(total_frequency_);
    size_t kind = 0;
    while (draw >= frequencies_[kind]) draw -= frequencies_[kind++];
    return static_cast<OperationKind>(kind);
  }

  /// Keys whose values are numbers, but for a misfit now and then.
  static std::string NumberKey(uint64_t i) {
    return std::string(kNumberPrefix) + std::to_string(i);
  }

  Space SomeSpace() { return random_.OneIn(second_one_in_) ? Space::kSecond : Space::kDefault; }

  /// Mostly a key of the list's; now and then one beside it.
  std::string Key() {
    std::string key = keys_[random_.Below(keys_.size())];
    if (random_.OneIn(40)) key += static_cast<char>(random_.Below(256));
    if (random_.OneIn(80) && !key.empty()) key.pop_back();
    return key;
  }

  ValueRecipe Value() {
    ValueRecipe value;
    value.seed = static_cast<uint32_t>(random_.Below(1'000'000));
    if (random_.OneIn(large_value_one_in_)) {
      value.size = static_cast<uint32_t>(random_.Between(1'000, kLargeValueBytesMax));
    } else if (!random_.OneIn(16)) {
      value.size = static_cast<uint32_t>(random_.Below(random_.OneIn(4) ? 300 : 60));
    }
    return value;
  }

  std::optional<Durability> Level() {
    if (random_.OneIn(20)) return Durability::kPower;
    if (random_.OneIn(20)) return Durability::kProcess;
    return std::nullopt;
  }

  /// A live snapshot's slot more often than not would make old states all that is read.
  std::optional<size_t> Snapshot() {
    if (!random_.OneIn(4)) return std::nullopt;
    return random_.Below(kSlots);
  }

  io::CrashMode Mode() {
    using enum io::CrashMode;
    return OneOf(std::array{kRandom, kNone, kAll, kPrefix, kTornTail, kSubset});
  }

  Record RecordOf(RecordKind kind) {
    Record record{.kind = kind, .space = SomeSpace(), .key = Key()};
    switch (kind) {
      case RecordKind::kPut:
        FillPut(&record);
        break;
      case RecordKind::kDeleteRange:
        FillRange(&record);
        break;
      case RecordKind::kMerge:
        FillMerge(&record);
        break;
      default:
        break;
    }
    return record;
  }

  void FillPut(Record* record) {
    record->value = Value();
    const bool is_number = record->key.starts_with(kNumberPrefix);
    if (is_number && !random_.OneIn(misfit_one_in_)) record->value.size = sizeof(int64_t);
    if (random_.OneIn(ttl_one_in_))
      record->ttl_ms = random_.Between(1, random_.OneIn(4) ? 800 : 40);
  }

  /// Mostly short; a few are empty, and a few go over much.
  void FillRange(Record* record) {
    record->end = Key();
    if (!random_.OneIn(20)) {
      if (record->end < record->key) std::swap(record->key, record->end);
      if (random_.OneIn(2)) record->end = record->key.substr(0, 20) + '~';
    }
  }

  /// In some lists many merges of one key come in a row, with one operator.
  void FillMerge(Record* record) {
    if (last_merge_ && !random_.OneIn(new_merge_one_in_)) {
      record->space = last_merge_->space;
      record->key = last_merge_->key;
      record->merge_operator = last_merge_->merge_operator;
      record->value = last_merge_->value;
      record->number = static_cast<int64_t>(random_.Next()) >> random_.Below(64);
      return;
    }
    FillNewMerge(record);
    last_merge_ = *record;
  }

  void FillNewMerge(Record* record) {
    if (random_.OneIn(4 * misfit_one_in_)) {
      record->merge_operator = MergeOperator::kAdd;
    } else if (random_.OneIn(3)) {
      if (random_.OneIn(2)) record->key = "text/" + std::to_string(random_.Below(merged_keys_));
      if (record->key.starts_with(kNumberPrefix)) record->key.insert(0, "text/");
      record->value = Value();
      record->value.size %= kMergedBytesMax;
      return;
    } else {
      record->key = NumberKey(random_.Below(merged_keys_));
      using enum MergeOperator;
      record->merge_operator = OneOf(std::array{kAdd, kAdd, kMin, kMax});
    }
    record->number = static_cast<int64_t>(random_.Next()) >> random_.Below(64);
  }

  void FillBatch(Operation* operation) {
    using enum RecordKind;
    constexpr std::array kKinds = {kPut, kPut, kPut, kPut, kDelete, kDelete, kMerge, kMerge};
    const uint64_t records = random_.OneIn(10) ? random_.Below(60) : random_.Below(8);
    size_t bytes = 0;
    for (uint64_t i = 0; i < records; ++i) {
      Record record = RecordOf(random_.OneIn(30) ? kDeleteRange : OneOf(kKinds));
      bytes += record.key.size() + record.end.size() + record.value.size + 32;
      if (bytes > kBatchBytesMax) break;
      operation->records.push_back(std::move(record));
    }
  }

  void FillBounds(Operation* operation) {
    if (random_.OneIn(4)) {
      std::string prefix = Key();
      if (!prefix.empty()) prefix.resize(random_.Below(prefix.size() + 1));
      operation->prefix = std::move(prefix);
      return;
    }
    if (random_.OneIn(3)) operation->lower = Key();
    if (random_.OneIn(3)) operation->upper = Key();
    if (operation->lower && operation->upper && *operation->upper < *operation->lower) {
      std::swap(operation->lower, operation->upper);
    }
  }

  /// Runs in one direction, with turns.
  void FillMoves(Operation* operation) {
    using enum Move::Kind;
    const uint64_t moves = random_.Between(1, 12);
    Move::Kind direction = random_.OneIn(2) ? kNext : kPrev;
    for (uint64_t i = 0; i < moves; ++i) {
      Move move;
      if (random_.OneIn(6)) {
        move.kind = OneOf(std::array{kFirst, kLast, kSeek, kSeek, kSeekForPrev, kSeekForPrev});
        if (move.kind == kSeek || move.kind == kSeekForPrev) move.target = Key();
      } else {
        if (random_.OneIn(4)) direction = direction == kNext ? kPrev : kNext;
        move.kind = direction;
      }
      operation->moves.push_back(std::move(move));
    }
  }

  Operation Next() {
    Operation operation;
    operation.kind = NextKind();
    if (IsWrite(operation.kind)) {
      FillWrite(&operation);
      return operation;
    }
    switch (operation.kind) {
      case OperationKind::kGet:
      case OperationKind::kMultiGet:
      case OperationKind::kScan:
      case OperationKind::kIterator:
      case OperationKind::kCompact:
        operation.space = SomeSpace();
        break;
      default:
        break;
    }
    switch (operation.kind) {
      case OperationKind::kGet:
        operation.keys = {Key()};
        operation.snapshot = Snapshot();
        break;
      case OperationKind::kMultiGet:
        for (uint64_t i = random_.Below(10); i > 0; --i) operation.keys.push_back(Key());
        operation.snapshot = Snapshot();
        break;
      case OperationKind::kScan:
        operation.snapshot = Snapshot();
        break;
      case OperationKind::kIterator:
        operation.iterator = random_.Below(kSlots);
        operation.snapshot = Snapshot();
        operation.keys_only = random_.OneIn(8);
        FillBounds(&operation);
        break;
      case OperationKind::kMove:
        operation.iterator = random_.Below(kSlots);
        FillMoves(&operation);
        break;
      case OperationKind::kEnd:
        operation.iterator = random_.Below(kSlots);
        break;
      case OperationKind::kSnapshot:
      case OperationKind::kRelease:
        operation.snapshot = random_.Below(kSlots);
        break;
      case OperationKind::kCompact:
        FillBounds(&operation);
        operation.prefix.reset();
        break;
      case OperationKind::kJobs:
        operation.count = random_.Between(1, 3);
        break;
      case OperationKind::kWait:
        operation.count = random_.Between(1, random_.OneIn(4) ? 500 : 30);
        break;
      case OperationKind::kCut:
        operation.count = random_.Between(1, random_.OneIn(4) ? 600 : 60);
        [[fallthrough]];
      case OperationKind::kCrash:
        operation.mode = Mode();
        operation.seed = random_.Below(1'000'000'000);
        break;
      default:
        break;
    }
    return operation;
  }

  void FillWrite(Operation* operation) {
    if (operation->kind != OperationKind::kUpdate) operation->durability = Level();
    if (operation->kind == OperationKind::kBatch) {
      FillBatch(operation);
      return;
    }
    Record record = RecordOf(RecordKindOf(operation->kind));
    if (operation->kind == OperationKind::kUpdate) {
      using enum UpdateAction;
      operation->action =
          OneOf(std::array{kSet, kSet, kAppend, kAppend, kAppend, kRemove, kRefuse, kThrow});
      // An appended number is none any more.
      const bool is_number = record.key.starts_with(kNumberPrefix);
      if (operation->action == kAppend && is_number) operation->action = kSet;
      record.ttl_ms = 0;
    }
    operation->records.push_back(std::move(record));
  }

  base::Random random_;
  OperationList list_;
  std::vector<std::string> keys_;
  uint64_t merged_keys_ = 0;  ///< So many of numbers, and so many of texts.
  uint64_t large_value_one_in_ = 1;
  uint64_t new_merge_one_in_ = 1;
  std::optional<Record> last_merge_;
  uint64_t ttl_one_in_ = 1;
  uint64_t second_one_in_ = 1;
  uint64_t misfit_one_in_ = 1;  ///< What a merge cannot change.
  std::array<uint64_t, kOperationKinds> frequencies_{};
  uint64_t total_frequency_ = 0;
};

}  // namespace

OperationList Generate(uint64_t seed, size_t operations) { return Generator(seed).Run(operations); }

}  // namespace basalt::metamorphic
