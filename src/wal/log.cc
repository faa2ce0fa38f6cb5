#include "wal/log.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <span>

#include "base/check.h"
#include "base/out_of_memory.h"
#include "base/pause.h"
#include "base/random.h"
#include "wal/log_parts.h"

namespace basalt::wal {
namespace {

/// A record with a larger payload is not written under the lock.
constexpr size_t kAtOnceBytesMax = 4096;

}  // namespace

std::string_view Log::Group::Frame(const FileHeader& header, uint64_t offset,
                                   uint64_t* running_hash) noexcept {
  if (!uncopied.empty()) {
    Record record;
    std::memcpy(&record, bytes.get(), sizeof record);
    const size_t header_bytes = WriteRecordHeader(header, record, bytes.get());
    const uint64_t checksum = SealRecord(header, offset, bytes.get(), header_bytes, uncopied);
    *running_hash = ExtendRunningHash(*running_hash, checksum);
    return {bytes.get(), header_bytes};
  }
  char* begin = nullptr;
  char* end = nullptr;
  for (char* at = bytes.get(); at != bytes.get() + size;) {
    Record record;
    std::memcpy(&record, at, sizeof record);
    char* const payload = at + sizeof record;
    char encoded[kRecordHeaderBytesMax];
    const size_t header_bytes = WriteRecordHeader(header, record, encoded);
    if (begin == nullptr) begin = end = payload - header_bytes;  // The first payload stays there.
    std::memcpy(end, encoded, header_bytes);
    if (end + header_bytes != payload) {
      std::memmove(end + header_bytes, payload, record.payload.size());
    }
    const size_t framed = header_bytes + record.payload.size();
    const uint64_t checksum =
        SealRecord(header, offset + static_cast<uint64_t>(end - begin), end, framed);
    if (record.type == LogRecordType::kBatch) {
      *running_hash = ExtendRunningHash(*running_hash, checksum);
    }
    end += framed;
    at = payload + record.payload.size();
  }
  return {begin, static_cast<size_t>(end - begin)};
}

Log::Log(io::FileSystem* fs, std::string directory, const LogStart& start, LogOptions options)
    : fs_(fs),
      directory_(std::move(directory)),
      options_(std::move(options)),
      start_(start),
      last_lsn_(start.next_lsn - 1),
      written_lsn_(start.next_lsn - 1),
      durable_lsn_(start.durable_lsn),
      next_file_number_(start.next_file_number) {}

Log::~Log() = default;

Result<std::unique_ptr<Log>> Log::Start(io::FileSystem* fs, std::string directory,
                                        const LogStart& start, LogOptions options) {
  BASALT_CHECK(start.next_lsn >= 1 && start.durable_lsn < start.next_lsn);
  std::unique_ptr<Log> log(new Log(fs, std::move(directory), start, std::move(options)));
  BASALT_RETURN_IF_ERROR(log->AdoptExistingFiles());
  return log;
}

Status Log::AdoptExistingFiles() {
  BASALT_ASSIGN_OR_RETURN(const std::vector<std::string> names, fs_->List(directory_));
  for (const std::string& name : names) {
    const std::optional<uint64_t> number = ParseLogFileName(name);
    if (!number) continue;
    auto file = std::make_shared<LogFile>();
    file->path = io::JoinPath(directory_, name);
    BASALT_ASSIGN_OR_RETURN(file->written_end, fs_->FileSize(file->path));
    file->last_lsn = start_.next_lsn - 1;
    files_.push_back(std::move(file));
    next_file_number_ = std::max(next_file_number_, *number + 1);
  }
  return ChainExistingFiles();
}

// From the last one back: each file says where the one before it ends. What is not in this chain is
// removed like the others, and not read.
Status Log::ChainExistingFiles() {
  uint64_t file_id = start_.previous_file_id;
  Lsn last_lsn = start_.previous_last_lsn;
  uint64_t records_end = start_.previous_length;
  std::string first_bytes(kRecordsOffset, '\0');
  for (auto at = files_.rbegin(); at != files_.rend() && file_id != 0; ++at) {
    LogFile& file = **at;
    if (file.written_end < kRecordsOffset) continue;
    BASALT_ASSIGN_OR_RETURN(const auto opened, fs_->Open(file.path, io::OpenMode::kRead));
    BASALT_RETURN_IF_ERROR(opened->ReadExactAt(0, std::span(first_bytes)));
    const auto header = DecodeFileHeader(first_bytes, file.path);
    if (!header || !*header || (*header)->file_id != file_id) continue;
    file.header = **header;
    file.last_lsn = last_lsn;
    file.records_end = records_end;
    file_id = file.header.previous_file_id;
    last_lsn = file.header.previous_last_lsn;
    records_end = file.header.previous_length;
  }
  return {};
}

Status Log::HasNoMore(Lsn lsn) {
  return Status(StatusCode::kOutOfRange,
                "read the log from LSN " + std::to_string(lsn) +
                    ": its file was removed, because tables hold all of it; read the store, and "
                    "follow from its present end (DBOptions::log_keep_bytes keeps more)",
                SubCode::kLogGone);
}

Result<Log::ReadableFile> Log::FileWith(Lsn lsn) const {
  const Lock lock(mutex_);
  if (lsn > written_lsn_) return ReadableFile();
  for (auto at = files_.rbegin(); at != files_.rend(); ++at) {
    const LogFile& file = **at;
    if (file.header.file_id == 0 || file.last_lsn < lsn || file.header.first_lsn > lsn) continue;
    return ReadableFile{.path = file.path, .last_lsn = file.last_lsn, .end = file.records_end};
  }
  return HasNoMore(lsn);
}

// Staging.

Log::Group* Log::OpenGroup(size_t record_bytes) {
  if (back_is_open_) {
    back_->Reserve(record_bytes);
    return back_;
  }
  if (free_ == nullptr) {
    groups_.push_back(std::make_unique<Group>());
    free_ = groups_.back().get();
  }
  Group* const group = free_;
  group->Reserve(record_bytes);  // The last step that can fail.
  free_ = std::exchange(group->next, nullptr);
  group->first_lsn = last_lsn() + 1;
  group->last_lsn = last_lsn();
  group->starts_file = std::exchange(rotate_, false);
  group->references.store(1, std::memory_order_relaxed);
  group->done.store(false, std::memory_order_relaxed);
  (back_ == nullptr ? front_ : back_->next) = group;
  back_ = group;
  back_is_open_ = true;
  return group;
}

Log::Ticket Log::Stage(uint64_t first_sequence, uint32_t count, std::string_view payload) {
  const Lock lock(mutex_);
  BASALT_CHECK(!closed_);
  const Lsn lsn = last_lsn() + 1;
  const Record record{.lsn = lsn,
                      .durable_lsn = durable_lsn(),
                      .first_sequence = first_sequence,
                      .count = count,
                      .payload = payload};
  Ticket ticket(this, nullptr, lsn);
  if (CanWriteAtOnce(payload.size())) {
    try {
      ticket.status_ = WriteAtOnce(record);
    } catch (const std::bad_alloc&) {  // of a write() that has failed
      CutOff(*current_);
      ticket.status_ = GiveBackFrom(lsn, base::OutOfMemory());
    }
    return ticket;
  }
  const bool is_copied = payload.size() < Group::kUncopiedBytesMin;
  if (!is_copied) back_is_open_ = false;
  Group* const group = OpenGroup(Group::StagedBytes(is_copied ? payload.size() : 0));
  if (is_copied) {
    group->Append(record);
  } else {
    group->AppendUncopied(record);
    back_is_open_ = false;
  }
  group->last_lsn = lsn;
  group->references.fetch_add(1, std::memory_order_relaxed);
  last_lsn_.store(lsn, std::memory_order_release);
  ticket.group_ = group;
  return ticket;
}

bool Log::CanWriteAtOnce(size_t payload_bytes) const {
  if (payload_bytes > kAtOnceBytesMax || front_ != nullptr || rotate_ ||
      writing_.load(std::memory_order_relaxed)) {
    return false;
  }
  const LogFile* const file = current_.get();
  return file != nullptr && !file->sync_failed &&
         file->handle->WritesToMemory(file->written_end, kRecordHeaderBytesMax + payload_bytes);
}

Status Log::WriteAtOnce(const Record& record) {
  LogFile& file = *current_;
  char framed[kRecordHeaderBytesMax + kAtOnceBytesMax];
  const size_t header_bytes = WriteRecordHeader(file.header, record, framed);
  if (!record.payload.empty()) {
    std::memcpy(framed + header_bytes, record.payload.data(), record.payload.size());
  }
  const size_t bytes = header_bytes + record.payload.size();
  const uint64_t checksum = SealRecord(file.header, file.written_end, framed, bytes);
  const Status status = file.handle->WriteAt(file.written_end, {framed, bytes});
  if (!status.ok()) {
    CutOff(file);
    return GiveBackFrom(record.lsn, status);
  }
  last_lsn_.store(record.lsn, std::memory_order_release);
  RecordWritten(record.lsn, bytes, ExtendRunningHash(file.running_hash, checksum));
  return {};
}

void Log::Rotate() {
  const Lock lock(mutex_);
  back_is_open_ = false;
  rotate_ = true;
}

// Writing.

Status Log::Wait(Ticket& ticket) noexcept {
  BASALT_CHECK(ticket.log_ == this);
  ticket.log_ = nullptr;  // Once a ticket.
  Group* const group = std::exchange(ticket.group_, nullptr);
  if (group == nullptr) return std::move(ticket.status_);
  if (group->done.load(std::memory_order_acquire)) {
    Status status = group->status;
    Release(group);
    return status;
  }
  Lock lock(mutex_);
  bool has_spun = false;
  while (!group->done.load(std::memory_order_relaxed)) {
    if (!writing_.load(std::memory_order_relaxed)) {
      WriteFrontGroup(lock);
    } else if (!has_spun) {
      lock.unlock();  // A write() of a small group takes less time than to wake a sleeper.
      static_cast<void>(base::SpinUntil([&] {
        return group->done.load(std::memory_order_acquire) ||
               !writing_.load(std::memory_order_relaxed);
      }));
      has_spun = true;
      lock.lock();
    } else {
      ++group->sleepers;
      group->wake.wait(lock);
      --group->sleepers;
    }
  }
  Status status = group->status;
  ReleaseLocked(group);
  return status;
}

void Log::WriteFrontGroup(Lock& lock) noexcept {
  Group* const group = front_;
  BASALT_CHECK(group != nullptr && !writing_.load(std::memory_order_relaxed));
  front_ = std::exchange(group->next, nullptr);
  if (front_ == nullptr) {
    back_ = nullptr;
    back_is_open_ = false;
  }
  // The current file stays where it is without the lock: only whoever writes replaces it.
  std::shared_ptr<LogFile> created;
  LogFile* file = current_.get();
  Status status;
  if (file == nullptr || file->sync_failed || group->starts_file) {
    auto made = base::OrOutOfMemory([&] { return NewFileFor(*group); });
    if (made) {
      created = std::move(*made);
      file = created.get();
    } else {
      status = made.error();
    }
  }
  uint64_t bytes = 0;
  uint64_t running_hash = 0;
  if (status.ok()) {
    writing_.store(true, std::memory_order_relaxed);
    lock.unlock();
    status = created != nullptr ? CreateFileWith(*group, file, &bytes, &running_hash)
                                : AppendToFile(*group, *file, &bytes, &running_hash);
    lock.lock();
    writing_.store(false, std::memory_order_relaxed);
  }
  if (status.ok()) {
    if (created != nullptr) {
      files_.push_back(created);
      current_ = std::move(created);
    }
    RecordWritten(group->last_lsn >= group->first_lsn ? group->last_lsn : 0, bytes, running_hash);
    FinishGroup(group, status);
  } else {
    FailFrom(group, status);
  }
  if (progress_sleepers_ > 0) progress_.notify_all();
  for (Group* next = front_; next != nullptr; next = next->next) {
    if (next->sleepers == 0) continue;
    next->wake.notify_one();  // To lead.
    break;
  }
}

Result<std::shared_ptr<Log::LogFile>> Log::NewFileFor(const Group& group) {
  auto file = std::make_shared<LogFile>();
  files_.reserve(files_.size() + 1);  // Once it is written, nothing may fail.
  file->header.file_number = next_file_number_++;
  file->header.first_lsn = group.first_lsn;
  file->header.durable_lsn = durable_lsn();
  file->last_lsn = group.first_lsn - 1;
  return file;
}

// What a failed write left behind is ignored by recovery once the next file's header names this
// length; truncation keeps it from coming back before there is a next file.
void Log::CutOff(LogFile& file) noexcept {
  static_cast<void>(base::OrOutOfMemory([&] { return file.handle->Truncate(file.written_end); }));
}

// A step ahead, so that what is mapped is within the grant: records that are copied there ask no
// more.
Status Log::MayGrow(LogFile* file, uint64_t end) const {
  const uint64_t step = options_.preallocate_bytes;
  if (!options_.before_growth || end + step <= file->granted_end) return {};
  const uint64_t granted = step == 0 ? end : (end / step + 2) * step;
  BASALT_RETURN_IF_ERROR(options_.before_growth(granted - file->written_end));
  file->granted_end = granted;
  return {};
}

Status Log::AppendToFile(Group& group, LogFile& file, uint64_t* bytes,
                         uint64_t* running_hash) const {
  *running_hash = file.running_hash;
  const std::string_view framed = group.Frame(file.header, file.written_end, running_hash);
  *bytes = framed.size() + group.uncopied.size();
  Status status = base::OrOutOfMemory([&]() -> Status {
    BASALT_RETURN_IF_ERROR(MayGrow(&file, file.written_end + *bytes));
    if (group.uncopied.empty()) return file.handle->WriteAt(file.written_end, framed);
    const std::string_view pieces[] = {framed, group.uncopied};
    return file.handle->WritePiecesAt(file.written_end, pieces);
  });
  if (!status.ok()) CutOff(file);
  return status;
}

Status Log::CreateFileWith(Group& group, LogFile* file, uint64_t* bytes, uint64_t* running_hash) {
  Status status =
      base::OrOutOfMemory([&] { return TryCreateFileWith(group, file, bytes, running_hash); });
  if (!status.ok() && file->handle != nullptr) {
    // A file that stays all the same is an orphan: no later header names it as its predecessor.
    file->handle.reset();
    static_cast<void>(base::OrOutOfMemory([&] { return fs_->RemoveFile(file->path); }));
  }
  return status;
}

Status Log::TryCreateFileWith(Group& group, LogFile* file, uint64_t* bytes,
                              uint64_t* running_hash) {
  BASALT_RETURN_IF_ERROR(MayGrow(file, kRecordsOffset + group.file_bytes_max()));
  FileHeader& header = file->header;
  file->path = io::JoinPath(directory_, LogFileName(header.file_number));
  header.file_id = base::RandomSeed();
  header.database_id = start_.database_id;
  header.previous_file_id =
      current_ != nullptr ? current_->header.file_id : start_.previous_file_id;
  header.previous_last_lsn = current_ != nullptr ? current_->last_lsn : start_.previous_last_lsn;
  header.previous_length = current_ != nullptr ? current_->records_end : start_.previous_length;
  header.previous_running_hash =
      current_ != nullptr ? current_->running_hash : start_.previous_running_hash;

  BASALT_ASSIGN_OR_RETURN(file->handle, fs_->Open(file->path, io::OpenMode::kCreate));
  file->written_end = kRecordsOffset;
  file->records_end = kRecordsOffset;
  if (options_.preallocate_bytes > 0) {
    static_cast<void>(file->handle->Allocate(options_.preallocate_bytes));
    file->handle->WriteThroughMemory(options_.preallocate_bytes);
  }
  *running_hash = header.file_id;
  const std::string_view framed = group.Frame(header, kRecordsOffset, running_hash);
  *bytes = framed.size() + group.uncopied.size();
  const std::string head = EncodeFileHeader(header);
  const std::string_view pieces[] = {head, framed, group.uncopied};
  return file->handle->WritePiecesAt(0, pieces);
}

void Log::RecordWritten(Lsn last_lsn, uint64_t bytes, uint64_t running_hash) {
  LogFile& file = *current_;
  const bool is_new = file.written_end == kRecordsOffset;
  file.written_end += bytes;
  file.running_hash = running_hash;
  if (last_lsn != 0) {
    file.records_end = file.written_end;
    file.last_lsn = last_lsn;
    written_lsn_ = last_lsn;
  }
  const uint64_t before = bytes_written_.load(std::memory_order_relaxed);
  bytes_written_.store(before + bytes + (is_new ? kRecordsOffset : 0), std::memory_order_relaxed);
}

void Log::FinishGroup(Group* group, const Status& status) {
  group->status = status;
  group->done.store(true, std::memory_order_release);
  if (group->sleepers > 0) group->wake.notify_all();
  ReleaseLocked(group);
}

// Those from `lsn` on could not be written: says so, and gives their LSNs again.
Status Log::GiveBackFrom(Lsn lsn, const Status& cause) {
  last_lsn_.store(lsn - 1, std::memory_order_release);
  rotate_ = true;  // What the failed write left in its file must stay the file's end.
  return base::OrOutOfMemory([&] {
    return Status(cause.code(),
                  "write log records from LSN " + std::to_string(lsn) +
                      " on (none of them was applied; try again): " + std::string(cause.message()));
  });
}

void Log::FailFrom(Group* group, const Status& cause) {
  const Status status = GiveBackFrom(group->first_lsn, cause);
  back_ = nullptr;
  back_is_open_ = false;
  for (Group* behind = std::exchange(front_, nullptr); group != nullptr;) {
    FinishGroup(group, status);
    group = behind;
    if (group != nullptr) behind = std::exchange(group->next, nullptr);
  }
}

void Log::WaitForProgress(Lock& lock) {
  if (!writing_.load(std::memory_order_relaxed)) {
    if (front_ != nullptr) WriteFrontGroup(lock);
    return;
  }
  ++progress_sleepers_;
  progress_.wait(lock);
  --progress_sleepers_;
}

void Log::Drop(Ticket& ticket) noexcept {
  if (ticket.group_->uncopied.empty()) return Release(std::exchange(ticket.group_, nullptr));
  static_cast<void>(Wait(ticket));
}

void Log::Release(Group* group) {
  if (group->references.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  const Lock lock(mutex_);
  group->Recycle(&free_);
}

void Log::ReleaseLocked(Group* group) {
  if (group->references.fetch_sub(1, std::memory_order_acq_rel) == 1) group->Recycle(&free_);
}

// Closing.

Status Log::Close() {
  Lock lock(mutex_);
  if (!closed_) {
    closed_ = true;
    close_status_ = base::OrOutOfMemory([&] { return CloseOnce(lock); });
  }
  return close_status_;
}

Status Log::CloseOnce(Lock& lock) {
  while (front_ != nullptr || writing_.load(std::memory_order_relaxed)) WaitForProgress(lock);
  BASALT_RETURN_IF_ERROR(SyncLocked(lock, last_lsn()));
  if (!lock.owns_lock()) lock.lock();
  if (current_ == nullptr && start_.closed_cleanly) return {};
  Group* const group = OpenGroup(Group::StagedBytes(0));
  group->Append({.lsn = last_lsn(), .durable_lsn = last_lsn(), .type = LogRecordType::kClose});
  Ticket ticket(this, group, last_lsn());
  group->references.fetch_add(1, std::memory_order_relaxed);
  WriteFrontGroup(lock);
  lock.unlock();
  const Status written = Wait(ticket);
  lock.lock();
  BASALT_RETURN_IF_ERROR(written);
  // Space that was preallocated and not needed goes back; a file that keeps it is just larger.
  static_cast<void>(current_->handle->Truncate(current_->written_end));
  while (round_ != nullptr) round_done_.wait(lock);
  return LeadSyncRound(lock, last_lsn());
}

uint64_t Log::live_bytes() const {
  const Lock lock(mutex_);
  uint64_t bytes = 0;
  for (const auto& file : files_) {
    if (!IsObsolete(*file)) bytes += file->written_end;
  }
  return bytes;
}

// The present file is obsolete too once nothing more can be written to it: what the next header
// names of it is still known, and recovery does not look behind the flushed LSN.
bool Log::IsObsolete(const LogFile& file) const noexcept {
  const bool may_grow = &file == current_.get() &&
                        (!rotate_ || front_ != nullptr || writing_.load(std::memory_order_relaxed));
  return !may_grow && file.last_lsn <= obsolete_lsn_;
}

}  // namespace basalt::wal
