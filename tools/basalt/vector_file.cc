#include "tools/basalt/vector_file.h"

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "basalt/vector.h"

namespace basalt::tools {
namespace {

namespace json = boost::json;

constexpr std::string_view kNpyMagic = "\x93NUMPY";

Status NotNpy(const std::string& what) {
  return Status(StatusCode::kInvalidArgument, "no .npy file of vectors: " + what);
}

template <class Number>
Number LittleEndian(std::string_view bytes) {
  Number number = 0;
  for (size_t i = sizeof number; i-- > 0;) {
    number = static_cast<Number>(number << 8 | static_cast<uint8_t>(bytes[i]));
  }
  return number;
}

/// The text after `'key':` in the dictionary of a header, without blanks.
std::optional<std::string_view> ValueOf(std::string_view dictionary, std::string_view key) {
  const std::string quoted = "'" + std::string(key) + "'";
  const size_t at = dictionary.find(quoted);
  if (at == std::string_view::npos) return std::nullopt;
  const size_t colon = dictionary.find_first_not_of(' ', at + quoted.size());
  if (colon == std::string_view::npos || dictionary[colon] != ':') return std::nullopt;
  const size_t value = dictionary.find_first_not_of(' ', colon + 1);
  if (value == std::string_view::npos) return std::nullopt;
  return dictionary.substr(value);
}

/// Takes a number and the blanks around it from the front.
std::optional<uint64_t> TakeNumber(std::string_view* text) {
  text->remove_prefix(std::min(text->find_first_not_of(' '), text->size()));
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc()) return std::nullopt;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  text->remove_prefix(std::min(text->find_first_not_of(' '), text->size()));
  return number;
}

bool TakeCharacter(std::string_view* text, char c) {
  if (!text->starts_with(c)) return false;
  text->remove_prefix(1);
  return true;
}

Status ParseShape(std::string_view text, NpyHead* head) {
  const bool opens = TakeCharacter(&text, '(');
  const std::optional<uint64_t> rows = TakeNumber(&text);
  const bool divides = TakeCharacter(&text, ',');
  const std::optional<uint64_t> dimension = TakeNumber(&text);
  if (!opens || !rows || !divides || !dimension || !TakeCharacter(&text, ')')) {
    return NotNpy("its shape has not two dimensions, rows and elements");
  }
  if (*dimension == 0 || *dimension > kVectorDimensionMax) {
    return NotNpy("its rows have " + std::to_string(*dimension) + " elements; 1 to " +
                  std::to_string(kVectorDimensionMax) + " are possible");
  }
  head->rows = *rows;
  head->dimension = *dimension;
  return Status();
}

Status NotAVector(const std::string& what) { return Status(StatusCode::kInvalidArgument, what); }

Result<std::vector<float>> VectorOf(const json::value& value) {
  const json::array* const array = value.if_array();
  if (array == nullptr) return NotAVector("a vector must be an array of numbers");
  std::vector<float> vector;
  vector.reserve(array->size());
  for (const json::value& element : *array) {
    json::error_code error;
    const auto number = element.to_number<double>(error);
    if (error) {
      return NotAVector("element " + std::to_string(vector.size()) +
                        " of the vector is not a number");
    }
    vector.push_back(static_cast<float>(number));
  }
  return vector;
}

Result<Attributes> AttributesOf(const json::value& value) {
  const json::object* const object = value.if_object();
  if (object == nullptr) return NotAVector("attributes must be an object");
  Attributes attributes;
  for (const auto& member : *object) {
    const std::string name(member.key());
    const json::value& one = member.value();
    if (one.is_null()) continue;
    if (one.is_bool()) {
      attributes[name] = one.get_bool();
    } else if (one.is_int64()) {
      attributes[name] = one.get_int64();
    } else if (one.is_uint64()) {
      attributes[name] = static_cast<double>(one.get_uint64());
    } else if (one.is_double()) {
      attributes[name] = one.get_double();
    } else if (one.is_string()) {
      attributes[name] = std::string(one.get_string());
    } else {
      return NotAVector("attribute '" + name +
                        "' is an array or object: only plain values can be "
                        "kept");
    }
  }
  return attributes;
}

Result<json::value> ParseJson(std::string_view text) {
  json::error_code error;
  json::value value = json::parse(text, error);
  if (error) return NotAVector("not JSON: " + error.message());
  return value;
}

}  // namespace

