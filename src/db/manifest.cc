#include "db/manifest.h"

#include <cstring>

#include "base/check.h"
#include "base/coding.h"
#include "base/hash.h"
#include "db/file_names.h"

namespace basalt::db {
namespace {

constexpr char kMagic[] = "BSLTMAN1";
constexpr uint32_t kFormatVersion = 1;
constexpr size_t kHeaderBytes = 64;
constexpr size_t kHeaderChecksumOffset = 56;
constexpr size_t kTableFixedBytes = 100;
constexpr uint64_t kMaxManifestBytes = uint64_t{1} << 30;

Status Corrupt(std::string_view path, uint64_t offset, const std::string& what) {
  return Status(StatusCode::kCorruption, "manifest " + std::string(path) + ", offset " +
                                             std::to_string(offset) + ": " + what);
}

void AppendTable(const ManifestTable& table, std::string* out) {
  const table::TableProperties& p = table.properties;
  base::Append(out, table.number);
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
}

ManifestTable ReadTable(base::Decoder* in) {
  ManifestTable table;
  table::TableProperties& p = table.properties;
  table.number = in->Read<uint64_t>();
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
  return table;
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
  if (version != kFormatVersion || required != 0) {
    return Status(StatusCode::kUnsupported,
                  "manifest " + std::string(path) + " was written by a newer version (format " +
                      std::to_string(version) + ", required features " + std::to_string(required) +
                      "); this one reads format 1: open it with that version");
  }
  if (base::Load<uint32_t>(bytes.data() + 20) != 0 ||
      base::Load<uint64_t>(bytes.data() + 48) != 0) {
    return Corrupt(path, 20, "bytes of the header that must be zero are not");
  }
  return {};
}

Status CheckTable(const ManifestTable& table, std::string_view path, uint64_t offset) {
  const table::TableProperties& p = table.properties;
  if (table.level >= 2) return Corrupt(path, offset, "level " + std::to_string(table.level));
  if (table.number == 0) return Corrupt(path, offset, "table number 0");
  if (p.smallest_key > p.largest_key) return Corrupt(path, offset, "a key range is reversed");
  if (p.smallest_sequence > p.largest_sequence || p.largest_sequence > base::kMaxSequence) {
    return Corrupt(path, offset, "a sequence range is reversed or too large");
  }
  return {};
}

}  // namespace

std::string EncodeManifest(const Manifest& manifest) {
  std::string body;
  for (const uint64_t field : {manifest.next_table_number, manifest.flushed_lsn,
                               manifest.durable_lsn, manifest.last_sequence, manifest.wall_ms}) {
    base::Append(&body, field);
  }
  base::Append(&body, static_cast<uint32_t>(manifest.tables.size()));
  base::Append(&body, uint32_t{0});
  for (const ManifestTable& table : manifest.tables) AppendTable(table, &body);

  std::string bytes(kMagic, 8);
  base::Append(&bytes, kFormatVersion);
  base::Append(&bytes, uint32_t{0});  // required features
  base::Append(&bytes, uint32_t{0});  // optional features
  base::Append(&bytes, uint32_t{0});
  base::Append(&bytes, manifest.database_id);
  base::Append(&bytes, uint64_t{body.size()});
  base::Append(&bytes, base::Checksum(manifest.database_id, kHeaderBytes, body));
  base::Append(&bytes, uint64_t{0});
  base::Append(&bytes, base::Checksum(0, 0, bytes));
  BASALT_CHECK(bytes.size() == kHeaderBytes);
  return bytes + body;
}

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
  manifest.tables.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t offset = kHeaderBytes + in.position();
    manifest.tables.push_back(ReadTable(&in));
    if (!in.ok()) return Corrupt(path, offset, "a table's entry does not fit the file");
    BASALT_RETURN_IF_ERROR(CheckTable(manifest.tables.back(), path, offset));
  }
  if (!in.AtEnd()) {
    return Corrupt(path, kHeaderBytes + in.position(), "bytes follow the last table's entry");
  }
  return manifest;
}

Result<Manifest> ReadManifest(io::FileSystem* fs, const std::string& directory) {
  const std::string path = io::JoinPath(directory, kManifestName);
  BASALT_ASSIGN_OR_RETURN(const std::string bytes, io::ReadWholeFile(fs, path, kMaxManifestBytes));
  return DecodeManifest(bytes, path);
}

Status WriteManifest(io::FileSystem* fs, const std::string& directory, const Manifest& manifest) {
  BASALT_RETURN_IF_ERROR(fs->SyncDirectory(directory));
  return io::ReplaceFile(fs, io::JoinPath(directory, kManifestName), EncodeManifest(manifest));
}

}  // namespace basalt::db
