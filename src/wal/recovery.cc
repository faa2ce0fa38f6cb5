#include "wal/recovery.h"

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/hexadecimal.h"
#include "wal/log_scan.h"
#include "wal/lost_files.h"

namespace basalt::wal {
namespace {

constexpr size_t kNone = SIZE_MAX;

/// One file as recovery knows it. The scan is only made for files of the chain.
struct KnownFile {
  uint64_t number = 0;
  std::string name;
  std::string path;
  const io::File* pinned = nullptr;  ///< Null: it is opened for each reading.
  std::optional<FileHeader> header;  ///< Nothing: neither copy is whole, or it is a stranger's.
  bool is_stranger = false;          ///< It names another database.
  bool lost_header = false;          ///< It has none, and not for a crash.
  /// What counts of it: to here, as its successor's header says, or all.
  uint64_t limit = UINT64_MAX;
  FileScan scan;
};

/// Where the log ends: behind run `run` of chain file `file` (kNone: before the first file),
/// because the LSN `missing` is not there.
struct LogEnd {
  size_t file = kNone;
  size_t run = 0;
  uint64_t offset = 0;
  Lsn missing = 0;
  Lsn next_found = 0;  ///< The first valid record behind the hole; 0: none.
};

/// A part of a file to replay.
struct Segment {
  size_t file;
  uint64_t begin;
  uint64_t end;
  uint64_t last_sequence;
};

class Recovery {
 public:
  Recovery(io::FileSystem* fs, const std::string& directory, const ManifestClaims& claims,
           RecoveryMode mode, const PinnedLog* pinned)
      : fs_(fs),
        pinned_(pinned),
        directory_(directory),
        database_id_(claims.database_id),
        flushed_(claims.flushed_lsn),
        mode_(mode),
        lost_(fs, directory, ".log") {
    result_.greatest_durable_lsn = std::max(claims.flushed_lsn, claims.durable_lsn);
  }

  Result<RecoveryResult> Run(const std::function<Status(const RecordView&)>& replay) {
    BASALT_RETURN_IF_ERROR(FindFiles());
    BuildChain();
    BASALT_RETURN_IF_ERROR(ScanChain());
    FindEnd();
    BASALT_RETURN_IF_ERROR(JudgeEnd());
    BASALT_RETURN_IF_ERROR(Replay(replay));
    BASALT_RETURN_IF_ERROR(CutTail());
    FillStart();
    return std::move(result_);
  }

 private:
  Status FindFiles();
  Status ListFiles();
  void TakePinned();
  Status ReadHeader(KnownFile* file);
  Result<const io::File*> Open(const KnownFile& file, std::unique_ptr<io::File>* opened) const;
  void BuildChain();
  Status ScanChain();
  Status ScanAgain(size_t i);
  void FindEnd();
  bool FollowsFrom(const KnownFile& file, const FileHeader& next) const;
  Status JudgeEnd();
  Status JudgeSearch();
  Status JudgeHeaders();
  Status Replay(const std::function<Status(const RecordView&)>& replay);
  Status ReplaySegment(const Segment& segment,
                       const std::function<Status(const RecordView&)>& replay);
  Status CutTail();
  Status TruncateEndFile();
  Status RemoveLaterFiles();
  void FillStart();
  /// Reads a whole file into `bytes_`, unless it is what lies there.
  Status Load(size_t file);

  io::FileSystem* const fs_;
  const PinnedLog* const pinned_;  // Null: the directory's files.
  const std::string directory_;
  const uint64_t database_id_;
  const Lsn flushed_;
  const RecoveryMode mode_;
  LostFiles lost_;

