#include <algorithm>
#include <utility>

#include "base/check.h"
#include "shared_map/build.h"
#include "shared_map/control_page.h"
#include "shared_map/environment.h"
#include "shared_map/file_names.h"
#include "shared_map/generation.h"

// Check and Destroy.

namespace basalt::shared_map {
namespace {

/// Verifies one generation's files, all of them whatever it finds.
class Inspection {
 public:
  Inspection(const std::string& directory, const SharedMapProgressFunction& on_progress,
             const Environment& environment)
      : opener_(environment.fs, directory, environment.boot_id), on_progress_(on_progress) {}

  /// Cancelled, or the report.
  Result<SharedMapReport> Run(const ListFile& listed) {
    std::vector<std::shared_ptr<const BaseFile>> bases;
    uint64_t previous = 0;
    for (const ShardEntry& shard : listed.list.shards) {
      // Shards that share a base stand side by side.
      if (shard.base_file == 0 || shard.base_file == previous) continue;
      previous = shard.base_file;
      auto base = opener_.OpenBase(shard.base_file);
      Note(base.status());
      if (base) bases.push_back(std::move(*base));
    }
    for (const auto& base : bases) total_ += base->figures().records;
    for (const auto& base : bases) {
      const Status status = base->VerifyAll([&](uint64_t records) { return GoOn(records); });
      if (status.code() == StatusCode::kCancelled) return status;
      Note(status);
      report_.records += base->figures().records;
      report_.bytes += base->figures().file_bytes;
    }
    for (const ChangeSetEntry& entry : listed.list.change_sets) VerifyChanges(entry);
    return std::move(report_);
  }

 private:
  bool GoOn(uint64_t records_of_base) const {
    return on_progress_ == nullptr ||
           on_progress_(
               {.done_records = report_.records + records_of_base, .total_records = total_});
  }

  void VerifyChanges(const ChangeSetEntry& entry) {
    auto segments = opener_.OpenSegments(entry);
    Note(segments.status());
    if (!segments) return;
    Note(WalkChanges(*segments, entry, 0, [&](Location location, const Change& change) {
           ++report_.records;
           report_.bytes += uint64_t{change.end - location} * kLogUnit;
         }).status());
  }

  void Note(const Status& status) {
    if (!status.ok()) report_.problems.push_back(status.ToString());
  }

  GenerationOpener opener_;
  const SharedMapProgressFunction& on_progress_;
  SharedMapReport report_;
  uint64_t total_ = 0;
};

Result<SharedMapReport> CheckNewest(const std::string& directory,
                                    const SharedMapProgressFunction& on_progress,
                                    const Environment& environment, uint64_t* word) {
  SharedMapReport report;
  BASALT_ASSIGN_OR_RETURN(uint64_t number, NewestGenerationNumber(environment.fs, directory));
  auto control = ControlPage::Open(environment.fs, io::JoinPath(directory, kControlName),
                                   /*to_write=*/false);
  if (!control) report.problems.push_back(control.error().ToString());
  if (control) *word = (*control)->word();
  if (control) number = (*control)->Number(environment.boot_id).value_or(number);
  const auto map_id = control ? std::optional((*control)->map_id()) : std::nullopt;
  auto listed = ListFile::Open(environment.fs, directory, number, map_id);
  if (!listed) {
    report.problems.push_back(listed.error().ToString());
    return report;
  }
  BASALT_ASSIGN_OR_RETURN(SharedMapReport rest,
                          Inspection(directory, on_progress, environment).Run(*listed));
  rest.problems.insert(rest.problems.begin(), report.problems.begin(), report.problems.end());
  // What a reader would meet: indexes, where they are in use.
  if (rest.ok()) {
    if (const auto attached = AttachMap(directory, environment); !attached) {
      rest.problems.push_back(attached.error().ToString());
    }
  }
  return rest;
}

}  // namespace

Result<SharedMapReport> CheckMap(std::string_view path,
                                 const SharedMapProgressFunction& on_progress,
                                 const Environment& environment) {
  // What a writer replaces meanwhile is gone, and no problem: the newest files are looked at.
  constexpr int kAttemptsMax = 10;
  BASALT_ASSIGN_OR_RETURN(const std::string directory, environment.fs->Resolve(path));
  for (int attempt = 1;; ++attempt) {
    uint64_t before = 0;
    uint64_t after = 0;
    BASALT_ASSIGN_OR_RETURN(SharedMapReport report,
                            CheckNewest(directory, on_progress, environment, &before));
    const auto control = ControlPage::Open(environment.fs, io::JoinPath(directory, kControlName),
                                           /*to_write=*/false);
    if (control) after = (*control)->word();
    if (report.ok() || before == after || attempt == kAttemptsMax) return report;
  }
}

Status DestroyMap(std::string_view path, const Environment& environment) {
  io::FileSystem* const fs = environment.fs;
  BASALT_ASSIGN_OR_RETURN(const std::string directory, fs->Resolve(path));
  BASALT_RETURN_IF_ERROR(NewestGenerationNumber(fs, directory).status());
  {
    BASALT_ASSIGN_OR_RETURN(const auto lock, LockMap(directory, {}, environment));
    BASALT_ASSIGN_OR_RETURN(const auto names, fs->List(directory));
    // The lists first: without them the rest is no map, whatever interrupts this.
    for (const bool lists : {true, false}) {
      for (const std::string& name : names) {
        const std::optional<FileName> parsed = ParseFileName(name);
        const bool is_list = parsed && parsed->kind == FileKind::kGeneration;
        if (!IsMapFileName(name) || is_list != lists || name == kLockName) continue;
        BASALT_RETURN_IF_ERROR(fs->RemoveFile(io::JoinPath(directory, name)));
      }
      if (lists) BASALT_RETURN_IF_ERROR(fs->SyncDirectory(directory));
    }
    // The lock last: once it has no name, another map may be made here.
    BASALT_RETURN_IF_ERROR(fs->RemoveFile(io::JoinPath(directory, kLockName)));
  }
  BASALT_ASSIGN_OR_RETURN(const auto left, fs->List(directory));
  return left.empty() ? fs->RemoveDirectory(directory) : Status();
}

}  // namespace basalt::shared_map