VectorFileFormat FormatOfFile(std::string_view path) {
  if (path.ends_with(".npy")) return VectorFileFormat::kNpy;
  if (path.ends_with(".fvecs")) return VectorFileFormat::kFvecs;
  return VectorFileFormat::kNdjson;
}

Result<NpyHead> ParseNpyHead(std::string_view bytes) {
  if (!bytes.starts_with(kNpyMagic) || bytes.size() < 12) return NotNpy("it does not begin as one");
  const char major = bytes[6];
  if (major < 1 || major > 3) return NotNpy("its version is not known");
  const size_t text_begin = major == 1 ? 10 : 12;
  const uint64_t text_bytes = major == 1 ? LittleEndian<uint16_t>(bytes.substr(8, 2))
                                         : LittleEndian<uint32_t>(bytes.substr(8, 4));
  if (text_bytes > bytes.size() - text_begin) return NotNpy("its head is cut short or too long");
  const std::string_view dictionary = bytes.substr(text_begin, text_bytes);
  const auto type = ValueOf(dictionary, "descr");
  const auto order = ValueOf(dictionary, "fortran_order");
  const auto shape = ValueOf(dictionary, "shape");
  if (!type || !order || !shape) return NotNpy("its head lacks descr, fortran_order or shape");
  NpyHead head;
  head.head_bytes = text_begin + text_bytes;
  if (type->starts_with("'<f8'")) {
    head.element_bytes = 8;
  } else if (!type->starts_with("'<f4'")) {
    return NotNpy("its elements are neither float32 nor float64: convert it by astype('float32')");
  }
  if (!order->starts_with("False")) {
    return NotNpy("it is in Fortran order: convert it by numpy.ascontiguousarray");
  }
  if (Status status = ParseShape(*shape, &head); !status.ok()) return status;
  return head;
}

Result<std::vector<float>> ParseVectorText(std::string_view text) {
  const Result<json::value> value = ParseJson(text);
  if (!value) return value.error();
  return VectorOf(*value);
}

Result<VectorItem> ParseVectorLine(std::string_view line) {
  const Result<json::value> value = ParseJson(line);
  if (!value) return value.error();
  const json::object* const object = value->if_object();
  if (object == nullptr) return NotAVector("a line must be an object");
  VectorItem item;
  const json::value* const id = object->if_contains("id");
  if (id != nullptr && id->is_string()) {
    item.id = id->get_string();
  } else if (id != nullptr && id->is_number()) {
    item.id = json::serialize(*id);
  } else {
    return NotAVector("the line has no \"id\" that is a string or a number");
  }
  const json::value* const elements = object->if_contains("vector");
  if (elements == nullptr) return NotAVector("the line has no \"vector\"");
  Result<std::vector<float>> vector = VectorOf(*elements);
  if (!vector) return vector.error();
  item.vector = *std::move(vector);
  if (const json::value* const members = object->if_contains("attributes"); members != nullptr) {
    Result<Attributes> attributes = AttributesOf(*members);
    if (!attributes) return attributes.error();
    item.attributes = *std::move(attributes);
  }
  return item;
}

VectorFile::VectorFile(std::string path, VectorFileFormat format, std::string id_prefix)
    : path_(std::move(path)), format_(format), id_prefix_(std::move(id_prefix)) {}

Result<VectorFile> VectorFile::Open(const std::string& path, VectorFileFormat format,
                                    std::string id_prefix) {
  VectorFile file(path, format, std::move(id_prefix));
  if (format == VectorFileFormat::kNdjson) {
    Result<LineReader> lines = LineReader::Open(path);
    if (!lines) return lines.error();
    file.total_bytes_ = lines->total_bytes();
    file.lines_.emplace(*std::move(lines));
    return file;
  }
  if (Status status = file.OpenArray(); !status.ok()) return status;
  return file;
}

