#include "db/file_names.h"

#include <charconv>
#include <cstdio>

namespace basalt::db {
namespace {

std::string NumberedName(uint64_t number, const char* extension) {
  char name[32];
  std::snprintf(name, sizeof name, "%06llu%s", static_cast<unsigned long long>(number), extension);
  return name;
}

// Only the name that the number gets: "0000010.tbl" is somebody else's.
bool ParseNumbered(std::string_view name, const char* extension, uint64_t* number) {
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), *number);
  return parsed.ec == std::errc() && name == NumberedName(*number, extension);
}

}  // namespace

std::string TableFileName(uint64_t number) { return NumberedName(number, ".tbl"); }

bool ParseTableFileName(std::string_view name, uint64_t* number) {
  return ParseNumbered(name, ".tbl", number);
}

bool IsDatabaseFileName(std::string_view name) {
  uint64_t number = 0;
  return name == kManifestName || name == kLockName || name == kLostName || name == kReserveName ||
         ParseTableFileName(name, &number) || ParseNumbered(name, ".log", &number) ||
         name == kTemporaryName;
}

}  // namespace basalt::db
