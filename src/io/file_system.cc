#include "io/file_system.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "io/retry_interrupted.h"

namespace basalt::io {
namespace {

/// No file is longer, and no offset greater.
constexpr uint64_t kOffsetMax = std::numeric_limits<int64_t>::max();

StatusCode CodeOfErrno(int error) {
  switch (error) {
    case ENOENT:
      return StatusCode::kNotFound;
    case EEXIST:
      return StatusCode::kAlreadyExists;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return StatusCode::kResourceExhausted;
    default:
      return StatusCode::kIoError;
  }
}

SubCode SubCodeOfErrno(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return SubCode::kDiskFull;
    case EMFILE:
    case ENFILE:
      return SubCode::kDescriptors;
    case ENOMEM:
      return SubCode::kMemory;
    default:
      return SubCode::kNone;
  }
}

/// What a person can do about it; empty when that depends on more than the number.
std::string AdviceForErrno(int error, std::string_view path) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "free space, then retry";
    case EMFILE:
      return "raise the limit on open files (ulimit -n)";
    case ENFILE:
      return "the machine has too many open files; close some, then retry";
    case ENOMEM:
      return "free memory, then retry";
    case EACCES:
    case EPERM:
      return "check the permissions of " + std::string(path);
    case EROFS:
      return "mount it for writing, or use another path";
    case EISDIR:
      return "name a file, not a directory";
    case ENOTDIR:
      return "a part of the path is a file, not a directory";
    case ESPIPE:
      return "it is not a regular file";
    case ENOLCK:
      return "this file system cannot lock files; use a local one";
    case ESTALE:
      return "it was removed meanwhile; open the database again";
    case EINTR:
      return "interrupted " + std::to_string(kInterruptionsMax) + " times in a row";
    case EIO:
      return "the device failed; look at the kernel's log";
    default:
      return {};
  }
}

Status Failure(int error, std::string_view operation, std::string_view path,
               std::string_view advice) {
  std::string message(path);
  message.append(": cannot ").append(operation).append(": ");
  message += std::generic_category().message(error);
  if (!advice.empty()) message.append("; ").append(advice);
  return {CodeOfErrno(error), std::move(message), SubCodeOfErrno(error)};
}

Status Check(int error, std::string_view operation, std::string_view path) {
  return error == 0 ? Status() : ErrnoStatus(error, operation, path);
}

std::string Range(std::string_view verb, uint64_t size, uint64_t offset) {
  return std::string(verb) + " " + std::to_string(size) + " bytes at " + std::to_string(offset);
}

Status CheckPath(std::string_view path) {
  if (path.empty()) return {StatusCode::kInvalidArgument, "a path is empty; name a file"};
  const size_t nul = path.find('\0');
  if (nul == path.npos) return {};
  return {StatusCode::kInvalidArgument, "the path that begins with \"" +
                                            std::string(path.substr(0, nul)) +
                                            "\" has a zero byte in it; paths cannot"};
}

/// The one shape of every call that names a path and yields nothing.
template <class Call>
Status CallOnPath(std::string_view operation, std::string_view path, const Call& call) {
  BASALT_RETURN_IF_ERROR(CheckPath(path));
  const std::string owned(path);
  return Check(RetryInterrupted([&] { return call(owned); }), operation, path);
}

std::string ReplacementOf(std::string_view path) { return std::string(path) + ".tmp"; }

}  // namespace

Status ErrnoStatus(int error, std::string_view operation, std::string_view path) {
  return Failure(error, operation, path, AdviceForErrno(error, path));
}

bool IsDiskFull(const Status& status) noexcept { return status.sub_code() == SubCode::kDiskFull; }

Result<size_t> File::ReadAt(uint64_t offset, std::span<char> out) const {
  if (offset >= kOffsetMax) return size_t{0};
  out = out.first(std::min<uint64_t>(out.size(), kOffsetMax - offset));
  size_t filled = 0;
  while (filled < out.size()) {
    size_t done = 0;
    const int error =
        RetryInterrupted([&] { return DoRead(offset + filled, out.subspan(filled), &done); });
    if (error != 0) {
      return ErrnoStatus(error, Range("read", out.size() - filled, offset + filled), path_);
    }
    if (done == 0) break;
    filled += done;
  }
  return filled;
}

