#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "basalt/attributes.h"
#include "basalt/status.h"
#include "basalt/vector.h"

// What a vector index has in its keyspace.
//
//   key          value
//   "m"          what was fixed at creation
//   "v" id       a vector with its attributes
//   "c" ...      the checkpoint of the graph (graph_checkpoint.h)
//
//   "m"          8  magic "BasaltVx"
//                4  version, 1
//                1  metric
//                1  element
//                2  zeros
//                4  dimension
//                8  seed of the graph and the codes
//                4  bytes of the model's label
//                   the label
//                8  checksum of all before it
//
//   "v" id       1  version, 1
//                3  zeros
//                4  bytes of the vector
//                8  checksum of what follows; also the stamp by which a state in memory knows that
//                   it is about the record as it stands
//                   the vector
//                   its attributes (attribute_code.h)
//
// Integers are little-endian. Checksums are base::Hash.

namespace basalt::vector {

inline constexpr std::string_view kMetadataKey = "m";
inline constexpr std::string_view kVectorPrefix = "v";
inline constexpr std::string_view kCheckpointPrefix = "c";

/// What is fixed at creation.
struct IndexMetadata {
  VectorMetric metric = VectorMetric::kCosine;
  VectorElement element = VectorElement::kFloat32;
  uint32_t dimension = 0;
  uint64_t seed = 0;
  std::string model;
};

std::string EncodeMetadata(const IndexMetadata& metadata);
/// Corruption, Unsupported.
Result<IndexMetadata> DecodeMetadata(std::string_view bytes);

/// The key of a vector. InvalidArgument: the id is too long.
Result<std::string> VectorKey(std::string_view id);

/// InvalidArgument: a wrong dimension, an element that is not finite, a zero vector under cosine,
/// too large attributes.
Result<std::string> EncodeVectorRecord(const IndexMetadata& metadata, std::span<const float> vector,
                                       const Attributes& attributes);
/// InvalidArgument as above, about a vector that is stored or looked for.
Status ValidateVector(const IndexMetadata& metadata, std::span<const float> vector);

/// A record that points into the encoded bytes.
struct VectorRecordView {
  uint64_t stamp = 0;
  std::string_view vector;
  std::string_view attributes;
};
/// Corruption: it is not the record of a vector of this index. All of it is looked at.
Result<VectorRecordView> DecodeVectorRecord(const IndexMetadata& metadata, std::string_view bytes);
/// The vector of a record that has this stamp. Nothing: it has another. Looks at the head alone.
std::optional<std::string_view> VectorOfRecord(const IndexMetadata& metadata,
                                               std::string_view bytes, uint64_t stamp) noexcept;

}  // namespace basalt::vector
