#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/command.h"

namespace basalt::server {

/// The arguments of SCAN, HSCAN, SSCAN and ZSCAN, and the place where their iteration goes on.
struct Scan {
  std::string place;  ///< The first key to look at.
  std::optional<std::string_view> match{};
  std::optional<std::string> type{};
  uint64_t count = 10;

  /// Reads the cursor at `index` and the options behind it. False: an error is replied.
  bool Parse(Call& call, size_t index, bool has_type);
  bool Matches(std::string_view name) const;
  /// Begins the reply: the cursor of where `walk` stands ("0": at its end).
  static void ReplyCursor(Call& call, const Walk& walk);
};

}  // namespace basalt::server
