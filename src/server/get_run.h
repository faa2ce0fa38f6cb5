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
/// with those of the others. At most kKeysMax.
class GetRun {
 public:
  static constexpr size_t kKeysMax = 64;

  explicit GetRun(uint8_t db) : db_(db) {}

  /// Whether a command of this session may be part of a run.
  static bool Admits(const Session& session, const Command* command, Args args);

  void Add(std::string_view key);
  size_t count() const noexcept { return ends_.size(); }
  bool IsFull() const noexcept { return ends_.size() == kKeysMax; }

  /// Appends the replies. Not ok: nothing was appended, and the commands must run on the pool.
  Status Answer(Hub& hub, Reply& reply) const;

 private:
  const uint8_t db_;
  std::string keys_;  // In the store.
  std::vector<size_t> ends_;
};

}  // namespace basalt::server
