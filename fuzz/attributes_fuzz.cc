#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/coding.h"
#include "base/hash.h"
#include "vector/attribute_code.h"
#include "vector/vector_record.h"

// Any bytes as attributes, and as a record and the metadata of a vector index, with the checksums
// made right. What is accepted as attributes is written again as bytes that mean the same.

namespace {

using basalt::vector::DecodeAttributes;
using basalt::vector::EncodeAttributes;

void CheckAttributes(std::string_view bytes) {
  const auto attributes = DecodeAttributes(bytes);
  BASALT_CHECK(attributes.has_value() == basalt::vector::ValidateAttributes(bytes).ok());
  (void)basalt::vector::FindAttribute(bytes, "lang");
  if (!attributes) {
    BASALT_CHECK(attributes.error().code() == basalt::StatusCode::kCorruption);
    return;
  }
  const auto again = EncodeAttributes(*attributes);
  if (!again) return;  // Too large.
  // Compared as bytes, because a double may be no number.
  BASALT_CHECK(EncodeAttributes(DecodeAttributes(*again).value()).value() == *again);
  for (const auto& [name, value] : *attributes) {
    const auto found = basalt::vector::FindAttribute(bytes, name);
    BASALT_CHECK(found.has_value() && found->index() == value.index());
  }
}

void CheckRecord(std::string_view bytes) {
  basalt::vector::IndexMetadata metadata;
  metadata.dimension = 2;
  std::string record(bytes);
  if (record.size() >= 16) {
    basalt::base::Store(record.data() + 8, basalt::base::Hash(std::string_view(record).substr(16)));
  }
  const auto decoded = basalt::vector::DecodeVectorRecord(metadata, record);
  if (!decoded) {
    BASALT_CHECK(decoded.error().code() == basalt::StatusCode::kCorruption);
    return;
  }
  BASALT_CHECK(decoded->vector.size() == 8);
  BASALT_CHECK(DecodeAttributes(decoded->attributes).has_value());
  BASALT_CHECK(basalt::vector::VectorOfRecord(metadata, record, decoded->stamp) == decoded->vector);
}

void CheckMetadata(std::string_view bytes) {
  std::string sealed(bytes);
  if (sealed.size() >= 8) {
    const size_t end = sealed.size() - 8;
    basalt::base::Store(sealed.data() + end,
                        basalt::base::Hash(std::string_view(sealed).substr(0, end)));
  }
  const auto metadata = basalt::vector::DecodeMetadata(sealed);
  if (metadata) BASALT_CHECK(metadata->dimension > 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  CheckAttributes(bytes);
  CheckRecord(bytes);
  CheckMetadata(bytes);
  return 0;
}
