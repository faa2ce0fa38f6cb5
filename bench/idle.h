#pragma once

namespace basalt::bench {

/// Waits until no other thread of this process has run, written or waited for the disk for 200 ms,
/// which is how a store's background work is seen to end without asking the store. Seconds of work
/// from the call on: the quiet stretch at the end is not counted.
double WaitUntilIdle();

}  // namespace basalt::bench
