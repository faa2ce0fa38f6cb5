#include "db/manifest.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/coding.h"
#include "base/hash.h"
#include "db/file_names.h"
#include "db/tree_key.h"

namespace basalt::db {
namespace {

constexpr char kMagic[] = "BSLTMAN1";
constexpr uint32_t kFormatVersion = 1;
constexpr size_t kHeaderBytes = 64;
constexpr size_t kHeaderChecksumOffset = 56;
/// The body goes on behind the tables.
constexpr uint32_t kFeatureKeyspaces = 1;
/// Tables say what of them expires and what is kept for snapshots. Only with the first.
constexpr uint32_t kFeatureGarbage = 2;
/// Tables may hold several keyspaces, and the body names those that were dropped. Only with both
/// of these.
constexpr uint32_t kFeatureSharedTables = 4;
constexpr uint32_t kWrittenFeatures = kFeatureKeyspaces | kFeatureGarbage;
/// There are blocks of range deletes. Only with all of these.
constexpr uint32_t kFeatureRangeDeleteBlocks = 8;
constexpr uint32_t kKnownFeatures =
    kWrittenFeatures | kFeatureSharedTables | kFeatureRangeDeleteBlocks;
constexpr size_t kTableFixedBytes = 100;
constexpr uint8_t kDurabilityUnset = 255;

Status Corrupt(std::string_view path, uint64_t offset, const std::string& what) {
  return Status(StatusCode::kCorruption, "manifest " + std::string(path) + ", offset " +
                                             std::to_string(offset) + ": " + what +
                                             "; restore the database from a backup");
}

void AppendTable(const ManifestTable& table, std::string* out) {
  const table::TableProperties& p = table.properties;
  base::Append(out, table.place.number);
  base::Append(out, p.file_id);
  base::Append(out, p.keyspace);
  base::Append(out, table.level);
  for (const uint64_t field :
       {p.file_bytes, p.records, p.deletes, p.raw_key_bytes, p.raw_value_bytes, p.smallest_sequence,
        p.largest_sequence, p.earliest_expiry_ms, p.latest_expiry_ms}) {
    base::Append(out, field);
  }
  base::Append(out, static_cast<uint16_t>(p.smallest_key.size()));
  base::Append(out, static_cast<uint16_t>(p.largest_key.size()));
  out->append(p.smallest_key);
  out->append(p.largest_key);
  base::Append(out, p.merges);
  base::Append(out, p.expiring);
  base::Append(out, table.place.ranges_applied);
  base::Append(out, table.place.created_ms);
  base::Append(out, table.place.half_expired_ms);
  base::Append(out, table.place.retained_bytes);
}

// Of a table that was written before tables said so. It is half expired when the last of its puts
// expires, if most of its records do. What it keeps for snapshots is not known: something.
void EstimateGarbage(ManifestTable* table) {
  const table::TableProperties& p = table->properties;
  if (p.expiring > p.records / 2) table->place.half_expired_ms = p.latest_expiry_ms;
  table->place.retained_bytes = 1;
}

ManifestTable ReadTable(base::Decoder* in, uint32_t features) {
  ManifestTable table;
  table::TableProperties& p = table.properties;
  table.place.number = in->Read<uint64_t>();
  p.file_id = in->Read<uint64_t>();
  p.keyspace = in->Read<uint32_t>();
  table.level = in->Read<uint32_t>();
  for (uint64_t* field :
       {&p.file_bytes, &p.records, &p.deletes, &p.raw_key_bytes, &p.raw_value_bytes,
        &p.smallest_sequence, &p.largest_sequence, &p.earliest_expiry_ms, &p.latest_expiry_ms}) {
    *field = in->Read<uint64_t>();
  }
  const auto smallest_size = in->Read<uint16_t>();
  const auto largest_size = in->Read<uint16_t>();
  p.smallest_key = in->ReadBytes(smallest_size);
  p.largest_key = in->ReadBytes(largest_size);
  if ((features & kFeatureKeyspaces) != 0) {
    p.merges = in->Read<uint64_t>();
    p.expiring = in->Read<uint64_t>();
    table.place.ranges_applied = in->Read<uint64_t>();
    table.place.created_ms = in->Read<uint64_t>();
  }
  if ((features & kFeatureGarbage) != 0) {
    table.place.half_expired_ms = in->Read<uint64_t>();
    table.place.retained_bytes = in->Read<uint64_t>();
  } else {
    EstimateGarbage(&table);
  }
  return table;
}

void AppendKeyspaces(const Manifest& manifest, std::string* out) {
  base::Append(out, static_cast<uint32_t>(manifest.keyspaces.size()));
  base::Append(out, manifest.next_keyspace_id);
  for (const Keyspace& keyspace : manifest.keyspaces) {
    base::Append(out, keyspace.id);
    base::Append(
        out, keyspace.durability ? static_cast<uint8_t>(*keyspace.durability) : kDurabilityUnset);
    base::Append(out, uint8_t{0});
    base::Append(out, static_cast<uint16_t>(keyspace.name.size()));
    out->append(keyspace.name);
  }
}

/// Blocks may be left out, since they have been written before.
enum class Blocks : uint8_t { kWritten, kLeftOut };

/// Range deletes of trees are written as blocks if there are so many, or so many bytes of their
/// keys. The manifest is written anew with each change of the tables.
constexpr size_t kRangeDeletesInBlocksMin = 1000;
constexpr size_t kRangeDeleteBytesInBlocksMin = size_t{64} << 10;

bool HasBlocks(const Manifest& manifest) noexcept {
  size_t count = 0;
  for (const RangeDeletes& ranges : manifest.tree_range_deletes) count += ranges.size();
  if (count >= kRangeDeletesInBlocksMin) return true;
  size_t bytes = 0;
  for (const RangeDeletes& ranges : manifest.tree_range_deletes) {
    for (const auto& part : ranges.parts()) {
      for (const RangeDelete& range : part->ranges()) {
        bytes += range.begin.size() + range.end.size();
      }
    }
  }
  return bytes >= kRangeDeleteBytesInBlocksMin;
}

void AppendRangeDeletes(const Manifest& manifest, std::string* out) {
  struct Entry {
    uint32_t keyspace;
    const RangeDelete* range;
    size_t skipped;  ///< Bytes of its keys.
    size_t place;    ///< Among those of a keyspace the order stays.
  };
  std::vector<Entry> entries;
  std::span<const RangeDeletes> of_trees = manifest.tree_range_deletes;
  for (const auto& [keyspace, range] : manifest.range_deletes) {
    entries.push_back({keyspace, &range, 0, entries.size()});
  }
  if (HasBlocks(manifest)) of_trees = {};
  for (const RangeDeletes& ranges : of_trees) {
    for (const auto& part : ranges.parts()) {
      const bool is_shared = part->is_shared();
      for (const RangeDelete& range : part->ranges()) {
        entries.push_back({is_shared ? KeyspaceOf(range.begin) : 0, &range,
                           is_shared ? kKeyspaceBytes : 0, entries.size()});
      }
    }
  }
  std::ranges::sort(entries, {},
                    [](const Entry& entry) { return std::pair(entry.keyspace, entry.place); });
  base::Append(out, static_cast<uint32_t>(entries.size()));
  base::Append(out, uint32_t{0});
  for (const auto& [keyspace, range, skipped, place] : entries) {
    AppendRangeDelete(keyspace, range->sequence, std::string_view(range->begin).substr(skipped),
                      std::string_view(range->end).substr(skipped), out);
  }
}

void AppendRangeDeleteBlocks(std::span<const RangeDeletes> of_trees, std::string* out) {
  uint32_t count = 0;
  size_t bytes = 0;
  const auto for_each_part = [&](const auto& visit) {
    for (const RangeDeletes& ranges : of_trees) {
      for (const auto& part : ranges.parts()) visit(part->blocks());
    }
  };
  for_each_part([&](const RangeDeleteBlocks& blocks) {
    count += blocks.count();
    bytes += blocks.bytes().size();
  });
  base::Append(out, count);
  base::Append(out, uint32_t{0});
  out->reserve(out->size() + bytes);
  for_each_part([&](const RangeDeleteBlocks& blocks) { out->append(blocks.bytes()); });
}

Status ReadKeyspaces(base::Decoder* in, std::string_view path, Manifest* manifest) {
  const auto count = in->Read<uint32_t>();
  manifest->next_keyspace_id = in->Read<uint32_t>();
  for (uint32_t i = 0; i < count && in->ok(); ++i) {
    const uint64_t offset = kHeaderBytes + in->position();
    Keyspace keyspace;
    keyspace.id = in->Read<uint32_t>();
    const auto durability = in->Read<uint8_t>();
    const auto zero = in->Read<uint8_t>();
    const auto name_bytes = in->Read<uint16_t>();
    keyspace.name = in->ReadBytes(name_bytes);
    const uint32_t previous = manifest->keyspaces.empty() ? 0 : manifest->keyspaces.back().id;
    if (!in->ok() || zero != 0 || keyspace.id <= previous ||
        keyspace.id >= manifest->next_keyspace_id ||
        (durability != kDurabilityUnset && durability > static_cast<uint8_t>(Durability::kPower))) {
      return Corrupt(path, offset, "a keyspace's entry is malformed");
    }
    if (durability != kDurabilityUnset) keyspace.durability = static_cast<Durability>(durability);
    manifest->keyspaces.push_back(std::move(keyspace));
  }
  if (!in->ok()) return Corrupt(path, kHeaderBytes, "the keyspaces do not fit the file");
  return {};
}

Status ReadRangeDeletes(base::Decoder* in, std::string_view path, Manifest* manifest) {
  const uint64_t offset = kHeaderBytes + in->position();
  const auto count = in->Read<uint32_t>();
  if (in->Read<uint32_t>() != 0) return Corrupt(path, offset, "bytes that must be zero are not");
  if (ReadRangeDeleteEntries(in, count, &manifest->range_deletes)) return {};
  return Corrupt(path, kHeaderBytes + in->position(),
                 "the range deletes are malformed, or do not fit the file");
}

Status ReadRangeDeleteBlocks(base::Decoder* in, std::string_view path, Manifest* manifest) {
  const uint64_t offset = kHeaderBytes + in->position();
  const auto count = in->Read<uint32_t>();
  if (in->Read<uint32_t>() != 0) return Corrupt(path, offset, "bytes that must be zero are not");
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t of_block = kHeaderBytes + in->position();
    if (!ReadRangeDeleteBlock(in, &manifest->range_deletes)) {
      return Corrupt(path, of_block, "a block of range deletes is malformed");
    }
  }
  if (!in->ok()) return Corrupt(path, offset, "the blocks of range deletes do not fit the file");
  // Of several trees, and parts of these.
  std::ranges::sort(manifest->range_deletes, {}, [](const ManifestRangeDelete& deleted) {
    return std::tuple(deleted.keyspace, std::string_view(deleted.range.begin),
                      deleted.range.sequence);
  });
  return {};
}

void AppendDropped(const Manifest& manifest, std::string* out) {
  base::Append(out, static_cast<uint32_t>(manifest.dropped_keyspaces.size()));
  base::Append(out, uint32_t{0});
  for (const DroppedKeyspace& dropped : manifest.dropped_keyspaces) {
    base::Append(out, dropped.id);
    base::Append(out, uint32_t{0});
    base::Append(out, dropped.table_number);
  }
}

Status ReadDropped(base::Decoder* in, std::string_view path, Manifest* manifest) {
  const auto count = in->Read<uint32_t>();
  if (in->Read<uint32_t>() != 0) {
    return Corrupt(path, kHeaderBytes, "bytes that must be zero are not");
  }
  for (uint32_t i = 0; i < count && in->ok(); ++i) {
    const uint64_t offset = kHeaderBytes + in->position();
    DroppedKeyspace dropped;
    dropped.id = in->Read<uint32_t>();
    const auto zero = in->Read<uint32_t>();
    dropped.table_number = in->Read<uint64_t>();
    const uint32_t previous = i == 0 ? 0 : manifest->dropped_keyspaces.back().id;
    if (!in->ok() || zero != 0 || dropped.id <= previous) {
      return Corrupt(path, offset, "a dropped keyspace's entry is malformed");
    }
    manifest->dropped_keyspaces.push_back(dropped);
  }
  if (!in->ok()) return Corrupt(path, kHeaderBytes, "the dropped keyspaces do not fit the file");
  return {};
}

/// What a reader of the manifest has to know.
uint32_t FeaturesOf(const Manifest& manifest) {
  if (HasBlocks(manifest)) return kKnownFeatures;
  const bool has_shared = std::ranges::any_of(manifest.tables, [](const ManifestTable& table) {
    return table.properties.keyspace == table::kSharedKeyspaces;
  });
  return kWrittenFeatures |
         (has_shared || !manifest.dropped_keyspaces.empty() ? kFeatureSharedTables : 0);
}

Status CheckHeader(std::string_view bytes, std::string_view path) {
  if (bytes.size() < kHeaderBytes) {
    return Corrupt(path, bytes.size(), "the file ends inside its header");
  }
  if (std::memcmp(bytes.data(), kMagic, 8) != 0) {
    return Corrupt(path, 0, "this is not a Basalt manifest");
  }
  if (base::Load<uint64_t>(bytes.data() + kHeaderChecksumOffset) !=
      base::Checksum(0, 0, bytes.substr(0, kHeaderChecksumOffset))) {
    return Corrupt(path, 0, "the header's checksum does not match");
  }
  const auto version = base::Load<uint32_t>(bytes.data() + 8);
  const auto required = base::Load<uint32_t>(bytes.data() + 12);
  if (version != kFormatVersion || (required & ~kKnownFeatures) != 0) {
    return Status(StatusCode::kUnsupported,
                  "manifest " + std::string(path) + " was written by a newer version (format " +
                      std::to_string(version) + ", required features " + std::to_string(required) +
                      "); this one reads format 1: open it with that version");
  }
  if ((required & (required + 1)) != 0) {  // a feature without those before it
    return Corrupt(path, 12, "required features " + std::to_string(required));
  }
  if (base::Load<uint32_t>(bytes.data() + 20) != 0 ||
      base::Load<uint64_t>(bytes.data() + 48) != 0) {
    return Corrupt(path, 20, "bytes of the header that must be zero are not");
  }
  return {};
}

/// Of a shared tree: each keyspace may have stood by itself in the manifest.
void SortLevels(Tree* tree) {
  std::ranges::sort(tree->levels[0], std::ranges::greater(), [](const auto& table) {
    return std::pair(table->properties().largest_sequence, table->number());
  });
  for (size_t level = 1; level < Tree::kLevels; ++level) {
    std::ranges::sort(tree->levels[level], {}, [](const auto& table) -> const std::string& {
      return table->properties().smallest_key;
    });
  }
}

Status CheckTable(const ManifestTable& table, std::string_view path, uint64_t offset) {
  const table::TableProperties& p = table.properties;
  if (table.level >= Tree::kLevels)
    return Corrupt(path, offset, "level " + std::to_string(table.level));
  if (table.place.number == 0) return Corrupt(path, offset, "table number 0");
  if (p.keyspace == table::kSharedKeyspaces &&
      std::min(p.smallest_key.size(), p.largest_key.size()) < kKeyspaceBytes) {
    return Corrupt(path, offset, "a key of several keyspaces' table does not name its own");
  }
  if (p.smallest_key > p.largest_key) return Corrupt(path, offset, "a key range is reversed");
  if (p.smallest_sequence > p.largest_sequence || p.largest_sequence > base::kMaxSequence) {
    return Corrupt(path, offset, "a sequence range is reversed or too large");
  }
  return {};
}

std::string Encode(const Manifest& manifest, Blocks blocks) {
  std::string bytes(kHeaderBytes, '\0');
  for (const uint64_t field : {manifest.next_table_number, manifest.flushed_lsn,
                               manifest.durable_lsn, manifest.last_sequence, manifest.wall_ms}) {
    base::Append(&bytes, field);
  }
  base::Append(&bytes, static_cast<uint32_t>(manifest.tables.size()));
  base::Append(&bytes, uint32_t{0});
  for (const ManifestTable& table : manifest.tables) AppendTable(table, &bytes);
  AppendKeyspaces(manifest, &bytes);
  const uint32_t features = FeaturesOf(manifest);
  AppendRangeDeletes(manifest, &bytes);
  if ((features & kFeatureRangeDeleteBlocks) != 0) {
    std::span<const RangeDeletes> of_trees = manifest.tree_range_deletes;
    if (blocks == Blocks::kLeftOut) of_trees = {};
    AppendRangeDeleteBlocks(of_trees, &bytes);
  }
  if ((features & kFeatureSharedTables) != 0) AppendDropped(manifest, &bytes);

  const std::string_view body = std::string_view(bytes).substr(kHeaderBytes);
  std::string header(kMagic, 8);
  base::Append(&header, kFormatVersion);
  base::Append(&header, features);
  base::Append(&header, uint32_t{0});  // optional features
  base::Append(&header, uint32_t{0});
  base::Append(&header, manifest.database_id);
  base::Append(&header, uint64_t{body.size()});
  base::Append(&header, base::Checksum(manifest.database_id, kHeaderBytes, body));
  base::Append(&header, uint64_t{0});
  base::Append(&header, base::Checksum(0, 0, header));
  BASALT_CHECK(header.size() == kHeaderBytes);
  bytes.replace(0, kHeaderBytes, header);
  return bytes;
}

}  // namespace

