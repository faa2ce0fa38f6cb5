#include "base/epoch.h"

#include <utility>

namespace basalt::base {

template class BasicEpochDomain<std::atomic>;
template class BasicRetireList<std::atomic>;

namespace internal {

constinit NeverDestroyed<EpochDomain> process_epochs;
constinit thread_local ThreadEpochSlot thread_epoch_slot{};

namespace {

/// Returns the slot of a thread that ends. Destructors that run later take one for each use.
struct ReturnAtThreadEnd {
  ~ReturnAtThreadEnd() {
    thread_epoch_slot.thread_ends = true;
    ReturnThreadSlot();
  }
};

}  // namespace

void TakeThreadSlot() {
  thread_epoch_slot.slot = ProcessEpochs()->TakeSlot();
  if (!thread_epoch_slot.thread_ends) {
    // Whether there is a light fence was settled before the slot was given.
    if (AsymmetricFence::IsLight()) thread_epoch_slot.quick_slot = thread_epoch_slot.slot;
    static thread_local ReturnAtThreadEnd return_at_thread_end;
    static_cast<void>(return_at_thread_end);
  }
}

void ReturnThreadSlot() noexcept {
  thread_epoch_slot.quick_slot = nullptr;
  ProcessEpochs()->ReturnSlot(std::exchange(thread_epoch_slot.slot, nullptr));
}

void ForgetSlotsOfParent() noexcept {
  ProcessEpochs()->ReturnSlotsOfOthers(thread_epoch_slot.slot);
}

}  // namespace internal
}  // namespace basalt::base
