#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/status.h"
#include "base/seeded_hash.h"
#include "io/file_system.h"
#include "shared_map/record.h"

namespace basalt::shared_map {

/// The records of some shard of a RecordSpool, in memory of its own. Move-only; one thread at a
/// time.
class LoadedRecords {
 public:
  LoadedRecords() = default;
  LoadedRecords(LoadedRecords&&) noexcept = default;
  LoadedRecords& operator=(LoadedRecords&&) noexcept = default;

  /// Encodings as record.h has them, filled up with zeros to multiples of 8 bytes. Those of one key
  /// are in the order in which they were added.
  std::span<const char* const> pointers() const noexcept { return records_; }
  size_t size() const noexcept { return records_.size(); }

  /// Leaves each key once: its last record when `keep_last`, else a key that is there twice is
  /// InvalidArgument, which names it. Takes 32 bytes of memory a record meanwhile.
  Status RemoveDuplicates(bool keep_last);

 private:
  friend class RecordSpool;

  std::unique_ptr<char[]> bytes_;
  std::vector<const char*> records_;
  uint32_t shard_bits_ = 0;  // Upper bits that the hashes of all keys have in common.
  base::SeededHash hash_of_;
};

/// Takes any number of records, divided by the upper bits of their keys' hashes, and gives them
/// back a shard at a time: first in memory, then in a temporary file.
///
/// There are 1024 partitions, each a stream of records. Its end lies in memory, in a chain of
/// blocks; when all blocks are taken, every partition that has some is written to the file as one
/// chunk, in the order of partitions, so that a spill is one sequential write, and reading a shard
/// one piece of each spill. A record may lie across chunks, so that one larger than the memory can
/// be added. The list of chunks is in memory: the file is of use to this object only. Each has a
/// checksum.
///
/// Add: one thread at a time. The others are const, and may run on many when nobody adds.
class RecordSpool {
 public:
  static constexpr uint32_t kPartitionBits = 10;
  /// What a shard should have at most, on average.
  static constexpr uint64_t kShardBytesMax = uint64_t{256} << 20;
  static constexpr uint64_t kShardRecordsMax = uint64_t{4} << 20;

  /// Nothing is written, and no file made, before `memory_bytes` are full. A file that is at `path`
  /// then is replaced. `fs` must outlive this. ResourceExhausted: out of memory.
  /// Keys are hashed under `hash_seed`.
  static Result<std::unique_ptr<RecordSpool>> Create(io::FileSystem* fs, std::string path,
                                                     uint64_t memory_bytes, uint64_t hash_seed = 0);
  /// Removes the file.
  ~RecordSpool();
  RecordSpool(const RecordSpool&) = delete;
  RecordSpool& operator=(const RecordSpool&) = delete;

  /// InvalidArgument: the key or the value is too large; nothing has changed. ResourceExhausted:
  /// the disk is full. After an error of the file every later Add and Load gives it again.
  Status Add(std::string_view key, std::string_view value);

  uint64_t records() const noexcept { return records_; }
  /// Of all records, encoded.
  uint64_t bytes() const noexcept { return bytes_; }

  /// The least number of bits that divides so much into shards of kShardBytesMax and
  /// kShardRecordsMax on average; at most kPartitionBits.
  static uint32_t ShardBits(uint64_t records, uint64_t bytes) noexcept;

  /// The records whose keys' hashes have `shard` as their upper `bits` bits, which are at most
  /// kPartitionBits. Takes their bytes, and 8 a record. Corruption: the file does not hold what was
  /// written.
  Result<LoadedRecords> Load(uint32_t bits, uint64_t shard) const;

 private:
  static constexpr uint32_t kPartitions = 1u << kPartitionBits;

  struct Chunk {
    uint64_t offset;
    uint64_t bytes;
    uint64_t checksum;
  };
  struct Partition {
    std::vector<uint32_t> blocks;  // All but the last one are full.
    uint64_t last_used = 0;        // Bytes of the last one.
    uint64_t records = 0;
    uint64_t bytes = 0;  // With those in the file.
    std::vector<Chunk> chunks;
  };

  RecordSpool(io::FileSystem* fs, std::string path, uint64_t block_bytes, uint64_t blocks,
              uint64_t hash_seed);

  char* Block(uint32_t block) const noexcept { return memory_.get() + block * block_bytes_; }
  /// Those of a partition that are in memory, in order.
  std::vector<std::string_view> Pieces(const Partition& partition) const;
  uint64_t ChainedChecksum(uint64_t offset,
                           std::span<const std::string_view> pieces) const noexcept;
  Status Append(Partition* partition, std::string_view bytes);
  Status Spill();
  Status OpenFile();
  Status ReadPartition(const Partition& partition, char* out) const;
  Status Damage(uint64_t offset, std::string_view why) const;

  io::FileSystem* const fs_;
  const std::string path_;
  const uint64_t block_bytes_;
  const uint64_t blocks_;
  const uint64_t file_id_;
  const base::SeededHash hash_of_;
  // Not touched before it is used, so that it takes no more memory than is needed.
  const std::unique_ptr<char[]> memory_;
  uint64_t next_block_ = 0;
  std::array<Partition, kPartitions> partitions_;
  uint64_t records_ = 0;
  uint64_t bytes_ = 0;
  std::unique_ptr<io::File> file_;  // nullptr before the first spill
  uint64_t file_bytes_ = 0;
  Status status_;
};

}  // namespace basalt::shared_map
