#pragma once

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>

namespace basalt::base {

/// As "0x00000000deadbeef", how ids, hashes and sets of bits are shown.
inline std::string Hexadecimal(uint64_t number) {
  char text[19];
  std::snprintf(text, sizeof text, "0x%016" PRIx64, number);
  return text;
}

}  // namespace basalt::base
