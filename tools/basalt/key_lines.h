#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "basalt/status.h"
#include "tools/basalt/line_reader.h"

namespace basalt::tools {

/// How a line stands for a key.
enum class KeyForm : uint8_t {
  kText,    ///< The text form of text_format.h.
  kBase64,  ///< The base64 form of its bytes.
  kNumber,  ///< A key that is a 64-bit number, decimal or 0x and hexadecimal.
};

/// A number as a line or an argument gives it: decimal, or 0x and hexadecimal, below 2^64.
/// InvalidArgument says what it is instead.
Result<uint64_t> ParseNumber(std::string_view text);

/// Keys, one a line: an empty line is the empty key. With payloads, a line is key, tab, number.
class KeyLines {
 public:
  struct Line {
    std::string_view key;  ///< Until the next line is read; empty under kNumber.
    uint64_t number;       ///< Under kNumber.
    uint64_t payload;      ///< 0 without payloads.
  };

  /// `payload_bits` 0: without payloads; else none may take more bits.
  KeyLines(LineReader reader, KeyForm form, uint32_t payload_bits)
      : reader_(std::move(reader)), form_(form), payload_bits_(payload_bits) {}

  /// False: there are no more. InvalidArgument names file and line.
  Result<bool> Next(Line& line);

  bool has_payloads() const noexcept { return payload_bits_ > 0; }
  uint64_t consumed_bytes() const noexcept { return reader_.consumed_bytes(); }
  uint64_t total_bytes() const noexcept { return reader_.total_bytes(); }

 private:
  Status Parse(std::string_view text, Line& line);
  Status ParsePayload(std::string_view text, Line& line) const;

  LineReader reader_;
  KeyForm form_;
  uint32_t payload_bits_;
  std::string decoded_;
};

}  // namespace basalt::tools
