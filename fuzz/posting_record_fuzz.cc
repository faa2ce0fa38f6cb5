// Any bytes as the records of a text index: refused, or read as values that are the same when they
// are written and read again.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "retrieve/posting_record.h"

namespace {

using namespace basalt::retrieve;

void ReadPosting(std::string_view bytes) {
  const auto posting = DecodePosting(bytes);
  if (!posting) return;
  BASALT_CHECK(posting->positions.size() <= bytes.size());
  BASALT_CHECK(posting->positions.empty() == bytes.empty());
  BASALT_CHECK(std::ranges::is_sorted(posting->positions, std::ranges::less_equal()));
  BASALT_CHECK(posting->length >= posting->positions.size());
  BASALT_CHECK(DecodePosting(EncodePosting(*posting)).value() == *posting);
}

void ReadDocument(std::string_view bytes) {
  const auto document = DecodeDocument(bytes);
  if (!document) return;
  BASALT_CHECK(document->terms.size() <= bytes.size());
  BASALT_CHECK(std::ranges::is_sorted(document->terms, std::ranges::less_equal()));
  BASALT_CHECK(DecodeDocument(EncodeDocument(*document)).value() == *document);
}

void ReadKey(std::string_view bytes) {
  const std::string_view prefix = bytes.substr(0, bytes.size() / 2);
  const auto document = DocumentOf(bytes, prefix);
  BASALT_CHECK(document.has_value() == (bytes.size() - prefix.size() == 8));
}

void ReadCounter(std::string_view bytes) {
  const auto counter = DecodeTermCounter(bytes);
  BASALT_CHECK(counter.has_value() == (bytes.size() == 8));
  if (!counter) return;
  BASALT_CHECK(TermCounterOperand(static_cast<int64_t>(counter->documents),
                                  static_cast<int64_t>(counter->changes)) == bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy, so that a read beyond its end is seen.
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  ReadPosting(bytes);
  ReadDocument(bytes);
  ReadKey(bytes);
  ReadCounter(bytes);
  return 0;
}
