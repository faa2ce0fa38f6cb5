#include "table/table_builder.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "basalt/write_batch.h"
#include "base/check.h"
#include "base/coding.h"
#include "base/extent_pool.h"
#include "base/hash.h"
#include "table/block.h"
#include "table/block_builder.h"
#include "table/block_index.h"
#include "table/bloom_filter.h"
#include "table/point_index.h"
#include "table/stored_block.h"
#include "table/table_format.h"
#include "table/table_metadata.h"
#include "table/write_buffer.h"
#include "table/zstd_block.h"

namespace basalt::table {
namespace {

// Raw blocks that a dictionary is made of, and its size. Twice as many take four times as long and
// save no more.
constexpr size_t kGatheredBytes = 512 << 10;
constexpr size_t kDictionaryBytes = 16 << 10;
// A record with so large a value has a block of its own, which is stored at once. Zstandard is not
// for such blocks (kZstdRawBytesMax), and they are no samples for its dictionary.
constexpr size_t kLoneValueBytes = size_t{1} << 20;
static_assert(kLoneValueBytes >= kZstdRawBytesMax);
// Of a part of the index, on the mean: what is read and cached at a time.
constexpr size_t kIndexPartBytesTarget = 8 << 10;
// A longer key is replaced by a separator in the index.
constexpr size_t kIndexKeyBytesMax = 64;
// Of a filter and a point index, for each key.
constexpr size_t kLookupBytesOfKey = 5;

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
        block_bytes(options.block_bytes),
        is_gathering(options.compression == Compression::kLz4ThenZstd && options.at_last_level) {
    compression.lz4 = options.compression != Compression::kNone;
    properties.file_id = options.file_id;
    properties.keyspace = options.keyspace;
  }

  void TakeKey(std::string_view key, base::Tag tag);
  void WriteHeader();
  /// `next_key`: of the record that begins the next block; nothing behind the last one.
  void CutBlock(std::optional<std::string_view> next_key);
  void AddToIndex(std::optional<std::string_view> next_key);
  size_t BlocksOfPart() const;
  void EndGathering();
  void Store(std::string_view raw);
  /// Of the block, whose last record has a large value.
  void StoreLone();
  /// Gives the raw form, which lies in raw_block.
  std::string_view WriteRaw(const BlockBuilder& records);
  void WriteIndex();
  void WriteSection(SectionKind kind, std::string_view bytes, uint32_t flags);
  void WriteSections();
  void WriteTrailer();
  uint64_t file_id() const noexcept { return properties.file_id; }

  io::File* file;
  WriteBuffer out;
  const size_t block_bytes;
  BlockCompression compression;
  bool finished = false;
  TableProperties properties;
  std::string last_key;
  base::Tag last_tag = 0;
  BlockBuilder block;
  std::string raw_block;
  uint32_t blocks_cut = 0;
  // What the index will say of a block. Long keys are kept without what they share with the key of
  // the entry before.
  struct CutEntry {
    size_t shared;
    std::string key;
    base::Tag tag;
    std::string separator{};  // a key between this block and the next; empty: `key` is one
    BlockHandle handle{};     // once it is stored
  };
  std::vector<CutEntry> index;
  std::string index_key;       // of the last entry
  size_t index_key_bytes = 0;  // of all entries
  size_t index_bytes = 0;      // roughly, in the file
  size_t blocks_stored = 0;
  std::optional<BlockHandle> lone;  // a stored block that the index does not have yet
  // Of distinct keys, and where the newest version of each lies.
  std::vector<uint64_t, base::ExtentAllocator<uint64_t>> hashes;
  std::vector<RecordPlace, base::ExtentAllocator<RecordPlace>> places;
  std::vector<SectionEntry> sections;

