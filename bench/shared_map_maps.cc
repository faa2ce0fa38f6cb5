#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <functional>
#include <unordered_map>

#include "base/hash.h"
#include "bench/shared_map_subject.h"

namespace basalt::bench {
namespace {

struct KeyHash {
  // What the libraries look for. NOLINTBEGIN(readability-identifier-naming)
  using is_transparent = void;
  using is_avalanching = void;  // Boost: the bits need no more mixing.
  // NOLINTEND(readability-identifier-naming)
  size_t operator()(std::string_view key) const noexcept { return base::Hash(key); }
};

/// A hash table in memory. Lookups are by string_view.
template <class Map>
class MapSubject final : public SharedMapSubject {
 public:
  void Build(const SharedMapRecords& records, const std::string&) override {
    map_.reserve(records.count());
    std::array<char, kSharedMapValueBytes> value;
    for (uint64_t number = 0; number < records.count(); ++number) {
      records.FillValue(number, 'v', value.data());
      map_.emplace(std::string(RecordKey::Of(number).view()),
                   std::string(value.data(), value.size()));
    }
  }
  void Open(const std::string&) override {}
  bool lies_in_files() const override { return false; }

  Seen Get(std::string_view key) override {
    const auto found = map_.find(key);
    return found == map_.end() ? Seen{0, Seen::kNothing} : LookAt(found->second);
  }
  void GetMany(std::span<const std::string_view> keys, char* values) override {
    for (const std::string_view key : keys) {
      const auto found = map_.find(key);
      if (found == map_.end()) Fail("get many from a map in memory", "a key is missing");
      CopyValue(found->second, values);
      values += kSharedMapValueBytes;
    }
  }

 private:
  Map map_;
};

}  // namespace

std::unique_ptr<SharedMapSubject> MakeUnorderedMap() {
  return std::make_unique<
      MapSubject<std::unordered_map<std::string, std::string, KeyHash, std::equal_to<>>>>();
}
std::unique_ptr<SharedMapSubject> MakeFlatMap() {
  return std::make_unique<
      MapSubject<boost::unordered_flat_map<std::string, std::string, KeyHash, std::equal_to<>>>>();
}

}  // namespace basalt::bench