Status File::ReadExactAt(uint64_t offset, std::span<char> out) const {
  BASALT_ASSIGN_OR_RETURN(const size_t filled, ReadAt(offset, out));
  if (filled == out.size()) return {};
  BASALT_ASSIGN_OR_RETURN(const uint64_t size, Size());
  return {StatusCode::kCorruption, path_ + ": ends at " + std::to_string(size) + ", needed " +
                                       std::to_string(out.size()) + " bytes at " +
                                       std::to_string(offset) + "; the file is cut short"};
}

Status File::WriteAt(uint64_t offset, std::string_view bytes) {
  return WritePiecesAt(offset, {&bytes, 1});
}

Status File::WritePiecesAt(uint64_t offset, std::span<const std::string_view> pieces) {
  uint64_t left = 0;
  for (const std::string_view piece : pieces) left += piece.size();
  if (offset > kOffsetMax || left > kOffsetMax - offset) {
    return ErrnoStatus(EFBIG, Range("write", left, offset), path_);
  }
  std::vector<std::string_view> rest;  // What remains of `pieces` after a short write.
  while (left > 0) {
    size_t done = 0;
    int error = RetryInterrupted([&] { return DoWrite(offset, pieces, &done); });
    if (error == 0 && done == 0) error = EIO;
    if (error != 0) return ErrnoStatus(error, Range("write", left, offset), path_);
    offset += done;
    left -= done;
    if (left == 0) break;
    if (rest.empty()) rest.assign(pieces.begin(), pieces.end());
    auto first = rest.begin();
    for (; done >= first->size(); ++first) done -= first->size();
    first->remove_prefix(done);
    rest.erase(rest.begin(), first);
    pieces = rest;
  }
  return {};
}

Status File::Sync() {
  return Check(RetryInterrupted([&] { return DoSync(); }), "sync", path_);
}

Status File::Truncate(uint64_t size) {
  const int error = size > kOffsetMax ? EFBIG : RetryInterrupted([&] { return DoTruncate(size); });
  return Check(error, "truncate to " + std::to_string(size) + " bytes", path_);
}

Status File::Allocate(uint64_t size) {
  if (size == 0) return {};
  const int error = size > kOffsetMax ? EFBIG : RetryInterrupted([&] { return DoAllocate(size); });
  return Check(error, "allocate " + std::to_string(size) + " bytes", path_);
}

Result<uint64_t> File::Size() const {
  uint64_t size = 0;
  const int error = RetryInterrupted([&] { return DoSize(&size); });
  if (error != 0) return ErrnoStatus(error, "get the size", path_);
  return size;
}

Result<std::unique_ptr<Mapping>> File::Map(uint64_t size) const {
  BASALT_ASSIGN_OR_RETURN(const uint64_t present, Size());
  if (size > present) {
    return Status(StatusCode::kCorruption, path_ + ": ends at " + std::to_string(present) +
                                               ", needed " + std::to_string(size) +
                                               " bytes at 0; the file is cut short");
  }
  std::unique_ptr<Mapping> mapping;
  const int error = RetryInterrupted([&] { return DoMap(size, &mapping); });
  if (error != 0) return ErrnoStatus(error, "map " + std::to_string(size) + " bytes", path_);
  return mapping;
}

Result<std::unique_ptr<WritableMapping>> File::MapForWriting(uint64_t size) {
  BASALT_ASSIGN_OR_RETURN(const uint64_t present, Size());
  if (size > present || size == 0) {
    return Status(StatusCode::kCorruption, path_ + ": has " + std::to_string(present) +
                                               " bytes, and " + std::to_string(size) +
                                               " are to be mapped; the file is cut short");
  }
  std::unique_ptr<WritableMapping> mapping;
  const int error = RetryInterrupted([&] { return DoMapForWriting(size, &mapping); });
  if (error != 0) {
    return ErrnoStatus(error, "map " + std::to_string(size) + " bytes for writing", path_);
  }
  return mapping;
}

Status File::MarkInUse() {
  const int error = RetryInterrupted([&] { return DoMarkInUse(); });
  return error == 0 ? Status() : ErrnoStatus(error, "mark as in use", path_);
}

