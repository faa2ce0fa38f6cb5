#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "basalt/status.h"

// Composite keys: tuples of typed fields as bytes that sort like the tuples. Read KeyWriter first.
// docs/key.md explains them.
//
// Order. Tuples are compared field by field. A tuple sorts before the longer tuples that begin with
// it. Fields of different types are ordered null < bool < integer < double < string < bytes. A
// descending field reverses the order at its place. If fields of both directions occur at one
// place, ascending fields sort before descending ones.
//
// - null equals null; false < true.
// - Integers have one order, from -2^63 to 2^64 - 1. I64 and U64 write the same bytes for the same
//   number, so a key does not depend on the integer type of its writer.
// - Doubles are ordered by value: -infinity < finite < infinity < NaN. Equal numbers are equal
//   keys: -0.0 is written as 0.0, and every NaN as the same NaN.
// - A double never equals an integer: 1.0 sorts after all integers.
// - Strings and bytes are ordered bytewise. Both may contain any bytes, zeros too.
//
// A key has exactly one encoding: KeyWriter writes the same bytes that KeyReader accepts.

namespace basalt {

/// The direction of one field. It is encoded in the key, so that a reader does not need to know it.
enum class KeyOrder : uint8_t { kAscending = 0, kDescending = 1 };

/// The type of a field. kU64 stands only for integers above the greatest int64_t.
enum class KeyType : uint8_t {
  kNull = 0,
  kBool = 1,
  kI64 = 2,
  kU64 = 3,
  kDouble = 4,
  kString = 5,
  kBytes = 6,
};

/// Appends fields to a string. Null, bool and integers from 0 to 95 take 1 byte, other integers 2
/// to 9, doubles 9. Strings and bytes take their length plus 2, and one more for each byte 0 or 1
/// in them. Only the string allocates memory, so a reused or reserved string costs no allocation.
/// If the string cannot grow, std::bad_alloc is thrown, and the string keeps the fields that it
/// had.
class KeyWriter {
 public:
  /// Fields are appended to `key`, which must outlive the writer.
  explicit KeyWriter(std::string* key) noexcept : key_(key) {}

  KeyWriter& Null(KeyOrder order = KeyOrder::kAscending);
  KeyWriter& Bool(bool value, KeyOrder order = KeyOrder::kAscending);
  KeyWriter& I64(int64_t value, KeyOrder order = KeyOrder::kAscending);
  KeyWriter& U64(uint64_t value, KeyOrder order = KeyOrder::kAscending);
  KeyWriter& Double(double value, KeyOrder order = KeyOrder::kAscending);
  /// `value` must not be a view into the key that is written.
  KeyWriter& String(std::string_view value, KeyOrder order = KeyOrder::kAscending);
  KeyWriter& Bytes(std::string_view value, KeyOrder order = KeyOrder::kAscending);

  /// The beginning of a field, for PrefixRange only. It is a prefix of exactly the fields whose
  /// value begins with `value`. Nothing may follow it, and it is not a key.
  KeyWriter& StringPrefix(std::string_view value, KeyOrder order = KeyOrder::kAscending);
  KeyWriter& BytesPrefix(std::string_view value, KeyOrder order = KeyOrder::kAscending);

 private:
  std::string* key_;
};

/// Reads fields from the front of a key, which must outlive the reader. Either direction is
/// accepted. After the first field that is malformed or has another type than requested, status()
/// is Corruption with the offset, and every later read returns zero or an empty string. Used by one
/// thread at a time.
class KeyReader {
 public:
  explicit KeyReader(std::string_view key) noexcept : key_(key) {}

  /// The type of the next field, by its first byte. Nothing at the end, after an error, or if the
  /// byte does not begin a field.
  std::optional<KeyType> next_type() const noexcept;
  /// The direction of the next field, by its first byte. kAscending at the end.
  KeyOrder next_order() const noexcept;

  void ReadNull() noexcept;
  bool ReadBool() noexcept;
  /// An integer. A value that does not fit is an error.
  int64_t ReadI64() noexcept;
  uint64_t ReadU64() noexcept;
  double ReadDouble() noexcept;
  /// Replaces the contents of `value`. Uses its memory if that is large enough.
  void ReadString(std::string* value);
  void ReadBytes(std::string* value);
  /// Skips a field of any type, and checks it as a read does.
  void Skip() noexcept;

  /// Where the next field begins. `key.substr(0, position())` is the tuple of the fields so far.
  size_t position() const noexcept { return position_; }
  bool AtEnd() const noexcept { return position_ == key_.size(); }
  /// Ok, or the first error.
  const Status& status() const& noexcept { return status_; }
  Status status() const&& noexcept { return status_; }
  /// Like status(), but bytes after the last field that was read are also an error.
  Status Finish() const noexcept;

 private:
  uint8_t FirstByte() const noexcept;
  bool Expect(KeyType type) noexcept;
  uint64_t ReadInteger(bool* negative) noexcept;
  std::string_view RawText(bool* has_escapes) noexcept;
  void ReadText(KeyType type, std::string* value);
  void Fail(size_t offset, std::string_view what) noexcept;

  std::string_view key_;
  size_t position_ = 0;
  Status status_;
};

/// A half-open range of keys, [begin, end).
struct KeyRange {
  std::string begin;
  std::string end;
};

/// The least key above every key that begins with `prefix`, which is the bytes of some fields. A
/// Seek to it skips all of these keys. For the empty prefix it is above every tuple.
std::string PrefixSuccessor(std::string_view prefix);

/// The keys of all tuples that begin with the fields in `prefix`, including the tuple of only these
/// fields. Use it for scans and DeleteRange.
KeyRange PrefixRange(std::string_view prefix);

}  // namespace basalt