std::string EncodeManifest(const Manifest& manifest) { return Encode(manifest, Blocks::kWritten); }

Result<Manifest> DecodeManifest(std::string_view bytes, std::string_view path) {
  BASALT_RETURN_IF_ERROR(CheckHeader(bytes, path));
  Manifest manifest;
  manifest.database_id = base::Load<uint64_t>(bytes.data() + 24);
  const std::string_view body = bytes.substr(kHeaderBytes);
  const auto body_bytes = base::Load<uint64_t>(bytes.data() + 32);
  if (body.size() != body_bytes) {
    return Corrupt(path, bytes.size(),
                   "the file has " + std::to_string(body.size()) + " bytes after its header, not " +
                       std::to_string(body_bytes));
  }
  if (base::Load<uint64_t>(bytes.data() + 40) !=
      base::Checksum(manifest.database_id, kHeaderBytes, body)) {
    return Corrupt(path, kHeaderBytes, "the body's checksum does not match");
  }
  base::Decoder in(body);
  for (uint64_t* field : {&manifest.next_table_number, &manifest.flushed_lsn, &manifest.durable_lsn,
                          &manifest.last_sequence, &manifest.wall_ms}) {
    *field = in.Read<uint64_t>();
  }
  const auto count = in.Read<uint32_t>();
  const auto zero = in.Read<uint32_t>();
  if (!in.ok() || zero != 0 || count > in.rest().size() / kTableFixedBytes) {
    return Corrupt(path, kHeaderBytes, "the number of tables does not fit the file");
  }
  const auto features = base::Load<uint32_t>(bytes.data() + 12);
  manifest.tables.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t offset = kHeaderBytes + in.position();
    manifest.tables.push_back(ReadTable(&in, features));
    if (!in.ok()) return Corrupt(path, offset, "a table's entry does not fit the file");
    BASALT_RETURN_IF_ERROR(CheckTable(manifest.tables.back(), path, offset));
  }
  if ((features & kFeatureKeyspaces) != 0) {
    BASALT_RETURN_IF_ERROR(ReadKeyspaces(&in, path, &manifest));
    BASALT_RETURN_IF_ERROR(ReadRangeDeletes(&in, path, &manifest));
  }
  const bool has_blocks = (features & kFeatureRangeDeleteBlocks) != 0;
  if (has_blocks) BASALT_RETURN_IF_ERROR(ReadRangeDeleteBlocks(&in, path, &manifest));
  if ((features & kFeatureSharedTables) != 0) {
    BASALT_RETURN_IF_ERROR(ReadDropped(&in, path, &manifest));
  }
  if (!in.AtEnd()) {
    return Corrupt(path, kHeaderBytes + in.position(), "bytes follow the last entry");
  }
  if (!has_blocks && ((features ^ FeaturesOf(manifest)) & kFeatureSharedTables) != 0) {
    return Corrupt(path, 12, "its required features are not those of what it names");
  }
  return manifest;
}

