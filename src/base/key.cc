#include "basalt/key.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/coding.h"
#include "base/out_of_memory.h"

// The bytes of a field, ascending (docs/key.md): a type byte below 0x80, then what the type needs.
// A descending field is the complement of all of these bytes. No field begins another one, so the
// first byte in which two tuples differ lies in the first field in which they differ; there the
// complement reverses the order.

namespace basalt {
namespace {

constexpr uint8_t kNullByte = 0x01;
constexpr uint8_t kFalseByte = 0x02;
constexpr uint8_t kTrueByte = 0x03;
// Integers: 0x08 to 0x0F negative in 8 to 1 bytes, 0x10 to 0x6F are 0 to 95, 0x70 to 0x77 larger
// ones in 1 to 8 bytes.
constexpr uint8_t kIntegersBegin = 0x08;
constexpr uint8_t kSmallBegin = 0x10;
constexpr uint8_t kLargeBegin = 0x70;
constexpr uint8_t kIntegersEnd = 0x78;
constexpr uint8_t kDoubleByte = 0x78;
constexpr uint8_t kStringByte = 0x79;
constexpr uint8_t kBytesByte = 0x7A;

constexpr uint64_t kSmallEnd = kLargeBegin - kSmallBegin;
constexpr uint8_t kDescendingBit = 0x80;
constexpr uint64_t kSignBit = uint64_t{1} << 63;

// Text ends with kTextEnd. In it, the bytes 0 and 1 are written as kEscape and themselves plus one.
constexpr uint8_t kTextEnd = 0x00;
constexpr uint8_t kEscape = 0x01;

constexpr uint64_t MaskOf(KeyOrder order) noexcept {
  return order == KeyOrder::kDescending ? UINT64_MAX : 0;
}

constexpr char CharOf(uint64_t byte) noexcept { return static_cast<char>(byte & 0xFF); }

/// The type byte and the last `count` bytes of `value`, the highest first.
void AppendNumber(std::string* key, uint8_t type, uint64_t value, size_t count, KeyOrder order) {
  constexpr size_t kFieldBytesMax = 9;
  const uint64_t mask = MaskOf(order);
  const size_t before = key->size();
  const auto write = [&](char* out) noexcept {
    out[0] = CharOf(type ^ mask);
    // A count of 0 has no bytes; it must not shift by 64.
    base::Store(out + 1, std::byteswap((value << 8 * (7 - (count - 1) % 8)) ^ mask));
    return before + 1 + count;
  };
  if (key->capacity() - before >= kFieldBytesMax) {  // Without a copy of unknown length.
    key->resize_and_overwrite(before + kFieldBytesMax,
                              [&](char* bytes, size_t) noexcept { return write(bytes + before); });
  } else {
    char field[kFieldBytesMax];
    write(field);
    key->append(field, 1 + count);
  }
}

size_t BytesOf(uint64_t value) noexcept { return (std::bit_width(value) + 7U) / 8; }

/// The top bit of each byte that is neither 0 nor 1.
constexpr uint64_t PlainBytes(uint64_t bytes) noexcept {
  constexpr uint64_t kLowBits = 0x7F7F'7F7F'7F7F'7F7F;
  const uint64_t rest = bytes & ~0x0101'0101'0101'0101;
  return (((rest & kLowBits) + kLowBits) | rest) & ~kLowBits;
}

/// How many of the bytes are 0 or 1.
size_t CountEscapes(std::string_view text) noexcept {
  size_t plain = 0;
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    plain += static_cast<size_t>(std::popcount(PlainBytes(base::Load<uint64_t>(text.data() + at))));
  }
  size_t count = at - plain;
  for (; at < text.size(); ++at) count += static_cast<uint8_t>(text[at]) <= kEscape;
  return count;
}

/// Where from `at` on the first byte is that, under the mask, is 0 or 1; the size: nowhere.
size_t FindEscape(std::string_view text, size_t at, uint64_t mask) noexcept {
  for (; at + 8 <= text.size(); at += 8) {
    const uint64_t plain = PlainBytes(base::Load<uint64_t>(text.data() + at) ^ mask);
    const uint64_t others = ~plain & 0x8080'8080'8080'8080;
    if (others != 0) return at + static_cast<size_t>(std::countr_zero(others)) / 8;
  }
  while (at < text.size() && (static_cast<uint8_t>(text[at]) ^ (mask & 0xFF)) > kEscape) ++at;
  return at;
}

char* WriteEscaped(std::string_view text, char* out) noexcept {
  for (const char byte : text) {
    if (static_cast<uint8_t>(byte) <= kEscape) {
      *out++ = CharOf(kEscape);
      *out++ = CharOf(static_cast<uint8_t>(byte) + 1U);
    } else {
      *out++ = byte;
    }
  }
  return out;
}

void Complement(char* bytes, size_t size) noexcept {
  for (size_t i = 0; i < size; ++i) bytes[i] = CharOf(~static_cast<unsigned>(bytes[i]));
}

void AppendText(std::string* key, uint8_t type, std::string_view text, KeyOrder order, bool ends) {
  const size_t before = key->size();
  const size_t escapes = CountEscapes(text);
  const size_t after = before + 1 + text.size() + escapes + (ends ? 1 : 0);
  key->resize_and_overwrite(after, [&](char* bytes, size_t) noexcept {
    char* out = bytes + before;
    *out++ = CharOf(type);
    if (escapes != 0) {
      out = WriteEscaped(text, out);
    } else if (!text.empty()) {
      std::memcpy(out, text.data(), text.size());
      out += text.size();
    }
    if (ends) *out = CharOf(kTextEnd);
    if (order == KeyOrder::kDescending) Complement(bytes + before, after - before);
    return after;
  });
}

/// Undoes WriteEscaped in place; what it is given was checked.
void RemoveEscapes(std::string* text) noexcept {
  size_t to = 0;
  for (size_t from = 0; from < text->size(); ++from) {
    const bool is_escape = (*text)[from] == CharOf(kEscape);
    if (is_escape) ++from;
    const auto byte = static_cast<uint8_t>((*text)[from]);
    (*text)[to++] = CharOf(is_escape ? byte - 1U : byte);
  }
  text->resize(to);
}

constexpr std::array<std::string_view, 7> kTypeNames = {
    "null", "a bool", "an integer", "an integer", "a double", "a string", "bytes"};

}  // namespace

