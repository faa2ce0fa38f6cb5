#include "shared_map/version_files.h"

#include <algorithm>

#include "base/check.h"
#include "base/coding.h"
#include "base/hash.h"
#include "shared_map/change_log.h"
#include "shared_map/file_names.h"
#include "shared_map/guarded_word.h"

namespace basalt::shared_map {
namespace {

constexpr std::string_view kListMagic = "BSALTMG1";
constexpr uint32_t kListVersion = 1;
constexpr uint32_t kSeededListVersion = 2;

ChangeSetEntry DecodeChangeSet(base::Decoder* decoder) {
  ChangeSetEntry set;
  set.index_file = decoder->Read<uint64_t>();
  const uint32_t segments = decoder->Read<uint32_t>();
  decoder->Read<uint32_t>();
  if (segments > VersionFiles::kSegmentsMax) return set;  // Refused below: it has none.
  for (uint32_t i = 0; i < segments; ++i) {
    SegmentEntry& segment = set.segments.emplace_back();
    segment.file = decoder->Read<uint64_t>();
    segment.capacity_bytes = decoder->Read<uint64_t>();
    segment.first = decoder->Read<uint32_t>();
    segment.end = decoder->Read<uint32_t>();
    segment.last_checksum = decoder->Read<uint32_t>();
    decoder->Read<uint32_t>();
  }
  return set;
}

/// Segments follow one another in the space of locations, and all but the newest one have ended.
bool IsSound(const ChangeSetEntry& set, bool newest) {
  if (set.segments.empty() || set.index_file == 0) return false;
  uint64_t first = 0;
  for (size_t i = 0; i < set.segments.size(); ++i) {
    const SegmentEntry& segment = set.segments[i];
    const uint64_t units = segment.capacity_bytes / kLogUnit;
    const bool last = i + 1 == set.segments.size();
    const uint64_t begin = segment.first + kLogHeaderBytes / kLogUnit;
    if (segment.file == 0 || segment.capacity_bytes % kLogUnit != 0 ||
        segment.capacity_bytes < kLogHeaderBytes || segment.first != first ||
        first + units > kLocationMax) {
      return false;
    }
    if (segment.end == 0 && !(last && newest)) return false;
    if (segment.end != 0 && (segment.end < begin || segment.end > first + units)) return false;
    first += units;
  }
  return true;
}

bool IsSound(const VersionFiles& list) {
  if (list.change_sets.empty() || list.change_sets.size() > 2) return false;
  for (size_t i = 0; i < list.change_sets.size(); ++i) {
    if (!IsSound(list.change_sets[i], i == 0)) return false;
  }
  return list.entries <= kGuardedMax && list.number <= kGuardedMax &&
         std::all_of(list.shards.begin(), list.shards.end(), [&](const ShardEntry& shard) {
           return shard.change_sets >= 1 && shard.change_sets <= list.change_sets.size();
         });
}

}  // namespace

std::vector<std::string> VersionFiles::FileNames() const {
  std::vector<std::string> names{NameOf(FileKind::kVersion, number)};
  for (const ShardEntry& shard : shards) {
    if (shard.base_file != 0) names.push_back(NameOf(FileKind::kBase, shard.base_file));
  }
  for (const ChangeSetEntry& set : change_sets) {
    names.push_back(NameOf(FileKind::kIndex, set.index_file));
    for (const SegmentEntry& segment : set.segments) {
      names.push_back(NameOf(FileKind::kLog, segment.file));
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string VersionFiles::Encode() const {
  std::string bytes(kListMagic);
  base::Append(&bytes, is_seeded ? kSeededListVersion : kListVersion);
  base::Append(&bytes, uint32_t{0});
  base::Append(&bytes, map_id);
  base::Append(&bytes, number);
  base::Append(&bytes, next_file);
  base::Append(&bytes, entries);
  base::Append(&bytes, counted);
  base::Append(&bytes, shard_bits);
  base::Append(&bytes, static_cast<uint32_t>(change_sets.size()));
  base::Append(&bytes, uint32_t{0});
  for (const ShardEntry& shard : shards) {
    base::Append(&bytes, shard.base_file);
    base::Append(&bytes, shard.change_sets);
    base::Append(&bytes, uint16_t{shard.mixed});
  }
  for (const ChangeSetEntry& set : change_sets) {
    base::Append(&bytes, set.index_file);
    base::Append(&bytes, static_cast<uint32_t>(set.segments.size()));
    base::Append(&bytes, uint32_t{0});
    for (const SegmentEntry& segment : set.segments) {
      base::Append(&bytes, segment.file);
      base::Append(&bytes, segment.capacity_bytes);
      base::Append(&bytes, segment.first);
      base::Append(&bytes, segment.end);
      base::Append(&bytes, segment.last_checksum);
      base::Append(&bytes, uint32_t{0});
    }
  }
  base::Append(&bytes, base::Hash(bytes));
  return bytes;
}

Result<VersionFiles> VersionFiles::Decode(std::string_view bytes, std::string_view source) {
  const auto damaged = [&](std::string_view what) {
    return Status(StatusCode::kCorruption,
                  std::string(source) + ": " + std::string(what) + "; restore a copy of the map");
  };
  base::Decoder decoder(bytes);
  if (decoder.ReadBytes(kListMagic.size()) != kListMagic)
    return damaged("is not the file list of a map");
  const auto format_version = decoder.Read<uint32_t>();
  const auto features = decoder.Read<uint32_t>();
  if (bytes.size() < sizeof(uint64_t) ||
      base::Hash(bytes.substr(0, bytes.size() - sizeof(uint64_t))) !=
          base::Load<uint64_t>(bytes.data() + bytes.size() - sizeof(uint64_t))) {
    return damaged("does not have the checksum that was written");
  }
  if ((format_version != kListVersion && format_version != kSeededListVersion) || features != 0) {
    return Status(StatusCode::kUnsupported,
                  std::string(source) + ": was written in version " +
                      std::to_string(format_version) + " of the format, features " +
                      std::to_string(features) + ", by a newer Basalt; use that");
  }
  VersionFiles list;
  list.is_seeded = format_version == kSeededListVersion;
  list.map_id = decoder.Read<uint64_t>();
  list.number = decoder.Read<uint64_t>();
  list.next_file = decoder.Read<uint64_t>();
  list.entries = decoder.Read<uint64_t>();
  list.counted = decoder.Read<uint32_t>();
  list.shard_bits = decoder.Read<uint32_t>();
  const uint32_t sets = decoder.Read<uint32_t>();
  decoder.Read<uint32_t>();
  constexpr size_t kShardBytes = 12;
  if (list.shard_bits > kShardBitsMax || sets > 2 ||
      decoder.rest().size() >> list.shard_bits < kShardBytes) {
    return damaged("has more shards or change sets than it has bytes");
  }
  list.shards.resize(size_t{1} << list.shard_bits);
  for (ShardEntry& shard : list.shards) {
    shard.base_file = decoder.Read<uint64_t>();
    shard.change_sets = decoder.Read<uint16_t>();
    shard.mixed = decoder.Read<uint16_t>() != 0;
  }
  for (uint32_t i = 0; i < sets; ++i) list.change_sets.push_back(DecodeChangeSet(&decoder));
  decoder.Read<uint64_t>();
  if (!decoder.ok() || !decoder.AtEnd() || !IsSound(list)) {
    return damaged("names impossible files: its shards or log segments do not fit each other");
  }
  return list;
}

Result<ListFile> ListFile::Open(io::FileSystem* fs, std::string_view directory, uint64_t number,
                                std::optional<uint64_t> map_id) {
  const std::string path = io::JoinPath(directory, NameOf(FileKind::kVersion, number));
  ListFile listed;
  BASALT_ASSIGN_OR_RETURN(listed.file, fs->Open(path, io::OpenMode::kRead));
  BASALT_RETURN_IF_ERROR(listed.file->MarkInUse());
  BASALT_ASSIGN_OR_RETURN(const uint64_t size, listed.file->Size());
  if (size > VersionFiles::kBytesMax) {
    return Status(StatusCode::kCorruption,
                  path + ": is too large for a list of files; restore a copy of the map");
  }
  std::string bytes(size, '\0');
  BASALT_RETURN_IF_ERROR(listed.file->ReadExactAt(0, bytes));
  BASALT_ASSIGN_OR_RETURN(listed.list, VersionFiles::Decode(bytes, path));
  if (listed.list.number != number) {
    return Status(StatusCode::kCorruption,
                  path + ": is version " + std::to_string(listed.list.number) + " by another name");
  }
  if (listed.list.map_id != map_id.value_or(listed.list.map_id)) {
    return Status(StatusCode::kCorruption,
                  path + ": is of another map than CONTROL beside it; restore a copy of the map");
  }
  return listed;
}

Status ListFile::Write(io::FileSystem* fs, const std::string& directory, const VersionFiles& list) {
  const std::string path = io::JoinPath(directory, NameOf(FileKind::kVersion, list.number));
  BASALT_RETURN_IF_ERROR(io::WriteReplacement(fs, path, list.Encode()));
  // A file system may bring names to the disk in any order, and this list must not come before the
  // names of the files in it.
  BASALT_RETURN_IF_ERROR(fs->SyncDirectory(directory));
  return io::TakeReplacement(fs, path);
}

Status ListFile::Remove(io::FileSystem* fs, const std::string& directory, uint64_t number) {
  const std::string path = io::JoinPath(directory, NameOf(FileKind::kVersion, number));
  BASALT_ASSIGN_OR_RETURN(const bool present, fs->Exists(path));
  if (present) BASALT_RETURN_IF_ERROR(fs->RemoveFile(path));
  return fs->SyncDirectory(directory);
}

}  // namespace basalt::shared_map