RangeDelete InTree(const ManifestRangeDelete& deleted) {
  const RangeDelete& range = deleted.range;
  return {range.sequence, TreeKey(deleted.keyspace, range.begin),
          TreeKey(deleted.keyspace, range.end)};
}

std::shared_ptr<const Version> VersionOf(const Manifest& manifest, io::FileSystem* fs,
                                         const std::string& directory,
                                         const TableFile::Resources& resources) {
  std::map<uint32_t, std::shared_ptr<Tree>> trees;
  const auto tree_of = [&](uint32_t keyspace) {
    std::shared_ptr<Tree>& tree = trees[TreeOf(keyspace)];
    if (tree == nullptr) tree = std::make_shared<Tree>();
    tree->keyspace = TreeOf(keyspace);
    return tree.get();
  };
  for (const ManifestTable& table : manifest.tables) {
    tree_of(table.properties.keyspace)
        ->levels[table.level]
        .push_back(std::make_shared<TableFile>(
            fs, io::JoinPath(directory, TableFileName(table.place.number)), table.place,
            table.properties, resources));
  }
  std::map<uint32_t, std::vector<RangeDelete>> ranges;
  for (const ManifestRangeDelete& deleted : manifest.range_deletes) {
    ranges[TreeOf(deleted.keyspace)].push_back(InTree(deleted));
  }
  for (auto& [id, deletes] : ranges) {
    tree_of(id)->range_deletes = RangeDeletes(std::move(deletes), id == kSharedTree);
  }
  if (!manifest.dropped_keyspaces.empty()) {
    tree_of(kSharedTree)->dropped = manifest.dropped_keyspaces;
  }
  Version::Trees ascending;
  for (auto& [id, tree] : trees) {
    if (id == kSharedTree) SortLevels(tree.get());
    tree->IndexLevels();
    ascending.push_back(std::move(tree));
  }
  return std::make_shared<const Version>(std::move(ascending));
}

