#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/status.h"
#include "basalt/vector_index.h"
#include "tools/basalt/line_reader.h"

namespace basalt::tools {

/// kNpy: an array of numpy, two-dimensional, of float32 or float64, in C order.
/// kFvecs: for each vector its dimension (4 bytes) and its float32 elements.
/// kNdjson: a line each, {"id":"...","vector":[...],"attributes":{...}}.
enum class VectorFileFormat : uint8_t { kNpy, kFvecs, kNdjson };

/// By the name's ending; kNdjson where it says nothing.
VectorFileFormat FormatOfFile(std::string_view path);

/// What the head of an .npy file says.
struct NpyHead {
  uint64_t rows = 0;
  uint64_t dimension = 0;
  uint32_t element_bytes = 4;
  uint64_t head_bytes = 0;  ///< Rows begin there.
};
/// The most that the head of an .npy file may take.
inline constexpr size_t kNpyHeadBytesMax = 64 * 1024;
/// `bytes` begin the file. InvalidArgument: it is no such array.
Result<NpyHead> ParseNpyHead(std::string_view bytes);

/// One line of kNdjson. InvalidArgument.
Result<VectorItem> ParseVectorLine(std::string_view line);
/// A JSON array of numbers. InvalidArgument.
Result<std::vector<float>> ParseVectorText(std::string_view text);

/// Reads the vectors of a file one by one. Rows of arrays get their number, from 0, as id.
class VectorFile {
 public:
  static Result<VectorFile> Open(const std::string& path, VectorFileFormat format,
                                 std::string id_prefix);

  /// False: there are no more. InvalidArgument, IoError: the message has file and place.
  Result<bool> Next(VectorItem* item);

  uint64_t consumed_bytes() const noexcept { return consumed_bytes_; }
  /// 0: not known.
  uint64_t total_bytes() const noexcept { return total_bytes_; }

 private:
  VectorFile(std::string path, VectorFileFormat format, std::string id_prefix);
  Status OpenArray();
  Status Refuse(const std::string& what) const;
  Result<bool> NextLine(VectorItem* item);
  Result<bool> NextRow(VectorItem* item);
  /// False: the file ends before the first byte.
  Result<bool> Read(char* bytes, size_t size);

  std::string path_;
  VectorFileFormat format_;
  std::string id_prefix_;
  std::optional<LineReader> lines_{};
  std::ifstream file_{};
  NpyHead head_{};
  uint64_t row_ = 0;
  uint64_t consumed_bytes_ = 0;
  uint64_t total_bytes_ = 0;
};

}  // namespace basalt::tools
