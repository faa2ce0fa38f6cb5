#include "basalt/key.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/test_key.h"

namespace basalt {
namespace {

using base::KeyField;
using base::KeyTuple;
using std::string_literals::operator""s;

constexpr KeyOrder kUp = KeyOrder::kAscending;
constexpr KeyOrder kDown = KeyOrder::kDescending;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// In [low, high). RapidCheck's own generator leaves out large values where it makes small cases.
template <class Number>
rc::Gen<Number> Uniform(Number low, Number high) {
  return rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high));
}

/// Few bytes, so that common beginnings, zeros and escapes are frequent.
rc::Gen<std::string> AnyText() {
  const auto byte = rc::gen::element('\0', '\1', '\2', 'a', '\xFD', '\xFE', '\xFF');
  return rc::gen::mapcat(Uniform<size_t>(0, 12), [byte](size_t size) {
    return rc::gen::container<std::string>(size, byte);
  });
}

rc::Gen<uint64_t> AnyInteger() {
  // Around the powers of two, where the number of bytes changes.
  return rc::gen::map(rc::gen::tuple(Uniform(0, 64), Uniform(-2, 3), rc::gen::arbitrary<bool>()),
                      [](const std::tuple<int, int, bool>& parts) {
                        const auto [bit, step, negate] = parts;
                        const uint64_t value =
                            (uint64_t{1} << bit) + static_cast<uint64_t>(int64_t{step});
                        return negate ? -value : value;
                      });
}

rc::Gen<double> AnyDouble() {
  return rc::gen::oneOf(
      rc::gen::element(0.0, -0.0, 1.0, -1.0, kInfinity, -kInfinity, kNan, -kNan,
                       std::numeric_limits<double>::denorm_min(),
                       -std::numeric_limits<double>::denorm_min(),
                       std::numeric_limits<double>::max(), std::numeric_limits<double>::lowest()),
      rc::gen::map(rc::gen::arbitrary<uint64_t>(),
                   [](uint64_t bits) { return std::bit_cast<double>(bits); }));
}

rc::Gen<KeyField> AnyField() {
  return rc::gen::exec([] {
    KeyField field;
    field.type = static_cast<KeyType>(*Uniform(0, 7));
    field.order = *rc::gen::arbitrary<bool>() ? kDown : kUp;
    switch (field.type) {
      case KeyType::kNull:
        break;
      case KeyType::kBool:
        field.boolean = *rc::gen::arbitrary<bool>();
        break;
      case KeyType::kI64:
        field.i64 = static_cast<int64_t>(*AnyInteger());
        break;
      case KeyType::kU64:
        field.u64 = *AnyInteger();
        break;
      case KeyType::kDouble:
        field.number = *AnyDouble();
        break;
      case KeyType::kString:
      case KeyType::kBytes:
        field.text = *AnyText();
        break;
    }
    return field;
  });
}

rc::Gen<KeyTuple> AnyTuple() {
  return rc::gen::mapcat(Uniform<size_t>(0, 5), [](size_t fields) {
    return rc::gen::container<KeyTuple>(fields, AnyField());
  });
}

/// A tuple that shares its first fields with `tuple`; what it has behind them may differ in the
/// value alone.
rc::Gen<KeyTuple> TupleNear(const KeyTuple& tuple) {
  return rc::gen::exec([tuple] {
    const auto common = *Uniform<size_t>(0, tuple.size() + 1);
    KeyTuple near(tuple.begin(), tuple.begin() + static_cast<ptrdiff_t>(common));
    KeyTuple rest = *AnyTuple();
    if (!rest.empty() && common < tuple.size()) {
      rest.front().order = tuple[common].order;
      if (rest.front().text.empty() || *rc::gen::arbitrary<bool>()) {
        rest.front().type = tuple[common].type;
        rest.front().text = tuple[common].text + rest.front().text;
      }
    }
    near.insert(near.end(), rest.begin(), rest.end());
    return near;
  });
}

RC_GTEST_PROP(Key, BytesAreOrderedAsTuplesAre, ()) {
  std::vector<KeyTuple> tuples = {*AnyTuple()};
  while (tuples.size() < 40) {
    const KeyTuple& near = tuples[*Uniform<size_t>(0, tuples.size())];
    tuples.push_back(*rc::gen::noShrink(TupleNear(near)));
  }
  std::vector<std::string> keys;
  for (const KeyTuple& tuple : tuples) keys.push_back(base::WriteTuple(tuple));
  for (size_t a = 0; a < tuples.size(); ++a) {
    for (size_t b = 0; b < tuples.size(); ++b) {
      RC_ASSERT((keys[a] <=> keys[b]) == base::CompareTuples(tuples[a], tuples[b]));
    }
  }
}

