#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/options.h"
#include "basalt/status.h"
#include "basalt/write_batch.h"
#include "io/sim_file_system.h"

// What a test does to a database: a list of operations as plain values, which can be generated, cut
// down, printed and read back. Every list can be run: an operation that names an empty slot does
// nothing, so that any part of a list is a list.
//
// The text form has one operation a line; `#` begins a comment line. Keys stand in double quotes,
// with the escapes \" \\ and \xHH; values as <size>@<seed>. Optional parts are in brackets.
// `second` names the second keyspace; without it the default one is meant:
//
//   settings memtable_bytes=N table_bytes=N memory_budget=N compression=N durability=process|power
//            [default_ttl=MILLIS]
//   put [second] KEY VALUE [ttl MILLIS] [process|power]
//   put_if_absent [second] KEY VALUE [ttl MILLIS] [process|power]
//   delete [second] KEY [process|power]
//   delete_range [second] KEY KEY [process|power]
//   merge [second] KEY { add|min|max NUMBER | append VALUE } [process|power]
//   batch [process|power] { put .. | delete .. | delete_range .. | merge .. } ...
//   update [second] KEY set VALUE | append VALUE | remove | refuse | throw
//   get [second] KEY [sN]             sN: snapshot slot; iN: iterator slot
//   multiget [second] [sN] KEY ...
//   scan [second] [sN]                everything, forwards and backwards
//   iterator [second] iN [sN] [lower KEY] [upper KEY] [prefix KEY] [keys_only]
//   move iN { first | last | next | prev | seek KEY | seek_for_prev KEY } ...
//   end iN
//   snapshot sN
//   release sN
//   flush | sync
//   compact [second] [lower KEY] [upper KEY]
//   jobs N                            runs up to N background jobs
//   reopen                            closes, checks every byte, opens
//   drop                              destroys the handle without closing, opens
//   crash MODE SEED                   cuts the power, opens
//   cut CALLS MODE SEED               cuts the power at that call of the file system from now on
//   wait MILLIS                       lets time pass; each other operation takes half of one
//   renew                             drops the second keyspace, and makes it again

namespace basalt::metamorphic {

/// A value that is described instead of kept: its bytes follow from its seed.
struct ValueRecipe {
  uint32_t size = 0;
  uint32_t seed = 0;
  std::string Bytes() const;
};

/// Which keyspace; also the index of its contents in the model.
enum class Space : uint8_t { kDefault, kSecond };
inline constexpr size_t kSpaces = 2;

struct Record {
  RecordKind kind = RecordKind::kPut;
  Space space = Space::kDefault;
  std::string key;
  std::string end{};    ///< Of a range.
  ValueRecipe value{};  ///< Of a put, and what a merge appends.
  uint64_t ttl_ms = 0;  ///< Of a put; 0: none is named.
  MergeOperator merge_operator = MergeOperator::kAppend;
  int64_t number = 0;  ///< The operand of the other merges.

  /// What a merge combines the value with.
  std::string Operand() const;
};

struct Move {
  enum class Kind : uint8_t { kFirst, kLast, kNext, kPrev, kSeek, kSeekForPrev };
  Kind kind = Kind::kFirst;
  std::string target;
};

/// What an Update's function does with the present value.
enum class UpdateAction : uint8_t { kSet, kAppend, kRemove, kRefuse, kThrow };

enum class OperationKind : uint8_t {
  kPut,
  kDelete,
  kBatch,
  kUpdate,
  kPutIfAbsent,
  kDeleteRange,
  kMerge,
  kGet,
  kMultiGet,
  kScan,
  kIterator,
  kMove,
  kEnd,
  kSnapshot,
  kRelease,
  kFlush,
  kSync,
  kCompact,
  kJobs,
  kReopen,
  kDrop,
  kCrash,
  kCut,
  kWait,
  kRenew,
};
inline constexpr size_t kOperationKinds = 25;

/// What the record of a put, put_if_absent, delete, delete_range or merge does.
RecordKind RecordKindOf(OperationKind kind);

/// Slots for snapshots and for iterators.
inline constexpr size_t kSlots = 4;

struct Operation {
  OperationKind kind = OperationKind::kGet;
  std::optional<Durability> durability{};  ///< Of writes but update.
  std::vector<Record> records{};           ///< Of writes: one, but for batch.
  UpdateAction action = UpdateAction::kSet;
  Space space = Space::kDefault;    ///< Of reads and compact.
  std::vector<std::string> keys{};  ///< Of get (one) and multiget.
  std::optional<size_t> snapshot{};
  std::optional<size_t> iterator{};
  std::optional<std::string> lower{};
  std::optional<std::string> upper{};
  std::optional<std::string> prefix{};
  bool keys_only = false;
  std::vector<Move> moves{};
  uint64_t count = 0;  ///< Of jobs, cut and wait.
  io::CrashMode mode = io::CrashMode::kRandom;
  uint64_t seed = 0;  ///< Of crash and cut.
};

struct Settings {
  uint64_t memtable_bytes = 16 << 10;
  uint64_t table_bytes = 8 << 10;
  uint64_t memory_budget = 1 << 20;
  Compression compression = Compression::kLz4;
  Durability durability = Durability::kProcess;
  uint64_t default_ttl_ms = 0;
};

struct OperationList {
  Settings settings;
  std::vector<Operation> operations;
};

std::string ToText(const Move& move);
std::string ToText(const Operation& operation);
std::string ToText(const OperationList& list);
/// InvalidArgument names the line and what is wrong with it.
Result<OperationList> ParseOperations(std::string_view text);

/// A key as it stands in the text form.
std::string Quoted(std::string_view key);

}  // namespace basalt::metamorphic
