#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "table/block.h"
#include "table/block_ref.h"
#include "table/table.h"
#include "table/table_format.h"
#include "tools/basalt/inspection.h"

namespace basalt::tools {
namespace {

std::string_view SectionName(uint32_t kind) {
  switch (static_cast<table::SectionKind>(kind)) {
    case table::SectionKind::kIndex:
      return "index";
    case table::SectionKind::kFilter:
      return "filter";
    case table::SectionKind::kProperties:
      return "properties";
    case table::SectionKind::kPointIndex:
      return "point_index";
    case table::SectionKind::kDictionary:
      return "dictionary";
    case table::SectionKind::kIndexParts:
      return "index_parts";
    case table::SectionKind::kIndexRoot:
      return "index_root";
    default:
      return "unknown";
  }
}

Document HeaderDocument(const table::FileHeader& header) {
  return {{"magic", BytesValue({header.magic, sizeof header.magic})},
          {"version", header.format_version},
          {"required_features", header.required_features},
          {"optional_features", header.optional_features},
          {"keyspace", header.keyspace},
          {"file_id", HexValue(header.file_id)},
          {"checksum", HexValue(header.checksum)}};
}

Document TrailerDocument(const table::FileTrailer& trailer) {
  return {{"section_table_offset", trailer.section_table_offset},
          {"section_table_checksum", HexValue(trailer.section_table_checksum)},
          {"section_count", trailer.section_count},
          {"version", trailer.format_version},
          {"required_features", trailer.required_features},
          {"optional_features", trailer.optional_features},
          {"file_id", HexValue(trailer.file_id)},
          {"file_bytes", trailer.file_bytes},
          {"keyspace", trailer.keyspace},
          {"checksum", HexValue(trailer.checksum)}};
}

/// The section table as it stands, as far as it lies in the file.
boost::json::array SectionsDocument(std::string_view bytes, const table::FileTrailer& trailer) {
  boost::json::array sections;
  uint64_t offset = trailer.section_table_offset;
  for (uint32_t i = 0; i < std::min(trailer.section_count, table::kSectionCountMax); ++i) {
    if (offset > bytes.size() || bytes.size() - offset < sizeof(table::SectionEntry)) break;
    const auto entry = table::FromBytes<table::SectionEntry>(bytes, offset);
    sections.push_back(Document{{"kind", SectionName(entry.kind)},
                                {"number", entry.kind},
                                {"required", (entry.flags & table::kSectionRequired) != 0},
                                {"offset", entry.offset},
                                {"bytes", entry.size},
                                {"checksum", HexValue(entry.checksum)}});
    offset += sizeof entry;
  }
  return sections;
}

Document PropertiesDocument(const table::TableProperties& properties) {
  Document document{{"records", properties.records},
                    {"deletes", properties.deletes},
                    {"merges", properties.merges},
                    {"expiring", properties.expiring},
                    {"key_bytes", properties.raw_key_bytes},
                    {"value_bytes", properties.raw_value_bytes},
                    {"smallest_sequence", properties.smallest_sequence},
                    {"largest_sequence", properties.largest_sequence},
                    {"earliest_expiry_ms", properties.earliest_expiry_ms},
                    {"latest_expiry_ms", properties.latest_expiry_ms}};
  ShowKey("smallest_key", properties.smallest_key, document);
  ShowKey("largest_key", properties.largest_key, document);
  return document;
}

/// Reads all of the table, and gives the bytes of each of its blocks as they lie in the file. They
/// follow one another from the header on.
std::vector<uint64_t> VerifyBlocks(const table::Table& table, Inspection& inspection) {
  std::vector<uint64_t> parts;
  const Status verified = table.Verify(
      [&](uint64_t bytes) {
        parts.push_back(bytes);
        return true;
      },
      [&](uint64_t offset, const Status& fault) { inspection.Find(offset, fault); });
  if (!verified.ok()) inspection.Find(0, verified);
  if (!parts.empty()) parts.erase(parts.begin());  // What is not blocks comes first.
  return parts;
}

boost::json::array BlocksDocument(const table::Table& table,
                                  const std::vector<uint64_t>& block_bytes, uint64_t limit) {
  boost::json::array blocks;
  uint64_t offset = sizeof(table::FileHeader);
  for (size_t i = 0; i < std::min<size_t>(block_bytes.size(), table.block_count()); ++i) {
    if (blocks.size() >= limit) break;
    Document document{{"offset", offset}, {"bytes", block_bytes[i]}};
    if (const auto block = table.ReadBlock(i, /*fill_cache=*/false)) {
      document["raw_bytes"] = (*block)->size();
      document["records"] = (*block)->count();
      ShowKey("first_key", (*block)->Key(0), document);
    }
    blocks.push_back(std::move(document));
    offset += block_bytes[i];
  }
  return blocks;
}

/// The identity in the header, with which the table is then opened.
struct Identity {
  uint64_t file_id = 0;
  uint32_t keyspace = 0;
};

Identity InspectEnds(std::string_view bytes, Inspection& inspection) {
  const auto header = table::FromBytes<table::FileHeader>(bytes);
  inspection.Show("header", HeaderDocument(header));
  const auto trailer =
      table::FromBytes<table::FileTrailer>(bytes, bytes.size() - sizeof(table::FileTrailer));
  if (std::memcmp(trailer.magic, table::kTableMagic, sizeof trailer.magic) == 0) {
    inspection.Show("trailer", TrailerDocument(trailer));
    inspection.Show("sections", SectionsDocument(bytes, trailer));
  }
  return {header.file_id, header.keyspace};
}

}  // namespace

void InspectTable(std::unique_ptr<io::File> file, std::string_view bytes, Inspection& inspection) {
  if (bytes.size() < sizeof(table::FileHeader) + sizeof(table::FileTrailer)) {
    return inspection.Find(0, inspection.path() + ": the file is " + std::to_string(bytes.size()) +
                                  " bytes, too few for a table");
  }
  const Identity identity = InspectEnds(bytes, inspection);
  const auto table = table::Table::Open(std::move(file), identity.file_id, identity.keyspace,
                                        bytes.size(), nullptr);
  if (!table) return inspection.Find(0, table.error());
  inspection.Show("properties", PropertiesDocument((*table)->properties()));
  const std::vector<uint64_t> block_bytes = VerifyBlocks(**table, inspection);
  inspection.Show("block_count", (*table)->block_count());
  inspection.Show("blocks", BlocksDocument(**table, block_bytes, inspection.limit()));
}

}  // namespace basalt::tools
