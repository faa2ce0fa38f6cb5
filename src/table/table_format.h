#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "basalt/status.h"
#include "base/coding.h"

// The fixed parts of a table file (docs/table.md):
//
//   header 64 | data block 0 | data block 1 | ... | index parts | index root | dictionary |
//   point index | filter | properties | section table | trailer 72
//
// The parts follow one another without gaps, so that every byte is under some checksum. All
// integers are little-endian; structs are written as they lie in memory. Checksums are
// base::Checksum, bound to the file id and to the offset at which the checksummed bytes begin.

namespace basalt::table {

/// Stands for a keyspace in the header of a table that holds several.
inline constexpr uint32_t kSharedKeyspaces = UINT32_MAX;

inline constexpr char kTableMagic[8] = {'B', 'a', 's', 'a', 'l', 't', 'T', 'b'};
inline constexpr uint32_t kTableFormatVersion = 1;
/// Set in every table that is written now: blocks may have times and records of kind merge, and the
/// properties count them. Tables without it were written before there were any.
inline constexpr uint32_t kFeatureTimes = 1;
/// Set in every table that is written now: blocks may be stored in packed form.
inline constexpr uint32_t kFeaturePackedBlocks = 2;
/// Set in every table that is written now: entries of the index may be separators.
inline constexpr uint32_t kFeatureSeparators = 8;
inline constexpr uint32_t kWrittenFeatures =
    kFeatureTimes | kFeaturePackedBlocks | kFeatureSeparators;
/// Set in tables of several keyspaces, and only there: each key begins with its keyspace.
inline constexpr uint32_t kFeatureSharedKeyspaces = 4;
/// Bits that this version understands; a table with another one set is Unsupported.
inline constexpr uint32_t kKnownRequiredFeatures = kWrittenFeatures | kFeatureSharedKeyspaces;

constexpr uint32_t FeaturesOf(uint32_t keyspace) noexcept {
  return kWrittenFeatures | (keyspace == kSharedKeyspaces ? kFeatureSharedKeyspaces : 0);
}

/// The first bytes. Magic, version and checksum keep their place in every later version.
struct FileHeader {
  char magic[8];
  uint32_t format_version;
  uint32_t required_features;
  uint32_t optional_features;
  uint32_t keyspace;
  uint64_t file_id;
  uint64_t reserved[3];  // zero
  uint64_t checksum;     // of the 56 bytes before it
};
static_assert(sizeof(FileHeader) == 64 && std::has_unique_object_representations_v<FileHeader>);

/// What a section holds. Numbers are never reused.
enum class SectionKind : uint32_t {
  kIndex = 1,  ///< The whole block index as one block; read, not written any more.
  kFilter = 2,
  kProperties = 3,
  kPointIndex = 4,
  kDictionary = 5,
  kIndexParts = 6,
  kIndexRoot = 7,
};

/// Set in SectionEntry::flags: a reader that does not know the kind must refuse the table.
inline constexpr uint32_t kSectionRequired = 1;

struct SectionEntry {
  uint32_t kind;
  uint32_t flags;
  uint64_t offset;
  uint64_t size;
  uint64_t checksum;  // of the section's bytes
};
static_assert(sizeof(SectionEntry) == 32 && std::has_unique_object_representations_v<SectionEntry>);
inline constexpr uint32_t kSectionCountMax = 64;

/// The last bytes; repeats what the header says, and must match it.
struct FileTrailer {
  uint64_t section_table_offset;
  uint64_t section_table_checksum;
  uint32_t section_count;
  uint32_t format_version;
  uint32_t required_features;
  uint32_t optional_features;
  uint64_t file_id;
  uint64_t file_bytes;
  uint32_t keyspace;
  uint32_t reserved;  // zero
  uint64_t checksum;  // of the 56 bytes before it
  char magic[8];
};
static_assert(sizeof(FileTrailer) == 72 && std::has_unique_object_representations_v<FileTrailer>);
inline constexpr size_t kTrailerChecksummedBytes = 56;
inline constexpr size_t kHeaderChecksummedBytes = 56;

/// Where a data block lies; the value of an index entry. The block's trailer follows the payload.
struct BlockHandle {
  uint64_t offset;
  uint64_t payload_bytes;
};
static_assert(sizeof(BlockHandle) == 16 && std::has_unique_object_representations_v<BlockHandle>);

/// Where a part of the block index lies, and how many data blocks it lists; the value of a record
/// of the index root. The part's trailer follows the payload, as a block's does.
struct IndexPartHandle {
  uint64_t offset;
  uint32_t payload_bytes;
  uint32_t blocks;
};
static_assert(sizeof(IndexPartHandle) == sizeof(BlockHandle) &&
              std::has_unique_object_representations_v<IndexPartHandle>);

/// The bytes of a struct as they stand in the file, and back; `bytes` must hold all of it.
template <class T>
std::string_view BytesOf(const T& fields) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const char*>(&fields), sizeof fields};
}
template <class T>
T FromBytes(std::string_view bytes, size_t offset = 0) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  T fields;
  __builtin_memcpy(&fields, bytes.data() + offset, sizeof fields);
  return fields;
}

/// "<path>: <part> at offset <offset>: <what>", and for Corruption what to do.
inline Status TableError(StatusCode code, std::string_view path, std::string_view part,
                         uint64_t offset, std::string_view what) {
  std::string message(path);
  message.append(": ").append(part).append(" at offset ").append(std::to_string(offset));
  message.append(": ").append(what);
  if (code == StatusCode::kCorruption) message.append("; restore the file from a copy");
  return Status(code, std::move(message));
}

}  // namespace basalt::table
