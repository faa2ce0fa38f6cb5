#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/status.h"

namespace basalt::embed {

/// The tensors of a file in the format safetensors: a number of 8 bytes, the length of a JSON
/// object, then this object, then the data:
///
///   {"name": {"dtype": "F32", "shape": [384, 384], "data_offsets": [0, 589824]}, ...,
///    "__metadata__": {...}}
///
/// Offsets count from the end of the object. The data is covered without gaps and overlaps. All of
/// it is checked before anything is read: lengths, products of shapes, coverage.
class Safetensors {
 public:
  struct Tensor {
    std::string dtype;
    std::vector<uint64_t> shape;
    std::string_view bytes;
  };

  /// `file` outlives the object. `path` is for messages. Corruption: it is malformed.
  static Result<Safetensors> Parse(std::string_view file, std::string_view path);

  const std::map<std::string, Tensor, std::less<>>& tensors() const noexcept { return tensors_; }

  /// The elements of a tensor of this shape. NotFound: there is none of the name. Corruption: it
  /// has another shape. Unsupported: its elements are neither F32 nor BF16.
  Result<std::vector<float>> ReadFloats(std::string_view name,
                                        const std::vector<uint64_t>& shape) const;

 private:
  std::string path_;
  std::map<std::string, Tensor, std::less<>> tensors_;
};

}  // namespace basalt::embed
