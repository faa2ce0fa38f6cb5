#include "server/command.h"

#include <algorithm>
#include <cmath>

#include "server/numbers.h"

namespace basalt::server {

std::string_view GroupName(Group group) noexcept {
  switch (group) {
    case Group::kConnection:
      return "connection";
    case Group::kServer:
      return "server";
    case Group::kGeneric:
      return "generic";
    case Group::kString:
      return "string";
    case Group::kBitmap:
      return "bitmap";
    case Group::kHash:
      return "hash";
    case Group::kList:
      return "list";
    case Group::kSet:
      return "set";
    case Group::kSortedSet:
      return "sorted-set";
    case Group::kStream:
      return "stream";
    case Group::kPubSub:
      return "pubsub";
    case Group::kTransactions:
      return "transactions";
    case Group::kScripting:
      return "scripting";
    case Group::kStore:
      return "store";
  }
  return "";
}

bool Call::Is(size_t index, std::string_view lower) const {
  return EqualsIgnoreCase(args[index], lower);
}

std::optional<int64_t> Call::Integer(size_t index, std::string_view error) {
  const std::optional<int64_t> number = ParseInteger(args[index]);
  if (number) return number;
  if (error.empty()) {
    NotAnInteger();
  } else {
    reply.Error(error);
  }
  return std::nullopt;
}

std::optional<double> Call::Double(size_t index, std::string_view error) {
  const std::optional<double> number = ParseDouble(args[index]);
  if (!number) reply.Error(error.empty() ? "ERR value is not a valid float" : error);
  return number;
}

void Call::WrongType() { reply.Error(kWrongTypeError); }

bool Call::Open(std::string_view name, Type type, Key* key) {
  *key = view.Find(name);
  if (!key->exists || key->meta.type == type) return true;
  WrongType();
  return false;
}

void UnknownSubcommand(Call& call) {
  constexpr size_t kShownBytesMax = 128;
  call.reply.Error("ERR unknown subcommand '" + std::string(call.arg(1).substr(0, kShownBytesMax)) +
                   "'. Try " + ToUpper(call.command.name) + " HELP.");
}

std::optional<WallTime> ExpiryFrom(Call& call, std::string_view unit, std::string_view number,
                                   bool positive) {
  const auto invalid = [&]() -> std::optional<WallTime> {
    call.reply.Error("ERR invalid expire time in '" + std::string(call.command.name) + "' command");
    return std::nullopt;
  };
  const std::optional<int64_t> parsed = ParseInteger(number);
  if (!parsed) {
    call.NotAnInteger();
    return std::nullopt;
  }
  if (positive && *parsed <= 0) return invalid();
  int64_t moment = *parsed;
  if (!unit.starts_with('p') && __builtin_mul_overflow(moment, int64_t{1000}, &moment)) {
    return invalid();
  }
  if (!unit.ends_with("at") &&
      __builtin_add_overflow(moment, static_cast<int64_t>(Dataset::NowMs()), &moment)) {
    return invalid();
  }
  return WallTime(std::chrono::milliseconds(moment));
}

std::optional<Wait> ParseWait(Call& call, std::string_view timeout) {
  const std::optional<double> seconds = ParseDouble(timeout);
  if (!seconds) {
    call.reply.Error("ERR timeout is not a float or out of range");
    return std::nullopt;
  }
  if (*seconds < 0) {
    call.reply.Error("ERR timeout is negative");
    return std::nullopt;
  }
  constexpr double kSecondsMax = 9.2e15;
  if (*seconds > kSecondsMax) {
    call.reply.Error("ERR timeout is out of range");
    return std::nullopt;
  }
  Wait wait;
  constexpr double kTimerMax = 3e9;  // A century: what timers can count.
  if (*seconds > 0) {
    wait.timeout = std::chrono::milliseconds(
        static_cast<int64_t>(std::ceil(std::min(*seconds, kTimerMax) * 1000)));
  }
  return wait;
}

}  // namespace basalt::server
