#include "bench/cache_subject.h"

#include "base/hash.h"

namespace basalt::bench {
namespace {

/// Does nothing: its figures are what the harness costs the others.
class NoopCache final : public DirectSubject<NoopCache> {
 public:
  std::string name() const override { return "noop"; }
  std::string description() const override { return "does nothing: the cost of the harness"; }
  bool is_noop() const override { return true; }

  void Open(const CachePlan&) override {}
  void Close() override {}
  bool Get(const CacheKey& key) override {
    Touch(key.view());
    return true;
  }
  void Put(const CacheKey& key, std::string_view value) override {
    Touch(key.view());
    Touch(value);
  }
  uint64_t entries() const override { return 0; }
};

}  // namespace

void CacheSubject::PutExpiring(const CacheKey&, std::string_view, std::chrono::milliseconds) {
  Fail("put with a time to live in " + name(), "it has none");
}

uint64_t CacheSubject::GetInTurn(std::span<const CacheRequest>, std::string_view) {
  Fail("look up keys in turn in " + name(), "it is not asked for that");
}

uint64_t CacheSubject::MultiGet(std::span<const CacheRequest>) {
  Fail("look up many keys in " + name(), "it has no call for that");
}

size_t CacheKeyHash::operator()(std::string_view key) const { return base::Hash(key); }

std::unique_ptr<CacheSubject> MakeNoopCache() { return std::make_unique<NoopCache>(); }

}  // namespace basalt::bench