KeyWriter& KeyWriter::Null(KeyOrder order) {
  AppendNumber(key_, kNullByte, 0, 0, order);
  return *this;
}

KeyWriter& KeyWriter::Bool(bool value, KeyOrder order) {
  AppendNumber(key_, value ? kTrueByte : kFalseByte, 0, 0, order);
  return *this;
}

KeyWriter& KeyWriter::I64(int64_t value, KeyOrder order) {
  if (value >= 0) return U64(static_cast<uint64_t>(value), order);
  const auto bits = static_cast<uint64_t>(value);
  const size_t count = value == -1 ? 1 : BytesOf(~bits);
  AppendNumber(key_, static_cast<uint8_t>(kSmallBegin - count), bits, count, order);
  return *this;
}

KeyWriter& KeyWriter::U64(uint64_t value, KeyOrder order) {
  if (value < kSmallEnd) {
    AppendNumber(key_, static_cast<uint8_t>(kSmallBegin + value), 0, 0, order);
  } else {
    const size_t count = BytesOf(value);
    AppendNumber(key_, static_cast<uint8_t>(kLargeBegin - 1 + count), value, count, order);
  }
  return *this;
}

KeyWriter& KeyWriter::Double(double value, KeyOrder order) {
  if (value == 0) value = 0;  // -0.0 is equal.
  if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
  const auto bits = std::bit_cast<uint64_t>(value);
  AppendNumber(key_, kDoubleByte, (bits & kSignBit) != 0 ? ~bits : bits | kSignBit, 8, order);
  return *this;
}

KeyWriter& KeyWriter::String(std::string_view value, KeyOrder order) {
  AppendText(key_, kStringByte, value, order, true);
  return *this;
}

KeyWriter& KeyWriter::Bytes(std::string_view value, KeyOrder order) {
  AppendText(key_, kBytesByte, value, order, true);
  return *this;
}

KeyWriter& KeyWriter::StringPrefix(std::string_view value, KeyOrder order) {
  AppendText(key_, kStringByte, value, order, false);
  return *this;
}

KeyWriter& KeyWriter::BytesPrefix(std::string_view value, KeyOrder order) {
  AppendText(key_, kBytesByte, value, order, false);
  return *this;
}

/// The next field's type byte as if it were ascending; 0, which no type has, where there is none.
uint8_t KeyReader::FirstByte() const noexcept {
  if (AtEnd() || !status_.ok()) return 0;
  const auto byte = static_cast<uint8_t>(key_[position_]);
  return byte < kDescendingBit ? byte : static_cast<uint8_t>(~byte);
}

