#include "tools/basalt/map_arguments.h"

#include "db/file_names.h"
#include "io/file_system.h"
#include "shared_map/file_names.h"
#include "tools/basalt/figures.h"

namespace basalt::tools {

ExitCode ReportMap(const Status& status) {
  const ExitCode code = ReportPlainly(status);
  if (status.code() == StatusCode::kCorruption) {
    Complain("`basalt map check MAP` lists all faults; build the map again, or restore a copy");
  }
  return code;
}

ExitCode ReportMapThatIsThere(const Status& status) {
  const ExitCode code = ReportMap(status);
  if (status.code() == StatusCode::kNotFound) {
    Complain("`map build` and `map put` make a map that is not there; the other verbs never do");
  }
  return code;
}

Status CheckMapPath(const std::string& path, std::string_view instead, StatusCode code) {
  if (path == ":memory:") {
    return {StatusCode::kInvalidArgument,
            "a map in memory ends with this command: name a directory"};
  }
  // What cannot be looked at is reported by whatever opens the map.
  const auto holds = [&](std::string_view name) {
    return io::FileSystem::Posix()->Exists(io::JoinPath(path, name)).value_or(false);
  };
  if (!holds(db::kManifestName) || holds(shared_map::kControlName)) return {};
  return {code, path + " is a database and no map: " + std::string(instead)};
}

std::string LayoutText(const SharedMapStats& stats) {
  if (stats.base_records == 0) return "none";
  if (stats.fixed_shards == stats.shards) return "fixed";
  if (stats.fixed_shards == 0) return "variable";
  return "fixed in " + FormatCount(stats.fixed_shards) + " of " + FormatCount(stats.shards) +
         " shards";
}

}  // namespace basalt::tools
