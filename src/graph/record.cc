#include "graph/record.h"

#include <bit>
#include <chrono>
#include <cmath>

#include "base/check.h"
#include "base/coding.h"
#include "base/printable_key.h"

namespace basalt::graph {
namespace {

constexpr char kNodeVersion = 1;
constexpr uint8_t kHasWeight = 1;
constexpr uint8_t kHasValidFrom = 2;
constexpr uint8_t kHasValidTo = 4;

enum class ValueType : uint8_t {
  kNull = 0,
  kFalse = 1,
  kTrue = 2,
  kInteger = 3,
  kDouble = 4,
  kString = 5,
  kBytes = 6,
  kTime = 7,
  kList = 8,
};

void AppendVarint(std::string* out, uint64_t value) {
  char bytes[base::kVarintBytesMax];
  out->append(bytes, static_cast<size_t>(base::StoreVarint(bytes, value) - bytes));
}
void AppendSigned(std::string* out, int64_t value) {
  AppendVarint(out, base::ToZigZag(static_cast<uint64_t>(value)));
}
void AppendText(std::string* out, std::string_view text) {
  AppendVarint(out, text.size());
  out->append(text);
}

void AppendValue(const PropertyValue& value, std::string* out);

/// Appends a value by its type.
struct ValueWriter {
  std::string* out;

  void Type(ValueType type) const { *out += static_cast<char>(type); }
  void operator()(std::monostate) const { Type(ValueType::kNull); }
  void operator()(bool value) const { Type(value ? ValueType::kTrue : ValueType::kFalse); }
  void operator()(int64_t value) const {
    Type(ValueType::kInteger);
    AppendSigned(out, value);
  }
  void operator()(double value) const {
    Type(ValueType::kDouble);
    base::Append(out, std::bit_cast<uint64_t>(value));
  }
  void operator()(const std::string& value) const {
    Type(ValueType::kString);
    AppendText(out, value);
  }
  void operator()(const Bytes& value) const {
    Type(ValueType::kBytes);
    AppendText(out, value.bytes);
  }
  void operator()(WallTime value) const {
    Type(ValueType::kTime);
    AppendSigned(out, value.time_since_epoch().count());
  }
  void operator()(const PropertyValue::List& values) const {
    Type(ValueType::kList);
    AppendVarint(out, values.size());
    for (const PropertyValue& value : values) AppendValue(value, out);
  }
};

void AppendValue(const PropertyValue& value, std::string* out) {
  std::visit(ValueWriter{out}, value.variant());
}

void AppendProperties(const PropertyList& properties, std::string* out) {
  AppendVarint(out, properties.size());
  for (const auto& [name, value] : properties) {
    AppendVarint(out, name);
    AppendValue(value, out);
  }
}

/// Reads the parts of records. After the first that is malformed, status() is Corruption and all
/// later ones are zero or empty.
class RecordReader {
 public:
  explicit RecordReader(std::string_view bytes) : in_(bytes) {}

  uint8_t Byte() { return Checked(in_.Read<uint8_t>()); }
  double Double() { return std::bit_cast<double>(Checked(in_.Read<uint64_t>())); }
  uint64_t Varint() {
    const size_t begin = in_.position();
    const uint64_t value = Checked(in_.ReadVarint());
    char shortest[base::kVarintBytesMax];
    const auto size = static_cast<size_t>(base::StoreVarint(shortest, value) - shortest);
    if (status_.ok() && in_.position() - begin != size) Fail("a number is longer than it need be");
    return value;
  }
  int64_t Signed() { return static_cast<int64_t>(base::FromZigZag(Varint())); }
  std::string Text() {
    const uint64_t size = Varint();
    return std::string(Checked(in_.ReadBytes(size)));
  }
  /// A count of parts that take a byte or more each.
  uint64_t Count() {
    const uint64_t count = Varint();
    if (count <= in_.rest().size()) return count;
    Fail("a count is greater than the record");
    return 0;
  }
  /// An id above `least`, which it becomes less one: for ids that ascend.
  uint32_t Ascending(uint64_t* least) {
    const uint64_t id = Varint();
    if (status_.ok() && (id < *least || id > UINT32_MAX)) Fail("an id is out of order");
    *least = id + 1;
    return static_cast<uint32_t>(id);
  }
  PropertyValue Value(int depth);
  PropertyList ReadProperties();
  EdgeHead Head();

  bool ok() const { return status_.ok(); }
  Status status() const { return status_; }
  Status Finish() {
    if (status_.ok() && !in_.AtEnd()) Fail("bytes are left at its end");
    return status_;
  }
  void Fail(std::string_view what) {
    if (!status_.ok()) return;
    status_ = Status(StatusCode::kCorruption, "a record of a graph is malformed at byte " +
                                                  std::to_string(in_.position()) + ": " +
                                                  std::string(what) + "; run basalt graph verify");
  }