KeyOrder KeyReader::next_order() const noexcept {
  const bool descending = !AtEnd() && static_cast<uint8_t>(key_[position_]) >= kDescendingBit;
  return descending ? KeyOrder::kDescending : KeyOrder::kAscending;
}

std::optional<KeyType> KeyReader::next_type() const noexcept {
  const uint8_t byte = FirstByte();
  switch (byte) {
    case kNullByte:
      return KeyType::kNull;
    case kFalseByte:
    case kTrueByte:
      return KeyType::kBool;
    case kDoubleByte:
      return KeyType::kDouble;
    case kStringByte:
      return KeyType::kString;
    case kBytesByte:
      return KeyType::kBytes;
    default:
      break;
  }
  if (byte < kIntegersBegin || byte >= kIntegersEnd) return std::nullopt;
  if (byte != kIntegersEnd - 1 || position_ + 1 == key_.size()) return KeyType::kI64;
  const uint64_t top = static_cast<uint8_t>(key_[position_ + 1]) ^ MaskOf(next_order());
  return (top & 0x80) != 0 ? KeyType::kU64 : KeyType::kI64;
}

void KeyReader::Fail(size_t offset, std::string_view what) noexcept {
  if (!status_.ok()) return;
  status_ = base::ErrorThatSays(StatusCode::kCorruption, [&] {
    return "reading a key, offset " + std::to_string(offset) + ": " + std::string(what);
  });
}

/// Whether the next field is of that type, or else an error.
bool KeyReader::Expect(KeyType type) noexcept {
  const std::optional<KeyType> found = next_type();
  const auto is_integer = [](KeyType t) { return t == KeyType::kI64 || t == KeyType::kU64; };
  if (found && (*found == type || (is_integer(*found) && is_integer(type)))) return true;
  if (!status_.ok()) return false;
  status_ = base::ErrorThatSays(StatusCode::kCorruption, [&] {
    const std::string_view there = AtEnd()  ? "the end"
                                   : !found ? "no field"
                                            : kTypeNames[static_cast<size_t>(*found)];
    return "reading a key, offset " + std::to_string(position_) + ": expected " +
           std::string(kTypeNames[static_cast<size_t>(type)]) + ", found " + std::string(there);
  });
  return false;
}

void KeyReader::ReadNull() noexcept {
  if (Expect(KeyType::kNull)) ++position_;
}

bool KeyReader::ReadBool() noexcept {
  if (!Expect(KeyType::kBool)) return false;
  const bool value = FirstByte() == kTrueByte;
  ++position_;
  return value;
}

/// The integer that stands here, as 64 bits and a sign. Refuses those that are longer than needed,
/// and those below the least int64_t.
uint64_t KeyReader::ReadInteger(bool* negative) noexcept {
  *negative = false;
  const uint8_t type = FirstByte();
  if (type < kIntegersBegin || type >= kIntegersEnd) {
    Expect(KeyType::kI64);
    return 0;
  }
  if (type >= kSmallBegin && type < kLargeBegin) {
    ++position_;
    return type - uint64_t{kSmallBegin};
  }
  *negative = type < kSmallBegin;
  const size_t count = *negative ? kSmallBegin - size_t{type} : type - size_t{kLargeBegin} + 1;
  const size_t left = key_.size() - position_ - 1;
  if (left < count) {
    Fail(position_, "an integer is cut off");
    return 0;
  }
  uint64_t bytes = 0;  // Complemented if negative, so that the bytes that are cut are 0.
  const char* const from = key_.data() + position_ + 1;
  if (left >= sizeof bytes) {
    bytes = base::Load<uint64_t>(from);
  } else {
    std::memcpy(&bytes, from, count);
  }
  bytes = (std::byteswap(bytes) ^ MaskOf(next_order()) ^ (*negative ? UINT64_MAX : 0)) >>
          8 * (sizeof bytes - count);
  const bool minimal = *negative ? count == 1 || BytesOf(bytes) == count
                                 : bytes >= kSmallEnd && BytesOf(bytes) == count;
  if (!minimal || (*negative && bytes > INT64_MAX)) {
    Fail(position_, minimal ? "an integer is below the least i64"
                            : "an integer takes more bytes than it needs");
    return 0;
  }
  position_ += 1 + count;
  return *negative ? ~bytes : bytes;
}

int64_t KeyReader::ReadI64() noexcept {
  const size_t begin = position_;
  bool negative;
  const uint64_t value = ReadInteger(&negative);
  if (!negative && value > INT64_MAX) {
    position_ = begin;
    Fail(begin, "an integer is above the greatest i64");
    return 0;
  }
  return static_cast<int64_t>(value);
}