RC_GTEST_PROP(Key, WhatIsWrittenIsReadAndNothingElseIs, ()) {
  const KeyTuple tuple = *AnyTuple();
  const std::string key = base::WriteTuple(tuple);
  KeyReader in(key);
  KeyReader skipping(key);
  for (const KeyField& field : tuple) {
    const auto read = base::ReadField(&in);
    RC_ASSERT(read.has_value());
    RC_ASSERT(base::CompareFields(*read, field) == std::strong_ordering::equal);
    skipping.Skip();
    RC_ASSERT(skipping.position() == in.position());
  }
  RC_ASSERT(in.Finish().ok());
  RC_ASSERT(skipping.Finish().ok());
  // A cut lies between two fields, or in one, which is an error there.
  for (size_t size = 0; size < key.size(); ++size) {
    KeyReader cut(std::string_view(key).substr(0, size));
    KeyTuple fields;
    while (auto field = base::ReadField(&cut)) fields.push_back(*std::move(field));
    RC_ASSERT(cut.position() == base::WriteTuple(fields).size());
    RC_ASSERT(cut.AtEnd() == cut.Finish().ok());
  }
}

RC_GTEST_PROP(Key, PrefixRangeHoldsExactlyTheTuplesThatBeginWithIt, ()) {
  const KeyTuple prefix = *AnyTuple();
  const KeyTuple tuple = *TupleNear(prefix);
  const KeyRange range = PrefixRange(base::WriteTuple(prefix));
  const std::string key = base::WriteTuple(tuple);
  const bool begins =
      tuple.size() >= prefix.size() &&
      base::CompareTuples(
          prefix, KeyTuple(tuple.begin(), tuple.begin() + static_cast<ptrdiff_t>(prefix.size()))) ==
          std::strong_ordering::equal;
  RC_ASSERT((range.begin <= key && key < range.end) == begins);
}

RC_GTEST_PROP(Key, StringPrefixRangeHoldsExactlyTheFieldsThatBeginWithIt, ()) {
  const KeyTuple before = *AnyTuple();
  const std::string start = *AnyText();
  const std::string text = *rc::gen::arbitrary<bool>() ? start + *AnyText() : *AnyText();
  const KeyOrder order = *rc::gen::element(kUp, kDown);
  const bool is_string = *rc::gen::arbitrary<bool>();

  std::string prefix = base::WriteTuple(before);
  std::string key = prefix;
  if (is_string) {
    KeyWriter(&prefix).StringPrefix(start, order);
    KeyWriter(&key).String(text, order);
  } else {
    KeyWriter(&prefix).BytesPrefix(start, order);
    KeyWriter(&key).Bytes(text, order);
  }
  const std::string end = PrefixSuccessor(prefix);
  RC_ASSERT((prefix <= key && key < end) == text.starts_with(start));
  KeyWriter(&key).Null();
  RC_ASSERT((prefix <= key && key < end) == text.starts_with(start));
}

RC_GTEST_PROP(Key, AnyBytesAreRefusedOrWrittenAgainTheSame, ()) {
  const auto byte = rc::gen::element<uint8_t>(0, 1, 2, 8, 0x0F, 0x70, 0x77, 0x78, 0x79, 0x7A, 0x7F);
  std::string key;
  for (const uint8_t half : *rc::gen::container<std::string>(20, rc::gen::cast<char>(byte))) {
    key.push_back(static_cast<char>(*rc::gen::arbitrary<bool>() ? half : ~half));
  }
  KeyReader in(key);
  KeyTuple tuple;
  while (auto field = base::ReadField(&in)) tuple.push_back(*std::move(field));
  RC_ASSERT(base::WriteTuple(tuple) == key.substr(0, in.position()));
}

