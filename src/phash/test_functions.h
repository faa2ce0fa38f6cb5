#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/perfect_hash.h"
#include "base/check.h"
#include "base/coding.h"
#include "base/random.h"

namespace basalt::phash {

/// Numbers of keys are divided by this: sanitizers make the code that much slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kSlowdown = 10;
#else
constexpr uint64_t kSlowdown = 1;
#endif

constexpr PerfectHashSeeds kBothKinds[] = {PerfectHashSeeds::kShift, PerfectHashSeeds::kDense};

inline std::vector<uint64_t> RandomHashes(uint64_t count, uint64_t seed) {
  base::Random random(seed);
  std::vector<uint64_t> hashes(count);
  for (uint64_t& hash : hashes) hash = random.Next();
  return hashes;
}

inline std::vector<std::string> NumberedKeys(uint64_t count, const std::string& prefix = "key ") {
  std::vector<std::string> keys;
  keys.reserve(count);
  for (uint64_t i = 0; i < count; ++i) keys.push_back(prefix + std::to_string(i));
  return keys;
}

inline std::vector<std::string_view> Views(const std::vector<std::string>& keys) {
  return {keys.begin(), keys.end()};
}

template <class Value>
void Shuffle(std::vector<Value>* values, uint64_t seed) {
  base::Random random(seed);
  for (size_t i = values->size(); i > 1; --i) {
    std::swap((*values)[i - 1], (*values)[random.Below(i)]);
  }
}

/// A source that need not keep to its word: a walk gives what a function of its number says.
class OddSource : public KeySource {
 public:
  using Visit = std::function<void(std::span<const std::string_view>)>;
  OddSource(uint64_t size, std::function<Status(uint64_t walk, const Visit& visit)> walk)
      : size_(size), walk_(std::move(walk)) {}

  uint64_t size() const override { return size_; }
  Status Walk(const Visit& visit) const override { return walk_(walks_++, visit); }

 private:
  uint64_t size_;
  std::function<Status(uint64_t, const Visit&)> walk_;
  mutable uint64_t walks_ = 0;
};

/// Whether each key, bytes or a hash, has a number of its own below their count.
template <class Key>
testing::AssertionResult IsBijective(const PerfectHash& function, const std::vector<Key>& keys) {
  if (function.size() != keys.size()) {
    return testing::AssertionFailure() << function.size() << " of " << keys.size() << " keys";
  }
  std::vector<bool> used(keys.size());
  for (const Key& key : keys) {
    const uint64_t index = function.Index(key);
    if (index >= keys.size() || used[index]) {
      return testing::AssertionFailure() << "index " << index << " of " << keys.size()
                                         << (index < keys.size() ? " is there twice" : "");
    }
    used[index] = true;
  }
  return testing::AssertionSuccess();
}

/// Keys of a vector, some at a time.
class VectorSource : public KeySource {
 public:
  explicit VectorSource(std::vector<std::string_view> keys, size_t at_once = 1000)
      : keys_(std::move(keys)), at_once_(at_once) {}

  uint64_t size() const override { return keys_.size(); }
  Status Walk(const std::function<void(std::span<const std::string_view>)>& visit) const override {
    ++walks_;
    const std::span<const std::string_view> all(keys_);
    for (size_t begin = 0; begin < all.size(); begin += at_once_) {
      visit(all.subspan(begin, std::min(at_once_, all.size() - begin)));
    }
    return Status();
  }
  uint64_t walks() const { return walks_; }

 private:
  std::vector<std::string_view> keys_;
  size_t at_once_;
  mutable uint64_t walks_ = 0;
};

/// The least memory_budget that a build accepts, by its own words; 0 when it says none.
template <class Build>
uint64_t LeastBudget(PerfectHashOptions options, const Build& build) {
  options.memory_budget = 1;
  const auto function = build(options);
  EXPECT_FALSE(function) << "a budget of one byte suffices";
  if (function) return 0;
  EXPECT_EQ(function.error().code(), StatusCode::kInvalidArgument);
  const std::string message(function.error().message());
  EXPECT_NE(message.find("memory_budget is 1 bytes"), std::string::npos) << message;
  const size_t at = message.find("at least ");
  EXPECT_NE(at, std::string::npos) << message;
  return at == std::string::npos ? 0 : std::stoull(message.substr(at + 9));
}

/// A copy of bytes that ends where memory ends: whoever reads on, in any build, is caught.
class GuardedBytes {
 public:
  explicit GuardedBytes(std::string_view bytes)
      : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))),
        mapped_(base::RoundUp(bytes.size(), page_) + page_) {
    void* const memory =
        mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    BASALT_CHECK(memory != MAP_FAILED);
    begin_ = static_cast<char*>(memory);
    BASALT_CHECK(mprotect(begin_ + mapped_ - page_, page_, PROT_NONE) == 0);
    char* const at = begin_ + mapped_ - page_ - bytes.size();
    bytes.copy(at, bytes.size());
    bytes_ = {at, bytes.size()};
  }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  ~GuardedBytes() { munmap(begin_, mapped_); }

  std::string_view bytes() const { return bytes_; }

 private:
  size_t page_;
  size_t mapped_;
  char* begin_;
  std::string_view bytes_;
};

}  // namespace basalt::phash
