#pragma once

#include <cstdint>
#include <string>

#include "base/random.h"
#include "shared_map/test_map.h"

namespace basalt::shared_map {

/// Random writes to a map and to a model of it.
class Workload {
 public:
  Workload(uint64_t seed, Durability durability) : random_(seed), durability_(durability) {}

  /// False: a write failed. It is then in doubt, the one before it is not.
  bool Step(SharedMap* map) {
    before_ = model_;
    WriteOptions options;
    options.durability = durability_;
    const std::string key = KeyOf(random_.Below(60));
    const std::string value(random_.Below(300), static_cast<char>('a' + random_.Below(26)));
    Status status;
    switch (random_.Below(20)) {
      case 0:
        // Says nothing about what the map holds, whether it succeeds or not.
        return map->Compact().ok();
      case 1: {
        WriteBatch batch;
        for (int i = 0; i < 5; ++i) {
          const std::string other = KeyOf(random_.Below(60));
          batch.Put(other, value);
          model_[other] = value;
        }
        status = map->Write(batch, options);
        break;
      }
      case 2:
      case 3:
        model_.erase(key);
        status = map->Delete(key, options);
        break;
      default:
        model_[key] = value;
        status = map->Put(key, value, options);
    }
    return status.ok();
  }
  const Model& model() const { return model_; }
  void SetModel(const Model& model) { model_ = model; }
  /// As of before the last write.
  const Model& before() const { return before_; }
  base::Random& random() { return random_; }

 private:
  base::Random random_;
  Durability durability_;
  Model model_;
  Model before_;
};

inline Model ContentsOf(const SharedMap& map) {
  auto reader = map.NewReader().value();
  return Contents(&reader);
}

}  // namespace basalt::shared_map
