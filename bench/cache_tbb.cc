#include <tbb/concurrent_hash_map.h>
#include <tbb/version.h>

#include <string>

#include "bench/cache_subject.h"
#include "bench/text.h"

namespace basalt::bench {
namespace {

struct HashCompare {
  using is_transparent = void;  // NOLINT(readability-identifier-naming): its name.
  size_t hash(std::string_view key) const { return CacheKeyHash()(key); }
  bool equal(std::string_view a, std::string_view b) const { return a == b; }
};

class TbbMap final : public DirectSubject<TbbMap> {
 public:
  std::string name() const override { return "tbb"; }
  std::string description() const override {
    return Format("oneTBB %d.%d concurrent_hash_map<std::string, std::string>", TBB_VERSION_MAJOR,
                  TBB_VERSION_MINOR);
  }

  void Open(const CachePlan& plan) override {
    map_ = std::make_unique<Map>(plan.reserve ? plan.entries : 0);
  }
  void Close() override { map_.reset(); }

  bool Get(const CacheKey& key) override {
    Map::const_accessor found;
    if (!map_->find(found, key.view())) return false;
    Touch(found->second);
    return true;
  }
  void Put(const CacheKey& key, std::string_view value) override {
    Map::accessor place;
    map_->insert(place, key.view());
    place->second = value;
  }

  uint64_t entries() const override { return map_->size(); }

 private:
  using Map = tbb::concurrent_hash_map<std::string, std::string, HashCompare>;
  std::unique_ptr<Map> map_;
};

}  // namespace

std::unique_ptr<CacheSubject> MakeTbbMap() { return std::make_unique<TbbMap>(); }

}  // namespace basalt::bench
