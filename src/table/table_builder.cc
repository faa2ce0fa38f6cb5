#include "table/table_builder.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "basalt/write_batch.h"
#include "base/check.h"
#include "base/hash.h"
#include "table/block_builder.h"
#include "table/bloom_filter.h"
#include "table/point_index.h"
#include "table/stored_block.h"
#include "table/table_format.h"
#include "table/table_metadata.h"
#include "table/write_buffer.h"
#include "table/zstd_block.h"

namespace basalt::table {
namespace {

// A record that would pass it begins a new block; a larger one has a block to itself.
constexpr size_t kBlockBytesTarget = 16 << 10;
// Raw blocks that a dictionary is made of, and its size. Twice as many take four times as long and
// save no more.
constexpr size_t kGatheredBytes = 512 << 10;
constexpr size_t kDictionaryBytes = 16 << 10;

bool IsWellFormed(RecordKind kind, uint64_t time_ms, std::string_view value) noexcept {
  switch (kind) {
    case RecordKind::kPut:
      return true;
    case RecordKind::kDelete:
      return value.empty() && time_ms == 0;
    case RecordKind::kMerge:
      return !value.empty() && time_ms != 0;
    default:
      return false;
  }
}

}  // namespace

struct TableBuilder::State {
  State(io::File* table_file, const TableBuilderOptions& options)
      : file(table_file),
        out(table_file),
        is_gathering(options.compression == Compression::kLz4ThenZstd && options.at_last_level) {
    compression.lz4 = options.compression != Compression::kNone;
    properties.file_id = options.file_id;
    properties.keyspace = options.keyspace;
  }

  void TakeKey(std::string_view key, base::Tag tag);
  void WriteHeader();
  void CutBlock();
  void EndGathering();
  void Store(std::string_view raw, std::string_view block_last_key, base::Tag block_last_tag);
  void WriteSection(SectionKind kind, std::string_view bytes, uint32_t flags);
  void WriteSections();
  void WriteTrailer();
  uint64_t file_id() const noexcept { return properties.file_id; }

  io::File* file;
  WriteBuffer out;
  BlockCompression compression;
  bool finished = false;
  TableProperties properties;
  std::string last_key;
  base::Tag last_tag = 0;
  BlockBuilder block;
  BlockBuilder index;
  std::string raw_block;
  uint32_t blocks_cut = 0;
  // Of distinct keys, and where the newest version of each lies.
  std::vector<uint64_t> hashes;
  std::vector<RecordPlace> places;
  std::vector<SectionEntry> sections;

  // The first blocks, which a dictionary is made of before they are stored.
  struct GatheredBlock {
    std::string raw;
    std::string last_key;
    base::Tag last_tag;
  };
  bool is_gathering;
  std::vector<GatheredBlock> gathered;
  size_t gathered_bytes = 0;
  std::string dictionary;
  std::optional<ZstdCompressor> zstd;
};

TableBuilder::TableBuilder(io::File* file, const TableBuilderOptions& options)
    : state_(std::make_unique<State>(file, options)) {
  state_->WriteHeader();
}

TableBuilder::~TableBuilder() = default;

Status TableBuilder::Add(std::string_view key, base::Tag tag, uint64_t time_ms,
                         std::string_view value) {
  State& state = *state_;
  BASALT_CHECK(!state.finished);
  BASALT_CHECK(key.size() <= kMaxKeyBytes && value.size() <= kMaxValueBytes);
  BASALT_CHECK(IsWellFormed(base::TagKind(tag), time_ms, value));
  if (!state.out.status().ok()) return state.out.status();
  if (!state.block.empty() && state.block.RawBytesWith(key, time_ms, value) > kBlockBytesTarget) {
    state.CutBlock();
    BASALT_RETURN_IF_ERROR(state.out.MaybeFlush());
  }
  state.TakeKey(key, tag);
  state.block.Add(key, tag, time_ms, value);
  CountRecord(key, tag, time_ms, value, &state.properties);
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
  if (state.is_gathering) state.EndGathering();
  state.WriteSections();
  state.WriteTrailer();
  BASALT_RETURN_IF_ERROR(state.out.Flush());
  return state.file->Sync();
}

uint64_t TableBuilder::file_bytes() const {
  return state_->out.offset() + state_->gathered_bytes +
         (state_->block.empty() ? 0 : state_->block.raw_bytes());
}

const TableProperties& TableBuilder::properties() const { return state_->properties; }

void TableBuilder::State::TakeKey(std::string_view key, base::Tag tag) {
  if (properties.records == 0) {
    properties.smallest_key = key;
  } else {
    const int order = std::string_view(last_key).compare(key);
    BASALT_CHECK(order < 0 || (order == 0 && last_tag > tag));
    if (order == 0) {
      last_tag = tag;
      return;
    }
  }
  hashes.push_back(base::Hash(key));
  places.push_back({.block = blocks_cut, .ordinal = block.count()});
  last_key = key;
  last_tag = tag;
}

void TableBuilder::State::WriteHeader() {
  FileHeader header{};
  std::memcpy(header.magic, kTableMagic, sizeof kTableMagic);
  header.format_version = kTableFormatVersion;
  header.required_features = kWrittenFeatures;
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
  ++blocks_cut;
  const std::string_view raw(raw_block.data(), raw_bytes);
  if (!is_gathering) return Store(raw, last_key, last_tag);
  gathered.push_back({.raw = std::string(raw), .last_key = last_key, .last_tag = last_tag});
  gathered_bytes += raw.size();
  if (gathered_bytes >= kGatheredBytes) EndGathering();
}

void TableBuilder::State::EndGathering() {
  is_gathering = false;
  std::vector<std::string_view> raws;
  for (const GatheredBlock& waiting : gathered) raws.push_back(waiting.raw);
  dictionary = TrainDictionary(raws, kDictionaryBytes);
  compression.zstd = &zstd.emplace(dictionary);
  for (const GatheredBlock& waiting : gathered) {
    Store(waiting.raw, waiting.last_key, waiting.last_tag);
    static_cast<void>(out.MaybeFlush());  // its error stays
  }
  gathered = {};
  gathered_bytes = 0;
}

void TableBuilder::State::Store(std::string_view raw, std::string_view block_last_key,
                                base::Tag block_last_tag) {
  const uint64_t offset = out.offset();
  char* const stored = out.Reserve(StoredBytesMax(raw.size()));
  const size_t payload_bytes = StoreBlock(raw, compression, file_id(), offset, stored);
  out.Commit(payload_bytes + kBlockTrailerBytes);
  const BlockHandle handle = {.offset = offset, .payload_bytes = payload_bytes};
  index.Add(block_last_key, block_last_tag, 0, BytesOf(handle));
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
  if (!dictionary.empty()) WriteSection(SectionKind::kDictionary, dictionary, kSectionRequired);
  if (const PointIndex point_index = PointIndex::Build(hashes, places); !point_index.empty()) {
    WriteSection(SectionKind::kPointIndex, point_index.bytes(), 0);
  }
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
  trailer.required_features = kWrittenFeatures;
  trailer.file_id = file_id();
  trailer.file_bytes = properties.file_bytes;
  trailer.keyspace = properties.keyspace;
  trailer.checksum =
      base::Checksum(file_id(), out.offset(), BytesOf(trailer).substr(0, kTrailerChecksummedBytes));
  std::memcpy(trailer.magic, kTableMagic, sizeof kTableMagic);
  out.Append(BytesOf(trailer));
}

}  // namespace basalt::table
