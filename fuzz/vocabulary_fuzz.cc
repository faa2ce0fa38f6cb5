// Any bytes as a vocabulary and a text: the vocabulary is refused, or the text becomes ids of it,
// as many as are asked for at most, and the same when it is encoded with more room.

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/coding.h"
#include "embed/word_pieces.h"

namespace {

constexpr std::string_view kVocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\n##a\n##b\n##\xC3\xA9\n.\n\xE6\x9D\xB1\n";

void Try(std::string_view vocabulary, std::string_view text, bool has_case) {
  const auto pieces = basalt::embed::WordPieces::Parse(vocabulary, {.has_case = has_case});
  if (!pieces) {
    BASALT_CHECK(pieces.error().code() == basalt::StatusCode::kCorruption);
    return;
  }
  std::vector<uint32_t> some;
  std::vector<uint32_t> all;
  pieces->Encode(text, 16, &some);
  pieces->Encode(text, text.size() * 4 + 2, &all);
  BASALT_CHECK(some.size() >= 2 && some.size() <= 16 && all.size() >= some.size());
  BASALT_CHECK(std::equal(some.begin(), some.end() - 1, all.begin()));
  BASALT_CHECK(some.back() == all.back());
  for (const uint32_t id : all) BASALT_CHECK(id < pieces->vocabulary_size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 3), size - 3);
  const size_t first = basalt::base::Load<uint16_t>(data + 1);
  const bool has_case = (data[0] & 1) != 0;
  Try(bytes.substr(0, first), bytes.substr(std::min(first, bytes.size())), has_case);
  Try(kVocabulary, bytes, has_case);
  return 0;
}
