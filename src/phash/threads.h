#pragma once

#include <cstdint>
#include <functional>

namespace basalt::phash {

/// Runs `work(thread)` for each of `count` threads, the calling one being thread 0, and waits for
/// all. Fewer run when the system gives no more, so that work must be handed out by a counter. An
/// exception of any thread is thrown here when all have ended; `stop` is called at once then.
void RunOnThreads(uint32_t count, const std::function<void(uint32_t thread)>& work,
                  const std::function<void()>& stop);

}  // namespace basalt::phash
