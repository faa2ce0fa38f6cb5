#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/db.h"
#include "server/command.h"
#include "server/hub.h"
#include "server/session.h"

namespace basalt::server {

/// Consecutive GETs of a pipeline, which are looked up together: the memory accesses of one overlap
/// with those of the others. A run has at most kKeysMax commands. Its replies end with the one that
/// reaches kPipelineReplyBytes.
class GetRun {
 public:
  static constexpr size_t kKeysMax = 64;

  explicit GetRun(uint8_t db) : db_(db) {}

  /// Whether a command of this session may be part of a run.
  static bool Admits(const Session& session, const Command* command, Args args);

  /// `command_bytes`: the size of the command in the protocol.
  void Add(std::string_view key, size_t command_bytes);
  size_t count() const noexcept { return gets_.size(); }
  bool IsFull() const noexcept { return gets_.size() == kKeysMax; }
  /// The size of all commands in the protocol.
  size_t command_bytes() const noexcept { return gets_.empty() ? 0 : gets_.back().command_end; }

  struct Answered {
    size_t count;
    size_t command_bytes;
  };
  /// Appends the replies of the first commands and says how many these are. Not ok: nothing was
  /// appended, and the commands must run on the pool.
  Result<Answered> Answer(Hub& hub, Reply& reply) const;

 private:
  struct Get {
    size_t key_end;
    size_t command_end;
  };

  const uint8_t db_;
  std::string keys_;  // In the store.
  std::vector<Get> gets_;
};

}  // namespace basalt::server
