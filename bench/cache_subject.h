#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "bench/cache_requests.h"
#include "bench/text.h"

// One cache or map under measurement. Each subject uses its library's fastest ordinary calls,
// looks up by string_view where it can, and reads the first and last byte of a value that it is
// given: in place where the library lets it, under whatever lock or pin that takes.
//
// An error ends the program with its message: a figure of a run that failed says nothing.

namespace basalt::bench {

/// What a subject is opened for.
struct CachePlan {
  uint64_t capacity_bytes = 0;
  /// As many as it will hold at most, where the capacity does not say so. What can be sized
  /// beforehand is, but when `reserve` is off.
  uint32_t entries = 0;
  uint32_t value_bytes = 0;
  bool reserve = true;
  uint32_t shards = 0;  ///< 0: as the subject has them.
};

class CacheSubject {
 public:
  virtual ~CacheSubject() = default;
  CacheSubject(const CacheSubject&) = delete;
  CacheSubject& operator=(const CacheSubject&) = delete;

  /// As on the command line and in the results.
  virtual std::string name() const = 0;
  /// Version and settings, for people.
  virtual std::string description() const = 0;
  /// Whether it keeps to capacity_bytes.
  virtual bool evicts() const { return false; }
  /// Whether it has PutExpiring.
  virtual bool expires() const { return false; }
  /// Whether it has MultiGet and GetInTurn.
  virtual bool gets_many() const { return false; }
  /// Whether CachePlan::shards means anything to it.
  virtual bool has_shards() const { return false; }
  /// Whether it only shows what the loops around the calls cost.
  virtual bool is_noop() const { return false; }

  /// Makes a new, empty cache.
  virtual void Open(const CachePlan& plan) = 0;
  virtual void Close() = 0;

  /// Whether the key is present.
  virtual bool Get(const CacheKey& key) = 0;
  /// In place of what is there.
  virtual void Put(const CacheKey& key, std::string_view value) = 0;
  /// After a get that missed. What finds no room is not kept.
  virtual void Fill(const CacheKey& key, std::string_view value) { Put(key, value); }
  /// Gets, and puts of `value`, as the requests say; how many gets found their key.
  virtual uint64_t Serve(std::span<const CacheRequest> requests, std::string_view value) = 0;
  /// Gets, and a Fill after each that missed; how many found their key.
  virtual uint64_t ServeThrough(std::span<const CacheRequest> requests, std::string_view value) = 0;
  virtual void PutExpiring(const CacheKey& key, std::string_view value,
                           std::chrono::milliseconds ttl);
  /// Gets of which none can begin before the value of the one before has come, all of them `value`;
  /// how many keys are present.
  virtual uint64_t GetInTurn(std::span<const CacheRequest> requests, std::string_view value);
  /// Looks up kBatch keys at once; how many are present.
  virtual uint64_t MultiGet(std::span<const CacheRequest> requests);
  static constexpr size_t kBatch = 16;

  virtual uint64_t entries() const = 0;
  /// Values that found no room so far, where that is counted.
  virtual std::optional<uint64_t> refused() const { return std::nullopt; }
  /// What it says that it takes; 0 if it does not say.
  virtual uint64_t bytes() const { return 0; }

 protected:
  CacheSubject() = default;

  /// Reads the ends of `value` in a way that the compiler cannot leave out.
  static void Touch(std::string_view value) noexcept {
    if (value.empty()) return;
    asm volatile("" : : "r"(value.front()), "r"(value.back()));
  }
};

/// What a subject derives from: loops whose calls of it are direct, as a program's are.
template <class Subject>
// NOLINTNEXTLINE(bugprone-crtp-constructor-accessibility): RocksDbCache lies between
class DirectSubject : public CacheSubject {
 public:
  uint64_t Serve(std::span<const CacheRequest> requests, std::string_view value) final {
    uint64_t hits = 0;
    for (const CacheRequest& request : requests) {
      if (request.is_put) {
        self()->Put(request.key, value);
      } else {
        hits += self()->Get(request.key) ? 1 : 0;
      }
    }
    return hits;
  }
  uint64_t ServeThrough(std::span<const CacheRequest> requests, std::string_view value) final {
    uint64_t hits = 0;
    for (const CacheRequest& request : requests) {
      if (self()->Get(request.key)) {
        ++hits;
      } else {
        self()->Fill(request.key, value);
      }
    }
    return hits;
  }

 private:
  Subject* self() noexcept {
    static_assert(std::is_final_v<Subject>, "or its calls would be virtual");
    return static_cast<Subject*>(this);
  }
};

std::unique_ptr<CacheSubject> MakeBasaltCache();
std::unique_ptr<CacheSubject> MakeShardedMap();
std::unique_ptr<CacheSubject> MakeTbbMap();
std::unique_ptr<CacheSubject> MakeCuckooMap();
std::unique_ptr<CacheSubject> MakeHyperClockCache();
std::unique_ptr<CacheSubject> MakeLruCache();
std::unique_ptr<CacheSubject> MakeNoopCache();

/// Hashes keys for the maps that take a hash function: the one that Basalt itself uses.
///
/// Its call is not noexcept: only then does libstdc++ keep the hash in a node of std::unordered_map
/// instead of computing it anew for each node that it passes.
struct CacheKeyHash {
  using is_transparent = void;  // NOLINT(readability-identifier-naming): its name.
  size_t operator()(std::string_view key) const;
};

}  // namespace basalt::bench
