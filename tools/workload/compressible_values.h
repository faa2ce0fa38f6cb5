#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace basalt::workload {

/// Values of one size that compress to about half of it, as LevelDB's db_bench makes them: slices
/// of a text of a MiB or more, in which every 50 random printable characters stand twice.
/// Immutable, so thread-safe.
class CompressibleValues {
 public:
  CompressibleValues(uint64_t seed, size_t value_bytes);

  /// The `index`th value. Values repeat after a MiB. Valid as long as this object.
  std::string_view At(uint64_t index) const noexcept {
    return {text_.data() + index % slices_ * value_bytes_, value_bytes_};
  }

 private:
  size_t value_bytes_;
  std::string text_;
  size_t slices_;
};

}  // namespace basalt::workload
