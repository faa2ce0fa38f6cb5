#include "table/table_metadata.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "base/hexadecimal.h"
#include "table/block_builder.h"
#include "table/block_hint.h"
#include "table/checked_block.h"
#include "table/stored_block.h"

namespace basalt::table {
namespace {

/// The beginning of the properties section. The smallest and the largest key follow; before them,
/// under kFeatureTimes, TimedFields.
struct PropertiesFields {
  uint64_t records;
  uint64_t deletes;
  uint64_t raw_key_bytes;
  uint64_t raw_value_bytes;
  uint64_t smallest_sequence;
  uint64_t largest_sequence;
  uint64_t earliest_expiry_ms;
  uint64_t latest_expiry_ms;
  uint16_t smallest_key_bytes;
  uint16_t largest_key_bytes;
  uint32_t reserved;  // zero
};
static_assert(sizeof(PropertiesFields) == 72 &&
              std::has_unique_object_representations_v<PropertiesFields>);

struct TimedFields {
  uint64_t merges;
  uint64_t expiring;
};
static_assert(sizeof(TimedFields) == 16 && std::has_unique_object_representations_v<TimedFields>);

const char* KindName(SectionKind kind) noexcept {
  switch (kind) {
    case SectionKind::kIndex:
      return "index";
    case SectionKind::kFilter:
      return "filter";
    case SectionKind::kProperties:
      return "properties";
    case SectionKind::kPointIndex:
      return "point index";
    case SectionKind::kDictionary:
      return "dictionary";
    case SectionKind::kIndexParts:
      return "index parts";
    case SectionKind::kIndexRoot:
      return "index root";
  }
  return "unknown";
}

bool IsKnown(uint32_t kind) noexcept {
  return kind >= static_cast<uint32_t>(SectionKind::kIndex) &&
         kind <= static_cast<uint32_t>(SectionKind::kIndexRoot);
}

/// In which pass over the section table a section is read: point indexes are for tables whose index
/// is in memory, filters for those without a point index.
enum class Pass : uint8_t { kFirst, kPointIndex, kFilter };

Pass PassOf(uint32_t kind) noexcept {
  if (kind == static_cast<uint32_t>(SectionKind::kPointIndex)) return Pass::kPointIndex;
  return kind == static_cast<uint32_t>(SectionKind::kFilter) ? Pass::kFilter : Pass::kFirst;
}

}  // namespace

void CountRecord(std::string_view key, base::Tag tag, uint64_t time_ms, std::string_view value,
                 TableProperties* properties) noexcept {
  TableProperties& p = *properties;
  const base::SequenceNumber sequence = base::TagSequence(tag);
  p.smallest_sequence = p.records == 0 ? sequence : std::min(p.smallest_sequence, sequence);
  p.largest_sequence = std::max(p.largest_sequence, sequence);
  ++p.records;
  p.raw_key_bytes += key.size();
  p.raw_value_bytes += value.size();
  const RecordKind kind = base::TagKind(tag);
  p.deletes += kind == RecordKind::kDelete ? 1 : 0;
  p.merges += kind == RecordKind::kMerge ? 1 : 0;
  if (kind != RecordKind::kPut || time_ms == 0) return;
  p.earliest_expiry_ms = p.expiring == 0 ? time_ms : std::min(p.earliest_expiry_ms, time_ms);
  p.latest_expiry_ms = std::max(p.latest_expiry_ms, time_ms);
  ++p.expiring;
}

std::string EncodeProperties(const TableProperties& properties) {
  const PropertiesFields fields = {
      .records = properties.records,
      .deletes = properties.deletes,
      .raw_key_bytes = properties.raw_key_bytes,
      .raw_value_bytes = properties.raw_value_bytes,
      .smallest_sequence = properties.smallest_sequence,
      .largest_sequence = properties.largest_sequence,
      .earliest_expiry_ms = properties.earliest_expiry_ms,
      .latest_expiry_ms = properties.latest_expiry_ms,
      .smallest_key_bytes = static_cast<uint16_t>(properties.smallest_key.size()),
      .largest_key_bytes = static_cast<uint16_t>(properties.largest_key.size()),
      .reserved = 0,
  };
  const TimedFields timed = {.merges = properties.merges, .expiring = properties.expiring};
  std::string bytes(BytesOf(fields));
  bytes.append(BytesOf(timed));
  bytes.append(properties.smallest_key).append(properties.largest_key);
  return bytes;
}

Status MetadataReader::Unsupported(std::string_view what) const {
  std::string message(what);
  message.append("; the table was written in format version ")
      .append(std::to_string(header_.format_version))
      .append(", this program reads version ")
      .append(std::to_string(kTableFormatVersion))
      .append(": open it with the program that wrote it");
  return Error(StatusCode::kUnsupported, message);
}

Result<std::unique_ptr<TableMetadata>> MetadataReader::Read(std::shared_ptr<MetadataBudget> budget,
                                                            NoRoom no_room) {
  metadata_ = std::make_unique<TableMetadata>();
  metadata_->charge = MetadataCharge(std::move(budget));
  no_room_ = no_room;
  return ReadSections();
}

Result<std::unique_ptr<TableMetadata>> MetadataReader::ReadAll() {
  metadata_ = std::make_unique<TableMetadata>();
  reads_all_ = true;
  return ReadSections();
}

Result<std::unique_ptr<TableMetadata>> MetadataReader::ReadSections() {
  BASALT_RETURN_IF_ERROR(ReadHeader());
  BASALT_RETURN_IF_ERROR(ReadTrailer());
  std::string entries;
  BASALT_RETURN_IF_ERROR(ReadSectionTable(&entries));
  for (const Pass pass : {Pass::kFirst, Pass::kPointIndex, Pass::kFilter}) {
    if (pass == Pass::kPointIndex) {
      BASALT_RETURN_IF_ERROR(OpenIndex());
      if (!reads_all_ && metadata_->index.whole() == nullptr) continue;
    }
    if (pass == Pass::kFilter && !reads_all_ && !metadata_->point_index.empty()) break;
    for (size_t at = 0; at < entries.size(); at += sizeof(SectionEntry)) {
      const auto entry = FromBytes<SectionEntry>(entries, at);
      if (PassOf(entry.kind) == pass) BASALT_RETURN_IF_ERROR(ReadSection(entry));
    }
  }
  BASALT_RETURN_IF_ERROR(CheckWhole());
  TableProperties& properties = metadata_->properties;
  for (std::string* const key : {&properties.smallest_key, &properties.largest_key}) {
    if (key->size() > kKeptKeyBytes) *key = std::string(CutKey(*key));
  }
  metadata_->charge.Add(sizeof(TableMetadata) + metadata_->dictionary.memory_bytes() +
                        properties.smallest_key.size() + properties.largest_key.size());
  return std::move(metadata_);
}

Status MetadataReader::ReadHeader() {
  Enter("header", 0);
  BASALT_ASSIGN_OR_RETURN(const uint64_t file_bytes, file_.Size());
  char bytes[sizeof(FileHeader)] = {};
  BASALT_ASSIGN_OR_RETURN(const size_t read, file_.ReadAt(0, bytes));
  header_ = FromBytes<FileHeader>({bytes, sizeof bytes});
  if (read >= sizeof kTableMagic &&
      std::memcmp(header_.magic, kTableMagic, sizeof kTableMagic) != 0) {
    return Corrupt("it is not a Basalt table; another file has its name");
  }
  if (file_bytes != expected_bytes_) {
    return Corrupt("the file is " + std::to_string(file_bytes) + " bytes, the manifest says " +
                   std::to_string(expected_bytes_));
  }
  if (file_bytes < sizeof(FileHeader) + sizeof(FileTrailer)) {
    return Corrupt("the file is " + std::to_string(file_bytes) + " bytes, too few for a table");
  }
  if (header_.checksum != base::Checksum(header_.file_id, 0, {bytes, kHeaderChecksummedBytes})) {
    return Corrupt("its checksum is wrong");
  }
  if (header_.format_version != kTableFormatVersion) return Unsupported("the format is not known");
  if ((header_.required_features & ~kKnownRequiredFeatures) != 0) {
    return Unsupported("it needs features " + base::Hexadecimal(header_.required_features));
  }
  if (header_.file_id != expected_file_id_) {
    return Corrupt("its file id is " + base::Hexadecimal(header_.file_id) + ", the manifest says " +
                   base::Hexadecimal(expected_file_id_) + ": this is another table");
  }
  if (header_.keyspace != expected_keyspace_) {
    return Corrupt("its keyspace is " + std::to_string(header_.keyspace) + ", the manifest says " +
                   std::to_string(expected_keyspace_));
  }
  if (((header_.required_features & kFeatureSharedKeyspaces) != 0) !=
      (header_.keyspace == kSharedKeyspaces)) {
    return Corrupt("its keyspace does not match its features");
  }
  for (const uint64_t reserved : header_.reserved) {
    if (reserved != 0) return Corrupt("its reserved bytes are not zero");
  }
  metadata_->properties.file_id = header_.file_id;
  metadata_->properties.keyspace = header_.keyspace;
  metadata_->properties.file_bytes = file_bytes;
  return Status();
}

Status MetadataReader::ReadTrailer() {
  const uint64_t offset = expected_bytes_ - sizeof(FileTrailer);
  Enter("trailer", offset);
  char bytes[sizeof(FileTrailer)];
  BASALT_RETURN_IF_ERROR(file_.ReadExactAt(offset, bytes));
  trailer_ = FromBytes<FileTrailer>({bytes, sizeof bytes});
  if (std::memcmp(trailer_.magic, kTableMagic, sizeof kTableMagic) != 0) {
    return Corrupt("it does not end as a Basalt table; the file was cut or overwritten");
  }
  if (trailer_.checksum !=
      base::Checksum(expected_file_id_, offset, {bytes, kTrailerChecksummedBytes})) {
    return Corrupt("its checksum is wrong");
  }
  if (trailer_.format_version != header_.format_version ||
      trailer_.required_features != header_.required_features ||
      trailer_.optional_features != header_.optional_features ||
      trailer_.file_id != header_.file_id || trailer_.keyspace != header_.keyspace ||
      trailer_.file_bytes != expected_bytes_ || trailer_.reserved != 0) {
    return Corrupt("it does not match the header");
  }
  if (trailer_.section_count > kSectionCountMax ||
      trailer_.section_table_offset < sizeof(FileHeader) ||
      trailer_.section_table_offset > offset ||
      offset - trailer_.section_table_offset != trailer_.section_count * sizeof(SectionEntry)) {
    return Corrupt("it says that " + std::to_string(trailer_.section_count) +
                   " sections are listed at offset " +
                   std::to_string(trailer_.section_table_offset) + ", which cannot be");
  }
  return Status();
}

Status MetadataReader::ReadSectionTable(std::string* entries) {
  Enter("section table", trailer_.section_table_offset);
  entries->resize(trailer_.section_count * sizeof(SectionEntry));
  BASALT_RETURN_IF_ERROR(file_.ReadExactAt(part_offset_, *entries));
  if (trailer_.section_table_checksum !=
      base::Checksum(expected_file_id_, part_offset_, *entries)) {
    return Corrupt("its checksum is wrong");
  }
  // From the last to the first: each section must end where the one after it begins.
  uint64_t end = part_offset_;
  for (size_t i = trailer_.section_count; i-- > 0;) {
    const auto entry = FromBytes<SectionEntry>(*entries, i * sizeof(SectionEntry));
    if (entry.offset < sizeof(FileHeader) || entry.offset > end ||
        entry.size != end - entry.offset) {
      return Corrupt("section " + std::to_string(i) + " is not between its neighbours");
    }
    end = entry.offset;
  }
  metadata_->data_end = end;
  return Status();
}

Status MetadataReader::ReadSection(const SectionEntry& entry) {
  Enter("section", entry.offset);
  if (!IsKnown(entry.kind)) {
    if ((entry.flags & kSectionRequired) == 0) return SkipUnknown(entry);
    return Unsupported("the section is of kind " + std::to_string(entry.kind) +
                       " and marked as required");
  }
  const auto kind = static_cast<SectionKind>(entry.kind);
  Enter(KindName(kind), entry.offset);
  if ((entry.flags & ~kSectionRequired) != 0) {
    return Unsupported("the section has flags " + base::Hexadecimal(entry.flags));
  }
  switch (kind) {
    case SectionKind::kIndex:
      return ReadIndex(entry);
    case SectionKind::kFilter:
      return ReadFilter(entry);
    case SectionKind::kProperties:
      return ReadProperties(entry);
    case SectionKind::kPointIndex:
      return ReadPointIndex(entry);
    case SectionKind::kDictionary:
      return ReadDictionary(entry);
    case SectionKind::kIndexParts:
      if (index_parts_.kind != 0) return Corrupt("the table has two indexes");
      index_parts_ = entry;  // each part has a checksum of its own
      return Status();
    case SectionKind::kIndexRoot:
      return ReadIndexRoot(entry);
  }
  return Status();
}

Status MetadataReader::ReadChecked(const SectionEntry& entry, std::span<char> out) {
  BASALT_RETURN_IF_ERROR(file_.ReadExactAt(entry.offset, out));
  if (entry.checksum != base::Checksum(expected_file_id_, entry.offset, {out.data(), out.size()})) {
    return Corrupt("its checksum is wrong");
  }
  return Status();
}

Status MetadataReader::SkipUnknown(const SectionEntry& entry) {
  std::string bytes(entry.size, '\0');
  return ReadChecked(entry, bytes);
}

Result<std::shared_ptr<const Block>> MetadataReader::ReadIndexBlock(const SectionEntry& entry) {
  BlockBuffer buffer = BlockBuffer::Allocate(entry.size);
  BASALT_RETURN_IF_ERROR(ReadChecked(entry, {buffer.bytes.get(), buffer.size}));
  return ParseIndex(std::move(buffer));
}

Result<std::shared_ptr<const Block>> MetadataReader::ParseIndex(BlockBuffer buffer) {
  auto block = Block::Parse(std::move(buffer), Block::Content::kIndex);
  if (!block) return Error(block.error().code(), block.error().message());
  return block;
}

Status MetadataReader::ReadIndex(const SectionEntry& entry) {
  if (!metadata_->index.empty()) return Corrupt("the table has two indexes");
  BASALT_ASSIGN_OR_RETURN(std::shared_ptr<const Block> index, ReadIndexBlock(entry));
  return TakeIndex(std::move(index));
}

Status MetadataReader::TakeIndex(std::shared_ptr<const Block> index) {
  // Data blocks tile the file from the header to the first section.
  const auto end = CheckTiling(*index, 0, sizeof(FileHeader), metadata_->data_end);
  if (!end) return Error(end.error().code(), end.error().message());
  if (*end != metadata_->data_end) {
    return Corrupt("the last block does not end at the first section");
  }
  metadata_->index = BlockIndex(std::move(index));
  return Status();
}

Status MetadataReader::ReadIndexRoot(const SectionEntry& entry) {
  if (index_root_ != nullptr) return Corrupt("the table has two indexes");
  BASALT_ASSIGN_OR_RETURN(index_root_, ReadIndexBlock(entry));
  index_root_offset_ = entry.offset;
  return Status();
}

Status MetadataReader::OpenIndex() {
  MetadataCharge& charge = metadata_->charge;
  const auto bytes_of = [](const BlockIndex& index) {
    const size_t hints = index.whole() == nullptr ? 0 : index.block_count() * sizeof(BlockHint);
    return index.memory_bytes() + hints;
  };
  if (!metadata_->index.empty()) {
    Enter("section table", trailer_.section_table_offset);
    if (index_root_ != nullptr || index_parts_.kind != 0) {
      return Corrupt("the table has two indexes");
    }
    charge.Add(bytes_of(metadata_->index));
    return Status();
  }
  if (index_root_ == nullptr || index_parts_.kind == 0) return Status();  // CheckWhole says so
  Enter("index root", index_root_offset_);
  auto index = BlockIndex::InParts(index_root_, index_parts_.offset,
                                   index_parts_.offset + index_parts_.size);
  if (!index) return Error(index.error().code(), index.error().message());
  metadata_->index = std::move(*index);
  // The parts in the file take about as much as all of them in one block.
  const uint64_t estimate = index_parts_.size + metadata_->index.block_count() * sizeof(BlockHint);
  const bool has_room = !reads_all_ && charge.TryAdd(estimate);
  if (!has_room && (reads_all_ || no_room_ == NoRoom::kInParts)) {
    charge.Add(bytes_of(metadata_->index));
    return Status();
  }
  BASALT_RETURN_IF_ERROR(GatherIndex());
  const uint64_t charged = has_room ? estimate : 0;
  const uint64_t bytes = bytes_of(metadata_->index);
  if (bytes > charged) charge.Add(bytes - charged);
  return Status();
}

Status MetadataReader::GatherIndex() {
  BlockBuilder builder;
  for (size_t part = 0; part < metadata_->index.part_count(); ++part) {
    BASALT_ASSIGN_OR_RETURN(const BlockRef entries,
                            LoadIndexPart(file_, *metadata_, part, nullptr));
    for (uint32_t i = 0; i < entries->count(); ++i) {
      builder.Add(entries->Key(i), entries->tag(i), 0, entries->value(i));
    }
  }
  std::string raw(builder.raw_bytes_max(), '\0');
  raw.resize(builder.Write(raw.data()));
  BlockBuffer buffer = BlockBuffer::Allocate(raw.size());
  std::memcpy(buffer.bytes.get(), raw.data(), raw.size());
  Enter("index parts", index_parts_.offset);
  BASALT_ASSIGN_OR_RETURN(std::shared_ptr<const Block> whole, ParseIndex(std::move(buffer)));
  return TakeIndex(std::move(whole));
}

Status MetadataReader::ReadDictionary(const SectionEntry& entry) {
  if (!metadata_->dictionary.empty()) return Corrupt("the table has two dictionaries");
  if (entry.size > kDictionaryBytesMax) {
    return Corrupt("it is larger than " + std::to_string(kDictionaryBytesMax) + " bytes");
  }
  std::string bytes(entry.size, '\0');
  BASALT_RETURN_IF_ERROR(ReadChecked(entry, bytes));
  auto dictionary = ZstdDictionary::Create(bytes);
  if (!dictionary) return Error(dictionary.error().code(), dictionary.error().message());
  metadata_->dictionary = std::move(*dictionary);
  return Status();
}

Status MetadataReader::ReadPointIndex(const SectionEntry& entry) {
  if (!metadata_->point_index.empty()) return Corrupt("the table has two point indexes");
  if (entry.size % sizeof(PointIndex::Line) != 0) return Corrupt("it is not made of whole lines");
  if (!metadata_->charge.TryAddPointIndex(entry.size)) return Status();
  metadata_->point_index_offset = entry.offset;
  metadata_->point_index = PointIndex::Allocate(entry.size);
  BASALT_RETURN_IF_ERROR(ReadChecked(entry, metadata_->point_index.bytes()));
  const Status status = metadata_->point_index.Validate();
  if (status.ok()) return Status();
  if (status.code() != StatusCode::kUnsupported) return Error(status.code(), status.message());
  // Of another version's kind: lookups go without it, as a table does that has none.
  metadata_->point_index = PointIndex();
  metadata_->charge.Remove(entry.size);
  return Status();
}

Status MetadataReader::ReadFilter(const SectionEntry& entry) {
  if (!metadata_->filter.empty() || !metadata_->filter_pages.empty()) {
    return Corrupt("the table has two filters");
  }
  if (entry.size % sizeof(BloomFilter::Line) != 0) return Corrupt("it is not made of whole lines");
  BloomFilter filter = BloomFilter::Allocate(entry.size);
  BASALT_RETURN_IF_ERROR(ReadChecked(entry, filter.bytes()));
  if (const Status status = filter.Validate(); !status.ok()) {
    return Error(status.code(), status.message());
  }
  if (metadata_->charge.TryAdd(entry.size)) {
    metadata_->filter = std::move(filter);
  } else if (no_room_ == NoRoom::kInMemory) {
    metadata_->charge.Add(entry.size);
    metadata_->filter = std::move(filter);
  } else {
    metadata_->filter_pages = FilterPages(filter, expected_file_id_, entry.offset);
    metadata_->charge.Add(metadata_->filter_pages.memory_bytes());
  }
  return Status();
}

Status MetadataReader::ReadProperties(const SectionEntry& entry) {
  if (metadata_->properties_offset != 0) return Corrupt("the table has two properties sections");
  const bool timed = (header_.required_features & kFeatureTimes) != 0;
  const size_t keys_at = sizeof(PropertiesFields) + (timed ? sizeof(TimedFields) : 0);
  if (entry.size < keys_at) return Corrupt("it is too short");
  std::string bytes(entry.size, '\0');
  BASALT_RETURN_IF_ERROR(ReadChecked(entry, bytes));
  const auto fields = FromBytes<PropertiesFields>(bytes);
  if (bytes.size() != keys_at + fields.smallest_key_bytes + fields.largest_key_bytes ||
      fields.reserved != 0) {
    return Corrupt("its size is not that of its fields and keys");
  }
  TableProperties& properties = metadata_->properties;
  properties.records = fields.records;
  properties.deletes = fields.deletes;
  properties.raw_key_bytes = fields.raw_key_bytes;
  properties.raw_value_bytes = fields.raw_value_bytes;
  properties.smallest_sequence = fields.smallest_sequence;
  properties.largest_sequence = fields.largest_sequence;
  properties.earliest_expiry_ms = fields.earliest_expiry_ms;
  properties.latest_expiry_ms = fields.latest_expiry_ms;
  if (timed) {
    const auto times = FromBytes<TimedFields>(bytes, sizeof fields);
    properties.merges = times.merges;
    properties.expiring = times.expiring;
  }
  properties.smallest_key = bytes.substr(keys_at, fields.smallest_key_bytes);
  properties.largest_key = bytes.substr(keys_at + fields.smallest_key_bytes);
  metadata_->properties_offset = entry.offset;
  return Status();
}

Status MetadataReader::CheckWhole() {
  Enter("section table", trailer_.section_table_offset);
  if (metadata_->index.empty()) return Corrupt("it lists no index");
  if (metadata_->properties_offset == 0) return Corrupt("it lists no properties");
  Enter("properties", metadata_->properties_offset);
  if (!metadata_->index.EndsWith(metadata_->properties.largest_key)) {
    return Corrupt("the largest key is not that of the index");
  }
  return Status();
}

}  // namespace basalt::table
