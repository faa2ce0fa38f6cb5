#include "db/unnamed_files.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "base/check.h"
#include "db/file_names.h"
#include "table/table.h"
#include "wal/lost_files.h"

namespace basalt::db {
namespace {

/// No database gets near it, so that the next number is always greater.
constexpr uint64_t kMaxTableNumber = uint64_t{1} << 62;

std::set<uint64_t> NumbersOf(const Version& version) {
  std::set<uint64_t> numbers;
  for (const auto& tree : version.trees()) {
    for (const TableFiles& level : tree->levels) {
      for (const std::shared_ptr<TableFile>& file : level) numbers.insert(file->number());
    }
  }
  return numbers;
}

/// Whether the file is a whole table of records above `last_sequence`. One that a newer version has
/// written cannot be asked, and counts as such.
Result<bool> IsNewerTable(io::FileSystem* fs, const std::string& path,
                          base::SequenceNumber last_sequence) {
  if (!path.ends_with(kTableSuffix)) return false;
  BASALT_ASSIGN_OR_RETURN(std::unique_ptr<io::File> file, fs->Open(path, io::OpenMode::kRead));
  const auto table = table::Table::OpenUnnamed(std::move(file));
  if (table) return (*table)->properties().largest_sequence > last_sequence;
  if (table.error().code() == StatusCode::kUnsupported) return true;
  if (table.error().code() == StatusCode::kCorruption) return false;
  return table.error();
}

}  // namespace

Result<UnnamedFiles> UnnamedFiles::Find(io::FileSystem* fs, const std::string& directory,
                                        const std::vector<std::string>& names,
                                        const Version& version) {
  UnnamedFiles found;
  found.fs_ = fs;
  found.directory_ = directory;
  const std::set<uint64_t> named = NumbersOf(version);
  // A table that is moved to lost/ must find no other one there.
  BASALT_ASSIGN_OR_RETURN(const uint64_t lost,
                          wal::LostFiles(fs, directory, kTableSuffix).GreatestNumber());
  found.next_table_number_ = lost + 1;
  for (const std::string& name : names) {
    uint64_t number = 0;
    const bool is_table = ParseTableFileName(name, &number);
    if (is_table && number > kMaxTableNumber) {
      return Status(StatusCode::kCorruption,
                    "table " + io::JoinPath(directory, name) +
                        " does not belong to this database: its number is above "
                        "the maximum; move it elsewhere");
    }
    if (is_table) found.next_table_number_ = std::max(found.next_table_number_, number + 1);
    if (is_table ? !named.contains(number) : name == kTemporaryName) found.names_.push_back(name);
  }
  return found;
}

Result<std::vector<std::string>> UnnamedFiles::Remove(base::SequenceNumber last_sequence) {
  wal::LostFiles lost(fs_, directory_, kTableSuffix);
  for (const std::string& name : std::exchange(names_, {})) {
    const std::string path = io::JoinPath(directory_, name);
    BASALT_ASSIGN_OR_RETURN(const bool is_newer, IsNewerTable(fs_, path, last_sequence));
    BASALT_RETURN_IF_ERROR(is_newer ? lost.Move(name) : fs_->RemoveFile(path));
  }
  if (lost.kept().empty()) return lost.kept();
  // Before their sequence numbers are given again.
  BASALT_RETURN_IF_ERROR(lost.SyncMoves());
  BASALT_RETURN_IF_ERROR(lost.Bound());
  return lost.kept();
}

}  // namespace basalt::db
