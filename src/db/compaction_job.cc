// The properties of a compaction job. compaction_plan.cc decides which jobs there are.

#include "base/check.h"
#include "db/compaction_plan.h"

namespace basalt::db {

uint64_t CompactionJob::input_bytes() const noexcept {
  uint64_t bytes = 0;
  for (const TableFiles& tables : inputs) {
    for (const auto& table : tables) bytes += table->properties().file_bytes;
  }
  return bytes;
}

double CompactionJob::part_left() const noexcept {
  if (replaceable_bytes == 0) return 1;
  uint64_t left = 0;
  for (const auto& table : inputs[output_level]) left += table->properties().file_bytes;
  return static_cast<double>(left) / static_cast<double>(replaceable_bytes);
}

std::string_view CompactionJob::smallest_key() const noexcept {
  const TableFile* first = nullptr;
  const auto consider = [&](const TableFiles& tables) {
    for (const auto& table : tables) {
      if (first == nullptr || table->properties().smallest_key < first->properties().smallest_key) {
        first = table.get();
      }
    }
  };
  for (const TableFiles& tables : inputs) consider(tables);
  consider(outputs);
  BASALT_CHECK(first != nullptr);
  return first->properties().smallest_key;
}

std::string_view CompactionJob::largest_key() const noexcept {
  const TableFile* last = nullptr;
  const auto consider = [&](const TableFiles& tables) {
    for (const auto& table : tables) {
      if (last == nullptr || table->properties().largest_key > last->properties().largest_key) {
        last = table.get();
      }
    }
  };
  for (const TableFiles& tables : inputs) consider(tables);
  consider(outputs);
  BASALT_CHECK(last != nullptr);
  return last->properties().largest_key;
}

bool CompactionJob::is_move() const noexcept {
  if (drops || !inputs[output_level].empty()) return false;
  size_t tables = 0;
  for (const TableFiles& level : inputs) tables += level.size();
  return tables == 1;
}

bool CompactionJob::may_install_pieces() const noexcept {
  if (inputs[output_level].empty()) return false;
  for (size_t level = 0; level < output_level; ++level) {
    for (const auto& table : inputs[level]) {
      if (table->properties().merges > 0) return false;
    }
  }
  return true;
}

}  // namespace basalt::db
