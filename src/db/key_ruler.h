#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "db/key_range.h"

namespace basalt::db {

/// Tells roughly where in a table a key lies. Takes keys for numbers that are spread evenly, from
/// where the ends of the table begin to differ, whose digits are the bytes seen there: decimal text
/// uses ten of 256.
class KeyRuler {
 public:
  explicit KeyRuler(const KeyRange& table) : table_(table) {
    const auto differ = std::ranges::mismatch(table.smallest, table.largest);
    shared_ = static_cast<size_t>(differ.in1 - table.smallest.begin());
    Learn(table.smallest);
    Learn(table.largest);
  }

  /// Counts the digits of a key, if it lies in the table. All keys come before the first question.
  void Learn(std::string_view key) {
    if (key < table_.smallest || key > table_.largest) return;
    for (const char digit : key.substr(shared_, kDigits)) {
      lowest_ = std::min(lowest_, static_cast<uint8_t>(digit));
      highest_ = std::max(highest_, static_cast<uint8_t>(digit));
    }
  }

  /// 0 at the table's smallest key, 1 behind its largest.
  double PositionOf(std::string_view key) const {
    if (key <= table_.smallest) return 0;
    if (key > table_.largest) return 1;
    const double begin = NumberOf(table_.smallest);
    const double end = NumberOf(table_.largest);
    return end > begin ? (NumberOf(key) - begin) / (end - begin) : 0;
  }

 private:
  static constexpr size_t kDigits = 16;

  double NumberOf(std::string_view key) const {
    const bool is_decimal = lowest_ >= '0' && highest_ <= '9';
    const int lowest = is_decimal ? '0' : lowest_;
    const double base = is_decimal ? 10 : highest_ - lowest_ + 1;
    double number = 0;
    double unit = 1;
    for (const char digit : key.substr(shared_, kDigits)) {
      number += (static_cast<uint8_t>(digit) - lowest) * unit;
      unit /= base;
    }
    return number;
  }

  const KeyRange table_;
  size_t shared_;
  uint8_t lowest_ = 255;
  uint8_t highest_ = 0;
};

}  // namespace basalt::db
