#include "server/sha1.h"

#include <array>
#include <bit>
#include <cstdint>

namespace basalt::server {
namespace {

constexpr size_t kBlockBytes = 64;

using Digest = std::array<uint32_t, 5>;

uint32_t RoundFunction(size_t round, uint32_t b, uint32_t c, uint32_t d) {
  if (round < 20) return (b & c) | (~b & d);
  if (round >= 40 && round < 60) return (b & c) | (b & d) | (c & d);
  return b ^ c ^ d;
}

void AddBlock(const uint8_t* block, Digest* digest) {
  constexpr std::array<uint32_t, 4> kConstants = {0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xCA62C1D6};
  std::array<uint32_t, 80> words;
  for (size_t i = 0; i < 16; ++i) {
    words[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 |
               uint32_t{block[4 * i + 2]} << 8 | uint32_t{block[4 * i + 3]};
  }
  for (size_t i = 16; i < words.size(); ++i) {
    words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
  }
  auto [a, b, c, d, e] = *digest;
  for (size_t i = 0; i < words.size(); ++i) {
    const uint32_t next =
        std::rotl(a, 5) + RoundFunction(i, b, c, d) + e + words[i] + kConstants[i / 20];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  *digest = {(*digest)[0] + a, (*digest)[1] + b, (*digest)[2] + c, (*digest)[3] + d,
             (*digest)[4] + e};
}

}  // namespace

std::string Sha1Hex(std::string_view bytes) {
  Digest digest = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
  const uint64_t bits = uint64_t{bytes.size()} * 8;
  while (bytes.size() >= kBlockBytes) {
    AddBlock(reinterpret_cast<const uint8_t*>(bytes.data()), &digest);
    bytes.remove_prefix(kBlockBytes);
  }
  std::string tail(bytes);
  tail.push_back('\x80');
  while (tail.size() % kBlockBytes != kBlockBytes - 8) tail.push_back('\0');
  for (int shift = 56; shift >= 0; shift -= 8) tail.push_back(static_cast<char>(bits >> shift));
  for (size_t at = 0; at < tail.size(); at += kBlockBytes) {
    AddBlock(reinterpret_cast<const uint8_t*>(tail.data()) + at, &digest);
  }
  std::string hex;
  for (const uint32_t word : digest) {
    for (int shift = 28; shift >= 0; shift -= 4) hex += "0123456789abcdef"[word >> shift & 0xF];
  }
  return hex;
}

}  // namespace basalt::server