uint64_t KeyReader::ReadU64() noexcept {
  const size_t begin = position_;
  bool negative;
  const uint64_t value = ReadInteger(&negative);
  if (negative) {
    position_ = begin;
    Fail(begin, "an integer is negative, and no u64");
    return 0;
  }
  return value;
}

double KeyReader::ReadDouble() noexcept {
  if (!Expect(KeyType::kDouble)) return 0;
  if (key_.size() - position_ < 9) {
    Fail(position_, "a double is cut off");
    return 0;
  }
  const uint64_t stored =
      std::byteswap(base::Load<uint64_t>(key_.data() + position_ + 1)) ^ MaskOf(next_order());
  const uint64_t bits = (stored & kSignBit) != 0 ? stored ^ kSignBit : ~stored;
  const auto value = std::bit_cast<double>(bits);
  const bool is_other_nan =
      std::isnan(value) &&
      bits != std::bit_cast<uint64_t>(std::numeric_limits<double>::quiet_NaN());
  if (bits == kSignBit || is_other_nan) {
    Fail(position_, "a double is -0.0, or a NaN that is not the one in use");
    return 0;
  }
  position_ += 9;
  return value;
}

/// The text that stands here, without its type byte and its end, as it is written.
std::string_view KeyReader::RawText(bool* has_escapes) noexcept {
  const uint64_t mask = MaskOf(next_order());
  const auto byte = [&](size_t at) { return static_cast<uint8_t>(key_[at]) ^ (mask & 0xFF); };
  const size_t begin = position_ + 1;
  *has_escapes = false;
  size_t at = FindEscape(key_, begin, mask);
  while (at < key_.size() && byte(at) == kEscape) {
    const bool is_good = at + 1 < key_.size() && byte(at + 1) - kEscape <= 1;
    if (!is_good) {
      Fail(at, "a string has a malformed escape");
      return {};
    }
    *has_escapes = true;
    at = FindEscape(key_, at + 2, mask);
  }
  if (at >= key_.size()) {
    Fail(position_, "a string has no end");
    return {};
  }
  return key_.substr(begin, at - begin);
}

void KeyReader::ReadText(KeyType type, std::string* value) {
  value->clear();
  if (!Expect(type)) return;
  bool has_escapes;
  const std::string_view raw = RawText(&has_escapes);
  if (!status_.ok()) return;
  value->assign(raw);
  if (next_order() == KeyOrder::kDescending) Complement(value->data(), value->size());
  if (has_escapes) RemoveEscapes(value);
  position_ += 1 + raw.size() + 1;
}

void KeyReader::ReadString(std::string* value) { ReadText(KeyType::kString, value); }

void KeyReader::ReadBytes(std::string* value) { ReadText(KeyType::kBytes, value); }

void KeyReader::Skip() noexcept {
  const std::optional<KeyType> type = next_type();
  if (!type) {
    Fail(position_, AtEnd() ? "expected a field, found the end" : "no field begins here");
    return;
  }
  bool negative;
  switch (*type) {
    case KeyType::kNull:
    case KeyType::kBool:
      ++position_;
      break;
    case KeyType::kI64:
    case KeyType::kU64:
      static_cast<void>(ReadInteger(&negative));
      break;
    case KeyType::kDouble:
      static_cast<void>(ReadDouble());
      break;
    case KeyType::kString:
    case KeyType::kBytes: {
      bool has_escapes;
      const size_t size = RawText(&has_escapes).size();
      if (status_.ok()) position_ += 1 + size + 1;
      break;
    }
  }
}

Status KeyReader::Finish() const noexcept {
  if (!status_.ok() || AtEnd()) return status_;
  return base::ErrorThatSays(StatusCode::kCorruption, [&] {
    return "reading a key, offset " + std::to_string(position_) + ": expected the end";
  });
}

std::string PrefixSuccessor(std::string_view prefix) {
  // No type byte is 0xFF, so that only the empty prefix has nothing to increment.
  const size_t last = prefix.find_last_not_of('\xFF');
  if (last == prefix.npos) return std::string(prefix.size() + 1, '\xFF');
  std::string successor(prefix.substr(0, last + 1));
  successor.back() = CharOf(static_cast<uint8_t>(successor.back()) + 1U);
  return successor;
}

KeyRange PrefixRange(std::string_view prefix) {
  return {std::string(prefix), PrefixSuccessor(prefix)};
}

}  // namespace basalt
