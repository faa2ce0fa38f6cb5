#include "wal/lost_files.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <tuple>

#include "base/check.h"
#include "wal/log_format.h"

namespace basalt::wal {
namespace {

/// With the suffix ".log", "000042.log" or "000042.log.4096".
struct LostName {
  uint64_t number = 0;
  uint64_t offset = 0;
  std::string name;

  friend bool operator<(const LostName& a, const LostName& b) {
    return std::tie(a.number, a.offset) < std::tie(b.number, b.offset);
  }
};

std::optional<LostName> ParseLostName(const std::string& name, std::string_view suffix) {
  const size_t dot = name.find(suffix);
  if (dot == std::string::npos) return {};
  const size_t end = dot + suffix.size();
  // Files of all kinds are numbered alike.
  const std::optional<uint64_t> number = ParseLogFileName(name.substr(0, dot) + ".log");
  if (!number || *number > kMaxLogFileNumber) return {};
  LostName lost{.number = *number, .name = name};
  if (name.size() > end) {
    const char* const last = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data() + end + 1, last, lost.offset);
    if (name[end] != '.' || error != std::errc() || rest != last) return {};
  }
  return lost;
}

Result<std::vector<LostName>> ListLost(io::FileSystem* fs, const std::string& directory,
                                       std::string_view suffix) {
  std::vector<LostName> lost;
  BASALT_ASSIGN_OR_RETURN(const bool exists, fs->Exists(directory));
  if (!exists) return lost;
  BASALT_ASSIGN_OR_RETURN(const std::vector<std::string> names, fs->List(directory));
  for (const std::string& name : names) {
    if (std::optional<LostName> parsed = ParseLostName(name, suffix))
      lost.push_back(std::move(*parsed));
  }
  std::sort(lost.begin(), lost.end());
  return lost;
}

}  // namespace

LostFiles::LostFiles(io::FileSystem* fs, const std::string& database_directory,
                     std::string_view suffix)
    : fs_(fs),
      database_directory_(database_directory),
      directory_(io::JoinPath(database_directory, "lost")),
      suffix_(suffix) {}

Result<uint64_t> LostFiles::GreatestNumber() {
  BASALT_ASSIGN_OR_RETURN(const std::vector<LostName> lost, ListLost(fs_, directory_, suffix_));
  return lost.empty() ? uint64_t{0} : lost.back().number;
}

Status LostFiles::MakeDirectory() {
  if (is_made_) return {};
  Status made = fs_->CreateDirectory(directory_);
  if (!made.ok() && made.code() != StatusCode::kAlreadyExists) return made;
  BASALT_RETURN_IF_ERROR(fs_->SyncDirectory(database_directory_));
  is_made_ = true;
  return {};
}

Status LostFiles::KeepTail(std::string_view file_name, uint64_t offset, std::string_view bytes) {
  BASALT_RETURN_IF_ERROR(MakeDirectory());
  const std::string path =
      io::JoinPath(directory_, std::string(file_name) + "." + std::to_string(offset));
  BASALT_RETURN_IF_ERROR(io::ReplaceFile(fs_, path, bytes));
  kept_.push_back(path);
  return {};
}

Status LostFiles::Move(std::string_view file_name) {
  BASALT_RETURN_IF_ERROR(MakeDirectory());
  const std::string path = io::JoinPath(directory_, file_name);
  BASALT_RETURN_IF_ERROR(fs_->Rename(io::JoinPath(database_directory_, file_name), path));
  kept_.push_back(path);
  return {};
}

Status LostFiles::SyncMoves() {
  BASALT_RETURN_IF_ERROR(fs_->SyncDirectory(directory_));
  return fs_->SyncDirectory(database_directory_);
}

Status LostFiles::Bound() {
  BASALT_ASSIGN_OR_RETURN(const std::vector<LostName> lost, ListLost(fs_, directory_, suffix_));
  std::vector<uint64_t> sizes;
  uint64_t bytes = 0;
  for (const LostName& each : lost) {
    BASALT_ASSIGN_OR_RETURN(const uint64_t size,
                            fs_->FileSize(io::JoinPath(directory_, each.name)));
    sizes.push_back(size);
    bytes += size;
  }
  size_t count = lost.size();
  for (size_t i = 0; i < lost.size(); ++i) {
    if (count <= kLostFilesMax && bytes <= kLostBytesMax) break;
    const std::string path = io::JoinPath(directory_, lost[i].name);
    if (std::find(kept_.begin(), kept_.end(), path) != kept_.end()) continue;
    BASALT_RETURN_IF_ERROR(fs_->RemoveFile(path));
    --count;
    bytes -= sizes[i];
  }
  return {};
}

}  // namespace basalt::wal
