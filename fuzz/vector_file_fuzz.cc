#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "tools/basalt/vector_file.h"

// Any bytes as a file of vectors, in each format: what is refused is InvalidArgument with a reason;
// every vector that is read has as many elements as it may have.

namespace {

using basalt::StatusCode;
using basalt::tools::VectorFile;
using basalt::tools::VectorFileFormat;

void ReadAll(const std::string& path, VectorFileFormat format) {
  auto file = VectorFile::Open(path, format, "x");
  if (!file) {
    BASALT_CHECK(file.error().code() == StatusCode::kInvalidArgument);
    BASALT_CHECK(!file.error().message().empty());
    return;
  }
  basalt::VectorItem item;
  while (true) {
    const auto next = file->Next(&item);
    if (!next) BASALT_CHECK(next.error().code() == StatusCode::kInvalidArgument);
    if (!next || !*next) return;
    BASALT_CHECK(item.id.starts_with('x'));
    if (format == VectorFileFormat::kNdjson) continue;
    BASALT_CHECK(!item.vector.empty() && item.vector.size() <= basalt::kVectorDimensionMax);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)basalt::tools::ParseNpyHead({reinterpret_cast<const char*>(data), size});
  const int fd = memfd_create("vectors", 0);
  BASALT_CHECK(fd >= 0);
  BASALT_CHECK(write(fd, data, size) == static_cast<ssize_t>(size));
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  for (const auto format :
       {VectorFileFormat::kNpy, VectorFileFormat::kFvecs, VectorFileFormat::kNdjson}) {
    ReadAll(path, format);
  }
  close(fd);
  return 0;
}
