// Any bytes as two keys: what is read of each is written again as the same bytes, and the tuples
// are ordered as the bytes are.

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "basalt/key.h"
#include "base/check.h"
#include "base/test_key.h"

namespace {

using basalt::KeyReader;
using basalt::base::KeyTuple;

/// The fields up to the first error; `key` is cut to their bytes.
KeyTuple ReadTuple(std::string_view* key) {
  KeyTuple tuple;
  KeyReader in(*key);
  KeyReader skipping(*key);
  while (auto field = basalt::base::ReadField(&in)) {
    tuple.push_back(*std::move(field));
    skipping.Skip();
    BASALT_CHECK(skipping.position() == in.position());
  }
  BASALT_CHECK(in.AtEnd() == in.Finish().ok());
  skipping.Skip();
  BASALT_CHECK(!skipping.status().ok() && skipping.position() == in.position());
  *key = key->substr(0, in.position());
  BASALT_CHECK(basalt::base::WriteTuple(tuple) == *key);
  return tuple;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const size_t first = size_t{data[0]} < bytes.size() ? data[0] : bytes.size();
  std::string_view a = bytes.substr(0, first);
  std::string_view b = bytes.substr(first);
  const KeyTuple tuple_a = ReadTuple(&a);
  const KeyTuple tuple_b = ReadTuple(&b);
  BASALT_CHECK((a <=> b) == basalt::base::CompareTuples(tuple_a, tuple_b));

  const basalt::KeyRange range = basalt::PrefixRange(a);
  BASALT_CHECK((range.begin <= b && b < range.end) == b.starts_with(a));
  return 0;
}