Result<bool> File::IsInUse() const {
  bool in_use = false;
  const int error = RetryInterrupted([&] { return DoIsInUse(&in_use); });
  if (error != 0) return ErrnoStatus(error, "ask for users", path_);
  return in_use;
}

Result<std::unique_ptr<File>> FileSystem::Open(std::string_view path, OpenMode mode) {
  std::unique_ptr<File> file;
  BASALT_RETURN_IF_ERROR(
      CallOnPath(mode == OpenMode::kCreate ? "create" : "open", path,
                 [&](const std::string& owned) { return DoOpen(owned, mode, &file); }));
  return file;
}

Status FileSystem::CreateDirectory(std::string_view path) {
  BASALT_RETURN_IF_ERROR(CheckPath(path));
  const std::string owned(path);
  const int error = RetryInterrupted([&] { return DoCreateDirectory(owned); });
  if (error == 0) return {};
  // It is the directory above that is not there, or that refuses.
  const std::string parent = ParentDirectory(path);
  std::string advice = AdviceForErrno(error, parent);
  if (error == ENOENT) {
    const Result<bool> has_parent = IsDirectory(parent);
    advice = has_parent && *has_parent
                 ? "no directory can be made there; use another path"
                 : "make the directory above it (mkdir -p " + parent + "), then retry";
  }
  return Failure(error, "create the directory", path, advice);
}

Result<std::vector<std::string>> FileSystem::List(std::string_view path) {
  std::vector<std::string> names;
  BASALT_RETURN_IF_ERROR(CallOnPath("list the directory", path, [&](const std::string& owned) {
    names.clear();
    return DoList(owned, &names);
  }));
  std::sort(names.begin(), names.end());
  return names;
}

Status FileSystem::Rename(std::string_view from, std::string_view to) {
  BASALT_RETURN_IF_ERROR(CheckPath(to));
  return CallOnPath(
      "rename to " + std::string(to), from,
      [&, target = std::string(to)](const std::string& owned) { return DoRename(owned, target); });
}

Status FileSystem::RemoveFile(std::string_view path) {
  return CallOnPath("remove", path, [&](const std::string& owned) { return DoRemoveFile(owned); });
}

Status FileSystem::RemoveDirectory(std::string_view path) {
  return CallOnPath("remove the directory", path,
                    [&](const std::string& owned) { return DoRemoveDirectory(owned); });
}

Status FileSystem::SyncDirectory(std::string_view path) {
  return CallOnPath("sync the directory", path,
                    [&](const std::string& owned) { return DoSyncDirectory(owned); });
}

Result<bool> FileSystem::Exists(std::string_view path) {
  bool is_directory = false;
  uint64_t size = 0;
  Status status = CallOnPath("look up", path, [&](const std::string& owned) {
    return DoStat(owned, &is_directory, &size);
  });
  if (status.code() == StatusCode::kNotFound) return false;
  if (!status.ok()) return status;
  return true;
}

Result<bool> FileSystem::IsDirectory(std::string_view path) {
  bool is_directory = false;
  uint64_t size = 0;
  Status status = CallOnPath("look up", path, [&](const std::string& owned) {
    return DoStat(owned, &is_directory, &size);
  });
  if (status.code() == StatusCode::kNotFound) return false;
  if (!status.ok()) return status;
  return is_directory;
}

Result<uint64_t> FileSystem::FileSize(std::string_view path) {
  bool is_directory = false;
  uint64_t size = 0;
  BASALT_RETURN_IF_ERROR(CallOnPath("get the size", path, [&](const std::string& owned) {
    const int error = DoStat(owned, &is_directory, &size);
    return error == 0 && is_directory ? EISDIR : error;
  }));
  return size;
}

std::optional<uint64_t> FileSystem::FreeBytes(std::string_view path) {
  std::optional<uint64_t> bytes;
  const Status status = CallOnPath("get the free space", path, [&](const std::string& owned) {
    return DoFreeBytes(owned, &bytes);
  });
  return status.ok() ? bytes : std::nullopt;
}

Status FileSystem::MarkChanged(std::string_view path) {
  return CallOnPath("set the time of", path,
                    [&](const std::string& owned) { return DoMarkChanged(owned); });
}