Status VectorFile::OpenArray() {
  file_.open(path_, std::ios::binary);
  std::error_code error;
  total_bytes_ = std::filesystem::file_size(path_, error);
  if (!file_ || error) {
    return Status(StatusCode::kIoError,
                  path_ + " cannot be opened: " + (error ? error.message() : "is it a file?"));
  }
  if (format_ == VectorFileFormat::kFvecs) return Status();
  std::string begin(std::min<uint64_t>(total_bytes_, kNpyHeadBytesMax), '\0');
  file_.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  const Result<NpyHead> head = ParseNpyHead(begin);
  if (!head) return Status(head.code(), path_ + " is " + std::string(head.error().message()));
  head_ = *head;
  const uint64_t row_bytes = head_.dimension * head_.element_bytes;
  const uint64_t bytes = total_bytes_ - head_.head_bytes;
  if (bytes % row_bytes != 0 || bytes / row_bytes != head_.rows) {
    return Refuse("its length does not go with its shape: it is not whole");
  }
  file_.clear();
  file_.seekg(static_cast<std::streamoff>(head_.head_bytes));
  consumed_bytes_ = head_.head_bytes;
  return Status();
}

Status VectorFile::Refuse(const std::string& what) const {
  return Status(StatusCode::kInvalidArgument,
                path_ + ", vector " + std::to_string(row_) + ": " + what);
}

Result<bool> VectorFile::Read(char* bytes, size_t size) {
  file_.read(bytes, static_cast<std::streamsize>(size));
  const auto read = static_cast<size_t>(file_.gcount());
  consumed_bytes_ += read;
  if (file_.bad()) return Status(StatusCode::kIoError, path_ + " cannot be read");
  if (read == 0 && size != 0) return false;
  if (read != size) return Refuse("the file ends within it");
  return true;
}

Result<bool> VectorFile::NextLine(VectorItem* item) {
  std::string_view line;
  do {
    const Result<bool> has_line = lines_->Next(line);
    if (!has_line || !*has_line) return has_line;
  } while (line.empty() || line == "\r");
  consumed_bytes_ = lines_->consumed_bytes();
  Result<VectorItem> parsed = ParseVectorLine(line);
  if (!parsed) {
    return Status(parsed.code(), lines_->position() + ": " + std::string(parsed.error().message()));
  }
  *item = *std::move(parsed);
  item->id.insert(0, id_prefix_);
  return true;
}

Result<bool> VectorFile::NextRow(VectorItem* item) {
  size_t dimension = head_.dimension;
  if (format_ == VectorFileFormat::kFvecs) {
    char size[4];
    Result<bool> has_row = Read(size, sizeof size);
    if (!has_row || !*has_row) return has_row;
    dimension = LittleEndian<uint32_t>({size, sizeof size});
    if (dimension == 0 || dimension > kVectorDimensionMax) {
      return Refuse("it has " + std::to_string(dimension) + " elements; 1 to " +
                    std::to_string(kVectorDimensionMax) + " are possible: is this an .fvecs file?");
    }
  } else if (row_ == head_.rows) {
    return false;
  }
  std::string bytes(dimension * head_.element_bytes, '\0');
  Result<bool> is_read = Read(bytes.data(), bytes.size());
  if (!is_read) return is_read;
  if (!*is_read) return Refuse("the file ends within it");
  item->vector.resize(dimension);
  for (size_t i = 0; i < dimension; ++i) {
    if (head_.element_bytes == 4) {
      std::memcpy(&item->vector[i], bytes.data() + 4 * i, 4);
    } else {
      double element = 0;
      std::memcpy(&element, bytes.data() + 8 * i, 8);
      item->vector[i] = static_cast<float>(element);
    }
  }
  item->id = id_prefix_ + std::to_string(row_);
  item->attributes.clear();
  ++row_;
  return true;
}

Result<bool> VectorFile::Next(VectorItem* item) {
  return format_ == VectorFileFormat::kNdjson ? NextLine(item) : NextRow(item);
}

}  // namespace basalt::tools