Result<std::string> ReadManifestBytes(io::FileSystem* fs, const std::string& directory) {
  return io::ReadWholeFile(fs, io::JoinPath(directory, kManifestName), kMaxManifestBytes);
}

Result<Manifest> ReadManifest(io::FileSystem* fs, const std::string& directory) {
  BASALT_ASSIGN_OR_RETURN(const std::string bytes, ReadManifestBytes(fs, directory));
  return DecodeManifest(bytes, io::JoinPath(directory, kManifestName));
}

Result<std::string> EncodeReadable(const Manifest& manifest, const std::string& directory,
                                   uint64_t max_bytes) {
  const std::string path = io::JoinPath(directory, kManifestName);
  std::string bytes = EncodeManifest(manifest);
  if (bytes.size() > max_bytes) {
    return Status(StatusCode::kResourceExhausted,
                  "manifest " + path + ": not written, since it would have " +
                      std::to_string(bytes.size()) + " bytes, and no more than " +
                      std::to_string(max_bytes) +
                      " are read: compact the database, so that range deletes and tables go");
  }
  // Blocks of range deletes were made of ones that were read, or that a write has checked. To read
  // them again could take longer than the flush.
  const std::string readable = Encode(manifest, Blocks::kLeftOut);
  if (const auto read = DecodeManifest(readable, path); !read) {
    return Status(read.error().code(), "not written, since it could not be read again: " +
                                           std::string(read.error().message()));
  }
  return bytes;
}

Status WriteEncoded(io::FileSystem* fs, const std::string& directory, std::string_view bytes) {
  BASALT_RETURN_IF_ERROR(fs->SyncDirectory(directory));
  return io::WriteReplacement(fs, io::JoinPath(directory, kManifestName), bytes);
}

Status InstallWritten(io::FileSystem* fs, const std::string& directory) {
  return io::TakeReplacement(fs, io::JoinPath(directory, kManifestName));
}

Status WriteManifest(io::FileSystem* fs, const std::string& directory, const Manifest& manifest) {
  BASALT_ASSIGN_OR_RETURN(const std::string bytes, EncodeReadable(manifest, directory));
  BASALT_RETURN_IF_ERROR(WriteEncoded(fs, directory, bytes));
  return InstallWritten(fs, directory);
}

}  // namespace basalt::db
