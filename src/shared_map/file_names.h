#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// What stands in a map's directory:
//
//   CONTROL             the number of the newest version (control_page.h)
//   gen-NNNNNN          the files of that version (version_files.h)
//   base-NNNNNN         records of one shard (base_format.h)
//   log-NNNNNN          changes since (change_log.h)
//   index-NNNNNN        where the changes of a key lie (change_index.h)
//   LOCK                held by the one process that writes
//   spool-NNNNNN        records of a build under way
//   *.tmp               a version that was not finished
//   RESERVE             disk space kept for deletes
//
// base, log, index and spool files share one count, and a number is never used twice by what
// somebody may have seen.

namespace basalt::shared_map {

inline constexpr std::string_view kControlName = "CONTROL";
inline constexpr std::string_view kLockName = "LOCK";
inline constexpr std::string_view kReserveName = "RESERVE";

enum class FileKind : uint8_t { kVersion, kBase, kLog, kIndex, kSpool };

struct FileName {
  FileKind kind;
  uint64_t number;
};

std::string NameOf(FileKind kind, uint64_t number);
/// Nothing when it is no such name.
std::optional<FileName> ParseFileName(std::string_view name);
/// A name that a map's directory may hold.
bool IsMapFileName(std::string_view name);

}  // namespace basalt::shared_map
