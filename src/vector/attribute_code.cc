#include "vector/attribute_code.h"

#include <bit>

#include "base/coding.h"

namespace basalt::vector {
namespace {

enum class AttributeType : uint8_t {
  kFalse = 0,
  kTrue = 1,
  kInteger = 2,
  kDouble = 3,
  kString = 4
};

void AppendVarint(std::string* out, uint64_t value) {
  char bytes[base::kVarintBytesMax];
  out->append(bytes, static_cast<size_t>(base::StoreVarint(bytes, value) - bytes));
}

void AppendType(std::string* out, AttributeType type) { out->push_back(static_cast<char>(type)); }

struct ValueEncoder {
  std::string* out;
  void operator()(bool value) const {
    AppendType(out, value ? AttributeType::kTrue : AttributeType::kFalse);
  }
  void operator()(int64_t value) const {
    AppendType(out, AttributeType::kInteger);
    base::Append(out, static_cast<uint64_t>(value));
  }
  void operator()(double value) const {
    AppendType(out, AttributeType::kDouble);
    base::Append(out, std::bit_cast<uint64_t>(value));
  }
  void operator()(const std::string& value) const {
    AppendType(out, AttributeType::kString);
    AppendVarint(out, value.size());
    out->append(value);
  }
};

/// Walks over encoded attributes.
class AttributeCursor {
 public:
  explicit AttributeCursor(std::string_view bytes) noexcept
      : decoder_(bytes), left_(decoder_.ReadVarint()) {}

  /// False: there is no further one, or it is not readable.
  bool Next() noexcept {
    if (!decoder_.ok() || left_ == 0) return false;
    --left_;
    name_ = decoder_.ReadBytes(decoder_.ReadVarint());
    switch (static_cast<AttributeType>(decoder_.Read<uint8_t>())) {
      case AttributeType::kFalse:
        value_ = false;
        break;
      case AttributeType::kTrue:
        value_ = true;
        break;
      case AttributeType::kInteger:
        value_ = static_cast<int64_t>(decoder_.Read<uint64_t>());
        break;
      case AttributeType::kDouble:
        value_ = std::bit_cast<double>(decoder_.Read<uint64_t>());
        break;
      case AttributeType::kString:
        value_ = decoder_.ReadBytes(decoder_.ReadVarint());
        break;
      default:
        is_known_ = false;
        return false;
    }
    return decoder_.ok();
  }

  std::string_view name() const noexcept { return name_; }
  const AttributeView& value() const noexcept { return value_; }
  /// After the last Next: whether all bytes were read, and nothing else.
  bool IsWhole() const noexcept {
    return is_known_ && decoder_.ok() && left_ == 0 && decoder_.AtEnd();
  }
  size_t position() const noexcept { return decoder_.position(); }

 private:
  base::Decoder decoder_;
  uint64_t left_;
  bool is_known_ = true;
  std::string_view name_;
  AttributeView value_;
};

Status CorruptAttributes(size_t position) {
  return Status(StatusCode::kCorruption, "the attributes are malformed: byte " +
                                             std::to_string(position) +
                                             " is unexpected. Write the record again");
}

/// Calls `visit` for each attribute.
template <class Visit>
Status ForEachAttribute(std::string_view bytes, const Visit& visit) {
  AttributeCursor cursor(bytes);
  std::string_view last_name;
  for (bool is_first = true; cursor.Next(); is_first = false) {
    if (!is_first && cursor.name() <= last_name) return CorruptAttributes(cursor.position());
    last_name = cursor.name();
    visit(cursor.name(), cursor.value());
  }
  return cursor.IsWhole() ? Status() : CorruptAttributes(cursor.position());
}

AttributeValue ToOwned(const AttributeView& view) {
  return std::visit(
      []<class T>(const T& value) -> AttributeValue {
        if constexpr (std::is_same_v<T, std::string_view>) {
          return std::string(value);
        } else {
          return value;
        }
      },
      view);
}

}  // namespace

Result<std::string> EncodeAttributes(const Attributes& attributes) {
  std::string out;
  AppendVarint(&out, attributes.size());
  for (const auto& [name, value] : attributes) {
    AppendVarint(&out, name.size());
    out += name;
    std::visit(ValueEncoder{&out}, value);
    if (out.size() > kAttributeBytesMax) {
      return Status(StatusCode::kInvalidArgument,
                    "attributes of one record take more than " +
                        std::to_string(kAttributeBytesMax) +
                        " bytes: keep large values in records of their own");
    }
  }
  return out;
}

Result<Attributes> DecodeAttributes(std::string_view bytes) {
  Attributes attributes;
  const Status status =
      ForEachAttribute(bytes, [&](std::string_view name, const AttributeView& value) {
        attributes.emplace_hint(attributes.end(), name, ToOwned(value));
      });
  if (!status.ok()) return status;
  return attributes;
}

Status ValidateAttributes(std::string_view bytes) {
  return ForEachAttribute(bytes, [](std::string_view, const AttributeView&) {});
}

std::optional<AttributeView> FindAttribute(std::string_view bytes, std::string_view name) noexcept {
  AttributeCursor cursor(bytes);
  while (cursor.Next()) {
    if (cursor.name() == name) return cursor.value();
    if (cursor.name() > name) break;
  }
  return std::nullopt;
}

}  // namespace basalt::vector
