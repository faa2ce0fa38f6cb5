#pragma once

#include <hwy/highway.h>

#include <cstdint>
#include <vector>

namespace basalt::base {

/// The instruction sets that there is code for and that this processor has.
inline std::vector<int64_t> DispatchTargets() {
  std::vector<int64_t> targets;
  const int64_t all = hwy::SupportedTargets() & HWY_TARGETS;
  for (int64_t rest = all; rest != 0; rest &= rest - 1) targets.push_back(rest & -rest);
  return targets;
}

/// While it lives, code that is chosen at run time is that of one instruction set.
class ForcedTarget {
 public:
  explicit ForcedTarget(int64_t target) { Force(target); }
  ForcedTarget(const ForcedTarget&) = delete;
  ForcedTarget& operator=(const ForcedTarget&) = delete;
  ~ForcedTarget() { Force(0); }

 private:
  static void Force(int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

}  // namespace basalt::base
