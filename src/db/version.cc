#include "db/version.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/fork_generation.h"

namespace basalt::db {

TableFile::TableFile(io::FileSystem* fs, std::string path, uint64_t number,
                     table::TableProperties properties, std::shared_ptr<Cache> cache)
    : fs_(fs),
      path_(std::move(path)),
      number_(number),
      fork_generation_(base::ForkGeneration()),
      properties_(std::move(properties)),
      cache_(std::move(cache)) {}

TableFile::~TableFile() {
  if (!obsolete_.load(std::memory_order_relaxed)) return;
  if (fork_generation_ != base::ForkGeneration()) return;
  // A file that stays is found and removed by the next Open.
  static_cast<void>(fs_->RemoveFile(path_));
}

Result<const table::Table*> TableFile::Open() const {
  if (const table::Table* table = OpenedTable(); table != nullptr) return table;
  const std::scoped_lock lock(mutex_);
  if (table_ == nullptr) {
    auto file = fs_->Open(path_, io::OpenMode::kRead);
    if (!file) {
      if (file.error().code() != StatusCode::kNotFound) return file.error();
      return Status(StatusCode::kCorruption,
                    "table " + path_ + " is named by the manifest but is not there");
    }
    BASALT_ASSIGN_OR_RETURN(
        table_, table::Table::Open(std::move(*file), properties_.file_id, properties_.keyspace,
                                   properties_.file_bytes, cache_));
    opened_.store(table_.get(), std::memory_order_release);
  }
  return static_cast<const table::Table*>(table_.get());
}

Version::Version(TableFiles level0, TableFiles level1)
    : levels_{std::move(level0), std::move(level1)} {}

const TableFile* Version::FindInLevel1(std::string_view key) const noexcept {
  const TableFiles& files = levels_[1];
  const auto at = std::lower_bound(files.begin(), files.end(), key,
                                   [](const std::shared_ptr<TableFile>& file, std::string_view k) {
                                     return file->properties().largest_key < k;
                                   });
  if (at == files.end() || (*at)->properties().smallest_key > key) return nullptr;
  return at->get();
}

TableFiles Version::OverlappingLevel1(std::optional<std::string_view> smallest,
                                      std::optional<std::string_view> largest) const {
  TableFiles overlapping;
  for (const std::shared_ptr<TableFile>& file : levels_[1]) {
    const table::TableProperties& properties = file->properties();
    if (smallest && properties.largest_key < *smallest) continue;
    if (largest && properties.smallest_key > *largest) continue;
    overlapping.push_back(file);
  }
  return overlapping;
}

Status Version::CheckOrder() const {
  for (size_t i = 1; i < levels_[1].size(); ++i) {
    const TableFile& left = *levels_[1][i - 1];
    const TableFile& right = *levels_[1][i];
    if (left.properties().largest_key >= right.properties().smallest_key) {
      return Status(StatusCode::kCorruption, "the key ranges of " + left.path() + " and " +
                                                 right.path() + " overlap in level 1");
    }
  }
  for (size_t i = 1; i < levels_[0].size(); ++i) {
    const TableFile& newer = *levels_[0][i - 1];
    const TableFile& older = *levels_[0][i];
    if (older.properties().largest_sequence >= newer.properties().smallest_sequence) {
      return Status(StatusCode::kCorruption, "the sequence ranges of " + newer.path() + " and " +
                                                 older.path() + " overlap in level 0");
    }
  }
  return {};
}

}  // namespace basalt::db
