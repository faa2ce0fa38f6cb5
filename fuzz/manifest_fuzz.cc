// Any bytes as a manifest: refused, or read as one that encodes to the same bytes again; one of an
// older form, without all required features, to bytes that read as the same manifest.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/coding.h"
#include "base/hash.h"
#include "db/manifest.h"

namespace {

void Try(std::string_view bytes) {
  const auto manifest = basalt::db::DecodeManifest(bytes, "MANIFEST");
  if (!manifest) return;
  // Optional features are read over, and not written again.
  if (basalt::base::Load<uint32_t>(bytes.data() + 16) != 0) return;
  const std::string encoded = basalt::db::EncodeManifest(*manifest);
  constexpr uint32_t kWrittenFeatures = 3;
  if (basalt::base::Load<uint32_t>(bytes.data() + 12) == kWrittenFeatures) {
    BASALT_CHECK(encoded == bytes);
  } else {
    const auto again = basalt::db::DecodeManifest(encoded, "MANIFEST");
    BASALT_CHECK(again && basalt::db::EncodeManifest(*again) == encoded);
  }
  // What reads may still break the order of tables, but it makes a version.
  const auto version = basalt::db::VersionOf(*manifest, nullptr, "/db", {});
  static_cast<void>(version->CheckOrder());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  Try(bytes);
  // The same with the checksums made right, so that what lies behind them is reached.
  if (bytes.size() < 64) return 0;
  const std::string_view body = std::string_view(bytes).substr(64);
  const auto id = basalt::base::Load<uint64_t>(bytes.data() + 24);
  basalt::base::Store(bytes.data() + 32, uint64_t{body.size()});
  basalt::base::Store(bytes.data() + 40, basalt::base::Checksum(id, 64, body));
  basalt::base::Store(bytes.data() + 56,
                      basalt::base::Checksum(0, 0, std::string_view(bytes).substr(0, 56)));
  Try(bytes);
  return 0;
}
