#include "shared_map/control_page.h"

#include <string>

#include "base/check.h"
#include "base/coding.h"
#include "base/hash.h"

namespace basalt::shared_map {
namespace {

constexpr std::string_view kPageMagic = "BSALTMC1";
constexpr uint32_t kPageVersion = 1;
constexpr size_t kPageCheckedBytes = 24;

std::string FixedPart(uint64_t map_id) {
  std::string bytes(kPageMagic);
  base::Append(&bytes, kPageVersion);
  base::Append(&bytes, uint32_t{0});
  base::Append(&bytes, map_id);
  base::Append(&bytes, base::Hash(bytes));
  return bytes;
}

}  // namespace

Status ControlPage::Write(io::FileSystem* fs, std::string_view path, uint64_t map_id) {
  BASALT_ASSIGN_OR_RETURN(const bool present, fs->Exists(path));
  BASALT_ASSIGN_OR_RETURN(
      const auto file, fs->Open(path, present ? io::OpenMode::kReadWrite : io::OpenMode::kCreate));
  // A file system without fallocate gets its page by the write.
  BASALT_RETURN_IF_ERROR(file->Allocate(kBytes));
  std::string page = FixedPart(map_id);
  page.resize(kBytes);
  BASALT_RETURN_IF_ERROR(file->WriteAt(0, page));
  return file->Sync();
}

Result<std::shared_ptr<ControlPage>> ControlPage::Open(io::FileSystem* fs, std::string_view path,
                                                       bool to_write) {
  BASALT_ASSIGN_OR_RETURN(
      const auto file, fs->Open(path, to_write ? io::OpenMode::kReadWrite : io::OpenMode::kRead));
  std::shared_ptr<ControlPage> page(new ControlPage);
  if (to_write) {
    BASALT_ASSIGN_OR_RETURN(page->written_, file->MapForWriting(kBytes));
    page->bytes_ = page->written_->data();
  } else {
    BASALT_ASSIGN_OR_RETURN(page->read_, file->Map(kBytes));
    page->bytes_ = page->read_->bytes().data();
  }
  base::Decoder decoder(std::string_view(page->bytes_, kPageCheckedBytes + sizeof(uint64_t)));
  const std::string_view magic = decoder.ReadBytes(kPageMagic.size());
  const auto format_version = decoder.Read<uint32_t>();
  const auto features = decoder.Read<uint32_t>();
  page->map_id_ = decoder.Read<uint64_t>();
  const auto checksum = decoder.Read<uint64_t>();
  if (magic != kPageMagic ||
      checksum != base::Hash(std::string_view(page->bytes_, kPageCheckedBytes))) {
    return Status(
        StatusCode::kCorruption,
        std::string(path) +
            ": is damaged; opening the map for writing (SharedMap::Open) makes a new one");
  }
  if (format_version != kPageVersion || features != 0) {
    return Status(StatusCode::kUnsupported,
                  std::string(path) + ": was written in version " + std::to_string(format_version) +
                      " of the format, features " + std::to_string(features) +
                      ", by a newer Basalt; use that");
  }
  return page;
}

const std::shared_ptr<ControlPage>& ControlPage::Missing() {
  static const std::shared_ptr<ControlPage> missing = [] {
    alignas(uint64_t) static char zeros[kWriterAt + sizeof(uint64_t)] = {};
    std::shared_ptr<ControlPage> page(new ControlPage);
    page->bytes_ = zeros;
    return page;
  }();
  return missing;
}

std::optional<uint64_t> ControlPage::Number(uint64_t boot_id) const noexcept {
  if (LoadShared(bytes_ + kBootIdAt) != boot_id) return std::nullopt;
  return Unguarded(word());
}

void ControlPage::StoreNumber(uint64_t number) noexcept {
  StoreShared(written_->data() + kNumberAt, Guarded(number));
}

void ControlPage::StoreWriter(uint64_t boot_id, uint64_t pid) noexcept {
  StoreShared(written_->data() + kWriterAt, pid);
  StoreShared(written_->data() + kBootIdAt, boot_id);
}

}  // namespace basalt::shared_map
