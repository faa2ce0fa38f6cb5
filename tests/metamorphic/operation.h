#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/options.h"
#include "basalt/status.h"
#include "io/sim_file_system.h"

// What a test does to a database: a list of operations as plain values, which can be generated, cut
// down, printed and read back. Every list can be run: an operation that names an empty slot does
// nothing, so that any part of a list is a list.
//
// The text form has one operation a line; `#` begins a comment line. Keys stand in double quotes,
// with
// \" \\ and \xHH; values as <size>@<seed>. Optional parts are in brackets:
//
//   settings memtable_bytes=N table_bytes=N memory_budget=N compression=N durability=process|power
//   put KEY VALUE [process|power]
//   delete KEY [process|power]
//   batch [process|power] { put KEY VALUE | delete KEY } ...
//   update KEY set VALUE | append VALUE | remove | refuse | throw
//   get KEY [sN]                      sN: snapshot slot; iN: iterator slot
//   multiget [sN] KEY ...
//   scan [sN]                         everything, forwards and backwards
//   iterator iN [sN] [lower KEY] [upper KEY] [prefix KEY] [keys_only]
//   move iN { first | last | next | prev | seek KEY | seek_for_prev KEY } ...
//   end iN
//   snapshot sN
//   release sN
//   flush | sync
//   compact [lower KEY] [upper KEY]
//   jobs N                            runs up to N background jobs
//   reopen                            closes, checks every byte, opens
//   drop                              destroys the handle without closing, opens
//   crash MODE SEED                   cuts the power, opens
//   cut CALLS MODE SEED               cuts the power at that call of the file system from now on

namespace basalt::metamorphic {

/// A value that is described instead of kept: its bytes follow from its seed.
struct ValueRecipe {
  uint32_t size = 0;
  uint32_t seed = 0;
  std::string Bytes() const;
};

struct Record {
  bool is_delete = false;
  std::string key;
  ValueRecipe value;
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
};
inline constexpr size_t kOperationKinds = 20;

/// Slots for snapshots and for iterators.
inline constexpr size_t kSlots = 4;

struct Operation {
  OperationKind kind = OperationKind::kGet;
  std::optional<Durability> durability{};  ///< Of put, delete, batch.
  std::vector<Record> records{};           ///< Of put, delete, update (one), batch.
  UpdateAction action = UpdateAction::kSet;
  std::vector<std::string> keys{};  ///< Of get (one) and multiget.
  std::optional<size_t> snapshot{};
  std::optional<size_t> iterator{};
  std::optional<std::string> lower{};
  std::optional<std::string> upper{};
  std::optional<std::string> prefix{};
  bool keys_only = false;
  std::vector<Move> moves{};
  uint64_t count = 0;  ///< Of jobs and cut.
  io::CrashMode mode = io::CrashMode::kRandom;
  uint64_t seed = 0;  ///< Of crash and cut.
};

struct Settings {
  uint64_t memtable_bytes = 16 << 10;
  uint64_t table_bytes = 8 << 10;
  uint64_t memory_budget = 1 << 20;
  Compression compression = Compression::kLz4;
  Durability durability = Durability::kProcess;
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
