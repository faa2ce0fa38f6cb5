#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "basalt/status.h"

// Composite keys: tuples of typed fields as bytes, whose bytewise order is the order of the tuples.
// A store needs no comparator. docs/key.md has the bytes.
//
//     std::string key;
//     KeyWriter(&key).String("orders").U64(customer).I64(day, KeyOrder::kDescending);
//
//     KeyReader in(key);
//     std::string table;
//     in.ReadString(&table);
//     const uint64_t customer = in.ReadU64();
//     const int64_t day = in.ReadI64();
//     if (!in.Finish().ok()) ...
//
// Order. Tuples are compared field by field, and a tuple sorts before those that it begins. Fields
// of different types are ordered null < bool < integer < double < string < bytes. A descending
// field reverses the order at its place. If one place has both directions, ascending fields sort
// before descending ones.
//
// - null equals null; false < true.
// - Integers have one order, from -2^63 to 2^64 - 1. I64 and U64 write the same bytes for the same
//   number, so that a key does not depend on the integer type that its writer happened to use.
// - Doubles are ordered by value: -infinity < finite < infinity < NaN. Equal numbers are equal
//   keys: -0.0 is written as 0.0, and every NaN as the same NaN.
// - A double never equals an integer: 1.0 sorts after all integers.
// - Strings and bytes are ordered bytewise; both may hold any bytes, zeros too.
//
// A key has exactly one encoding: what KeyReader accepts, KeyWriter writes with the same bytes.

namespace basalt {

/// The direction of one field. The bytes say it, so that a reader need not know it.
enum class KeyOrder : uint8_t { kAscending = 0, kDescending = 1 };

/// What a field of a key holds. kU64 stands for integers above the greatest int64_t only.
enum class KeyType : uint8_t {
  kNull = 0,
  kBool = 1,
  kI64 = 2,
  kU64 = 3,
  kDouble = 4,
  kString = 5,
  kBytes = 6,
};

/// Appends fields to a string. A field costs 1 byte (null, bool, integers from 0 to 95), 2 to 9
/// (other integers), 9 (double), or 2 more than its text, plus one for each byte 0 or 1 in it. The
/// string is the only thing that may allocate: a key that is reused, or reserved, costs nothing. A
/// string that cannot grow throws std::bad_alloc, as its own append does, and keeps the fields that
/// it had.
class KeyWriter {
 public:
  /// Fields go to the end of `key`, which outlives the writer.
  explicit KeyWriter(std::string* key) noexcept : key_(key) {}

  KeyWriter& Null(KeyOrder order = KeyOrder::kAscending);
  KeyWriter& Bool(bool value, KeyOrder order = KeyOrder::kAscending);
  KeyWriter& I64(int64_t value, KeyOrder order = KeyOrder::kAscending);
  KeyWriter& U64(uint64_t value, KeyOrder order = KeyOrder::kAscending);
  KeyWriter& Double(double value, KeyOrder order = KeyOrder::kAscending);
  /// `value` must not be a view into the key that is written.
  KeyWriter& String(std::string_view value, KeyOrder order = KeyOrder::kAscending);
  KeyWriter& Bytes(std::string_view value, KeyOrder order = KeyOrder::kAscending);

  /// The beginning of a field, for PrefixRange alone: it begins exactly the fields whose value
  /// begins with `value`. Nothing may follow it, and it is no key.
  KeyWriter& StringPrefix(std::string_view value, KeyOrder order = KeyOrder::kAscending);
  KeyWriter& BytesPrefix(std::string_view value, KeyOrder order = KeyOrder::kAscending);

 private:
  std::string* key_;
};

/// Reads fields off the front of a key, which outlives it. Either direction is accepted. After the
/// first field that is malformed, or not of the type that was asked for, status() is Corruption,
/// with the offset, and every later read gives zero, or an empty string. One thread at a time.
class KeyReader {
 public:
  explicit KeyReader(std::string_view key) noexcept : key_(key) {}

  /// The type of the next field by its first byte. Nothing at the end, after an error, or where no
  /// field begins.
  std::optional<KeyType> next_type() const noexcept;
  /// The direction of the next field, by its first byte. kAscending at the end.
  KeyOrder next_order() const noexcept;

  void ReadNull() noexcept;
  bool ReadBool() noexcept;
  /// An integer; one that does not fit is an error.
  int64_t ReadI64() noexcept;
  uint64_t ReadU64() noexcept;
  double ReadDouble() noexcept;
  /// Replaces what `value` holds, in its memory if that suffices.
  void ReadString(std::string* value);
  void ReadBytes(std::string* value);
  /// Passes a field of any type, and checks it as a read does.
  void Skip() noexcept;

  /// Where the next field begins. `key.substr(0, position())` is the tuple of the fields so far.
  size_t position() const noexcept { return position_; }
  bool AtEnd() const noexcept { return position_ == key_.size(); }
  /// Ok, or the first error.
  const Status& status() const& noexcept { return status_; }
  Status status() const&& noexcept { return status_; }
  /// The same, but anything left behind the last field that was read is an error, too.
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

/// The least key above every key that begins with `prefix`, the bytes of some fields. A Seek to it
/// passes all of them. For the empty prefix it lies above every tuple.
std::string PrefixSuccessor(std::string_view prefix);

/// The keys of all tuples that begin with the fields in `prefix`, the tuple of just these included:
/// what a scan, or DeleteRange, takes.
KeyRange PrefixRange(std::string_view prefix);

}  // namespace basalt
