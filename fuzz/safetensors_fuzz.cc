// Any bytes as a file of tensors: refused, or its tensors cover the data, each byte once, and their
// sizes are those of their shapes. Then as the settings of a model.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "embed/bert.h"
#include "embed/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  const auto tensors = basalt::embed::Safetensors::Parse(file, "model");
  if (tensors) {
    size_t bytes = 0;
    for (const auto& [name, tensor] : tensors->tensors()) {
      BASALT_CHECK(tensor.bytes.data() >= file.data() + 8);
      BASALT_CHECK(tensor.bytes.data() + tensor.bytes.size() <= file.data() + file.size());
      bytes += tensor.bytes.size();
      const auto floats = tensors->ReadFloats(name, tensor.shape);
      if (!floats) continue;
      BASALT_CHECK(floats->size() * (tensor.dtype == "F32" ? 4 : 2) == tensor.bytes.size());
    }
    BASALT_CHECK(bytes <= file.size() - 8);
  } else {
    BASALT_CHECK(tensors.error().code() == basalt::StatusCode::kCorruption);
  }
  const auto shape = basalt::embed::BertShape::Parse(file, "config.json");
  BASALT_CHECK(!shape || shape->hidden_size % shape->heads == 0);
  return 0;
}
