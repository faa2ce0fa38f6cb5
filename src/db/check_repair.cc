#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "db/directory_lock.h"
#include "db/environment.h"
#include "db/file_names.h"
#include "db/log_record.h"
#include "db/manifest.h"
#include "db/version.h"
#include "wal/recovery.h"

// Check and Repair, for a database that no process has open.

namespace basalt::db {
namespace {

/// Bytes of the files that Check reads.
Result<uint64_t> CountBytes(io::FileSystem* fs, const std::string& path, CheckReport* report) {
  uint64_t total = 0;
  BASALT_ASSIGN_OR_RETURN(const std::vector<std::string> names, fs->List(path));
  for (const std::string& name : names) {
    if (!name.ends_with(".tbl") && !name.ends_with(".log") && name != kManifestName) continue;
    BASALT_ASSIGN_OR_RETURN(const uint64_t bytes, fs->FileSize(io::JoinPath(path, name)));
    total += bytes;
    ++report->files;
  }
  return total;
}

/// Why Open refuses the tables that the manifest names.
Result<std::vector<FileFinding>> FindMissing(io::FileSystem* fs, const std::string& path,
                                             const Manifest& manifest) {
  std::vector<FileFinding> findings;
  BASALT_ASSIGN_OR_RETURN(const std::vector<std::string> names, fs->List(path));
  for (const auto& file : VersionOf(manifest, fs, path, {})->MissingFrom(names)) {
    findings.push_back({.file = file->path(), .status = file->NotThere()});
  }
  return findings;
}

class Checker {
 public:
  Checker(const std::string& path, const Environment& environment, const ProgressFunction& progress)
      : path_(path),
        fs_(environment.fs),
        descriptors_(environment.descriptors),
        progress_(progress) {}

  Result<CheckReport> Run() {
    // What cannot be written, on a read-only medium or a full disk say, is read without a lock.
    const auto lock = LockExisting(fs_, path_);
    const StatusCode code = lock.status().code();
    if (!lock && code != StatusCode::kIoError && code != StatusCode::kResourceExhausted) {
      return lock.error();
    }
    BASALT_ASSIGN_OR_RETURN(total_bytes_, CountBytes(fs_, path_, &report_));
    auto manifest = ReadManifest(fs_, path_);
    if (!manifest) {
      if (manifest.error().code() != StatusCode::kCorruption) return manifest.error();
      Find(io::JoinPath(path_, kManifestName), 0, manifest.error());
      return std::move(report_);
    }
    const auto version = VersionOf(*manifest, fs_, path_, {.descriptors = descriptors_});
    if (Status order = version->CheckOrder(); !order.ok()) {
      Find(io::JoinPath(path_, kManifestName), 0, order);
    }
    for (const auto& tree : version->trees()) {
      for (const TableFiles& level : tree->levels) {
        for (const auto& file : level) BASALT_RETURN_IF_ERROR(CheckTable(*file));
      }
    }
    BASALT_RETURN_IF_ERROR(CheckLog(*manifest));
    report_.bytes = total_bytes_;
    Progress(total_bytes_ - done_bytes_);
    return std::move(report_);
  }

 private:
  void Find(const std::string& file, uint64_t offset, const Status& status) {
    report_.findings.push_back({file, offset, status});
  }

  bool Progress(uint64_t bytes) {
    done_bytes_ += bytes;
    return !progress_ || progress_(done_bytes_, total_bytes_);
  }

  /// An error only when the check was cancelled.
  Status CheckTable(const TableFile& file) {
    ++report_.tables;
    const auto table = file.Open();
    if (!table) {
      Find(file.path(), 0, table.error());
      return {};
    }
    const table::TableProperties named = file.OwnProperties();
    const table::TableProperties& held = (*table)->properties();
    if (named.records != held.records || named.deletes != held.deletes ||
        table::CutKey(named.smallest_key) > held.smallest_key ||
        table::CutKey(named.largest_key) < held.largest_key ||
        named.smallest_sequence != held.smallest_sequence ||
        named.largest_sequence != held.largest_sequence) {
      Find(file.path(), 0,
           Status(StatusCode::kCorruption,
                  "the table's properties are not those that the manifest names"));
    }
    report_.records += held.records;
    return (*table)->Verify(
        [&](uint64_t bytes) {
          ++report_.blocks;
          return Progress(bytes);
        },
        [&](uint64_t offset, const Status& fault) { Find(file.path(), offset, fault); });
  }

