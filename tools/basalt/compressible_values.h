#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace basalt::tools {

/// Values that compress to about half their size, as LevelDB's db_bench makes them: pieces of 100
/// bytes, each 50 random printable characters twice, cut from one text of a MiB or more. One thread
/// at a time.
class CompressibleValues {
 public:
  /// `value_bytes`: of the largest value that will be asked for.
  CompressibleValues(uint64_t seed, size_t value_bytes);

  /// Lasts as long as this object.
  std::string_view Next(size_t value_bytes) noexcept;

 private:
  std::string text_;
  size_t position_ = 0;
};

}  // namespace basalt::tools
