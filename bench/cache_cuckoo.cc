#include <functional>
#include <libcuckoo/cuckoohash_map.hh>
#include <string>

#include "bench/cache_subject.h"

namespace basalt::bench {
namespace {

class CuckooMap final : public DirectSubject<CuckooMap> {
 public:
  std::string name() const override { return "libcuckoo"; }
  std::string description() const override { return "cuckoohash_map<std::string, std::string>"; }

  void Open(const CachePlan& plan) override {
    map_ = plan.reserve ? std::make_unique<Map>(plan.entries) : std::make_unique<Map>();
  }
  void Close() override { map_.reset(); }

  bool Get(const CacheKey& key) override {
    return map_->find_fn(key.view(), [](const std::string& value) { Touch(value); });
  }
  void Put(const CacheKey& key, std::string_view value) override {
    map_->insert_or_assign(key.view(), value);
  }

  uint64_t entries() const override { return map_->size(); }

 private:
  using Map = libcuckoo::cuckoohash_map<std::string, std::string, CacheKeyHash, std::equal_to<>>;
  std::unique_ptr<Map> map_;
};

}  // namespace

std::unique_ptr<CacheSubject> MakeCuckooMap() { return std::make_unique<CuckooMap>(); }

}  // namespace basalt::bench
