#include <algorithm>
#include <vector>

#include "bench/cache_sim/object_queue.h"
#include "bench/cache_sim/policy.h"

namespace basalt::cache_sim {
namespace {

constexpr uint8_t kFrequencyMax = 3;
/// Hits in the small queue that lead into the main one.
constexpr uint8_t kPromotionHits = 1;

enum class Place : uint8_t { kNowhere, kSmall, kMain, kGhost };

class S3Fifo final : public Policy {
 public:
  S3Fifo(const Trace& trace, uint64_t capacity_bytes)
      : capacity_bytes_(capacity_bytes),
        small_bytes_(capacity_bytes / 10),
        ghost_bytes_(capacity_bytes - small_bytes_),
        links_(trace.key_count),
        places_(trace.key_count, Place::kNowhere),
        frequencies_(trace.key_count, 0) {}

  bool Access(uint32_t key, uint32_t size) override {
    if (places_[key] == Place::kSmall || places_[key] == Place::kMain) {
      frequencies_[key] = std::min<uint8_t>(frequencies_[key] + 1, kFrequencyMax);
      return true;
    }
    if (size > capacity_bytes_) return false;
    const bool came_back = places_[key] == Place::kGhost;
    if (came_back) ghosts_.Remove(key);
    while (small_.bytes() + main_.bytes() + size > capacity_bytes_) MakeRoom();
    frequencies_[key] = 0;
    (came_back ? main_ : small_).PushNewest(key, size);
    places_[key] = came_back ? Place::kMain : Place::kSmall;
    return false;
  }

 private:
  void MakeRoom() {
    if (small_.bytes() > small_bytes_ || main_.empty()) {
      LeaveSmall();
    } else {
      LeaveMain();
    }
  }

  /// The oldest of the small queue goes to the main one or becomes a ghost.
  void LeaveSmall() {
    const uint32_t key = small_.PopOldest();
    const uint32_t size = small_.SizeOf(key);
    if (frequencies_[key] >= kPromotionHits) {
      frequencies_[key] = 0;
      main_.PushNewest(key, size);
      places_[key] = Place::kMain;
      return;
    }
    ghosts_.PushNewest(key, size);
    places_[key] = Place::kGhost;
    while (ghosts_.bytes() > ghost_bytes_) places_[ghosts_.PopOldest()] = Place::kNowhere;
  }

  void LeaveMain() {
    while (frequencies_[main_.oldest()] > 0) {
      --frequencies_[main_.oldest()];
      main_.MoveToNewest(main_.oldest());
    }
    places_[main_.PopOldest()] = Place::kNowhere;
  }

  const uint64_t capacity_bytes_;
  const uint64_t small_bytes_;
  const uint64_t ghost_bytes_;
  std::vector<QueueLink> links_;
  ObjectQueue small_{&links_};
  ObjectQueue main_{&links_};
  ObjectQueue ghosts_{&links_};
  std::vector<Place> places_;
  std::vector<uint8_t> frequencies_;
};

}  // namespace

std::unique_ptr<Policy> MakeS3Fifo(const Trace& trace, uint64_t capacity_bytes) {
  return std::make_unique<S3Fifo>(trace, capacity_bytes);
}

}  // namespace basalt::cache_sim
