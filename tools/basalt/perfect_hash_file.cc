#include "tools/basalt/perfect_hash_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace basalt::tools {
namespace {

// docs/perfect-hash.md.
constexpr std::string_view kFunctionMagic = "BSALTPH1";
constexpr std::string_view kFingerprintsMagic = "BSALTFP1";

Status Prefixed(const std::string& path, const Status& status) {
  return {status.code(), path + ": " + std::string(status.message())};
}

Status Exists(const std::string& path) {
  return {StatusCode::kAlreadyExists, path + " already exists; --force replaces it"};
}

template <class Form>
Result<PerfectHashForm> AsForm(Result<Form> form) {
  return std::move(form).transform(
      [](Form&& opened) { return PerfectHashForm(std::move(opened)); });
}

Result<PerfectHashForm> OpenForm(std::string_view bytes) {
  if (bytes.starts_with(kFunctionMagic)) return AsForm(PerfectHash::Open(bytes));
  if (bytes.starts_with(kFingerprintsMagic)) {
    Result<FingerprintSet> set = FingerprintSet::Open(bytes);
    const bool is_map = !set && set.error().code() == StatusCode::kInvalidArgument;
    return is_map ? AsForm(FingerprintMap::Open(bytes)) : AsForm(std::move(set));
  }
  return Status(StatusCode::kCorruption,
                "not a perfect hash file, or its first bytes are lost: it begins with neither "
                "BSALTPH1 nor BSALTFP1; `basalt phash build` makes one from keys");
}

}  // namespace

const PerfectHash& NumbersOf(const PerfectHashForm& form) {
  if (const auto* set = std::get_if<FingerprintSet>(&form)) return set->numbers();
  if (const auto* map = std::get_if<FingerprintMap>(&form)) return map->numbers();
  return *std::get_if<PerfectHash>(&form);
}

std::string_view BytesOf(const PerfectHashForm& form) {
  return std::visit([](const auto& any) { return any.bytes(); }, form);
}

Result<PerfectHashFile> PerfectHashFile::Open(const std::string& path) {
  const Result<std::unique_ptr<io::File>> file =
      io::FileSystem::Posix()->Open(path, io::OpenMode::kRead);
  if (!file && file.error().code() == StatusCode::kNotFound) {
    return Status(StatusCode::kNotFound, std::string(file.error().message()) +
                                             "; `basalt phash build` makes one from keys");
  }
  if (!file) return file.error();
  const Result<uint64_t> size = (*file)->Size();
  if (!size) return size.error();
  Result<std::unique_ptr<io::Mapping>> mapping = (*file)->Map(*size);
  if (!mapping) return mapping.error();
  Result<PerfectHashForm> form = OpenForm((*mapping)->bytes());
  if (!form) return Prefixed(path, form.error());
  return PerfectHashFile(std::move(*mapping), std::move(*form));
}

Status CheckNewFile(const std::string& path, bool replace) {
  const std::string directory = io::ParentDirectory(path);
  if (::access(directory.c_str(), W_OK | X_OK) != 0) {
    return io::ErrnoStatus(errno, "make a file there", directory);
  }
  struct stat there{};
  if (::stat(path.c_str(), &there) != 0) {
    return errno == ENOENT ? Status() : io::ErrnoStatus(errno, "make it", path);
  }
  if (!S_ISREG(there.st_mode)) {
    return {StatusCode::kInvalidArgument, path + " is not a regular file; name a new file"};
  }
  return replace ? Status() : Exists(path);
}

Status WriteNewFile(const std::string& path, std::string_view bytes, bool replace) {
  io::FileSystem* const fs = io::FileSystem::Posix();
  const std::string temporary = path + "." + std::to_string(::getpid()) + ".tmp";
  const auto write = [&]() -> Status {
    const Result<std::unique_ptr<io::File>> file = fs->Open(temporary, io::OpenMode::kCreate);
    if (!file) return file.error();
    Status written = (*file)->WriteAt(0, bytes);
    if (written.ok()) written = (*file)->Sync();
    if (written.ok() && replace) written = fs->Rename(temporary, path);
    // A link, other than a rename, fails where a file has come to be in the meantime.
    if (written.ok() && !replace && ::link(temporary.c_str(), path.c_str()) != 0) {
      written = errno == EEXIST ? Exists(path) : io::ErrnoStatus(errno, "link it", path);
    }
    if (!written.ok() || !replace) static_cast<void>(fs->RemoveFile(temporary));
    return written;
  };
  if (Status written = write(); !written.ok()) return written;
  return fs->SyncDirectory(io::ParentDirectory(path));
}

}  // namespace basalt::tools