Result<std::string> FileSystem::Resolve(std::string_view path) {
  std::string resolved;
  BASALT_RETURN_IF_ERROR(CallOnPath(
      "look up", path, [&](const std::string& owned) { return DoResolve(owned, &resolved); }));
  return resolved;
}

Result<std::unique_ptr<FileLock>> FileSystem::Lock(std::string_view path) {
  BASALT_RETURN_IF_ERROR(CheckPath(path));
  std::unique_ptr<FileLock> lock;
  std::string holder;
  const int error = RetryInterrupted([&] { return DoLock(std::string(path), &lock, &holder); });
  if (error == EWOULDBLOCK) {
    return Status(StatusCode::kBusy,
                  ParentDirectory(path) + " " + holder + "; close it there, or use another path",
                  SubCode::kLocked);
  }
  if (error == EACCES || error == EPERM || error == EROFS) {
    const std::string directory = ParentDirectory(path);
    return Status(StatusCode::kIoError,
                  directory +
                      ": no permission to write to it: " + std::generic_category().message(error) +
                      (error == EROFS ? "; mount it for writing, or use a copy elsewhere"
                                      : "; run as the user who owns it, or let the owner grant "
                                        "write permission for it and its files"));
  }
  if (error != 0) return ErrnoStatus(error, "lock", path);
  return lock;
}

Result<std::unique_ptr<FileLock>> FileSystem::MarkDirectory(std::string_view path) {
  std::unique_ptr<FileLock> mark;
  BASALT_RETURN_IF_ERROR(CallOnPath("mark the directory", path, [&](const std::string& owned) {
    return DoMarkDirectory(owned, &mark);
  }));
  return mark;
}

Result<bool> FileSystem::IsMarked(std::string_view path) {
  bool is_marked = false;
  BASALT_RETURN_IF_ERROR(
      CallOnPath("ask for marks of the directory", path,
                 [&](const std::string& owned) { return DoIsMarked(owned, &is_marked); }));
  return is_marked;
}

std::string ParentDirectory(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  if (slash == path.npos) return ".";
  path = path.substr(0, slash);
  while (!path.empty() && path.back() == '/') path.remove_suffix(1);
  return path.empty() ? "/" : std::string(path);
}

std::string JoinPath(std::string_view directory, std::string_view name) {
  std::string path(directory);
  if (!path.empty() && path.back() != '/') path += '/';
  path += name;
  return path;
}

Result<std::string> ReadWholeFile(FileSystem* fs, std::string_view path, uint64_t limit) {
  BASALT_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, fs->Open(path, OpenMode::kRead));
  BASALT_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  if (size > limit) {
    return Status(StatusCode::kCorruption, std::string(path) + ": has " + std::to_string(size) +
                                               " bytes, but such a file has at most " +
                                               std::to_string(limit));
  }
  std::string bytes(size, '\0');
  BASALT_RETURN_IF_ERROR(file->ReadExactAt(0, bytes));
  return bytes;
}

Status ReplaceFile(FileSystem* fs, std::string_view path, std::string_view bytes) {
  BASALT_RETURN_IF_ERROR(WriteReplacement(fs, path, bytes));
  return TakeReplacement(fs, path);
}

Status WriteReplacement(FileSystem* fs, std::string_view path, std::string_view bytes) {
  const std::string temporary = ReplacementOf(path);
  // One may be left from a run that was killed.
  if (Status status = fs->RemoveFile(temporary);
      !status.ok() && status.code() != StatusCode::kNotFound) {
    return status;
  }
  const auto write = [&]() -> Status {
    BASALT_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                            fs->Open(temporary, OpenMode::kCreate));
    BASALT_RETURN_IF_ERROR(file->WriteAt(0, bytes));
    return file->Sync();
  };
  Status written = write();
  // The first error is the one to report; a leftover is removed by the next call.
  if (!written.ok()) static_cast<void>(fs->RemoveFile(temporary));
  return written;
}

Status TakeReplacement(FileSystem* fs, std::string_view path) {
  const std::string temporary = ReplacementOf(path);
  if (Status renamed = fs->Rename(temporary, path); !renamed.ok()) {
    static_cast<void>(fs->RemoveFile(temporary));
    return renamed;
  }
  return fs->SyncDirectory(ParentDirectory(path));
}

}  // namespace basalt::io
