#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/reply.h"
#include "server/view.h"

namespace basalt::server {

class Session;
class Hub;
struct Call;

using Args = std::span<const std::string_view>;

/// The groups of commands, as COMMAND DOCS names them; also their ACL categories.
enum class Group : uint8_t {
  kConnection,
  kServer,
  kGeneric,
  kString,
  kBitmap,
  kHash,
  kList,
  kSet,
  kSortedSet,
  kStream,
  kPubSub,
  kTransactions,
  kScripting,
  kStore,
};
std::string_view GroupName(Group group) noexcept;

enum CommandFlag : uint32_t {
  kWrite = 1 << 0,
  kReadOnly = 1 << 1,
  kFast = 1 << 2,        ///< Takes constant or logarithmic time.
  kBlocking = 1 << 3,    ///< May wait for other clients.
  kNoData = 1 << 4,      ///< Does not look at keys: it runs without a transaction.
  kNoAuth = 1 << 5,      ///< Allowed before AUTH.
  kNoMulti = 1 << 6,     ///< Refused inside MULTI.
  kInMultiNow = 1 << 7,  ///< Inside MULTI it is executed, not queued.
  kSubscribed = 1 << 8,  ///< Allowed for a subscribed client of RESP2.
  kSingleRead = 1 << 9,  ///< Reads one record: no snapshot is taken.
  kSlow = 1 << 10,       ///< Always runs on the pool.
  kAdmin = 1 << 11,
  kPubSubFlag = 1 << 12,
  kMovableKeys = 1 << 13,
  kNoScript = 1 << 14,  ///< Refused inside scripts, and over HTTP.
  kScript = 1 << 15,    ///< Runs scripts.
};

/// One command: what dispatch, arity errors, COMMAND, COMMAND DOCS and docs/commands.md know of it.
struct Command {
  std::string_view name;    ///< In lower case.
  std::string_view syntax;  ///< Its arguments, for people.
  int arity;                ///< With the name; negative: at least so many.
  uint32_t flags;
  int first_key;  ///< 0: it has none at fixed places.
  int last_key;   ///< Negative: counted from the end.
  int key_step;
  Group group;
  std::string_view summary;
  void (*run)(Call& call);
};

/// The error of a command on a key of another type.
inline constexpr std::string_view kWrongTypeError =
    "WRONGTYPE Operation against a key holding the wrong kind of value";

/// What a command waits for when it cannot be answered yet.
struct Wait {
  std::vector<std::string> keys;
  std::optional<std::chrono::milliseconds> timeout{};  ///< Nothing: for ever.
  bool null_is_array = true;
  std::vector<std::string> args{};  ///< What is run again, if not the command as it is.
};

/// One run of one command. The functions below are what commands use.
struct Call {
  const Command& command;
  Args args;
  Session& session;
  Hub& hub;
  View& view;
  Reply& reply;
  bool in_exec = false;
  std::optional<Wait> wait{};  ///< Set by a blocking command.
  bool keeps_changes = false;  ///< What it has changed stays although the reply is an error.
  /// What is done once the transaction has been committed.
  std::vector<std::function<void()>> after_commit{};

  std::string_view arg(size_t index) const { return args[index]; }
  size_t count() const { return args.size(); }
  bool Is(size_t index, std::string_view lower) const;

  void SyntaxError() { reply.Error("ERR syntax error"); }
  void NotAnInteger() { reply.Error("ERR value is not an integer or out of range"); }
  /// The argument as a number; nothing, and an error is replied, where it is none.
  std::optional<int64_t> Integer(size_t index, std::string_view error = {});
  std::optional<double> Double(size_t index, std::string_view error = {});

  /// Finds a key. False, and WRONGTYPE is replied, when it is there with another type.
  bool Open(std::string_view name, Type type, Key* key);
  void WrongType();
};

// The commands of each file, put together by command_table.cc.
std::span<const Command> ConnectionCommands();
std::span<const Command> ServerCommands();
std::span<const Command> KeyCommands();
std::span<const Command> StringCommands();
std::span<const Command> BitCommands();
std::span<const Command> HashCommands();
std::span<const Command> ListCommands();
std::span<const Command> SetCommands();
std::span<const Command> SortedSetCommands();
std::span<const Command> SortedSetRangeCommands();
std::span<const Command> StreamCommands();
std::span<const Command> PubSubCommands();
std::span<const Command> TransactionCommands();
std::span<const Command> StoreCommands();
std::span<const Command> ScriptCommands();
std::span<const Command> AclCommands();

/// The error for a subcommand that is not there, or that has other arguments.
void UnknownSubcommand(Call& call);

/// An expiry from EX, PX, EXAT or PXAT and its number. Nothing, and an error is replied: it is out
/// of range; with `positive` also when it is not above zero.
std::optional<WallTime> ExpiryFrom(Call& call, std::string_view unit, std::string_view number,
                                   bool positive = true);

/// What a blocking command waits for; nothing, and an error is replied, where its timeout is none.
std::optional<Wait> ParseWait(Call& call, std::string_view timeout);

}  // namespace basalt::server