TEST(Key, EncodingsAreThoseInTheDocument) {
  const auto written = [](auto write) {
    std::string key;
    KeyWriter out(&key);
    write(out);
    return key;
  };
  const auto i64 = [&](int64_t value) { return written([&](KeyWriter& w) { w.I64(value); }); };
  EXPECT_EQ(written([](KeyWriter& w) { w.Null().Bool(false).Bool(true); }), "\x01\x02\x03");
  EXPECT_EQ(i64(0), "\x10");
  EXPECT_EQ(i64(95), "\x6F");
  EXPECT_EQ(i64(96), "\x70\x60");
  EXPECT_EQ(i64(256), "\x71\x01\x00"s);
  EXPECT_EQ(i64(INT64_MAX), "\x77\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF");
  EXPECT_EQ(i64(-1), "\x0F\xFF");
  EXPECT_EQ(i64(-256), "\x0F\x00"s);
  EXPECT_EQ(i64(-257), "\x0E\xFE\xFF");
  EXPECT_EQ(i64(INT64_MIN), "\x08\x80\x00\x00\x00\x00\x00\x00\x00"s);
  EXPECT_EQ(written([](KeyWriter& w) { w.U64(UINT64_MAX); }),
            "\x77\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF");
  EXPECT_EQ(written([](KeyWriter& w) { w.Double(1.0); }), "\x78\xBF\xF0\x00\x00\x00\x00\x00\x00"s);
  EXPECT_EQ(written([](KeyWriter& w) { w.Double(-1.0); }), "\x78\x40\x0F\xFF\xFF\xFF\xFF\xFF\xFF"s);
  EXPECT_EQ(written([](KeyWriter& w) { w.String("ab"); }),
            "\x79"
            "ab\0"s);
  EXPECT_EQ(written([](KeyWriter& w) { w.Bytes("\0\1\2"s); }), "\x7A\x01\x01\x01\x02\x02\x00"s);
  EXPECT_EQ(written([](KeyWriter& w) { w.String("a\0"s, kDown); }), "\x86\x9E\xFE\xFE\xFF");
  EXPECT_EQ(written([](KeyWriter& w) { w.Null(kDown).I64(3, kDown).I64(300, kDown); }),
            "\xFE\xEC\x8E\xFE\xD3");
}

TEST(Key, TheOrderOfAllTypesIsTheDocumentedOne) {
  const auto field = [](auto set) {
    std::string key;
    KeyWriter out(&key);
    set(out);
    return key;
  };
  const std::vector<std::string> ascending = {
      field([](KeyWriter& w) { w.Null(); }),
      field([](KeyWriter& w) { w.Bool(false); }),
      field([](KeyWriter& w) { w.Bool(true); }),
      field([](KeyWriter& w) { w.I64(INT64_MIN); }),
      field([](KeyWriter& w) { w.I64(-1); }),
      field([](KeyWriter& w) { w.U64(0); }),
      field([](KeyWriter& w) { w.I64(96); }),
      field([](KeyWriter& w) { w.U64(UINT64_MAX); }),
      field([](KeyWriter& w) { w.Double(-kInfinity); }),
      field([](KeyWriter& w) { w.Double(-0.5); }),
      field([](KeyWriter& w) { w.Double(-0.0); }),
      field([](KeyWriter& w) { w.Double(std::numeric_limits<double>::denorm_min()); }),
      field([](KeyWriter& w) { w.Double(kInfinity); }),
      field([](KeyWriter& w) { w.Double(-kNan); }),
      field([](KeyWriter& w) { w.String(""); }),
      field([](KeyWriter& w) { w.String("\0"s); }),
      field([](KeyWriter& w) { w.String("\0\0"s); }),
      field([](KeyWriter& w) { w.String("\1"); }),
      field([](KeyWriter& w) { w.String("a"); }),
      field([](KeyWriter& w) { w.String("a\0"s); }),
      field([](KeyWriter& w) { w.String("ab"); }),
      field([](KeyWriter& w) { w.Bytes(""); }),
  };
  EXPECT_TRUE(std::is_sorted(ascending.begin(), ascending.end()));
  EXPECT_EQ(std::adjacent_find(ascending.begin(), ascending.end()), ascending.end());
}

TEST(Key, EqualNumbersAreEqualKeys) {
  std::string a;
  std::string b;
  KeyWriter(&a).Double(-0.0).Double(-kNan).I64(7).I64(INT64_MAX);
  KeyWriter(&b).Double(0.0).Double(kNan).U64(7).U64(INT64_MAX);
  EXPECT_EQ(a, b);
  KeyReader in(a);
  EXPECT_FALSE(std::signbit(in.ReadDouble()));
  EXPECT_TRUE(std::isnan(in.ReadDouble()));
  EXPECT_EQ(in.next_type(), KeyType::kI64);
  EXPECT_EQ(in.ReadU64(), 7U);
}