 private:
  template <class T>
  T Checked(T value) {
    if (!in_.ok()) Fail("it ends too early");
    return value;
  }
  base::Decoder in_;
  Status status_;
};

PropertyValue RecordReader::Value(int depth) {
  switch (static_cast<ValueType>(Byte())) {
    case ValueType::kNull:
      return {};
    case ValueType::kFalse:
      return false;
    case ValueType::kTrue:
      return true;
    case ValueType::kInteger:
      return Signed();
    case ValueType::kDouble:
      return Double();
    case ValueType::kString:
      return Text();
    case ValueType::kBytes:
      return Bytes{Text()};
    case ValueType::kTime:
      return WallTime(std::chrono::milliseconds(Signed()));
    case ValueType::kList:
      break;
    default:
      Fail("a value is of an unknown type");
      return {};
  }
  if (depth == kPropertyDepthMax) {
    Fail("lists are nested too deeply");
    return {};
  }
  PropertyValue::List values;
  for (uint64_t left = Count(); left > 0 && ok(); --left) values.push_back(Value(depth + 1));
  return values;
}

PropertyList RecordReader::ReadProperties() {
  PropertyList properties;
  uint64_t least = 0;
  for (uint64_t left = Count(); left > 0 && ok(); --left) {
    const uint32_t name = Ascending(&least);
    properties.emplace_back(name, Value(0));
  }
  return properties;
}

EdgeHead RecordReader::Head() {
  EdgeHead head;
  const uint8_t flags = Byte();
  if (flags > (kHasWeight | kHasValidFrom | kHasValidTo)) Fail("unknown flags of an edge");
  if ((flags & kHasWeight) != 0) head.weight = Double();
  if (std::signbit(head.weight) || !std::isfinite(head.weight))
    Fail("a weight is not finite or negative");
  if ((flags & kHasWeight) != 0 && head.weight == 1) Fail("a weight of 1 is written");
  if ((flags & kHasValidFrom) != 0) head.valid_from_ms = Signed();
  if ((flags & kHasValidTo) != 0) head.valid_to_ms = Signed();
  return head;
}

bool IsTooDeep(const PropertyValue& value, int depth) {
  const auto* list = value.As<PropertyValue::List>();
  if (list == nullptr) return false;
  if (depth == kPropertyDepthMax) return true;
  for (const PropertyValue& each : *list) {
    if (IsTooDeep(each, depth + 1)) return true;
  }
  return false;
}

}  // namespace

Status CheckProperties(const Properties& properties) {
  for (const auto& [name, value] : properties) {
    if (!IsTooDeep(value, 0)) continue;
    return Status(StatusCode::kInvalidArgument,
                  "the lists of the property " + base::PrintableKey(name) +
                      " are nested more than " + std::to_string(kPropertyDepthMax) + " deep");
  }
  return {};
}

std::string EncodeNode(const NodeRecord& record) {
  std::string out(1, kNodeVersion);
  AppendText(&out, record.external_id);
  AppendVarint(&out, record.labels.size());
  for (const uint32_t label : record.labels) AppendVarint(&out, label);
  AppendProperties(record.properties, &out);
  return out;
}

std::string EncodeHead(const EdgeHead& head) {
  // -0.0 is a weight, too, and is written as 0.
  const double weight = head.weight == 0 ? 0 : head.weight;
  const int flags = (weight != 1 ? kHasWeight : 0) | (head.valid_from_ms ? kHasValidFrom : 0) |
                    (head.valid_to_ms ? kHasValidTo : 0);
  std::string out(1, static_cast<char>(flags));
  if (weight != 1) base::Append(&out, std::bit_cast<uint64_t>(weight));
  if (head.valid_from_ms) AppendSigned(&out, *head.valid_from_ms);
  if (head.valid_to_ms) AppendSigned(&out, *head.valid_to_ms);
  return out;
}

std::string EncodeEdge(const EdgeRecord& record) {
  std::string out = EncodeHead(record.head);
  AppendProperties(record.properties, &out);
  return out;
}

Result<NodeRecord> DecodeNode(std::string_view bytes) {
  RecordReader in(bytes);
  if (in.Byte() != kNodeVersion) in.Fail("an unknown version");
  NodeRecord record{.external_id = in.Text()};
  uint64_t least = 0;
  for (uint64_t left = in.Count(); left > 0 && in.ok(); --left) {
    record.labels.push_back(in.Ascending(&least));
  }
  record.properties = in.ReadProperties();
  BASALT_RETURN_IF_ERROR(in.Finish());
  return record;
}

Result<EdgeHead> DecodeHead(std::string_view bytes) {
  RecordReader in(bytes);
  const EdgeHead head = in.Head();
  BASALT_RETURN_IF_ERROR(in.status());
  return head;
}

Result<EdgeRecord> DecodeEdge(std::string_view bytes) {
  RecordReader in(bytes);
  EdgeRecord record{.head = in.Head()};
  record.properties = in.ReadProperties();
  BASALT_RETURN_IF_ERROR(in.Finish());
  return record;
}

}  // namespace basalt::graph
