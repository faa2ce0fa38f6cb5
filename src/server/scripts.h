#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "server/script_interpreter.h"

namespace basalt::server {

// The scripts that clients have sent, by their SHA-1, and the interpreters that run them.
//
// Bounds: kScriptsMax texts of kTextBytesMax bytes together; the oldest give way, and their clients
// get NOSCRIPT, as after a restart. One idle interpreter for each thread of the pool.
//
// Thread-safe.
class Scripts {
 public:
  using Text = std::shared_ptr<const std::string>;

  explicit Scripts(const ScriptLimits& limits) : limits_(limits) {}

  /// Null: it is not known.
  Text Find(std::string_view sha1) const;
  void Add(std::string_view sha1, std::string_view text);
  void Clear();
  size_t count() const;

  /// An interpreter of its own for one run; it goes back where it came from. Empty: there is no
  /// memory.
  class Lease {
   public:
    Lease(Scripts* scripts, std::unique_ptr<ScriptInterpreter> interpreter)
        : scripts_(scripts), interpreter_(std::move(interpreter)) {}
    ~Lease() { scripts_->Release(std::move(interpreter_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ScriptInterpreter* get() const noexcept { return interpreter_.get(); }

   private:
    Scripts* scripts_;
    std::unique_ptr<ScriptInterpreter> interpreter_;
  };
  Lease Borrow();

  /// Ends the scripts that run with an error. False: there is none.
  bool KillRunning();

 private:
  static constexpr size_t kScriptsMax = 10'000;
  static constexpr size_t kTextBytesMax = size_t{64} << 20;
  static constexpr size_t kIdleMax = 4;

  void Release(std::unique_ptr<ScriptInterpreter> interpreter);

  const ScriptLimits limits_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Text> texts_;
  std::deque<std::string> order_;  // Of texts_, the oldest first.
  size_t text_bytes_ = 0;
  std::vector<std::unique_ptr<ScriptInterpreter>> idle_;
  std::vector<ScriptInterpreter*> running_;
};

}  // namespace basalt::server
