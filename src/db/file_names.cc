#include "db/file_names.h"

#include <charconv>
#include <cstdio>

namespace basalt::db {
namespace {

bool ParseNumbered(std::string_view name, std::string_view extension, uint64_t* number) {
  if (!name.ends_with(extension)) return false;
  name.remove_suffix(extension.size());
  if (name.size() < 6) return false;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), *number);
  return error == std::errc() && end == name.data() + name.size();
}

}  // namespace

std::string TableFileName(uint64_t number) {
  char name[32];
  std::snprintf(name, sizeof name, "%06llu.tbl", static_cast<unsigned long long>(number));
  return name;
}

bool ParseTableFileName(std::string_view name, uint64_t* number) {
  return ParseNumbered(name, ".tbl", number);
}

bool IsDatabaseFileName(std::string_view name) {
  uint64_t number = 0;
  return name == kManifestName || name == kLockName || name == kLostName || name == kReserveName ||
         ParseTableFileName(name, &number) || ParseNumbered(name, ".log", &number) ||
         name.ends_with(".tmp");
}

}  // namespace basalt::db