  Status CheckLog(const Manifest& manifest) {
    const auto visit = [&](const wal::RecordView& record) -> Status {
      ++report_.log_records;
      if (Status valid = CheckLogRecord(record, path_, manifest.next_keyspace_id); !valid.ok())
        Find(path_, 0, valid);
      if (!Progress(record.payload.size())) {
        return Status(StatusCode::kCancelled, "the check was cancelled");
      }
      return {};
    };
    auto recovered =
        wal::Recover(fs_, path_, manifest.ClaimsOfLog(), wal::RecoveryMode::kCheck, visit);
    if (recovered) {
      report_.torn_tail_bytes = recovered->tail_bytes_cut;
      return {};
    }
    if (recovered.error().code() == StatusCode::kCancelled) return recovered.error();
    Find(path_, 0, recovered.error());
    return {};
  }

  const std::string path_;
  io::FileSystem* const fs_;
  io::DescriptorPool* const descriptors_;
  const ProgressFunction& progress_;
  CheckReport report_;
  uint64_t total_bytes_ = 0;
  uint64_t done_bytes_ = 0;
};

}  // namespace

Result<CheckReport> CheckDatabase(std::string_view path, const Environment& environment,
                                  const ProgressFunction& progress) {
  return Checker(std::string(path), environment, progress).Run();
}

Status DestroyDatabase(std::string_view path, const Environment& environment) {
  io::FileSystem* const fs = environment.fs;
  const std::string directory(path);
  BASALT_ASSIGN_OR_RETURN(std::unique_ptr<io::FileLock> lock, LockExisting(fs, directory));
  // The manifest goes first: without it what is left is no database, and can be destroyed again
  // only by hand, but it cannot be opened as one with holes.
  BASALT_RETURN_IF_ERROR(fs->RemoveFile(io::JoinPath(directory, kManifestName)));
  BASALT_RETURN_IF_ERROR(fs->SyncDirectory(directory));
  BASALT_ASSIGN_OR_RETURN(const std::vector<std::string> names, fs->List(directory));
  const std::string lost = io::JoinPath(directory, kLostName);
  for (const std::string& name : names) {
    if (!IsDatabaseFileName(name) || name == kLockName) continue;
    if (name == kLostName) {
      BASALT_ASSIGN_OR_RETURN(const std::vector<std::string> cut, fs->List(lost));
      for (const std::string& file : cut) {
        BASALT_RETURN_IF_ERROR(fs->RemoveFile(io::JoinPath(lost, file)));
      }
      BASALT_RETURN_IF_ERROR(fs->RemoveDirectory(lost));
      continue;
    }
    BASALT_RETURN_IF_ERROR(fs->RemoveFile(io::JoinPath(directory, name)));
  }
  // Files that came back after a power cut would be refused as a database without its manifest.
  BASALT_RETURN_IF_ERROR(fs->SyncDirectory(directory));
  BASALT_RETURN_IF_ERROR(fs->RemoveFile(io::JoinPath(directory, kLockName)));
  lock.reset();
  // Something of somebody else's may be in it.
  static_cast<void>(fs->RemoveDirectory(directory));
  return {};
}

Result<RepairReport> RepairDatabase(std::string_view path, const Environment& environment) {
  const std::string directory(path);
  BASALT_ASSIGN_OR_RETURN(const std::unique_ptr<io::FileLock> lock,
                          LockExisting(environment.fs, directory));
  // As Open does, before anything is moved.
  BASALT_RETURN_IF_ERROR(environment.fs->SyncDirectory(directory));
  BASALT_ASSIGN_OR_RETURN(Manifest manifest, ReadManifest(environment.fs, directory));
  BASALT_ASSIGN_OR_RETURN(
      const wal::RecoveryResult recovered,
      wal::Recover(environment.fs, directory, manifest.ClaimsOfLog(), wal::RecoveryMode::kRepair,
                   [](const wal::RecordView&) { return Status(); }));
  RepairReport report;
  report.last_lsn_kept = recovered.start.next_lsn - 1;
  report.first_lsn_lost = recovered.first_lsn_lost;
  report.last_lsn_lost = recovered.last_lsn_lost;
  report.moved_to_lost = recovered.moved_to_lost;
  BASALT_ASSIGN_OR_RETURN(report.findings, FindMissing(environment.fs, directory, manifest));
  // The manifest no longer vouches for what is lost.
  if (manifest.durable_lsn > report.last_lsn_kept) {
    manifest.durable_lsn = report.last_lsn_kept;
    BASALT_RETURN_IF_ERROR(WriteManifest(environment.fs, directory, manifest));
  }
  return report;
}

}  // namespace basalt::db
