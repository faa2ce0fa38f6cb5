// Maintenance of databases that no process has open: check, repair, destroy.

#include "basalt/db.h"
#include "basalt/json.h"
#include "c_api/call.h"
#include "c_api/handles.h"

namespace basalt::c_api {
namespace {

/// A report, and Corruption where it has findings.
template <class Report>
Status GiveReport(const Result<Report>& report, const char* path, char** json) {
  if (json != nullptr) *json = nullptr;
  if (!report) return report.error();
  if (json != nullptr) *json = CopyForCaller(ToJson(*report));
  if (report->ok()) return {};
  const FileFinding& first = report->findings.front();
  return Status(StatusCode::kCorruption,
                std::string(path) + ": " + std::to_string(report->findings.size()) +
                    " findings, the first in " + first.file + " at offset " +
                    std::to_string(first.offset) + ": " + first.status.ToString());
}

}  // namespace
}  // namespace basalt::c_api

using namespace basalt;         // NOLINT(google-*)
using namespace basalt::c_api;  // NOLINT(google-*)

int basalt_check(const char* path, char** report, basalt_error* error) {
  return Call(error, [&]() -> Status {
    if (report != nullptr) *report = nullptr;
    BASALT_C_REQUIRE(path != nullptr, "path");
    return GiveReport(DB::Check(path), path, report);
  });
}

int basalt_repair(const char* path, char** report, basalt_error* error) {
  return Call(error, [&]() -> Status {
    if (report != nullptr) *report = nullptr;
    BASALT_C_REQUIRE(path != nullptr, "path");
    return GiveReport(DB::Repair(path), path, report);
  });
}

int basalt_destroy(const char* path, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(path != nullptr, "path");
    return DB::Destroy(path);
  });
}