  std::vector<KnownFile> files_;  // By number.
  std::vector<size_t> chain_;     // Those to replay from, ascending.
  std::vector<Segment> segments_;
  uint64_t greatest_sequence_ = 0;  // Of all segments.
  LogEnd end_;
  std::unique_ptr<char[]> buffer_;
  size_t buffer_capacity_ = 0;
  std::string_view bytes_;  // Of file `loaded_`.
  size_t loaded_ = kNone;
  RecoveryResult result_;
};

Status Recovery::FindFiles() {
  if (pinned_ != nullptr) {
    TakePinned();
  } else {
    BASALT_RETURN_IF_ERROR(ListFiles());
  }
  for (KnownFile& file : files_) BASALT_RETURN_IF_ERROR(ReadHeader(&file));
  return {};
}

void Recovery::TakePinned() {
  for (const PinnedLog::PinnedFile& pinned : pinned_->files) {
    KnownFile& file = files_.emplace_back();
    file.number = pinned.number;
    file.name = LogFileName(pinned.number);
    file.path = pinned.file->path();
    file.pinned = pinned.file.get();
  }
}

Status Recovery::ListFiles() {
  BASALT_ASSIGN_OR_RETURN(const std::vector<std::string> names, fs_->List(directory_));
  for (const std::string& name : names) {
    const std::optional<uint64_t> number = ParseLogFileName(name);
    if (!number) continue;
    const std::string path = io::JoinPath(directory_, name);
    if (*number > kMaxLogFileNumber) {
      return Status(
          StatusCode::kCorruption,
          "log " + path +
              " does not belong to this database: its number is above the maximum; move it "
              "elsewhere");
    }
    KnownFile& file = files_.emplace_back();
    file.number = *number;
    file.name = name;
    file.path = path;
  }
  std::sort(files_.begin(), files_.end(),
            [](const KnownFile& a, const KnownFile& b) { return a.number < b.number; });
  BASALT_ASSIGN_OR_RETURN(const uint64_t lost_number, lost_.GreatestNumber());
  const uint64_t greatest = files_.empty() ? 0 : files_.back().number;
  result_.start.next_file_number = std::max(greatest, lost_number) + 1;
  return {};
}

Result<const io::File*> Recovery::Open(const KnownFile& file,
                                       std::unique_ptr<io::File>* opened) const {
  if (file.pinned != nullptr) return file.pinned;
  BASALT_ASSIGN_OR_RETURN(*opened, fs_->Open(file.path, io::OpenMode::kRead));
  return static_cast<const io::File*>(opened->get());
}

Status Recovery::ReadHeader(KnownFile* file) {
  std::unique_ptr<io::File> opened;
  BASALT_ASSIGN_OR_RETURN(const io::File* const handle, Open(*file, &opened));
  char first_bytes[kRecordsOffset];
  // A header that is being written at this moment may be read in pieces of before and after. What
  // was written before the last of them is there at the second reading.
  for (int readings = file->pinned == nullptr ? 1 : 2; readings > 0; --readings) {
    BASALT_ASSIGN_OR_RETURN(const size_t read, handle->ReadAt(0, first_bytes));
    BASALT_ASSIGN_OR_RETURN(file->header, DecodeFileHeader({first_bytes, read}, file->path));
    file->lost_header = !file->header && !MayBeUnfinishedHeader({first_bytes, read});
    if (!file->lost_header) break;
  }
  if (!file->header) return {};
  const uint64_t named_id = file->header->database_id;
  file->is_stranger = named_id != 0 && database_id_ != 0 && named_id != database_id_;
  if (!file->is_stranger) {
    result_.greatest_durable_lsn =
        std::max(result_.greatest_durable_lsn, file->header->durable_lsn);
    return {};
  }
  if (mode_ == RecoveryMode::kRepair) {
    file->header.reset();
    return {};
  }
  return Status(StatusCode::kCorruption,
                "log " + file->path + " is of the database with id " + base::Hexadecimal(named_id) +
                    ", while the MANIFEST is of the one with id " +
                    base::Hexadecimal(database_id_) +
                    ": put the right file of the two back, or run `basalt repair " + directory_ +
                    "` to move the log to lost/");
}

// From the newest sound header back to the file with the first LSN that is not flushed. Files whose
// id no later header names are what is left of a file that could not be created. Where the named
// predecessor is missing the chain goes on with whatever is older: FindEnd sees the hole.
void Recovery::BuildChain() {
  size_t next = kNone;
  for (size_t i = files_.size(); i-- > 0;) {
    KnownFile& file = files_[i];
    if (!file.header) continue;
    if (next != kNone) {
      const FileHeader& successor = *files_[next].header;
      const auto is_predecessor = [&](const KnownFile& older) {
        return older.header && older.header->file_id == successor.previous_file_id;
      };
      const auto older_end = files_.begin() + static_cast<ptrdiff_t>(i) + 1;
      if (is_predecessor(file)) {
        file.limit = successor.previous_length;
      } else if (std::any_of(files_.begin(), older_end, is_predecessor)) {
        continue;
      }
    }
    chain_.push_back(i);
    next = i;
    if (file.header->first_lsn <= flushed_ + 1) break;
  }
  std::reverse(chain_.begin(), chain_.end());
}

Status Recovery::ScanChain() {
  for (const size_t i : chain_) {
    KnownFile& file = files_[i];
    BASALT_RETURN_IF_ERROR(Load(i));
    BASALT_ASSIGN_OR_RETURN(file.scan,
                            ScanFile(bytes_.substr(0, file.limit), *file.header, file.path));
    const bool is_damaged = file.scan.runs.size() > 1 || file.scan.search_given_up_at != 0;
    if (is_damaged && file.pinned != nullptr) BASALT_RETURN_IF_ERROR(ScanAgain(i));
    result_.greatest_durable_lsn = std::max(result_.greatest_durable_lsn, file.scan.durable_lsn);
  }
  return {};
}

// Records that are being written at this moment may be missing where one behind them was read. They
// were written before that one, so that the second reading has all up to where the first one ended.
Status Recovery::ScanAgain(size_t i) {
  KnownFile& file = files_[i];
  file.limit = std::min(file.limit, NonZeroEnd(bytes_.substr(0, file.limit)));
  loaded_ = kNone;
  BASALT_RETURN_IF_ERROR(Load(i));
  BASALT_ASSIGN_OR_RETURN(file.scan,
                          ScanFile(bytes_.substr(0, file.limit), *file.header, file.path));
  return {};
}

// LSNs decide: the log goes on as long as the next one is found, wherever a file may end.
void Recovery::FindEnd() {
  end_.missing = flushed_ + 1;
  for (size_t c = 0; c < chain_.size(); ++c) {
    const size_t i = chain_[c];
    const KnownFile& file = files_[i];
    if (file.header->first_lsn > end_.missing) {
      end_.next_found = file.header->first_lsn;
      return;
    }
    const LogEnd before = end_;
    const size_t segments_before = segments_.size();
    end_.file = i;
    for (size_t r = 0; r < file.scan.runs.size(); ++r) {
      const RecordRun& run = file.scan.runs[r];
      if (run.first_lsn > end_.missing) {
        end_.next_found = run.first_lsn;
        return;
      }
      end_.run = r;
      end_.offset = run.end;
      if (run.last_lsn < end_.missing) continue;
      segments_.push_back({.file = i,
                           .begin = run.begin,
                           .end = run.batches_end,
                           .last_sequence = run.last_sequence});
      end_.missing = run.last_lsn + 1;
    }
    if (c + 1 == chain_.size()) return;
    const KnownFile& next = files_[chain_[c + 1]];
    const bool is_named = next.header->previous_file_id == file.header->file_id;
    if (is_named && FollowsFrom(file, *next.header)) continue;
    // The file that the next one names is gone, or this one is not as it is named. If this one is
    // none that the next could continue, it is not of this log.
    if (is_named || end_.missing > next.header->first_lsn) {
      segments_.resize(segments_before);
      end_ = before;
    }
    end_.next_found = next.header->first_lsn;
    return;
  }
}

/// Whether `file`, scanned without finding a hole that matters, is what the header `next` names. A
/// file that ends too early is not judged here: its missing LSNs are the hole.
bool Recovery::FollowsFrom(const KnownFile& file, const FileHeader& next) const {
  const RecordRun& last = file.scan.runs.back();
  if (last.last_lsn < next.previous_last_lsn) return true;
  return last.last_lsn == next.previous_last_lsn && last.batches_end == next.previous_length &&
         next.first_lsn == last.last_lsn + 1 &&
         (file.scan.runs.size() > 1 || file.scan.running_hash == next.previous_running_hash);
}

/// Whether all that lies behind the end is known, so that it can be a torn tail.
Status Recovery::JudgeSearch() {
  for (const size_t i : chain_) {
    const KnownFile& file = files_[i];
    const uint64_t given_up_at = file.scan.search_given_up_at;
    if (given_up_at == 0 || (end_.file != kNone && i < end_.file)) continue;
    if (mode_ == RecoveryMode::kRepair) {
      result_.first_lsn_lost = end_.missing;
      result_.last_lsn_lost = end_.missing;
      return {};
    }
    return Status(
        StatusCode::kCorruption,
        "read log " + file.path + " at offset " + std::to_string(file.scan.runs.back().end) +
            ": damaged, and too many of the bytes there look like records; the search ended at "
            "offset " +
            std::to_string(given_up_at) + ". It is unknown whether the records from LSN " +
            std::to_string(end_.missing) +
            " on were durable: restore the file, or run `basalt repair " + directory_ +
            "` to keep the records before them");
  }
  return {};
}

/// Whether all files behind the end can be the tail: a file whose header was overwritten may hold
/// what was acknowledged, but nothing in it can be read.
Status Recovery::JudgeHeaders() {
  for (size_t i = end_.file == kNone ? 0 : end_.file + 1; i < files_.size(); ++i) {
    if (!files_[i].lost_header) continue;
    if (mode_ == RecoveryMode::kRepair) {
      result_.first_lsn_lost = end_.missing;
      result_.last_lsn_lost = end_.missing;
      return {};
    }
    return Status(StatusCode::kCorruption,
                  "read log " + files_[i].path +
                      " at offset 0: both copies of its header are damaged, which a crash cannot "
                      "cause. It is "
                      "unknown whether the file holds acknowledged records, from LSN " +
                      std::to_string(end_.missing) +
                      " on: restore the file, or run `basalt repair " + directory_ +
                      "` to continue without it");
  }
  return {};
}

Status Recovery::JudgeEnd() {
  if (end_.missing > result_.greatest_durable_lsn) {
    BASALT_RETURN_IF_ERROR(JudgeSearch());
    return JudgeHeaders();
  }
  const Lsn last_lost = result_.greatest_durable_lsn;
  if (mode_ == RecoveryMode::kRepair) {
    result_.first_lsn_lost = end_.missing;
    result_.last_lsn_lost = last_lost;
    return {};
  }
  const Lsn last_missing =
      end_.next_found > 0 ? std::max(end_.missing, end_.next_found - 1) : last_lost;
  std::string path = files_.empty() ? directory_ : files_.front().path;
  uint64_t offset = 0;
  if (end_.file != kNone) {
    path = files_[end_.file].path;
    offset = end_.offset;
    // A next file that lost its header is what is damaged, not the end of this one.
    const bool ends_whole = end_.run + 1 == files_[end_.file].scan.runs.size();
    if (ends_whole && end_.file + 1 < files_.size() && !files_[end_.file + 1].header) {
      path = files_[end_.file + 1].path;
      offset = 0;
    }
  }
  return Status(
      StatusCode::kCorruption,
      "read log " + path + " at offset " + std::to_string(offset) + ": the records with LSN " +
          std::to_string(end_.missing) + " to " + std::to_string(last_missing) +
          " are damaged or missing, though everything up to LSN " + std::to_string(last_lost) +
          " was durable; restore the file, or run `basalt repair " + directory_ +
          "` to keep the records before them");
}

Status Recovery::Replay(const std::function<Status(const RecordView&)>& replay) {
  for (const Segment& segment : segments_) {
    greatest_sequence_ = std::max(greatest_sequence_, segment.last_sequence);
  }
  for (const Segment& segment : segments_) {
    BASALT_RETURN_IF_ERROR(Load(segment.file));
    BASALT_RETURN_IF_ERROR(ReplaySegment(segment, replay));
  }
  return {};
}

Status Recovery::ReplaySegment(const Segment& segment,
                               const std::function<Status(const RecordView&)>& replay) {
  const KnownFile& file = files_[segment.file];
  Lsn next = flushed_ + 1 + result_.records;
  for (uint64_t offset = segment.begin; offset < segment.end;) {
    const std::optional<Record> record = ReadRecord(bytes_, offset, *file.header);
    if (!record) {
      return Status(StatusCode::kCorruption, "read log " + file.path + " at offset " +
                                                 std::to_string(offset) +
                                                 ": the record was whole a moment ago and is not "
                                                 "any more; check the disk");
    }
    offset += record->framed_bytes;
    if (record->type != LogRecordType::kBatch || record->lsn != next) continue;
    BASALT_RETURN_IF_ERROR(replay({.lsn = record->lsn,
                                   .first_sequence = record->first_sequence,
                                   .count = record->count,
                                   .payload = record->payload,
                                   .greatest_sequence = greatest_sequence_}));
    ++next;
    ++result_.records;
    result_.log_bytes += record->framed_bytes;
    result_.last_sequence = std::max(result_.last_sequence, record->last_sequence());
  }
  return {};
}

// First the end file is shortened, then later files go: until the last step the hole stays visible,
// so that a crash in between changes no verdict.
Status Recovery::CutTail() {
  BASALT_RETURN_IF_ERROR(TruncateEndFile());
  BASALT_RETURN_IF_ERROR(RemoveLaterFiles());
  result_.moved_to_lost = lost_.kept();
  return result_.moved_to_lost.empty() ? Status() : lost_.Bound();
}

Status Recovery::TruncateEndFile() {
  if (end_.file == kNone) return {};
  const KnownFile& file = files_[end_.file];
  BASALT_RETURN_IF_ERROR(Load(end_.file));
  const uint64_t tail_end = NonZeroEnd(bytes_);
  if (tail_end <= end_.offset) return {};
  const std::string_view tail = bytes_.substr(end_.offset, tail_end - end_.offset);
  result_.tail_file = file.path;
  result_.tail_offset = end_.offset;
  result_.tail_bytes_cut = tail.size();
  if (mode_ == RecoveryMode::kCheck) return {};
  BASALT_RETURN_IF_ERROR(lost_.KeepTail(file.name, end_.offset, tail));
  BASALT_ASSIGN_OR_RETURN(const std::unique_ptr<io::File> handle,
                          fs_->Open(file.path, io::OpenMode::kReadWrite));
  BASALT_RETURN_IF_ERROR(handle->Truncate(end_.offset));
  return handle->Sync();
}

Status Recovery::RemoveLaterFiles() {
  bool has_changed = false;
  const size_t first = end_.file == kNone ? 0 : end_.file + 1;
  for (size_t i = 0; i < files_.size(); ++i) {
    const KnownFile& file = files_[i];
    if (i < first && !file.is_stranger) continue;
    BASALT_RETURN_IF_ERROR(Load(i));
    const uint64_t bytes = NonZeroEnd(bytes_);
    if (bytes > 0 && result_.tail_file.empty()) result_.tail_file = file.path;
    result_.tail_bytes_cut += bytes;
    if (mode_ == RecoveryMode::kCheck) continue;
    has_changed = true;
    if (bytes > 0) {
      BASALT_RETURN_IF_ERROR(lost_.Move(file.name));
    } else {
      BASALT_RETURN_IF_ERROR(fs_->RemoveFile(file.path));
    }
  }
  if (!has_changed) return {};
  return lost_.kept().empty() ? fs_->SyncDirectory(directory_) : lost_.SyncMoves();
}

void Recovery::FillStart() {
  LogStart& start = result_.start;
  start.database_id = database_id_;
  start.next_lsn = end_.missing;
  start.durable_lsn = std::min(result_.greatest_durable_lsn, end_.missing - 1);
  start.previous_last_lsn = end_.missing - 1;
  bool is_closed = files_.empty();
  if (end_.file != kNone) {
    const KnownFile& file = files_[end_.file];
    const RecordRun& run = file.scan.runs[end_.run];
    start.previous_file_id = file.header->file_id;
    start.previous_last_lsn = run.last_lsn;
    start.previous_length = run.batches_end;
    start.previous_running_hash = file.scan.running_hash;
    is_closed = run.is_closed() && end_.file + 1 == files_.size();
  }
  start.closed_cleanly = is_closed && result_.tail_bytes_cut == 0 && result_.first_lsn_lost == 0;
  result_.closed_cleanly = start.closed_cleanly;
}

Status Recovery::Load(size_t i) {
  if (loaded_ == i) return {};
  loaded_ = kNone;
  const std::string& path = files_[i].path;
  std::unique_ptr<io::File> opened;
  BASALT_ASSIGN_OR_RETURN(const io::File* const handle, Open(files_[i], &opened));
  BASALT_ASSIGN_OR_RETURN(const uint64_t size, handle->Size());
  if (size > buffer_capacity_) {
    buffer_capacity_ = 0;
    buffer_.reset();
    buffer_.reset(new (std::nothrow) char[size]);
    if (buffer_ == nullptr) {
      return Status(StatusCode::kResourceExhausted,
                    "read log " + path + ": no memory for its " + std::to_string(size) + " bytes");
    }
    buffer_capacity_ = size;
  }
  BASALT_ASSIGN_OR_RETURN(const size_t read, handle->ReadAt(0, std::span(buffer_.get(), size)));
  bytes_ = {buffer_.get(), read};
  loaded_ = i;
  return {};
}

}  // namespace

Result<RecoveryResult> Recover(io::FileSystem* fs, const std::string& directory,
                               const ManifestClaims& claims, RecoveryMode mode,
                               const std::function<Status(const RecordView&)>& replay) {
  return Recovery(fs, directory, claims, mode, nullptr).Run(replay);
}

// A directory is not read at one moment: of two files that are made meanwhile it may show the later
// one alone. All that were made before a file that was seen once are there when it is read again.
Result<PinnedLog> PinLog(io::FileSystem* fs, const std::string& directory) {
  uint64_t greatest = 0;
  std::vector<uint64_t> numbers;
  for (const bool is_first : {true, false}) {
    BASALT_ASSIGN_OR_RETURN(const std::vector<std::string> names, fs->List(directory));
    for (const std::string& name : names) {
      const std::optional<uint64_t> number = ParseLogFileName(name);
      if (!number) continue;
      if (is_first) greatest = std::max(greatest, *number);
      if (!is_first && *number <= greatest) numbers.push_back(*number);
    }
  }
  std::ranges::sort(numbers);
  PinnedLog log;
  for (const uint64_t number : numbers) {
    BASALT_ASSIGN_OR_RETURN(
        auto file, fs->Open(io::JoinPath(directory, LogFileName(number)), io::OpenMode::kRead));
    log.files.push_back({.number = number, .file = std::move(file)});
  }
  return log;
}

Result<RecoveryResult> RecoverPinned(const PinnedLog& log, const std::string& directory,
                                     const ManifestClaims& claims,
                                     const std::function<Status(const RecordView&)>& replay) {
  return Recovery(nullptr, directory, claims, RecoveryMode::kCheck, &log).Run(replay);
}

}  // namespace basalt::wal
