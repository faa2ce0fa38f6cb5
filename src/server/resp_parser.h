#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace basalt::server {

/// What a client may send before it is refused.
struct RequestLimits {
  uint64_t argument_bytes = uint64_t{64} << 20;  ///< Of one argument.
  uint64_t arguments = 1 << 20;                  ///< Of one command.
  uint64_t command_bytes = uint64_t{64} << 20;   ///< All arguments of one command together.
  uint64_t line_bytes = 64 * 1024;               ///< Of an inline command, and of a count.
};

// Reads one command after another from the bytes that a client has sent: arrays of bulk strings, or
// inline commands, which are lines of words with quotes.
//
// The caller keeps the bytes, beginning with those of the command that is not complete yet, and
// calls Next when there are more of them. The parser remembers how far it has come, so that each
// byte is looked at once, however small the pieces are in which it arrives. Arguments are views
// into the caller's bytes, except those of an inline command, which are views into the parser.
class RespParser {
 public:
  enum class Outcome : uint8_t {
    kCommand,  ///< args() has it; it may be empty (an empty line, or "*0"): skip it.
    kMore,     ///< The bytes end inside a command.
    kError,    ///< error() says what is wrong. No command can be read after it.
  };

  explicit RespParser(RequestLimits limits = {}) : limits_(limits) {}
  void set_limits(const RequestLimits& limits) { limits_ = limits; }

  /// Looks at `bytes`, which begin where the last complete command ended. With kCommand,
  /// `consumed()` bytes are the command's; the next call is with the bytes behind them.
  Outcome Next(std::string_view bytes);

  const std::vector<std::string_view>& args() const noexcept { return args_; }
  size_t consumed() const noexcept { return at_; }
  /// As Redis words it, without "-ERR ".
  const std::string& error() const noexcept { return error_; }
  /// How many bytes the present command needs at least, as far as that is known; 0: unknown.
  size_t wanted_bytes() const noexcept { return wanted_; }

 private:
  enum class State : uint8_t { kStart, kBulkLength, kBulk };

  Outcome Fail(std::string text);
  Outcome Inline(std::string_view bytes);
  Outcome Bulks(std::string_view bytes);
  Outcome Complete(std::string_view bytes);
  /// A line that ends in "\n", without its end. False: it is not complete; or too long, which is
  /// the error `too_long`.
  bool TakeLine(std::string_view bytes, std::string_view* line, const char* too_long);
  bool SplitWords(std::string_view line);

  RequestLimits limits_;
  State state_ = State::kStart;
  size_t at_ = 0;        // Bytes of the command that were looked at.
  size_t searched_ = 0;  // Where the search for the end of a line goes on.
  size_t wanted_ = 0;
  uint64_t bulks_left_ = 0;
  size_t bulk_bytes_ = 0;
  bool done_ = false;  // The last call gave a command.
  std::vector<std::pair<size_t, size_t>> spans_;
  std::vector<std::string_view> args_;
  std::vector<std::string> words_;
  std::string error_;
};

}  // namespace basalt::server
