#pragma once

// A walk over records as a Python iterator.
//
// Records are copied into a buffer, many at a time and without the GIL: 16 the first time, then
// four times as many up to 1,024, and no more once 64 KiB are full. Each step makes Python objects
// of one.

#include <memory>
#include <string>
#include <vector>

#include "basalt/iterator.h"
#include "convert.h"

namespace basalt::python {

class Scan {
 public:
  enum class Yields : uint8_t { kItems, kKeys, kValues };

  Scan(std::unique_ptr<Iterator> iterator, bool reverse, Yields yields);
  Scan(Scan&&) noexcept = default;

  bool HasNext();
  /// Raises StopIteration at the end.
  nb::object Next();

 private:
  struct Sizes {
    uint32_t key;
    uint32_t value;
  };

  void Fill();

  std::unique_ptr<Iterator> iterator_;  // null: the end was reached
  bool reverse_;
  Yields yields_;
  bool started_ = false;
  bool in_use_ = false;
  uint64_t fork_count_ = ForkCount();
  size_t records_max_ = 16;
  std::string bytes_;
  std::vector<Sizes> sizes_;
  size_t record_ = 0;  // the next of sizes_, at offset_ of bytes_
  size_t offset_ = 0;
};

void DefineScan(nb::module_& module);

}  // namespace basalt::python
