#include "embed/word_pieces.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "text/character.h"

namespace basalt::embed {
namespace {

constexpr size_t kVocabularyMax = size_t{1} << 24;
constexpr size_t kWordCharactersMax = 100;
constexpr std::string_view kContinuation = "##";
constexpr std::array<std::string_view, 5> kSpecialTokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]",
                                                            "[MASK]"};

bool IsSpace(uint32_t c) noexcept {
  if (c == '\t' || c == '\n' || c == '\r') return true;
  // The property White_Space beyond them; the other control characters with it were removed before.
  const utf8proc_category_t category = utf8proc_category(static_cast<int32_t>(c));
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

/// What is left out of a text.
bool IsControl(uint32_t c) noexcept {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  if (c == 0 || c == text::kReplacementCharacter) return true;
  const utf8proc_category_t category = utf8proc_category(static_cast<int32_t>(c));
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
         category == UTF8PROC_CATEGORY_CO;
}

bool IsPunctuation(uint32_t c) noexcept {
  if (c < 0x80) {
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
  }
  const utf8proc_category_t category = utf8proc_category(static_cast<int32_t>(c));
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

/// The ideographs that are words by themselves.
bool IsIdeograph(uint32_t c) noexcept {
  constexpr std::pair<uint32_t, uint32_t> kRanges[] = {
      {0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
      {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  return std::any_of(std::begin(kRanges), std::end(kRanges),
                     [&](const auto& range) { return c >= range.first && c <= range.second; });
}

void AppendUtf8(int32_t code_point, std::string* out) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t size = utf8proc_encode_char(code_point, bytes);
  out->append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
}

/// Calls `take` with what is left of a character without accent and case.
template <class Take>
void Fold(uint32_t c, const Take& take) {
  if (c < 0x80) {
    take(static_cast<int32_t>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c));
    return;
  }
  constexpr utf8proc_ssize_t kDecompositionMax = 32;
  utf8proc_int32_t parts[kDecompositionMax];
  int boundary_class = UTF8PROC_BOUNDCLASS_START;
  const utf8proc_ssize_t count = utf8proc_decompose_char(
      static_cast<int32_t>(c), parts, kDecompositionMax, UTF8PROC_DECOMPOSE, &boundary_class);
  for (utf8proc_ssize_t i = 0; i < std::min(count, kDecompositionMax); ++i) {
    if (utf8proc_category(parts[i]) != UTF8PROC_CATEGORY_MN) take(utf8proc_tolower(parts[i]));
  }
}

/// The first special token in a text, from `at` on.
struct Special {
  size_t at;
  std::string_view name;
};
std::optional<Special> FindSpecial(std::string_view text, size_t at) noexcept {
  for (at = text.find('[', at); at != text.npos; at = text.find('[', at + 1)) {
    for (const std::string_view name : kSpecialTokens) {
      if (text.substr(at).starts_with(name)) return Special{at, name};
    }
  }
  return std::nullopt;
}

}  // namespace

Result<WordPieces> WordPieces::Parse(std::string_view vocabulary, Options options) {
  WordPieces pieces;
  pieces.options_ = options;
  uint32_t id = 0;
  while (!vocabulary.empty()) {
    const size_t end = std::min(vocabulary.find('\n'), vocabulary.size());
    std::string_view line = vocabulary.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (id == kVocabularyMax) {
      return Status(StatusCode::kCorruption, "reading a vocabulary: it has more than 2^24 pieces");
    }
    pieces.ids_[std::string(line)] = id++;
    pieces.piece_bytes_max_ = std::max(pieces.piece_bytes_max_, line.size());
    vocabulary.remove_prefix(std::min(end + 1, vocabulary.size()));
  }
  pieces.size_ = id;
  const std::pair<const char*, uint32_t*> needed[] = {
      {"[CLS]", &pieces.cls_}, {"[SEP]", &pieces.sep_}, {"[UNK]", &pieces.unknown_}};
  for (const auto& [name, place] : needed) {
    const uint32_t* const found = pieces.Find(name);
    if (found == nullptr) {
      return Status(StatusCode::kCorruption,
                    std::string("reading a vocabulary: it has no ") + name);
    }
    *place = *found;
  }
  return pieces;
}

const uint32_t* WordPieces::Find(const std::string& piece) const {
  const auto found = ids_.find(piece);
  return found == ids_.end() ? nullptr : &found->second;
}

void WordPieces::Encode(std::string_view text, size_t tokens_max,
                        std::vector<uint32_t>* ids) const {
  ids->clear();
  ids->push_back(cls_);
  const size_t ids_max = tokens_max - 1;  // and [SEP]
  for (size_t at = 0; at < text.size() && ids->size() < ids_max;) {
    const std::optional<Special> special = FindSpecial(text, at);
    const size_t end = special ? special->at : text.size();
    AddText(text.substr(at, end - at), ids_max, ids);
    if (!special) break;
    const uint32_t* const id = Find(std::string(special->name));
    if (ids->size() < ids_max) ids->push_back(id != nullptr ? *id : unknown_);
    at = end + special->name.size();
  }
  ids->push_back(sep_);
}

/// A text without special tokens. Stops when there are `ids_max`.
void WordPieces::AddText(std::string_view text, size_t ids_max, std::vector<uint32_t>* ids) const {
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) AddWord(word, ids_max, ids);
    word.clear();
  };
  const auto take = [&](int32_t code_point) {
    const bool is_word = IsPunctuation(static_cast<uint32_t>(code_point));
    if (is_word) end_word();
    AppendUtf8(code_point, &word);
    if (is_word) end_word();
  };
  for (size_t at = 0; at < text.size() && ids->size() < ids_max;) {
    const text::Character character = text::ReadCharacter(text, at);
    const uint32_t code_point = character.code_point;
    at += character.bytes;
    if (IsControl(code_point)) continue;
    const bool is_ideograph = IsIdeograph(code_point);
    if (is_ideograph || IsSpace(code_point)) end_word();
    if (IsSpace(code_point)) continue;
    if (options_.has_case) {
      take(static_cast<int32_t>(code_point));
    } else {
      Fold(code_point, take);
    }
    if (is_ideograph) end_word();
  }
  end_word();
}

void WordPieces::AddWord(std::string_view word, size_t ids_max, std::vector<uint32_t>* ids) const {
  size_t characters = 0;
  for (size_t at = 0; at < word.size(); at += text::ReadCharacter(word, at).bytes) ++characters;
  const size_t before = ids->size();
  std::string piece;
  for (size_t begin = 0; begin < word.size() && characters <= kWordCharactersMax;) {
    const std::string_view prefix = begin == 0 ? std::string_view() : kContinuation;
    const std::string_view rest = text::CutToBytes(
        word.substr(begin), piece_bytes_max_ - std::min(prefix.size(), piece_bytes_max_));
    size_t size = rest.size();
    const uint32_t* id = nullptr;
    while (size > 0) {
      piece = prefix;
      piece += rest.substr(0, size);
      id = Find(piece);
      if (id != nullptr) break;
      size = text::CutToBytes(rest, size - 1).size();
    }
    if (id == nullptr) {
      characters = kWordCharactersMax + 1;
      break;
    }
    ids->push_back(*id);
    begin += size;
  }
  if (characters > kWordCharactersMax) {
    ids->resize(before);
    ids->push_back(unknown_);
  }
  if (ids->size() > ids_max) ids->resize(ids_max);
}

}  // namespace basalt::embed
