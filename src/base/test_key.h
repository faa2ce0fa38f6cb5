#pragma once

#include <cmath>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "basalt/key.h"

// Tuples as plain values, for tests of keys: written, read back, and compared by the rules in
// basalt/key.h without a look at any encoding.

namespace basalt::base {

struct KeyField {
  KeyType type = KeyType::kNull;
  KeyOrder order = KeyOrder::kAscending;
  bool boolean = false;
  int64_t i64 = 0;   ///< kI64
  uint64_t u64 = 0;  ///< kU64; may be small in what is written, never in what is read.
  double number = 0;
  std::string text{};  ///< kString, kBytes
};

using KeyTuple = std::vector<KeyField>;

inline void WriteField(const KeyField& field, std::string* key) {
  KeyWriter out(key);
  switch (field.type) {
    case KeyType::kNull:
      out.Null(field.order);
      break;
    case KeyType::kBool:
      out.Bool(field.boolean, field.order);
      break;
    case KeyType::kI64:
      out.I64(field.i64, field.order);
      break;
    case KeyType::kU64:
      out.U64(field.u64, field.order);
      break;
    case KeyType::kDouble:
      out.Double(field.number, field.order);
      break;
    case KeyType::kString:
      out.String(field.text, field.order);
      break;
    case KeyType::kBytes:
      out.Bytes(field.text, field.order);
      break;
  }
}

inline std::string WriteTuple(const KeyTuple& tuple) {
  std::string key;
  for (const KeyField& field : tuple) WriteField(field, &key);
  return key;
}

/// The next field, of any type. Nothing where there is none; the reader's status says why.
inline std::optional<KeyField> ReadField(KeyReader* in) {
  const std::optional<KeyType> type = in->next_type();
  if (!type) return std::nullopt;
  KeyField field{.type = *type, .order = in->next_order()};
  switch (*type) {
    case KeyType::kNull:
      in->ReadNull();
      break;
    case KeyType::kBool:
      field.boolean = in->ReadBool();
      break;
    case KeyType::kI64:
      field.i64 = in->ReadI64();
      break;
    case KeyType::kU64:
      field.u64 = in->ReadU64();
      break;
    case KeyType::kDouble:
      field.number = in->ReadDouble();
      break;
    case KeyType::kString:
      in->ReadString(&field.text);
      break;
    case KeyType::kBytes:
      in->ReadBytes(&field.text);
      break;
  }
  if (!in->status().ok()) return std::nullopt;
  return field;
}

namespace internal {

inline int TypeRank(KeyType type) {
  return type == KeyType::kU64 ? static_cast<int>(KeyType::kI64) : static_cast<int>(type);
}

inline std::strong_ordering CompareIntegers(const KeyField& a, const KeyField& b) {
  __extension__ using Wide = __int128;
  const auto wide = [](const KeyField& f) {
    return f.type == KeyType::kI64 ? Wide{f.i64} : Wide{f.u64};
  };
  return wide(a) < wide(b)   ? std::strong_ordering::less
         : wide(b) < wide(a) ? std::strong_ordering::greater
                             : std::strong_ordering::equal;
}

inline std::strong_ordering CompareDoubles(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) <=> std::isnan(b);
  return a < b   ? std::strong_ordering::less
         : b < a ? std::strong_ordering::greater
                 : std::strong_ordering::equal;
}

/// As if both were ascending.
inline std::strong_ordering CompareValues(const KeyField& a, const KeyField& b) {
  if (TypeRank(a.type) != TypeRank(b.type)) return TypeRank(a.type) <=> TypeRank(b.type);
  switch (a.type) {
    case KeyType::kNull:
      return std::strong_ordering::equal;
    case KeyType::kBool:
      return a.boolean <=> b.boolean;
    case KeyType::kI64:
    case KeyType::kU64:
      return CompareIntegers(a, b);
    case KeyType::kDouble:
      return CompareDoubles(a.number, b.number);
    case KeyType::kString:
    case KeyType::kBytes:
      return a.text <=> b.text;
  }
  return std::strong_ordering::equal;
}

}  // namespace internal

inline std::strong_ordering CompareFields(const KeyField& a, const KeyField& b) {
  if (a.order != b.order) return a.order <=> b.order;
  return a.order == KeyOrder::kAscending ? internal::CompareValues(a, b)
                                         : internal::CompareValues(b, a);
}

inline std::strong_ordering CompareTuples(const KeyTuple& a, const KeyTuple& b) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    const std::strong_ordering order = CompareFields(a[i], b[i]);
    if (order != std::strong_ordering::equal) return order;
  }
  return a.size() <=> b.size();
}

}  // namespace basalt::base
