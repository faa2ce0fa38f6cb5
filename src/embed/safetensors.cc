#include "embed/safetensors.h"

#include <algorithm>
#include <bit>
#include <boost/json/object.hpp>
#include <cstring>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/coding.h"
#include "embed/json_file.h"

namespace basalt::embed {
namespace {

constexpr size_t kLengthBytes = 8;
// A hundred bytes a tensor are usual.
constexpr uint64_t kHeaderBytesMax = 16 << 20;

Status Malformed(std::string_view path, std::string_view what) {
  return Status(StatusCode::kCorruption,
                "reading the tensors of '" + std::string(path) + "': " + std::string(what));
}

/// 0: no element type of the format.
uint64_t ElementBytes(std::string_view dtype) noexcept {
  constexpr std::pair<std::string_view, uint64_t> kSizes[] = {
      {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F64", 8},     {"I64", 8},
      {"I32", 4}, {"I16", 2}, {"I8", 1},   {"U64", 8},     {"U32", 4},
      {"U16", 2}, {"U8", 1},  {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};
  for (const auto& [name, size] : kSizes) {
    if (name == dtype) return size;
  }
  return 0;
}

/// The numbers of an array. Nothing: it is something else.
std::optional<std::vector<uint64_t>> AsSizes(const boost::json::value* value) {
  if (value == nullptr || !value->is_array()) return std::nullopt;
  std::vector<uint64_t> sizes;
  for (const boost::json::value& element : value->get_array()) {
    const std::optional<uint64_t> size = AsSize(element);
    if (!size) return std::nullopt;
    sizes.push_back(*size);
  }
  return sizes;
}

/// Nothing: the description is malformed, or does not fit the data.
std::optional<Safetensors::Tensor> ReadTensor(const boost::json::value& described,
                                              std::string_view data) {
  const boost::json::object* const fields = described.if_object();
  if (fields == nullptr) return std::nullopt;
  const boost::json::value* const dtype = fields->if_contains("dtype");
  const auto shape = AsSizes(fields->if_contains("shape"));
  const auto offsets = AsSizes(fields->if_contains("data_offsets"));
  if (dtype == nullptr || !dtype->is_string() || !shape || !offsets || offsets->size() != 2) {
    return std::nullopt;
  }
  const uint64_t begin = (*offsets)[0];
  const uint64_t end = (*offsets)[1];
  if (begin > end || end > data.size()) return std::nullopt;
  Safetensors::Tensor tensor;
  tensor.dtype = std::string(dtype->get_string());
  uint64_t bytes = ElementBytes(tensor.dtype);
  if (bytes == 0) return std::nullopt;
  for (const uint64_t size : *shape) {
    if (__builtin_mul_overflow(bytes, size, &bytes)) return std::nullopt;
  }
  if (bytes != end - begin) return std::nullopt;
  tensor.shape = *shape;
  tensor.bytes = data.substr(begin, bytes);
  return tensor;
}

/// Whether the tensors cover the data, each byte once.
bool Cover(const std::map<std::string, Safetensors::Tensor, std::less<>>& tensors,
           std::string_view data) {
  std::vector<std::string_view> parts;
  for (const auto& [name, tensor] : tensors) parts.push_back(tensor.bytes);
  std::sort(parts.begin(), parts.end(), [](std::string_view a, std::string_view b) {
    return std::pair(a.data(), a.size()) < std::pair(b.data(), b.size());
  });
  const char* end = data.data();
  for (const std::string_view part : parts) {
    if (part.data() != end) return false;
    end = part.data() + part.size();
  }
  return end == data.data() + data.size();
}

std::string ShapeText(const std::vector<uint64_t>& shape) {
  std::string text = "[";
  for (const uint64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

}  // namespace

Result<Safetensors> Safetensors::Parse(std::string_view file, std::string_view path) {
  if (file.size() < kLengthBytes) return Malformed(path, "it is shorter than its first number");
  const auto header_bytes = base::Load<uint64_t>(file.data());
  file.remove_prefix(kLengthBytes);
  if (header_bytes > kHeaderBytesMax || header_bytes > file.size()) {
    return Malformed(path, "its header of " + std::to_string(header_bytes) + " bytes does not fit");
  }
  const std::string_view data = file.substr(header_bytes);
  BASALT_ASSIGN_OR_RETURN(
      const boost::json::object header,
      ParseObject(file.substr(0, header_bytes), "the header of '" + std::string(path) + "'"));
  Safetensors parsed;
  parsed.path_ = path;
  for (const auto& field : header) {
    const std::string name(field.key());
    if (name == "__metadata__") continue;
    std::optional<Tensor> tensor = ReadTensor(field.value(), data);
    if (!tensor) return Malformed(path, "the tensor '" + name + "' is malformed");
    parsed.tensors_.emplace(name, *std::move(tensor));
  }
  if (!Cover(parsed.tensors_, data)) {
    return Malformed(path, "its tensors leave gaps in the data, or overlap; is the file whole?");
  }
  return parsed;
}

Result<std::vector<float>> Safetensors::ReadFloats(std::string_view name,
                                                   const std::vector<uint64_t>& shape) const {
  const auto found = tensors_.find(name);
  const std::string what = "reading the tensor '" + std::string(name) + "' of '" + path_ + "': ";
  if (found == tensors_.end())
    return Status(StatusCode::kNotFound, what + "the file has no such tensor");
  const Tensor& tensor = found->second;
  if (tensor.shape != shape) {
    return Status(StatusCode::kCorruption, what + "its shape is " + ShapeText(tensor.shape) +
                                               ", expected " + ShapeText(shape));
  }
  std::vector<float> numbers;
  const char* const bytes = tensor.bytes.data();
  if (tensor.dtype == "F32") {
    numbers.resize(tensor.bytes.size() / sizeof(float));
    if (!numbers.empty()) std::memcpy(numbers.data(), bytes, tensor.bytes.size());
  } else if (tensor.dtype == "BF16") {
    numbers.resize(tensor.bytes.size() / sizeof(uint16_t));
    for (size_t i = 0; i < numbers.size(); ++i) {
      const uint32_t upper_half = base::Load<uint16_t>(bytes + i * sizeof(uint16_t));
      numbers[i] = std::bit_cast<float>(upper_half << 16);
    }
  } else {
    return Status(StatusCode::kUnsupported,
                  what + "its elements are " + tensor.dtype + "; F32 and BF16 are supported");
  }
  return numbers;
}

}  // namespace basalt::embed
