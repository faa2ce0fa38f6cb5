#include "shared_map/change_index.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/coding.h"
#include "base/hash.h"
#include "shared_map/change_log.h"

namespace basalt::shared_map {
namespace {

constexpr std::string_view kIndexMagic = "BSALTMI1";
constexpr uint32_t kIndexVersion = 1;
constexpr size_t kIndexCheckedBytes = 32;

}  // namespace

uint64_t ChangeIndex::CapacityFor(uint64_t keys) noexcept {
  return std::max(kCapacityMin, std::bit_ceil(keys * 8 / 5 + 1));
}

void ChangeIndex::PointTo(char* begin, uint64_t capacity) noexcept {
  header_ = begin;
  filter_ = begin + kHeaderBytes;
  words_ = filter_ + FilterBytes(capacity);
  mask_ = capacity - 1;
}

Result<std::shared_ptr<ChangeIndex>> ChangeIndex::Create(io::FileSystem* fs,
                                                         const std::string& path, uint64_t capacity,
                                                         uint64_t boot_id) {
  BASALT_ASSIGN_OR_RETURN(const auto file, fs->Open(path, io::OpenMode::kCreate));
  std::shared_ptr<ChangeIndex> index(new ChangeIndex);
  std::string header(kIndexMagic);
  base::Append(&header, kIndexVersion);
  base::Append(&header, uint32_t{0});
  base::Append(&header, boot_id);
  base::Append(&header, capacity);
  base::Append(&header, base::Hash(header));
  const uint64_t bytes = BytesFor(capacity);
  Status status = AllocateSpace(file.get(), bytes);
  // Mapped before anything is written, so that it comes into memory by huge pages: every lookup
  // reads a random word of the filter.
  if (status.ok()) {
    auto mapped = file->MapForWriting(bytes);
    if (mapped) index->written_ = std::move(*mapped);
    status = mapped.status();
  }
  if (status.ok()) status = file->WriteAt(0, header);
  if (!status.ok()) {
    static_cast<void>(fs->RemoveFile(path));
    return status;
  }
  index->PointTo(index->written_->data(), capacity);
  return index;
}

Result<std::shared_ptr<ChangeIndex>> ChangeIndex::Open(io::FileSystem* fs, const std::string& path,
                                                       uint64_t boot_id) {
  BASALT_ASSIGN_OR_RETURN(const auto file, fs->Open(path, io::OpenMode::kRead));
  BASALT_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  std::shared_ptr<ChangeIndex> none;
  // After a power cut anything may stand here; the log knows all that is needed.
  if (size < kHeaderBytes) return none;
  std::shared_ptr<ChangeIndex> index(new ChangeIndex);
  BASALT_ASSIGN_OR_RETURN(index->read_, file->Map(size));
  const std::string_view bytes = index->read_->bytes();
  base::Decoder decoder(bytes);
  const std::string_view magic = decoder.ReadBytes(kIndexMagic.size());
  const auto format_version = decoder.Read<uint32_t>();
  const auto features = decoder.Read<uint32_t>();
  const auto made_at = decoder.Read<uint64_t>();
  const auto capacity = decoder.Read<uint64_t>();
  const auto checksum = decoder.Read<uint64_t>();
  if (magic != kIndexMagic || checksum != base::Hash(bytes.substr(0, kIndexCheckedBytes)))
    return none;
  if (format_version != kIndexVersion || features != 0) {
    return Status(StatusCode::kUnsupported,
                  path + ": was written in version " + std::to_string(format_version) +
                      " of the format, features " + std::to_string(features) +
                      ", by a newer Basalt; use that");
  }
  if (made_at != boot_id) return none;
  if (!std::has_single_bit(capacity) || capacity < kCapacityMin ||
      capacity > (size - kHeaderBytes) / 8 || BytesFor(capacity) > size) {
    return none;
  }
  index->PointTo(const_cast<char*>(bytes.data()), capacity);
  return index;
}

std::shared_ptr<ChangeIndex> ChangeIndex::Private(uint64_t capacity) {
  std::shared_ptr<ChangeIndex> index(new ChangeIndex);
  index->memory_ = std::make_unique<uint64_t[]>(BytesFor(capacity) / 8);
  index->PointTo(reinterpret_cast<char*>(index->memory_.get()), capacity);
  return index;
}

void ChangeIndex::CopyWords(const ChangeIndex& from) noexcept {
  BASALT_CHECK(from.capacity() == capacity());
  std::memcpy(filter_, from.filter_, FilterBytes(capacity()) + 8 * capacity());
}

void ChangeIndex::StoreState(const State& state) noexcept {
  if (state.changes != 0 && !HasChanges()) StoreShared(header_ + kHasChangesAt, 1);
  StoreShared(header_ + kEntriesAt, Guarded(state.entries));
  StoreShared(header_ + kChangesAt, Guarded(state.changes));
  StoreShared(header_ + kKeysAt, Guarded(state.keys));
  StoreShared(header_ + kVisibleEndAt, Guarded(state.visible_end));
}

}  // namespace basalt::shared_map
