#include "io/clock.h"

#include <chrono>
#include <thread>

#include "base/never_destroyed.h"

namespace basalt::io {
namespace {

class SystemClock final : public Clock {
 public:
  uint64_t MonotonicMicros() override {
    return Count<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch());
  }
  uint64_t WallMillis() override {
    return Count<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch());
  }
  void SleepFor(uint64_t micros) override {
    std::this_thread::sleep_for(std::chrono::microseconds(micros));
  }

 private:
  template <class Unit, class Duration>
  static uint64_t Count(Duration duration) {
    return static_cast<uint64_t>(std::chrono::duration_cast<Unit>(duration).count());
  }
};

}  // namespace

Clock* Clock::System() {
  static constinit base::NeverDestroyed<SystemClock> clock;
  return &clock.object;
}

}  // namespace basalt::io
