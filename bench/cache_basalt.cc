#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include "basalt/cache.h"
#include "bench/cache_subject.h"

namespace basalt::bench {
namespace {

void Check(const Status& status, std::string_view what) {
  if (!status.ok()) Fail(what, status.ToString());
}

class BasaltCache final : public DirectSubject<BasaltCache> {
 public:
  std::string name() const override { return "basalt"; }
  std::string description() const override { return "default options but the capacity"; }
  bool evicts() const override { return true; }
  bool expires() const override { return true; }
  bool gets_many() const override { return true; }
  bool has_shards() const override { return true; }

  void Open(const CachePlan& plan) override {
    CacheOptions options;
    options.capacity_bytes = plan.capacity_bytes;
    options.shards = plan.shards;
    Result<std::unique_ptr<Cache>> cache = Cache::Create(std::move(options));
    Check(cache.status(), "make a basalt cache");
    cache_ = std::move(cache).value();
  }
  void Close() override { cache_.reset(); }

  bool Get(const CacheKey& key) override {
    const MaybeValue value = cache_->Get(key.view());
    if (!value) return false;
    Touch(value->view());
    return true;
  }
  void Put(const CacheKey& key, std::string_view value) override {
    Check(cache_->Put(key.view(), value), "put into basalt");
  }
  void Fill(const CacheKey& key, std::string_view value) override {
    const Status status = cache_->Put(key.view(), value);
    if (status.code() != StatusCode::kResourceExhausted) Check(status, "put into basalt");
  }
  void PutExpiring(const CacheKey& key, std::string_view value,
                   std::chrono::milliseconds ttl) override {
    Check(cache_->Put(key.view(), value, {.ttl = ttl}), "put into basalt");
  }
  uint64_t GetInTurn(std::span<const CacheRequest> requests, std::string_view value) override {
    uint64_t found = 0;
    ptrdiff_t ahead = 0;
    for (const CacheRequest& request : requests) {
      // It is the request itself, which the processor cannot know before.
      const MaybeValue got = cache_->Get((&request + ahead)->key.view());
      if (!got) continue;
      Touch(got->view());
      ahead = got->view().front() - value.front();
      ++found;
    }
    return found;
  }
  uint64_t MultiGet(std::span<const CacheRequest> requests) override {
    std::array<std::string_view, kBatch> keys;
    for (size_t i = 0; i < kBatch; ++i) keys[i] = requests[i].key.view();
    std::array<MaybeValue, kBatch> values;
    Check(cache_->MultiGet(keys, values), "look up many keys in basalt");
    uint64_t found = 0;
    for (const MaybeValue& value : values) {
      if (!value) continue;
      Touch(value->view());
      ++found;
    }
    return found;
  }

  uint64_t entries() const override { return cache_->GetStats().entries; }
  std::optional<uint64_t> refused() const override { return cache_->GetStats().refused; }
  uint64_t bytes() const override { return cache_->GetStats().bytes; }

 private:
  std::unique_ptr<Cache> cache_;
};

}  // namespace

std::unique_ptr<CacheSubject> MakeBasaltCache() { return std::make_unique<BasaltCache>(); }

}  // namespace basalt::bench