  // The first blocks, which a dictionary is made of before they are stored.
  bool is_gathering;
  std::vector<std::string> gathered;
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
  const bool is_full =
      !state.block.empty() && state.block.RawBytesWith(key, time_ms, value) > state.block_bytes;
  if (is_full || state.lone) {
    state.CutBlock(key);
    BASALT_RETURN_IF_ERROR(state.out.MaybeFlush());
  }
  state.TakeKey(key, tag);
  CountRecord(key, tag, time_ms, value, &state.properties);
  if (value.size() < kLoneValueBytes) {
    state.block.Add(key, tag, time_ms, value);
    return Status();
  }
  state.block.AddLast(key, tag, time_ms, value);
  state.StoreLone();
  return state.out.status();
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
  state.CutBlock(std::nullopt);
  if (state.is_gathering) state.EndGathering();
  state.WriteSections();
  state.WriteTrailer();
  BASALT_RETURN_IF_ERROR(state.out.Flush());
  return state.file->Sync();
}

uint64_t TableBuilder::file_bytes() const {
  if (state_->finished) return state_->out.offset();
  return state_->out.offset() + state_->gathered_bytes +
         (state_->block.empty() ? 0 : state_->block.raw_bytes()) + state_->index_bytes +
         state_->hashes.size() * kLookupBytesOfKey;
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
  header.required_features = FeaturesOf(properties.keyspace);
  header.keyspace = properties.keyspace;
  header.file_id = file_id();
  header.checksum =
      base::Checksum(file_id(), 0, BytesOf(header).substr(0, kHeaderChecksummedBytes));
  out.Append(BytesOf(header));
}

// Called before the record that begins the next block is taken: last_key is the block's.
void TableBuilder::State::CutBlock(std::optional<std::string_view> next_key) {
  if (lone) {
    AddToIndex(next_key);
    index[blocks_stored++].handle = *std::exchange(lone, std::nullopt);
    return;
  }
  const std::string_view raw = WriteRaw(block);
  block.Clear();
  ++blocks_cut;
  AddToIndex(next_key);
  if (!is_gathering) return Store(raw);
  gathered.emplace_back(raw);
  gathered_bytes += raw.size();
  if (gathered_bytes >= kGatheredBytes) EndGathering();
}

// A long key is replaced by a separator, which mostly is short. Short ones stay, since what the
// index says then is held against the block.
void TableBuilder::State::AddToIndex(std::optional<std::string_view> next_key) {
  std::string_view separator;
  if (next_key && *next_key != last_key) separator = ShortestBetween(last_key, *next_key);
  const bool is_replaced = !separator.empty() && last_key.size() > kIndexKeyBytesMax;
  const std::string_view key = is_replaced ? separator : std::string_view(last_key);
  const size_t shared = key.size() > kIndexKeyBytesMax ? base::SharedBytes(index_key, key) : 0;
  CutEntry& entry = index.emplace_back(CutEntry{.shared = shared,
                                                .key = std::string(key.substr(shared)),
                                                .tag = is_replaced ? base::kNewestTag : last_tag});
  if (!is_replaced) entry.separator = separator;
  index_key_bytes += key.size();
  index_bytes += entry.key.size() + Block::RecordBytes(false, false) + sizeof(BlockHandle);
  index_key = key;
}

// The value is here only now; what the index says of the block depends on the next key.
void TableBuilder::State::StoreLone() {
  if (!gathered.empty()) EndGathering();  // Blocks lie in the order of their keys.
  const auto raw =
      std::make_unique_for_overwrite<char[]>(block.raw_bytes_max() + kBlockTrailerBytes);
  const size_t raw_bytes = block.Write(raw.get());
  block.Clear();
  ++blocks_cut;
  std::unique_ptr<char[]> compressed;
  const std::string_view stored =
      StoreLargeBlock({raw.get(), raw_bytes}, compression, file_id(), out.offset(), &compressed);
  lone.emplace(
      BlockHandle{.offset = out.offset(), .payload_bytes = stored.size() - kBlockTrailerBytes});
  out.Append(stored);
}

void TableBuilder::State::EndGathering() {
  is_gathering = false;
  dictionary = TrainDictionary(std::vector<std::string_view>(gathered.begin(), gathered.end()),
                               kDictionaryBytes);
  compression.zstd = &zstd.emplace(dictionary);
  for (const std::string& waiting : gathered) {
    Store(waiting);
    static_cast<void>(out.MaybeFlush());  // its error stays
  }
  gathered = {};
  gathered_bytes = 0;
}

void TableBuilder::State::Store(std::string_view raw) {
  BlockHandle& handle = index[blocks_stored++].handle;
  handle.offset = out.offset();
  char* const stored = out.Reserve(StoredBytesMax(raw.size()));
  handle.payload_bytes = StoreBlock(raw, compression, file_id(), handle.offset, stored);
  out.Commit(handle.payload_bytes + kBlockTrailerBytes);
}

// How many blocks a part lists, so that it takes some kIndexPartBytesTarget beside what all keys
// share, or twice that if it is more.
size_t TableBuilder::State::BlocksOfPart() const {
  const size_t n = index.size();
  const size_t prefix = base::SharedBytes(index.front().key, index_key);
  const size_t shared = prefix < BlockBuilder::kLongPrefixBytes ? 0 : prefix;
  const size_t entry_bytes =
      index_key_bytes / n - shared + Block::RecordBytes(false, false) + sizeof(BlockHandle);
  return std::max<size_t>(1, std::max(kIndexPartBytesTarget, shared) / entry_bytes);
}

// All parts but the last list equally many blocks.
void TableBuilder::State::WriteIndex() {
  const size_t blocks_of_part = BlocksOfPart();
  std::string parts;
  std::string key;
  BlockBuilder root;
  BlockBuilder part;
  for (size_t begin = 0; begin < index.size(); begin += blocks_of_part) {
    const size_t end = std::min(index.size(), begin + blocks_of_part);
    part.Clear();
    for (size_t i = begin; i < end; ++i) {
      key.resize(index[i].shared);
      key += index[i].key;
      part.Add(key, index[i].tag, 0, BytesOf(index[i].handle));
    }
    const std::string_view raw = WriteRaw(part);
    const size_t at = parts.size();
    const IndexPartHandle handle = {.offset = out.offset() + at,
                                    .payload_bytes = static_cast<uint32_t>(raw.size()),
                                    .blocks = part.count()};
    parts.resize(at + StoredBytesMax(raw.size()));
    StoreBlock(raw, {}, file_id(), handle.offset, parts.data() + at);
    const CutEntry& last = index[end - 1];
    if (last.separator.empty()) {
      root.Add(key, last.tag, 0, BytesOf(handle));
    } else {
      root.Add(last.separator, base::kNewestTag, 0, BytesOf(handle));
    }
  }
  WriteSection(SectionKind::kIndexParts, parts, kSectionRequired);
  WriteSection(SectionKind::kIndexRoot, WriteRaw(root), kSectionRequired);
}

std::string_view TableBuilder::State::WriteRaw(const BlockBuilder& records) {
  raw_block.resize(std::max(raw_block.size(), records.raw_bytes_max()));
  return {raw_block.data(), records.Write(raw_block.data())};
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
  WriteIndex();
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
  trailer.required_features = FeaturesOf(properties.keyspace);
  trailer.file_id = file_id();
  trailer.file_bytes = properties.file_bytes;
  trailer.keyspace = properties.keyspace;
  trailer.checksum =
      base::Checksum(file_id(), out.offset(), BytesOf(trailer).substr(0, kTrailerChecksummedBytes));
  std::memcpy(trailer.magic, kTableMagic, sizeof kTableMagic);
  out.Append(BytesOf(trailer));
}

}  // namespace basalt::table
