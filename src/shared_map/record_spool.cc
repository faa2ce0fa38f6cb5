#include "shared_map/record_spool.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "basalt/write_batch.h"
#include "base/check.h"
#include "base/coding.h"
#include "base/hash.h"
#include "base/out_of_memory.h"
#include "base/printable_key.h"
#include "base/random.h"
#include "shared_map/base_format.h"

namespace basalt::shared_map {
namespace {

// Of a block: half of the last one of each partition is empty on average.
constexpr uint64_t kBlocksWanted = 8192;
constexpr uint64_t kBlockBytesMin = 512;
constexpr uint64_t kBlockBytesMax = uint64_t{64} << 10;

Status OutOfMemory() {
  return Status(StatusCode::kResourceExhausted, "building a map: out of memory");
}

Status TooLarge(std::string_view what, uint64_t bytes, uint64_t bytes_max) {
  return Status(StatusCode::kInvalidArgument, "building a map: the " + std::string(what) + " has " +
                                                  std::to_string(bytes) + " bytes, at most " +
                                                  std::to_string(bytes_max) + " are possible");
}

struct HashedRecord {
  uint64_t hash;
  uint64_t order;
  auto operator<=>(const HashedRecord&) const = default;
};

// All records, those of one hash side by side, in order. First divided into parts that a cache
// holds, then each is sorted. The upper `shared_bits` of all hashes are the same.
std::vector<HashedRecord> SortedByHash(std::span<const char* const> records, uint32_t shared_bits,
                                       const base::SeededHash& hash_of) {
  constexpr uint64_t kPartRecords = 1024;
  constexpr int kPartBitsMax = 12;
  const int part_bits =
      std::clamp(static_cast<int>(std::bit_width(records.size() / kPartRecords)), 1, kPartBitsMax);
  const auto part_of = [&](uint64_t hash) { return hash << shared_bits >> (64 - part_bits); };

  std::vector<HashedRecord> unsorted(records.size());
  std::vector<uint64_t> ends((size_t{1} << part_bits) + 1, 0);
  for (size_t i = 0; i < records.size(); ++i) {
    unsorted[i] = {.hash = hash_of(RecordRef(records[i]).key()), .order = i};
    ++ends[part_of(unsorted[i].hash) + 1];
  }
  for (size_t part = 1; part < ends.size(); ++part) ends[part] += ends[part - 1];
  // ends[part] is where the part begins, and moves on to its end.
  std::vector<HashedRecord> sorted(records.size());
  for (const HashedRecord& record : unsorted) sorted[ends[part_of(record.hash)]++] = record;
  uint64_t begin = 0;
  for (size_t part = 0; part + 1 < ends.size(); ++part) {
    std::sort(sorted.begin() + static_cast<ptrdiff_t>(begin),
              sorted.begin() + static_cast<ptrdiff_t>(ends[part]));
    begin = ends[part];
  }
  return sorted;
}

}  // namespace

Status LoadedRecords::RemoveDuplicates(bool keep_last) try {
  std::vector<HashedRecord> sorted = SortedByHash(records_, shard_bits_, hash_of_);
  const auto key_of = [this](const HashedRecord& record) {
    return RecordRef(records_[record.order]).key();
  };
  bool removed = false;
  std::vector<uint8_t> is_superseded;
  for (auto begin = sorted.begin(); begin != sorted.end();) {
    auto end = begin + 1;
    while (end != sorted.end() && end->hash == begin->hash) ++end;
    // Different keys of one hash are as good as never there; those of one key stay in order.
    if (end - begin > 1) {
      std::sort(begin, end, [&](const HashedRecord& a, const HashedRecord& b) {
        return std::pair(key_of(a), a.order) < std::pair(key_of(b), b.order);
      });
    }
    for (auto next = begin + 1; next < end; ++next) {
      const std::string_view key = key_of(*next);
      if (key_of(next[-1]) != key) continue;
      if (!keep_last) {
        return Status(StatusCode::kInvalidArgument, "building a map: key " +
                                                        base::PrintableKey(key) +
                                                        " was added twice; add each key once, or "
                                                        "keep the last of duplicates");
      }
      if (!removed) is_superseded.resize(records_.size());
      removed = true;
      is_superseded[next[-1].order] = 1;
    }
    begin = end;
  }
  if (!removed) return Status();
  size_t kept = 0;
  for (size_t i = 0; i < records_.size(); ++i) {
    if (is_superseded[i] == 0) records_[kept++] = records_[i];
  }
  records_.resize(kept);
  return Status();
} catch (const std::bad_alloc&) {
  return OutOfMemory();
}

Result<std::unique_ptr<RecordSpool>> RecordSpool::Create(io::FileSystem* fs, std::string path,
                                                         uint64_t memory_bytes,
                                                         uint64_t hash_seed) try {
  const uint64_t block_bytes =
      std::clamp(base::RoundUp(memory_bytes / kBlocksWanted, 8), kBlockBytesMin, kBlockBytesMax);
  const uint64_t blocks = std::clamp<uint64_t>(memory_bytes / block_bytes, 1, UINT32_MAX);
  return std::unique_ptr<RecordSpool>(
      new RecordSpool(fs, std::move(path), block_bytes, blocks, hash_seed));
} catch (const std::bad_alloc&) {
  return OutOfMemory();
}

RecordSpool::RecordSpool(io::FileSystem* fs, std::string path, uint64_t block_bytes,
                         uint64_t blocks, uint64_t hash_seed)
    : fs_(fs),
      path_(std::move(path)),
      block_bytes_(block_bytes),
      blocks_(blocks),
      file_id_(base::RandomSeed()),
      hash_of_(hash_seed),
      memory_(std::make_unique_for_overwrite<char[]>(block_bytes * blocks)) {}

RecordSpool::~RecordSpool() {
  if (file_ == nullptr) return;
  file_.reset();
  // There is nobody to hear of it, and a file that stays is replaced by the next build.
  static_cast<void>(base::OrOutOfMemory([this] { return fs_->RemoveFile(path_); }));
}

uint32_t RecordSpool::ShardBits(uint64_t records, uint64_t bytes) noexcept {
  uint32_t bits = 0;
  while (bits < kPartitionBits &&
         (bytes > (kShardBytesMax << bits) || records > (kShardRecordsMax << bits))) {
    ++bits;
  }
  return bits;
}

Status RecordSpool::Add(std::string_view key, std::string_view value) try {
  BASALT_RETURN_IF_ERROR(status_);
  if (key.size() > kMaxKeyBytes) return TooLarge("key", key.size(), kMaxKeyBytes);
  if (value.size() > kMaxValueBytes) return TooLarge("value", value.size(), kMaxValueBytes);
  const RecordHeader header = {.value_bytes = static_cast<uint32_t>(value.size()),
                               .key_bytes = static_cast<uint16_t>(key.size()),
                               .kind = kBaseRecordKind,
                               .flags = 0};
  const uint64_t bytes = PaddedRecordBytes(key.size(), value.size());
  constexpr char kZeros[8] = {};
  Partition& partition = partitions_[hash_of_(key) >> (64 - kPartitionBits)];
  const std::string_view parts[] = {{reinterpret_cast<const char*>(&header), sizeof header},
                                    key,
                                    value,
                                    {kZeros, bytes - sizeof header - key.size() - value.size()}};
  for (const std::string_view part : parts) {
    status_ = Append(&partition, part);
    BASALT_RETURN_IF_ERROR(status_);
  }
  ++partition.records;
  partition.bytes += bytes;
  ++records_;
  bytes_ += bytes;
  return Status();
} catch (const std::bad_alloc&) {
  // A part of the record may have been taken.
  status_ = OutOfMemory();
  return status_;
}

Status RecordSpool::Append(Partition* partition, std::string_view bytes) {
  while (!bytes.empty()) {
    if (partition->blocks.empty() || partition->last_used == block_bytes_) {
      if (next_block_ == blocks_) BASALT_RETURN_IF_ERROR(Spill());
      partition->blocks.push_back(static_cast<uint32_t>(next_block_++));
      partition->last_used = 0;
    }
    const uint64_t count = std::min<uint64_t>(bytes.size(), block_bytes_ - partition->last_used);
    std::memcpy(Block(partition->blocks.back()) + partition->last_used, bytes.data(), count);
    partition->last_used += count;
    bytes.remove_prefix(count);
  }
  return Status();
}

std::vector<std::string_view> RecordSpool::Pieces(const Partition& partition) const {
  std::vector<std::string_view> pieces;
  pieces.reserve(partition.blocks.size());
  for (const uint32_t block : partition.blocks) pieces.emplace_back(Block(block), block_bytes_);
  if (!pieces.empty()) pieces.back() = pieces.back().substr(0, partition.last_used);
  return pieces;
}

// Of pieces that follow one another from `offset` on. Each one's takes the place of the file id for
// the next one.
uint64_t RecordSpool::ChainedChecksum(uint64_t offset,
                                      std::span<const std::string_view> pieces) const noexcept {
  uint64_t checksum = file_id_;
  for (const std::string_view piece : pieces) {
    checksum = base::Checksum(checksum, offset, piece);
    offset += piece.size();
  }
  return checksum;
}

Status RecordSpool::OpenFile() {
  Result<std::unique_ptr<io::File>> file = fs_->Open(path_, io::OpenMode::kCreate);
  if (!file && file.error().code() == StatusCode::kAlreadyExists) {
    BASALT_RETURN_IF_ERROR(fs_->RemoveFile(path_));
    file = fs_->Open(path_, io::OpenMode::kCreate);
  }
  if (!file) return file.error();
  file_ = std::move(*file);
  return Status();
}

Status RecordSpool::Spill() {
  if (file_ == nullptr) BASALT_RETURN_IF_ERROR(OpenFile());
  std::vector<std::string_view> all;
  all.reserve(blocks_);
  uint64_t offset = file_bytes_;
  for (Partition& partition : partitions_) {
    if (partition.blocks.empty()) continue;
    const std::vector<std::string_view> pieces = Pieces(partition);
    const uint64_t bytes = (pieces.size() - 1) * block_bytes_ + partition.last_used;
    partition.chunks.push_back(
        {.offset = offset, .bytes = bytes, .checksum = ChainedChecksum(offset, pieces)});
    all.insert(all.end(), pieces.begin(), pieces.end());
    offset += bytes;
  }
  BASALT_RETURN_IF_ERROR(file_->WritePiecesAt(file_bytes_, all));
  file_bytes_ = offset;
  for (Partition& partition : partitions_) partition.blocks.clear();
  next_block_ = 0;
  return Status();
}

Status RecordSpool::Damage(uint64_t offset, std::string_view why) const {
  return Status(StatusCode::kCorruption,
                path_ + ": records at offset " + std::to_string(offset) + ": " + std::string(why));
}

Status RecordSpool::ReadPartition(const Partition& partition, char* out) const {
  for (const Chunk& chunk : partition.chunks) {
    BASALT_RETURN_IF_ERROR(file_->ReadExactAt(chunk.offset, {out, chunk.bytes}));
    std::vector<std::string_view> pieces;
    for (uint64_t at = 0; at < chunk.bytes; at += block_bytes_) {
      pieces.emplace_back(out + at, std::min(block_bytes_, chunk.bytes - at));
    }
    if (ChainedChecksum(chunk.offset, pieces) != chunk.checksum) {
      return Damage(chunk.offset, "the checksum does not match: they are not what was written");
    }
    out += chunk.bytes;
  }
  for (const std::string_view piece : Pieces(partition)) {
    std::memcpy(out, piece.data(), piece.size());
    out += piece.size();
  }
  return Status();
}

Result<LoadedRecords> RecordSpool::Load(uint32_t bits, uint64_t shard) const try {
  BASALT_CHECK(bits <= kPartitionBits && shard < uint64_t{1} << bits);
  BASALT_RETURN_IF_ERROR(status_);
  const std::span<const Partition> partitions =
      std::span(partitions_)
          .subspan(shard << (kPartitionBits - bits), size_t{1} << (kPartitionBits - bits));
  uint64_t bytes = 0;
  uint64_t records = 0;
  for (const Partition& partition : partitions) {
    bytes += partition.bytes;
    records += partition.records;
  }
  LoadedRecords loaded;
  loaded.shard_bits_ = bits;
  loaded.hash_of_ = hash_of_;
  loaded.bytes_ = std::make_unique_for_overwrite<char[]>(bytes);
  loaded.records_.reserve(records);
  char* at = loaded.bytes_.get();
  for (const Partition& partition : partitions) {
    BASALT_RETURN_IF_ERROR(ReadPartition(partition, at));
    char* const end = at + partition.bytes;
    for (uint64_t i = 0; i < partition.records; ++i) {
      const RecordRef record(at);
      loaded.records_.push_back(at);
      at += base::RoundUp(record.size(), 8);
    }
    BASALT_CHECK(at == end);  // The checksums have been right.
  }
  return loaded;
} catch (const std::bad_alloc&) {
  return OutOfMemory();
}

}  // namespace basalt::shared_map
