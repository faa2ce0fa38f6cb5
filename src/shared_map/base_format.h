#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/coding.h"

// A base file: the immutable records of one shard of a map, under a perfect hash function.
//
//   header 256 | zeros | function | block checksums | starts | zeros | data | header again 256
//               to 4096                                        to a multiple of 4096 or 2 MiB
//
// The function gives each key its slot. Data has the records (record.h) in the order of slots, in
// one of two layouts:
//
//   fixed     slot i's record begins at i * stride. A stride is the largest record, filled up to a
//             multiple of 8 bytes; what a record leaves of it is zeros. There are no starts.
//   variable  records follow one another, each filled up with zeros to a multiple of 8 bytes; slot
//             i's begins at 8 * starts[i]. So there are at most 32 GiB of them.
//
// Data of 8 MiB or more begins at a multiple of 2 MiB, so that it can be mapped by huge pages. It
// is cut into blocks of 64 KiB, the last one shorter, with a checksum each; since records begin at
// multiples of 8 bytes, the 8 bytes of a record's header lie in one block.
//
// All integers are little-endian; structs are written as they lie in memory. Checksums are
// base::Checksum, bound to the file id and to the offset at which the checksummed bytes begin (both
// copies of the header: 0). What lies between the sections is zeros. The sizes of the sections
// follow from the header's numbers, and their places from their sizes: a reader computes both anew
// and refuses a header that says otherwise.

namespace basalt::shared_map {

inline constexpr char kBaseMagic[8] = {'B', 'a', 's', 'a', 'l', 't', 'S', 'm'};
inline constexpr uint32_t kBaseFormatVersion = 1;
/// Bits that this version understands; a file with another one set is Unsupported.
inline constexpr uint32_t kBaseKnownFeatures = 0;
/// Whose base::Hash stands in every header, so that a reader with another hash function refuses.
inline constexpr char kBaseGoldenKey[] = "basalt";

inline constexpr uint32_t kBlockLog2 = 16;
inline constexpr uint64_t kBlockBytes = uint64_t{1} << kBlockLog2;
inline constexpr uint64_t kHeadBytes = 4096;
inline constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;
/// Data from this size on begins at a multiple of kHugePageBytes.
inline constexpr uint64_t kHugeDataBytes = uint64_t{8} << 20;
/// Starts count 8 bytes.
inline constexpr uint64_t kVariableDataBytesMax = (uint64_t{1} << 32) * 8;

/// The kind of every record (record.h).
inline constexpr uint8_t kBaseRecordKind = 1;

/// Numbers are never reused.
enum class BaseLayout : uint32_t { kFixed = 1, kVariable = 2 };

struct BaseSection {
  uint64_t offset;
  uint64_t bytes;
  uint64_t checksum;  // 0 for data, whose blocks have their own
};

/// The first and the last bytes. Magic, version, features and checksum keep their place in every
/// later version.
struct BaseHeader {
  char magic[8];
  uint32_t format_version;
  uint32_t required_features;
  uint64_t file_id;
  uint64_t file_bytes;
  uint64_t records;
  uint64_t stride;  // 0 in the variable layout
  uint64_t golden_hash;
  BaseLayout layout;
  uint32_t reserved;  // zero
  BaseSection function;
  BaseSection block_checksums;
  BaseSection starts;
  BaseSection data;
  uint64_t zeros[11];
  uint64_t checksum;  // of the 248 bytes before it
};
static_assert(sizeof(BaseHeader) == 256 && std::has_unique_object_representations_v<BaseHeader>);
inline constexpr size_t kBaseChecksummedBytes = offsetof(BaseHeader, checksum);

/// The sizes and places of everything, for numbers that are small enough for a file to have.
constexpr void PlaceSections(BaseHeader* header, uint64_t function_bytes,
                             uint64_t data_bytes) noexcept {
  const auto place = [](uint64_t from, uint64_t alignment, uint64_t bytes, BaseSection* section) {
    section->offset = base::RoundUp(from, alignment);
    section->bytes = bytes;
    return section->offset + bytes;
  };
  const bool fixed = header->layout == BaseLayout::kFixed;
  const uint64_t blocks = (data_bytes + kBlockBytes - 1) / kBlockBytes;
  uint64_t end = place(kHeadBytes, 64, function_bytes, &header->function);
  end = place(end, 64, 8 * blocks, &header->block_checksums);
  end = place(end, 64, fixed ? 0 : base::RoundUp(4 * header->records, 8), &header->starts);
  end = place(end, data_bytes >= kHugeDataBytes ? kHugePageBytes : 4096, data_bytes, &header->data);
  header->file_bytes = end + sizeof(BaseHeader);
}

}  // namespace basalt::shared_map
