#include "text/term_normalizer.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/check.h"

namespace basalt::text {
namespace {

constexpr int kOptions =
    UTF8PROC_STABLE | UTF8PROC_COMPAT | UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD | UTF8PROC_IGNORE;
constexpr auto kFold = static_cast<utf8proc_option_t>(kOptions);
constexpr int32_t kRightQuotationMark = 0x2019;

bool IsAscii(std::string_view word) noexcept {
  return std::all_of(word.begin(), word.end(),
                     [](char byte) { return static_cast<uint8_t>(byte) < 0x80; });
}

constexpr char LowerCase(char byte) noexcept {
  return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + ('a' - 'A')) : byte;
}

}  // namespace

std::string_view TermNormalizer::Normalize(std::string_view word) {
  if (IsAscii(word)) {
    ascii_.resize(word.size());
    std::transform(word.begin(), word.end(), ascii_.begin(), LowerCase);
    return ascii_;
  }
  // Code points, of which the library makes UTF-8 in place and puts a zero behind it.
  const auto* const bytes = reinterpret_cast<const utf8proc_uint8_t*>(word.data());
  const auto size = static_cast<utf8proc_ssize_t>(word.size());
  buffer_.resize(std::max(buffer_.size(), 2 * word.size() + 1));
  auto room = static_cast<utf8proc_ssize_t>(buffer_.size() - 1);
  utf8proc_ssize_t count = utf8proc_decompose(bytes, size, buffer_.data(), room, kFold);
  if (count > room) {
    buffer_.resize(static_cast<size_t>(count) + 1);
    room = count;
    count = utf8proc_decompose(bytes, size, buffer_.data(), room, kFold);
  }
  BASALT_CHECK(count >= 0 && count <= room);  // The word is well-formed.
  std::replace(buffer_.begin(), buffer_.begin() + count, kRightQuotationMark, int32_t{'\''});
  count = utf8proc_reencode(buffer_.data(), count, kFold);
  BASALT_CHECK(count >= 0);
  return {reinterpret_cast<const char*>(buffer_.data()), static_cast<size_t>(count)};
}

}  // namespace basalt::text
