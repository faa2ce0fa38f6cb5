#include "phash/cells.h"

#include <utility>

#include "base/check.h"
#include "base/coding.h"
#include "phash/format.h"
#include "phash/level.h"
#include "phash/packed_bits.h"

namespace basalt::phash {
namespace {

Status Corrupt(const std::string& what) {
  return Status(StatusCode::kCorruption,
                "opening a fingerprint set or map: " + what + "; rebuild it from its keys");
}

uint64_t CellBytes(uint64_t keys, uint32_t width) noexcept {
  return 8 * PackedBits::Words(keys, width);
}

// Of all but the function, which has a checksum of its own, and the field itself.
uint64_t CellsChecksum(std::string_view form, uint64_t function_bytes) noexcept {
  constexpr size_t kAt = offsetof(CellsHeader, checksum);
  return base::Hash(form.substr(sizeof(CellsHeader) + function_bytes),
                    base::Hash(form.substr(0, kAt), kCellsMagic));
}

Status CheckHeader(const CellsHeader& header, std::string_view bytes, bool payloads) {
  if (header.magic != kCellsMagic) return Corrupt("the first 8 bytes are not BSALTFP1");
  if (header.version != kFormatVersion || header.required_features != 0) {
    return Status(StatusCode::kUnsupported,
                  "opening a fingerprint set or map: its format is version " +
                      std::to_string(header.version) + " with features " +
                      std::to_string(header.required_features) + ", this program reads version " +
                      std::to_string(kFormatVersion) + " without any");
  }
  if (header.bytes != bytes.size()) {
    return Corrupt("there are " + std::to_string(bytes.size()) + " bytes where its header says " +
                   std::to_string(header.bytes));
  }
  const uint32_t width = header.fingerprint_bits + uint32_t{header.payload_bits};
  if (header.fingerprint_bits < FingerprintSet::kBitsMin ||
      header.fingerprint_bits > FingerprintSet::kBitsMax ||
      header.payload_bits > FingerprintMap::kPayloadBitsMax) {
    return Corrupt("its cells have " + std::to_string(header.fingerprint_bits) + " and " +
                   std::to_string(header.payload_bits) + " bits");
  }
  if (header.keys > PerfectHashBuilder::kKeysMax || header.function_bytes > bytes.size() ||
      header.bytes != sizeof(CellsHeader) + header.function_bytes + CellBytes(header.keys, width)) {
    return Corrupt("its parts do not add up to its size");
  }
  if (header.checksum != CellsChecksum(bytes, header.function_bytes)) {
    return Corrupt("its checksum does not match");
  }
  if ((header.payload_bits > 0) != payloads) {
    return Status(StatusCode::kInvalidArgument,
                  std::string("opening a fingerprint ") +
                      (payloads ? "map: this is a set; use FingerprintSet"
                                : "set: this is a map; use FingerprintMap"));
  }
  return Status();
}

}  // namespace

Result<Cells> Cells::Build(PerfectHash numbers, uint32_t fingerprint_bits, uint32_t payload_bits,
                           const WalkCells& walk) {
  const uint32_t width = fingerprint_bits + payload_bits;
  const std::string_view function = numbers.bytes();
  const auto form = std::make_shared<std::string>();
  const size_t cells_at = sizeof(CellsHeader) + function.size();
  form->resize(cells_at + CellBytes(numbers.size(), width), '\0');
  CellsHeader header = {.magic = kCellsMagic,
                        .version = kFormatVersion,
                        .required_features = 0,
                        .keys = numbers.size(),
                        .function_bytes = function.size(),
                        .bytes = form->size(),
                        .fingerprint_bits = static_cast<uint8_t>(fingerprint_bits),
                        .payload_bits = static_cast<uint8_t>(payload_bits),
                        .zeros = {},
                        .checksum = 0};
  std::memcpy(form->data(), &header, sizeof header);
  function.copy(form->data() + sizeof header, function.size());
  char* const cells = form->data() + cells_at;
  BASALT_RETURN_IF_ERROR(walk([&](uint64_t hash, uint64_t payload) {
    PackedBits::Add(cells, numbers.Index(hash), width,
                    payload << fingerprint_bits | Fingerprint(Mix(hash), fingerprint_bits));
  }));
  base::Store(form->data() + offsetof(CellsHeader, checksum),
              CellsChecksum(*form, function.size()));
  // The function's bytes are here now; its own copy of them goes.
  BASALT_ASSIGN_OR_RETURN(
      numbers, PerfectHash::Open(std::string_view(*form).substr(sizeof header, function.size())));
  return Cells{.numbers = std::move(numbers),
               .fingerprint_bits = fingerprint_bits,
               .payload_bits = payload_bits,
               .bytes = *form,
               .cells = cells,
               .owner = form};
}

Result<Cells> Cells::Open(std::string_view bytes, bool payloads) {
  if (bytes.size() < sizeof(CellsHeader)) {
    return Corrupt("there are " + std::to_string(bytes.size()) + " bytes, fewer than a header has");
  }
  const auto header = Read<CellsHeader>(bytes.data());
  BASALT_RETURN_IF_ERROR(CheckHeader(header, bytes, payloads));
  BASALT_ASSIGN_OR_RETURN(PerfectHash numbers, PerfectHash::Open(bytes.substr(
                                                   sizeof(CellsHeader), header.function_bytes)));
  if (numbers.size() != header.keys) return Corrupt("its function has another number of keys");
  return Cells{.numbers = std::move(numbers),
               .fingerprint_bits = header.fingerprint_bits,
               .payload_bits = header.payload_bits,
               .bytes = bytes,
               .cells = bytes.data() + sizeof(CellsHeader) + header.function_bytes,
               .owner = nullptr};
}

}  // namespace basalt::phash
