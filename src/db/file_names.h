#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// What stands in a database's directory:
//
//   MANIFEST        which tables there are, and from where the log counts (manifest.h)
//   NNNNNN.tbl      tables
//   NNNNNN.log      the log
//   LOCK            held by the one process that has it open
//   RESERVE         space kept back for a full disk (reserve_file.h)
//   lost/           what recovery and repair cut off the log, and tables newer than the manifest
//   MANIFEST.tmp    a replacement that was not finished
//
// Whatever has another name is somebody else's: it is never removed, nor counted as a table or log.

namespace basalt::db {

inline constexpr std::string_view kManifestName = "MANIFEST";
inline constexpr std::string_view kTemporaryName = "MANIFEST.tmp";
inline constexpr std::string_view kLockName = "LOCK";
inline constexpr std::string_view kReserveName = "RESERVE";
inline constexpr std::string_view kLostName = "lost";
inline constexpr std::string_view kTableSuffix = ".tbl";

std::string TableFileName(uint64_t number);
/// False when `name` is not a table's name.
bool ParseTableFileName(std::string_view name, uint64_t* number);
/// A name that a database directory may hold.
bool IsDatabaseFileName(std::string_view name);

}  // namespace basalt::db
