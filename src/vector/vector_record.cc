#include "vector/vector_record.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "basalt/write_batch.h"
#include "base/coding.h"
#include "base/hash.h"
#include "vector/attribute_code.h"

namespace basalt::vector {
namespace {

constexpr std::string_view kMetadataMagic = "BasaltVx";
constexpr uint32_t kMetadataVersion = 1;
constexpr uint8_t kRecordVersion = 1;
constexpr size_t kRecordHeadBytes = 16;
// Squared lengths between which every distance is a finite float32.
constexpr double kSquareMin = 1e-30;
constexpr double kSquareMax = 8e37;

Status CorruptMetadata(std::string_view what) {
  return Status(StatusCode::kCorruption, "the metadata record of the vector index " +
                                             std::string(what) +
                                             ": the keyspace is damaged, or is not a vector index");
}

Status CorruptRecord(std::string_view what) {
  return Status(StatusCode::kCorruption,
                "the record of a vector " + std::string(what) + ": add the vector again");
}

}  // namespace

std::string EncodeMetadata(const IndexMetadata& metadata) {
  std::string out(kMetadataMagic);
  base::Append(&out, kMetadataVersion);
  out.push_back(static_cast<char>(metadata.metric));
  out.push_back(static_cast<char>(metadata.element));
  base::Append(&out, uint16_t{0});
  base::Append(&out, metadata.dimension);
  base::Append(&out, metadata.seed);
  base::Append(&out, static_cast<uint32_t>(metadata.model.size()));
  out += metadata.model;
  base::Append(&out, base::Hash(out));
  return out;
}

Result<IndexMetadata> DecodeMetadata(std::string_view bytes) {
  base::Decoder decoder(bytes);
  if (decoder.ReadBytes(kMetadataMagic.size()) != kMetadataMagic) {
    return CorruptMetadata("does not begin as one");
  }
  if (decoder.Read<uint32_t>() > kMetadataVersion) {
    return Status(StatusCode::kUnsupported,
                  "the vector index was made by a later version: use that, or a later one");
  }
  IndexMetadata metadata;
  const auto metric = decoder.Read<uint8_t>();
  const auto element = decoder.Read<uint8_t>();
  decoder.Read<uint16_t>();
  metadata.metric = static_cast<VectorMetric>(metric);
  metadata.element = static_cast<VectorElement>(element);
  metadata.dimension = decoder.Read<uint32_t>();
  metadata.seed = decoder.Read<uint64_t>();
  metadata.model = decoder.ReadBytes(decoder.Read<uint32_t>());
  const size_t checked = decoder.position();
  const auto checksum = decoder.Read<uint64_t>();
  if (!decoder.ok() || !decoder.AtEnd() || checksum != base::Hash(bytes.substr(0, checked))) {
    return CorruptMetadata("has a wrong checksum or length");
  }
  if (metric > static_cast<uint8_t>(VectorMetric::kCosine) || element != 0 ||
      metadata.dimension == 0 || metadata.dimension > kVectorDimensionMax) {
    return CorruptMetadata("names no known metric, element type or dimension");
  }
  return metadata;
}

Result<std::string> VectorKey(std::string_view id) {
  if (id.size() + kVectorPrefix.size() > kMaxKeyBytes) {
    return Status(StatusCode::kInvalidArgument,
                  "the id of a vector has " + std::to_string(id.size()) + " bytes: at most " +
                      std::to_string(kMaxKeyBytes - kVectorPrefix.size()) + " are possible");
  }
  std::string key(kVectorPrefix);
  key += id;
  return key;
}

Status ValidateVector(const IndexMetadata& metadata, std::span<const float> vector) {
  if (vector.size() != metadata.dimension) {
    return Status(StatusCode::kInvalidArgument,
                  "the vector has " + std::to_string(vector.size()) +
                      " elements, and this index is of dimension " +
                      std::to_string(metadata.dimension) +
                      (metadata.model.empty() ? "" : " (model '" + metadata.model + "')"));
  }
  double square = 0;
  for (size_t i = 0; i < vector.size(); ++i) {
    if (!std::isfinite(vector[i])) {
      return Status(StatusCode::kInvalidArgument,
                    "element " + std::to_string(i) + " of the vector is " +
                        (std::isnan(vector[i]) ? "not a number" : "infinite") +
                        ": all elements must be finite");
    }
    square += double{vector[i]} * vector[i];
  }
  if (square > kSquareMax) {
    return Status(
        StatusCode::kInvalidArgument,
        "the vector is too long for distances in float32: divide all vectors of the index "
        "by one number");
  }
  if (square < kSquareMin && metadata.metric == VectorMetric::kCosine) {
    return Status(
        StatusCode::kInvalidArgument,
        "all elements of the vector are zero, or nearly so: it has no direction to compare "
        "by cosine");
  }
  return Status();
}

Result<std::string> EncodeVectorRecord(const IndexMetadata& metadata, std::span<const float> vector,
                                       const Attributes& attributes) {
  if (Status status = ValidateVector(metadata, vector); !status.ok()) return status;
  const auto encoded = EncodeAttributes(attributes);
  if (!encoded) return encoded.error();
  std::string out;
  out.reserve(kRecordHeadBytes + vector.size_bytes() + encoded->size());
  base::Append(&out, uint32_t{kRecordVersion});
  base::Append(&out, static_cast<uint32_t>(vector.size_bytes()));
  base::Append(&out, uint64_t{0});
  out.append(reinterpret_cast<const char*>(vector.data()), vector.size_bytes());
  out += *encoded;
  base::Store(out.data() + 8, base::Hash(std::string_view(out).substr(kRecordHeadBytes)));
  return out;
}

Result<VectorRecordView> DecodeVectorRecord(const IndexMetadata& metadata, std::string_view bytes) {
  base::Decoder decoder(bytes);
  const auto version = decoder.Read<uint32_t>();
  const auto vector_bytes = decoder.Read<uint32_t>();
  VectorRecordView record;
  record.stamp = decoder.Read<uint64_t>();
  record.vector = decoder.ReadBytes(vector_bytes);
  if (!decoder.ok()) return CorruptRecord("is too short");
  if (version != kRecordVersion) return CorruptRecord("has an unknown version");
  if (vector_bytes != VectorBytes(metadata.element, metadata.dimension)) {
    return CorruptRecord("has another dimension than the index");
  }
  record.attributes = decoder.rest();
  if (base::Hash(bytes.substr(kRecordHeadBytes)) != record.stamp) {
    return CorruptRecord("has a wrong checksum");
  }
  if (Status status = ValidateAttributes(record.attributes); !status.ok()) return status;
  // Elements that are not finite would make distances that nothing can be ordered by.
  std::vector<float> vector(metadata.dimension);
  std::memcpy(vector.data(), record.vector.data(), record.vector.size());
  if (Status status = ValidateVector(metadata, vector); !status.ok()) {
    return CorruptRecord(std::string("holds what cannot be compared (") +
                         std::string(status.message()) + ")");
  }
  return record;
}

std::optional<std::string_view> VectorOfRecord(const IndexMetadata& metadata,
                                               std::string_view bytes, uint64_t stamp) noexcept {
  const size_t vector_bytes = VectorBytes(metadata.element, metadata.dimension);
  if (bytes.size() < kRecordHeadBytes + vector_bytes) return std::nullopt;
  if (base::Load<uint64_t>(bytes.data() + 8) != stamp) return std::nullopt;
  return bytes.substr(kRecordHeadBytes, vector_bytes);
}

}  // namespace basalt::vector
