#include "wal/log_reader.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.h"

namespace basalt::wal {

Result<std::optional<Record>> LogReader::Next() {
  if (file_ == nullptr) {
    BASALT_ASSIGN_OR_RETURN(const bool is_open, OpenFile());
    if (!is_open) return std::optional<Record>();
  }
  while (true) {
    if (next_lsn_ > file_last_lsn_) {
      BASALT_ASSIGN_OR_RETURN(const bool has_more, FindMore());
      if (!has_more) return std::optional<Record>();
    }
    BASALT_ASSIGN_OR_RETURN(const Record record, ReadHere());
    const bool is_next = record.type == LogRecordType::kBatch && record.lsn == next_lsn_;
    if (record.lsn > next_lsn_) {
      return Damaged("has LSN " + std::to_string(record.lsn) + " in place of " +
                     std::to_string(next_lsn_));
    }
    offset_ += record.framed_bytes;
    if (!is_next) continue;
    ++next_lsn_;
    return std::optional(record);
  }
}

Result<bool> LogReader::OpenFile() {
  BASALT_ASSIGN_OR_RETURN(const Log::ReadableFile found, log_->FileWith(next_lsn_));
  if (found.path.empty()) return false;
  auto file = fs_->Open(found.path, io::OpenMode::kRead);
  if (!file && file.error().code() == StatusCode::kNotFound) {
    return Log::HasNoMore(next_lsn_);  // removed since
  }
  if (!file) return file.error();
  std::string first(kRecordsOffset, '\0');
  BASALT_RETURN_IF_ERROR((*file)->ReadExactAt(0, first));
  BASALT_ASSIGN_OR_RETURN(const std::optional<FileHeader> header,
                          DecodeFileHeader(first, found.path));
  if (!header) {
    return Status(StatusCode::kCorruption, "read log " + found.path + ": its header is damaged");
  }
  file_ = std::move(*file);
  header_ = *header;
  offset_ = kRecordsOffset;
  file_end_ = found.end;
  file_last_lsn_ = found.last_lsn;
  bytes_.clear();
  bytes_begin_ = 0;
  return true;
}

Result<bool> LogReader::FindMore() {
  BASALT_ASSIGN_OR_RETURN(const Log::ReadableFile found, log_->FileWith(next_lsn_));
  if (found.path.empty()) return false;
  if (found.path == file_->path()) {
    file_end_ = found.end;
    file_last_lsn_ = found.last_lsn;
    return true;
  }
  file_.reset();
  return OpenFile();
}

Status LogReader::Fill(size_t wanted) {
  const uint64_t left = file_end_ - offset_;
  const uint64_t from = offset_ - bytes_begin_;
  if (offset_ >= bytes_begin_ && from <= bytes_.size() && bytes_.size() - from >= wanted) {
    return {};
  }
  const auto size = static_cast<size_t>(std::min<uint64_t>(left, std::max(wanted, kChunkBytes)));
  bytes_.resize(size);
  bytes_begin_ = offset_;
  Status read = file_->ReadExactAt(offset_, std::span(bytes_));
  if (!read.ok()) bytes_.clear();
  return read;
}

Result<Record> LogReader::ReadHere() {
  if (offset_ >= file_end_) return Damaged("is after the end of the records");
  size_t wanted = std::min<uint64_t>(file_end_ - offset_, kRecordHeaderBytesMax);
  while (true) {
    BASALT_RETURN_IF_ERROR(Fill(wanted));
    const std::string_view here = std::string_view(bytes_).substr(offset_ - bytes_begin_);
    if (const auto record = ReadRecordAt(here, offset_, header_)) return *record;
    // Whole, and not sound; or longer than what is in memory.
    if (here.size() >= file_end_ - offset_) return Damaged("is damaged");
    wanted = static_cast<size_t>(std::min<uint64_t>(file_end_ - offset_, 4 * here.size()));
  }
}

Status LogReader::Damaged(const std::string& what) const {
  return Status(StatusCode::kCorruption, "read log " + file_->path() + ": the record at offset " +
                                             std::to_string(offset_) + " " + what + "; LSN " +
                                             std::to_string(next_lsn_) + " is expected");
}

}  // namespace basalt::wal
