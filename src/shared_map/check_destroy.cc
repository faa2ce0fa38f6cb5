#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/out_of_memory.h"
#include "shared_map/build.h"
#include "shared_map/control_page.h"
#include "shared_map/environment.h"
#include "shared_map/file_names.h"
#include "shared_map/version.h"

// Check and Destroy.

namespace basalt::shared_map {
namespace {

/// Verifies the newest version's files, all of them whatever it finds.
class Inspection {
 public:
  Inspection(std::string directory, const SharedMapProgressFunction& on_progress,
             const Environment& environment)
      : directory_(std::move(directory)),
        environment_(environment),
        on_progress_(on_progress),
        opener_(environment.fs, directory_, environment.boot_id) {}

  /// Opens the files, and verifies the changes. From then on a writer may replace them: what is
  /// mapped stays. Until then one that is gone is a problem, unless another version is newest.
  Status Begin() {
    report_ = {};
    lacking_ = Status();
    BASALT_ASSIGN_OR_RETURN(uint64_t number, NewestVersionNumber(environment_.fs, directory_));
    const auto control = OpenControl();
    Note(control.status());
    std::optional<uint64_t> map_id;
    std::optional<uint64_t> stored;
    if (control) {
      word_ = (*control)->word();
      map_id = (*control)->map_id();
      stored = (*control)->Number(environment_.boot_id);
      number = stored.value_or(number);
    }
    auto listed = ListFile::Open(environment_.fs, directory_, number, map_id);
    Note(listed.status());
    if (!listed) return Status();
    listed_ = std::move(*listed);
    OpenBases();
    for (const ChangeSetEntry& entry : listed_.list.change_sets) {
      VerifyChanges(entry, /*same_boot=*/stored.has_value());
    }
    return Status();
  }
  bool ok() const { return report_.ok(); }
  /// Whether another version has become the newest since Begin.
  bool IsReplaced() const {
    const auto control = OpenControl();
    return control && (*control)->word() != word_;
  }

  /// Cancelled, what kept it from looking, or the report.
  Result<SharedMapReport> Finish() {
    uint64_t total = 0;
    uint64_t done = 0;
    for (const auto& base : bases_) total += base->figures().records;
    for (const auto& base : bases_) {
      const Status status = base->VerifyAll([&](uint64_t records) {
        return on_progress_ == nullptr ||
               on_progress_({.done_records = done + records, .total_records = total});
      });
      if (status.code() == StatusCode::kCancelled) return status;
      Note(status);
      done += base->figures().records;
      report_.bytes += base->figures().file_bytes;
    }
    report_.records += done;
    // What a reader would meet: indexes, where they are in use.
    if (report_.ok()) Note(AttachMap(directory_, environment_).status());
    BASALT_RETURN_IF_ERROR(lacking_);
    return std::move(report_);
  }

 private:
  Result<std::shared_ptr<ControlPage>> OpenControl() const {
    return ControlPage::Open(environment_.fs, io::JoinPath(directory_, kControlName),
                             /*to_write=*/false);
  }

  void OpenBases() {
    // Those of the attempt before are kept until then: most of them are in the next list, too.
    std::vector<std::shared_ptr<const BaseFile>> bases;
    uint64_t previous = 0;
    for (const ShardEntry& shard : listed_.list.shards) {
      // Shards that share a base stand side by side.
      if (shard.base_file == 0 || shard.base_file == previous) continue;
      previous = shard.base_file;
      auto base = opener_.OpenBase(shard.base_file, listed_.list.hash_seed());
      Note(base.status());
      if (base) bases.push_back(std::move(*base));
    }
    bases_ = std::move(bases);
  }

  void VerifyChanges(const ChangeSetEntry& entry, bool same_boot) {
    auto segments = opener_.OpenSegments(entry);
    Note(segments.status());
    if (!segments) return;
    const auto count = [&](Location location, const Change& change) {
      ++report_.records;
      report_.bytes += uint64_t{change.end - location} * kLogUnit;
    };
    if (!same_boot || entry.segments.back().end != 0) {
      Note(WalkChanges(*segments, entry, 0, count).status());
      return;
    }
    // A writer may be at it: nothing can be said of what is not visible yet.
    const std::string path = opener_.PathOf(NameOf(FileKind::kIndex, entry.index_file));
    const auto index = ChangeIndex::Open(environment_.fs, path, environment_.boot_id);
    Note(index.status());
    if (!index) return;
    const std::optional<uint64_t> end = *index ? (*index)->visible_end() : std::nullopt;
    if (!end || *end > kLocationMax) {
      Note(Status(
          StatusCode::kCorruption,
          path + ": is damaged; opening the map for writing (SharedMap::Open) makes a new one"));
      return;
    }
    Note(WalkVisible(*segments, entry, static_cast<Location>(*end), count));
  }

  void Note(const Status& status) {
    if (status.ok()) return;
    // It could not be read, which says nothing about what it holds.
    if (status.code() == StatusCode::kResourceExhausted || status.code() == StatusCode::kIoError) {
      lacking_ = status;
    }
    report_.problems.push_back(status.ToString());
  }

  const std::string directory_;
  const Environment environment_;
  const SharedMapProgressFunction& on_progress_;
  VersionOpener opener_;
  ListFile listed_;
  std::vector<std::shared_ptr<const BaseFile>> bases_;
  uint64_t word_ = 0;  // Of the control page.
  SharedMapReport report_;
  Status lacking_;  // What kept it from looking.
};

}  // namespace

Result<SharedMapReport> CheckMap(std::string_view path,
                                 const SharedMapProgressFunction& on_progress,
                                 const Environment& environment) {
  return base::OrOutOfMemory([&]() -> Result<SharedMapReport> {
    BASALT_ASSIGN_OR_RETURN(std::string directory, ResolveMap(environment.fs, path));
    Inspection inspection(std::move(directory), on_progress, environment);
    constexpr int kAttemptsMax = 1000;
    int attempt = 0;
    do {
      BASALT_RETURN_IF_ERROR(inspection.Begin());
    } while (!inspection.ok() && ++attempt < kAttemptsMax && inspection.IsReplaced());
    return inspection.Finish();
  });
}

namespace {

Status DestroyIn(std::string_view path, const Environment& environment) {
  io::FileSystem* const fs = environment.fs;
  BASALT_ASSIGN_OR_RETURN(const std::string directory, ResolveMap(fs, path));
  BASALT_RETURN_IF_ERROR(NewestVersionNumber(fs, directory).status());
  {
    BASALT_ASSIGN_OR_RETURN(const auto lock, LockMap(directory, {}, environment));
    BASALT_ASSIGN_OR_RETURN(const auto names, fs->List(directory));
    // The lists first: without them the rest is no map, whatever interrupts this.
    for (const bool lists : {true, false}) {
      for (const std::string& name : names) {
        const std::optional<FileName> parsed = ParseFileName(name);
        const bool is_list = parsed && parsed->kind == FileKind::kVersion;
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

}  // namespace

Status DestroyMap(std::string_view path, const Environment& environment) {
  return base::OrOutOfMemory([&] { return DestroyIn(path, environment); });
}

}  // namespace basalt::shared_map
