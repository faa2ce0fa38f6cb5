#include "shared_map/change_log.h"

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/coding.h"
#include "base/random.h"

namespace basalt::shared_map {
namespace {

constexpr std::string_view kLogMagic = "BSALTML1";
constexpr uint32_t kLogVersion = 1;
constexpr size_t kLogCheckedBytes = 56;

uint32_t Low(uint64_t checksum) noexcept { return static_cast<uint32_t>(checksum); }

Status Damaged(const LogSegment& segment, Location location, std::string_view what) {
  return Status(StatusCode::kCorruption, segment.path() + ": at offset " +
                                             std::to_string(segment.OffsetOf(location)) + " " +
                                             std::string(what));
}

enum class Behind : uint8_t {
  kNothing,
  kLoss,     ///< A change that was written when more than `from` was known to be on the disk.
  kUnknown,  ///< That would take too long to tell.
};

/// So many times the bytes of a segment are hashed at most to tell what is behind.
constexpr uint64_t kSearchWorkMax = 64;

/// What follows `from`.
///
/// A change is hashed as far as it says, which of random bytes would be the cube of their number:
/// so only where the words are possible that can be told from others without that. Changes, also a
/// log within a value, are hashed once then. Bytes that were made to be many changes, one in the
/// other, would take the square of their number: they are what the search is given up for.
Behind LookBehind(const LogSegment& segment, Location from) {
  uint64_t work_left = kSearchWorkMax * segment.capacity_bytes();
  const uint64_t end = segment.limit() - kChangeHeaderBytes / kLogUnit;
  for (uint64_t at = from; at < end; ++at) {
    const auto location = static_cast<Location>(at);
    const ChangeHeader header = segment.HeaderAt(location);
    if (header.zero != 0 || header.replaces >= location || header.synced > location ||
        header.synced <= from) {
      continue;
    }
    RecordRef record;
    const uint64_t bytes = segment.BytesAt(location, &record);
    if (bytes > work_left) return Behind::kUnknown;
    work_left -= bytes;
    Change change;
    if (bytes != 0 && segment.At(location, &change)) return Behind::kLoss;
  }
  return Behind::kNothing;
}

}  // namespace

Status AllocateSpace(io::File* file, uint64_t bytes) {
  BASALT_RETURN_IF_ERROR(file->Allocate(bytes));
  BASALT_ASSIGN_OR_RETURN(uint64_t size, file->Size());
  const std::string zeros(std::min<uint64_t>(bytes - std::min(bytes, size), uint64_t{1} << 20),
                          '\0');
  while (size < bytes) {
    const uint64_t piece = std::min<uint64_t>(zeros.size(), bytes - size);
    BASALT_RETURN_IF_ERROR(file->WriteAt(size, std::string_view(zeros).substr(0, piece)));
    size += piece;
  }
  return Status();
}

Status LogSegment::Create(io::FileSystem* fs, const std::string& path, Location first,
                          uint64_t capacity_bytes) {
  BASALT_ASSIGN_OR_RETURN(const auto file, fs->Open(path, io::OpenMode::kCreate));
  std::string header(kLogMagic);
  base::Append(&header, kLogVersion);
  base::Append(&header, uint32_t{0});
  base::Append(&header, base::RandomSeed());
  base::Append(&header, capacity_bytes);
  base::Append(&header, first);
  header.resize(kLogCheckedBytes);
  base::Append(&header, base::Hash(header));
  Status status = AllocateSpace(file.get(), capacity_bytes);
  if (status.ok()) status = file->WriteAt(0, header);
  if (status.ok()) status = file->Sync();
  if (!status.ok()) static_cast<void>(fs->RemoveFile(path));
  return status;
}

Result<std::shared_ptr<const LogSegment>> LogSegment::Open(io::FileSystem* fs, std::string path,
                                                           const SegmentEntry& entry) try {
  BASALT_ASSIGN_OR_RETURN(const auto file, fs->Open(path, io::OpenMode::kRead));
  std::shared_ptr<LogSegment> segment(new LogSegment);
  BASALT_ASSIGN_OR_RETURN(segment->mapping_, file->Map(entry.capacity_bytes));
  segment->bytes_ = segment->mapping_->bytes();
  base::Decoder decoder(segment->bytes_);
  const std::string_view magic = decoder.ReadBytes(kLogMagic.size());
  const auto format_version = decoder.Read<uint32_t>();
  const auto features = decoder.Read<uint32_t>();
  segment->file_id_ = decoder.Read<uint64_t>();
  const auto capacity = decoder.Read<uint64_t>();
  segment->first_ = decoder.Read<uint32_t>();
  const std::string_view checked = segment->bytes_.substr(0, kLogCheckedBytes);
  if (magic != kLogMagic ||
      base::Load<uint64_t>(segment->bytes_.data() + kLogCheckedBytes) != base::Hash(checked) ||
      capacity != entry.capacity_bytes || segment->first_ != entry.first) {
    return Status(StatusCode::kCorruption, path + ": its header is not that of this log");
  }
  if (format_version != kLogVersion || features != 0) {
    return Status(StatusCode::kUnsupported,
                  path + ": was written in version " + std::to_string(format_version) +
                      " of the format, features " + std::to_string(features) +
                      ", by a newer Basalt; use that");
  }
  segment->verified_ = VerifiedBits(capacity / kLogUnit);
  segment->path_ = std::move(path);
  return std::shared_ptr<const LogSegment>(std::move(segment));
} catch (const std::bad_alloc&) {
  return Status(StatusCode::kResourceExhausted, "opening a log of a map: out of memory");
}

bool LogSegment::Verify(Location location) const noexcept {
  Change change;
  if (!At(location, &change)) return false;
  static_cast<void>(verified_.Set(location - first_));
  return true;
}

uint64_t LogSegment::BytesAt(Location location, RecordRef* record) const noexcept {
  const uint64_t room = bytes_.size() - OffsetOf(location);
  if (room < kChangeHeaderBytes + kRecordHeaderBytes) return 0;
  *record = RecordRef(AddressOf(location) + kChangeHeaderBytes);
  const RecordHeader& header = record->header();
  const bool is_kind = header.kind == static_cast<uint8_t>(RecordKind::kPut) ||
                       header.kind == static_cast<uint8_t>(RecordKind::kDelete);
  const uint64_t bytes =
      kChangeHeaderBytes + PaddedRecordBytes(header.key_bytes, header.value_bytes);
  return is_kind && bytes <= room ? bytes : 0;
}

bool LogSegment::At(Location location, Change* change) const noexcept {
  RecordRef record;
  const uint64_t bytes = BytesAt(location, &record);
  if (bytes == 0) return false;
  const char* const at = AddressOf(location);
  const ChangeHeader header = HeaderAt(location);
  if (base::Checksum(file_id_, OffsetOf(location), {at + kChecksumBytes, bytes - kChecksumBytes}) !=
      header.checksum) {
    return false;
  }
  *change = Change{.record = record,
                   .checksum = Low(header.checksum),
                   .previous = header.previous,
                   .replaces = header.replaces,
                   .synced = header.synced,
                   .location = location,
                   .end = location + static_cast<Location>(bytes / kLogUnit)};
  return true;
}

Result<LogEnd> WalkUntil(const LogSegment& segment, Location end,
                         const std::function<void(Location, const Change&)>& visit) {
  LogEnd reached{.end = segment.begin(), .last_checksum = Low(segment.file_id())};
  Change change;
  while (reached.end < end) {
    if (reached.end >= segment.limit() || !segment.At(reached.end, &change) ||
        change.previous != reached.last_checksum) {
      return Damaged(segment, reached.end, "is a change that is not what was written");
    }
    visit(reached.end, change);
    reached = {.end = change.end, .last_checksum = change.checksum};
  }
  if (reached.end == end) return reached;
  return Damaged(segment, reached.end, "the log does not end where it did");
}

Result<LogEnd> WalkSealed(const LogSegment& segment, LogEnd end,
                          const std::function<void(Location, const Change&)>& visit) {
  BASALT_ASSIGN_OR_RETURN(const LogEnd reached, WalkUntil(segment, end.end, visit));
  if (reached.last_checksum == end.last_checksum) return reached;
  return Damaged(segment, reached.end, "the log does not end as it did when it was closed");
}

Result<LogEnd> WalkOpen(const LogSegment& segment, Location at_least,
                        const std::function<void(Location, const Change&)>& visit) {
  LogEnd reached{.end = segment.begin(), .last_checksum = Low(segment.file_id())};
  LogEnd whole = reached;  // Behind the last whole batch.
  std::vector<std::pair<Location, Change>> batch;
  Change change;
  while (reached.end < segment.limit() && segment.At(reached.end, &change) &&
         change.previous == reached.last_checksum) {
    batch.emplace_back(reached.end, change);
    reached = {.end = change.end, .last_checksum = change.checksum};
    if ((change.record.header().flags & kFlagMoreFollows) != 0) continue;
    for (const auto& [location, part] : batch) visit(location, part);
    batch.clear();
    whole = reached;
  }
  const Behind behind = at_least == 0 ? LookBehind(segment, whole.end) : Behind::kNothing;
  if (whole.end < at_least || behind == Behind::kLoss) {
    return Damaged(segment, reached.end,
                   "acknowledged changes are damaged; restore a copy of the map");
  }
  if (behind == Behind::kUnknown) {
    return Damaged(
        segment, reached.end,
        "is damaged, or was never acknowledged; too many of the bytes after it look like "
        "changes to decide that; restore a copy of the map");
  }
  return whole;
}

void AppendChange(std::string* out, RecordKind kind, uint8_t flags, Location replaces,
                  Location synced, std::string_view key, std::string_view value) {
  const uint64_t bytes = kChangeHeaderBytes + PaddedRecordBytes(key.size(), value.size());
  const size_t begin = out->size();
  out->resize(begin + bytes);
  char* const at = out->data() + begin;
  const ChangeHeader unfinished{
      .checksum = 0, .previous = 0, .replaces = replaces, .synced = synced, .zero = 0};
  std::memcpy(at, &unfinished, sizeof unfinished);
  const RecordHeader header{.value_bytes = static_cast<uint32_t>(value.size()),
                            .key_bytes = static_cast<uint16_t>(key.size()),
                            .kind = static_cast<uint8_t>(kind),
                            .flags = flags};
  std::memcpy(at + kChangeHeaderBytes, &header, sizeof header);
  char* const payload = at + kChangeHeaderBytes + kRecordHeaderBytes;
  if (!key.empty()) std::memcpy(payload, key.data(), key.size());
  if (!value.empty()) std::memcpy(payload + key.size(), value.data(), value.size());
}

uint32_t FinishChange(char* at, uint64_t bytes, uint64_t file_id, uint64_t offset,
                      uint32_t previous) noexcept {
  base::Store(at + offsetof(ChangeHeader, previous), previous);
  const uint64_t checksum =
      base::Checksum(file_id, offset, {at + kChecksumBytes, bytes - kChecksumBytes});
  base::Store(at, checksum);
  return Low(checksum);
}

}  // namespace basalt::shared_map
