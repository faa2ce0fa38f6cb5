#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "bench/cache_sim/object_queue.h"
#include "bench/cache_sim/policy.h"

namespace basalt::cache_sim {
namespace {

/// How often keys were seen of late: four rows of counters up to 15, of which the least counts. All
/// are halved after ten requests for each object that the cache can hold.
class CountMinSketch {
 public:
  explicit CountMinSketch(uint64_t objects)
      : mask_(std::bit_ceil(std::max<uint64_t>(objects, 16)) * 4 - 1),
        halve_after_(std::max<uint64_t>(objects, 16) * 10) {
    for (std::vector<uint8_t>& row : rows_) row.resize(mask_ + 1);
  }

  void Count(uint32_t key) {
    const uint8_t least = Estimate(key);
    if (least < kCountMax) {
      for (size_t row = 0; row < rows_.size(); ++row) {
        uint8_t& counter = rows_[row][Position(key, row)];
        if (counter == least) ++counter;
      }
    }
    if (++counted_ == halve_after_) Halve();
  }

  uint8_t Estimate(uint32_t key) const {
    uint8_t least = kCountMax;
    for (size_t row = 0; row < rows_.size(); ++row) {
      least = std::min(least, rows_[row][Position(key, row)]);
    }
    return least;
  }

 private:
  static constexpr uint8_t kCountMax = 15;

  uint64_t Position(uint32_t key, size_t row) const {
    uint64_t mixed = (uint64_t{key} + 1) * kMultipliers[row];
    mixed ^= mixed >> 32;
    return (mixed * kMultipliers[row] >> 20) & mask_;
  }

  void Halve() {
    for (std::vector<uint8_t>& row : rows_) {
      for (uint8_t& counter : row) counter /= 2;
    }
    counted_ /= 2;
  }

  static constexpr std::array<uint64_t, 4> kMultipliers = {
      0x9E37'79B9'7F4A'7C15, 0xC2B2'AE3D'27D4'EB4F, 0x1656'67B1'9E37'79F9, 0xD6E8'FEB8'6659'FD93};

  const uint64_t mask_;
  const uint64_t halve_after_;
  uint64_t counted_ = 0;
  std::array<std::vector<uint8_t>, 4> rows_;
};

enum class TinyLfuPlace : uint8_t { kNowhere, kWindow, kProbation, kProtected };

class WTinyLfu final : public Policy {
 public:
  WTinyLfu(const Trace& trace, uint64_t capacity_bytes)
      : capacity_bytes_(capacity_bytes),
        window_bytes_(std::max<uint64_t>(capacity_bytes / 100, 1)),
        main_bytes_(capacity_bytes - window_bytes_),
        protected_bytes_(main_bytes_ / 5 * 4),
        sketch_(capacity_bytes * trace.key_count / std::max<uint64_t>(trace.footprint_bytes, 1)),
        links_(trace.key_count),
        places_(trace.key_count, TinyLfuPlace::kNowhere) {}

  bool Access(uint32_t key, uint32_t size) override {
    sketch_.Count(key);
    if (places_[key] != TinyLfuPlace::kNowhere) {
      Promote(key);
      return true;
    }
    if (size > capacity_bytes_) return false;
    window_.PushNewest(key, size);
    places_[key] = TinyLfuPlace::kWindow;
    // The newest stays in the window even where it is larger than that.
    while (window_.bytes() > window_bytes_ &&
           (window_.oldest() != key || HeldBytes() > capacity_bytes_)) {
      LeaveWindow();
    }
    return false;
  }

 private:
  uint64_t HeldBytes() const { return window_.bytes() + probation_.bytes() + protected_.bytes(); }

  void Promote(uint32_t key) {
    if (places_[key] == TinyLfuPlace::kWindow) return window_.MoveToNewest(key);
    if (places_[key] == TinyLfuPlace::kProtected) return protected_.MoveToNewest(key);
    probation_.Remove(key);
    protected_.PushNewest(key, probation_.SizeOf(key));
    places_[key] = TinyLfuPlace::kProtected;
    while (protected_.bytes() > protected_bytes_) {
      const uint32_t demoted = protected_.PopOldest();
      probation_.PushNewest(demoted, protected_.SizeOf(demoted));
      places_[demoted] = TinyLfuPlace::kProbation;
    }
  }

  /// The oldest of the window goes to the main part, if there is room for it or if it was seen more
  /// often than each object that would have to leave for it.
  void LeaveWindow() {
    const uint32_t candidate = window_.PopOldest();
    const uint32_t size = window_.SizeOf(candidate);
    const uint8_t seen = sketch_.Estimate(candidate);
    places_[candidate] = TinyLfuPlace::kNowhere;
    if (size > main_bytes_) return;
    while (probation_.bytes() + protected_.bytes() + size > main_bytes_) {
      ObjectQueue& part = probation_.empty() ? protected_ : probation_;
      if (sketch_.Estimate(part.oldest()) >= seen) return;
      places_[part.PopOldest()] = TinyLfuPlace::kNowhere;
    }
    probation_.PushNewest(candidate, size);
    places_[candidate] = TinyLfuPlace::kProbation;
  }

  const uint64_t capacity_bytes_;
  const uint64_t window_bytes_;
  const uint64_t main_bytes_;
  const uint64_t protected_bytes_;
  CountMinSketch sketch_;
  std::vector<QueueLink> links_;
  ObjectQueue window_{&links_};
  ObjectQueue probation_{&links_};
  ObjectQueue protected_{&links_};
  std::vector<TinyLfuPlace> places_;
};

}  // namespace

std::unique_ptr<Policy> MakeWTinyLfu(const Trace& trace, uint64_t capacity_bytes) {
  return std::make_unique<WTinyLfu>(trace, capacity_bytes);
}

}  // namespace basalt::cache_sim
