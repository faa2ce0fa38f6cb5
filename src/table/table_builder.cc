#include "table/table_builder.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "basalt/write_batch.h"
#include "base/check.h"
#include "base/hash.h"
#include "table/block_builder.h"
#include "table/bloom_filter.h"
#include "table/stored_block.h"
#include "table/table_format.h"
#include "table/table_metadata.h"
#include "table/write_buffer.h"

namespace basalt::table {
namespace {

// A record that would pass it begins a new block; a larger one has a block to itself.
constexpr size_t kBlockBytesTarget = 16 << 10;

}  // namespace

struct TableBuilder::State {
  State(io::File* table_file, Compression compression)
      : file(table_file), out(table_file), compress(compression != Compression::kNone) {}

  void TakeKey(std::string_view key, base::Tag tag);
  void WriteHeader();
  void CutBlock();
  void WriteSection(SectionKind kind, std::string_view bytes, uint32_t flags);
  void WriteSections();
  void WriteTrailer();
  uint64_t file_id() const noexcept { return properties.file_id; }

  io::File* file;
  WriteBuffer out;
  bool compress;
  bool finished = false;
  TableProperties properties;
  std::string last_key;
  base::Tag last_tag = 0;
  BlockBuilder block;
  BlockBuilder index;
  std::string raw_block;
  std::vector<uint64_t> hashes;  // of distinct keys
  std::vector<SectionEntry> sections;
};

TableBuilder::TableBuilder(io::File* file, uint64_t file_id, uint32_t keyspace,
                           Compression compression)
    : state_(std::make_unique<State>(file, compression)) {
  state_->properties.file_id = file_id;
  state_->properties.keyspace = keyspace;
  state_->WriteHeader();
}

TableBuilder::~TableBuilder() = default;

Status TableBuilder::Add(std::string_view key, base::Tag tag, std::string_view value) {
  State& state = *state_;
  const RecordKind kind = base::TagKind(tag);
  BASALT_CHECK(!state.finished);
  BASALT_CHECK(key.size() <= kMaxKeyBytes && value.size() <= kMaxValueBytes);
  BASALT_CHECK(kind == RecordKind::kPut || (kind == RecordKind::kDelete && value.empty()));
  if (!state.out.status().ok()) return state.out.status();
  if (!state.block.empty() &&
      state.block.raw_bytes() + BlockBuilder::RecordBytes(key, value) > kBlockBytesTarget) {
    state.CutBlock();
    BASALT_RETURN_IF_ERROR(state.out.MaybeFlush());
  }
  state.TakeKey(key, tag);
  state.block.Add(key, tag, value);

  TableProperties& properties = state.properties;
  ++properties.records;
  properties.deletes += kind == RecordKind::kDelete ? 1 : 0;
  properties.raw_key_bytes += key.size();
  properties.raw_value_bytes += value.size();
  properties.smallest_sequence = std::min(properties.smallest_sequence, base::TagSequence(tag));
  properties.largest_sequence = std::max(properties.largest_sequence, base::TagSequence(tag));
  return Status();
}

Status TableBuilder::Finish() {
  State& state = *state_;
  BASALT_CHECK(!state.finished);
  if (!state.out.status().ok()) return state.out.status();
  if (state.properties.records == 0) {
    return Status(
        StatusCode::kFailedPrecondition,
        "finish table " + state.file->path() + ": no record was added; remove the file instead");
  }
  state.finished = true;
  state.properties.largest_key = state.last_key;
  state.CutBlock();
  state.WriteSections();
  state.WriteTrailer();
  BASALT_RETURN_IF_ERROR(state.out.Flush());
  return state.file->Sync();
}

uint64_t TableBuilder::file_bytes() const {
  return state_->out.offset() + (state_->block.empty() ? 0 : state_->block.raw_bytes());
}

const TableProperties& TableBuilder::properties() const { return state_->properties; }

void TableBuilder::State::TakeKey(std::string_view key, base::Tag tag) {
  if (properties.records == 0) {
    properties.smallest_key = key;
    properties.smallest_sequence = base::kMaxSequence;
    hashes.push_back(base::Hash(key));
  } else {
    const int order = std::string_view(last_key).compare(key);
    BASALT_CHECK(order < 0 || (order == 0 && last_tag > tag));
    if (order != 0) hashes.push_back(base::Hash(key));
  }
  last_key = key;
  last_tag = tag;
}

void TableBuilder::State::WriteHeader() {
  FileHeader header{};
  std::memcpy(header.magic, kTableMagic, sizeof kTableMagic);
  header.format_version = kTableFormatVersion;
  header.keyspace = properties.keyspace;
  header.file_id = file_id();
  header.checksum =
      base::Checksum(file_id(), 0, BytesOf(header).substr(0, kHeaderChecksummedBytes));
  out.Append(BytesOf(header));
}

// Called before the record that begins the next block is taken: last_key is the block's.
void TableBuilder::State::CutBlock() {
  if (raw_block.size() < block.raw_bytes_max()) raw_block.resize(block.raw_bytes_max());
  const size_t raw_bytes = block.Write(raw_block.data());
  block.Clear();
  const uint64_t offset = out.offset();
  char* const stored = out.Reserve(StoredBytesMax(raw_bytes));
  const size_t payload_bytes =
      StoreBlock({raw_block.data(), raw_bytes}, compress, file_id(), offset, stored);
  out.Commit(payload_bytes + kBlockTrailerBytes);
  const BlockHandle handle = {.offset = offset, .payload_bytes = payload_bytes};
  index.Add(last_key, last_tag, BytesOf(handle));
}

void TableBuilder::State::WriteSection(SectionKind kind, std::string_view bytes, uint32_t flags) {
  sections.push_back({.kind = static_cast<uint32_t>(kind),
                      .flags = flags,
                      .offset = out.offset(),
                      .size = bytes.size(),
                      .checksum = base::Checksum(file_id(), out.offset(), bytes)});
  out.Append(bytes);
}

void TableBuilder::State::WriteSections() {
  raw_block.resize(std::max(raw_block.size(), index.raw_bytes_max()));
  const size_t index_bytes = index.Write(raw_block.data());
  WriteSection(SectionKind::kIndex, {raw_block.data(), index_bytes}, kSectionRequired);
  const BloomFilter filter = BloomFilter::Build(hashes);
  WriteSection(SectionKind::kFilter, filter.bytes(), 0);
  WriteSection(SectionKind::kProperties, EncodeProperties(properties), kSectionRequired);
}

void TableBuilder::State::WriteTrailer() {
  FileTrailer trailer{};
  trailer.section_table_offset = out.offset();
  trailer.section_count = static_cast<uint32_t>(sections.size());
  const std::string_view section_table(reinterpret_cast<const char*>(sections.data()),
                                       sections.size() * sizeof(SectionEntry));
  trailer.section_table_checksum = base::Checksum(file_id(), out.offset(), section_table);
  out.Append(section_table);
  properties.file_bytes = out.offset() + sizeof trailer;

  trailer.format_version = kTableFormatVersion;
  trailer.file_id = file_id();
  trailer.file_bytes = properties.file_bytes;
  trailer.keyspace = properties.keyspace;
  trailer.checksum =
      base::Checksum(file_id(), out.offset(), BytesOf(trailer).substr(0, kTrailerChecksummedBytes));
  std::memcpy(trailer.magic, kTableMagic, sizeof kTableMagic);
  out.Append(BytesOf(trailer));
}

}  // namespace basalt::table
