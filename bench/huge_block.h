#pragma once

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "bench/text.h"

namespace basalt::bench {

/// Memory as our structures have it: aligned to huge pages, which the kernel is asked for.
class HugeBlock {
 public:
  explicit HugeBlock(size_t bytes) : bytes_((bytes + kAlignment - 1) / kAlignment * kAlignment) {
    data_.reset(static_cast<char*>(std::aligned_alloc(kAlignment, bytes_)));
    if (data_ == nullptr) Fail("measure the floor", "no memory");
    madvise(data_.get(), bytes_, MADV_HUGEPAGE);
    std::memset(data_.get(), 1, bytes_);
  }
  char* data() const { return data_.get(); }

 private:
  static constexpr size_t kAlignment = size_t{2} << 20;
  struct Free {
    void operator()(char* data) const { std::free(data); }
  };
  size_t bytes_;
  std::unique_ptr<char, Free> data_;
};

}  // namespace basalt::bench