TEST(Key, AReaderNamesWhatIsWrongAndWhere) {
  const auto error = [](std::string_view key) {
    KeyReader in(key);
    EXPECT_TRUE(in.ReadBool());  // 1 byte
    in.Skip();
    EXPECT_EQ(in.status().code(), StatusCode::kCorruption);
    EXPECT_EQ(in.position(), 1U);
    EXPECT_EQ(in.next_type(), std::nullopt);
    const std::string first = in.status().ToString();
    in.Skip();
    EXPECT_EQ(in.ReadI64(), 0);
    std::string text = "old";
    in.ReadString(&text);
    EXPECT_EQ(text, "");
    EXPECT_EQ(in.Finish().ToString(), first);
    return first;
  };
  const std::string at = "Corruption: reading a key, offset 1: ";
  EXPECT_EQ(error("\x03"), at + "expected a field, found the end");
  EXPECT_EQ(error("\x03\0"s), at + "no field begins here");
  EXPECT_EQ(error("\x03\xFF"), at + "no field begins here");
  EXPECT_EQ(error("\x03\x7B"), at + "no field begins here");
  EXPECT_EQ(error("\x03\x77\x01"), at + "an integer is cut off");
  EXPECT_EQ(error("\x03\x70\x5F"), at + "an integer takes more bytes than it needs");
  EXPECT_EQ(error("\x03\x71\0\xFF"s), at + "an integer takes more bytes than it needs");
  EXPECT_EQ(error("\x03\x0E\xFF\x01"), at + "an integer takes more bytes than it needs");
  EXPECT_EQ(error("\x03\x08\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF"),
            at + "an integer is below the least i64");
  EXPECT_EQ(error("\x03\x78\x80"), at + "a double is cut off");
  EXPECT_EQ(error("\x03\x78\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF"),
            at + "a double is -0.0, or a NaN that is not the one in use");
  EXPECT_EQ(error("\x03\x78\xFF\xF8\0\0\0\0\0\1"s),
            at + "a double is -0.0, or a NaN that is not the one in use");
  EXPECT_EQ(error("\x03\x79long"), at + "a string has no end");
  EXPECT_EQ(error("\x03\x86long"), at + "a string has no end");
  EXPECT_EQ(error("\x03\x79s\x01\x03\0"s),
            "Corruption: reading a key, offset 3: a string has a malformed escape");
  EXPECT_EQ(error("\x03\x79s\x01\0"s),
            "Corruption: reading a key, offset 3: a string has a malformed escape");
}

TEST(Key, AReaderRefusesAnotherTypeAndAnIntegerThatDoesNotFit) {
  std::string key;
  KeyWriter(&key).String("s").U64(UINT64_MAX).I64(-1);
  KeyReader as_integer(key);
  EXPECT_EQ(as_integer.ReadI64(), 0);
  EXPECT_EQ(as_integer.status().message(),
            "reading a key, offset 0: expected an integer, found a string");

  KeyReader too_large(key);
  too_large.Skip();
  EXPECT_EQ(too_large.next_type(), KeyType::kU64);
  EXPECT_EQ(too_large.ReadI64(), 0);
  EXPECT_EQ(too_large.status().message(),
            "reading a key, offset 3: an integer is above the greatest i64");

  KeyReader negative(key);
  negative.Skip();
  EXPECT_EQ(negative.ReadU64(), UINT64_MAX);
  EXPECT_EQ(negative.ReadU64(), 0U);
  EXPECT_EQ(negative.status().message(),
            "reading a key, offset 12: an integer is negative, and no u64");

  KeyReader left(key);
  left.Skip();
  const Status finished = left.Finish();
  EXPECT_EQ(finished.message(), "reading a key, offset 3: expected the end");
}

TEST(Key, TheEmptyPrefixCoversAllTuplesAndASuccessorIsTight) {
  EXPECT_EQ(PrefixRange("").begin, "");
  EXPECT_EQ(PrefixRange("").end, "\xFF");
  std::string key;
  KeyWriter(&key).String("a", kDown);  // ends with 0xFF
  EXPECT_EQ(PrefixSuccessor(key), "\x86\x9F");
}

TEST(Key, AReservedStringIsFilledWithoutAllocation) {
  std::string key;
  key.reserve(64);
  const char* const memory = key.data();
  for (int i = 0; i < 3; ++i) {
    key.clear();
    KeyWriter(&key).String("orders").I64(i, kDown).Double(i).Bytes("\0\0\0"s).U64(UINT64_MAX);
    EXPECT_EQ(key.data(), memory);
  }
}

}  // namespace
}  // namespace basalt
