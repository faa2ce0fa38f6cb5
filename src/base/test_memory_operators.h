#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "base/arena.h"
#include "base/test_memory.h"

// What replaces operator new for a whole test program: to be included by one of its files.

// NOLINTBEGIN(google-build-namespaces)

namespace {

// Of this thread, counted from now; none fails while `failing` is 0.
thread_local int64_t allowed = 0;
thread_local int64_t failing = 0;
using Of = basalt::base::MemoryThatFails::Of;
thread_local Of counted = Of::kEvery;

bool FailsNow() noexcept {
  if (failing == 0) return false;
  if (allowed > 0) {
    --allowed;
    return false;
  }
  if (allowed == -failing) return false;
  --allowed;
  return true;
}

bool ThrowingFails() noexcept { return counted == Of::kEvery && FailsNow(); }
bool NothrowFails() noexcept { return counted != Of::kPools && FailsNow(); }
bool PoolFails() noexcept { return counted == Of::kPools && FailsNow(); }

// Apart, since g++ warns where it sees memory of a replaced operator freed by std::free.
[[gnu::noinline]] void Free(void* memory) noexcept { std::free(memory); }

void* Aligned(size_t bytes, std::align_val_t alignment) noexcept {
  const auto align = static_cast<size_t>(alignment);
  return std::aligned_alloc(align, (bytes + align - 1) / align * align);
}

void* OrThrow(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t bytes) { return OrThrow(ThrowingFails() ? nullptr : std::malloc(bytes)); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return NothrowFails() ? nullptr : std::malloc(bytes);
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  return OrThrow(ThrowingFails() ? nullptr : Aligned(bytes, alignment));
}
void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return NothrowFails() ? nullptr : Aligned(bytes, alignment);
}
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete(void* memory, size_t) noexcept { Free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { Free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { Free(memory); }
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  Free(memory);
}

namespace basalt::base {

MemoryThatFails::MemoryThatFails(int64_t allowed_ones, int64_t failing_ones, Of of) noexcept {
  allowed = allowed_ones;
  failing = failing_ones;
  counted = of;
  refuses_pools.store(PoolFails, std::memory_order_relaxed);
}
MemoryThatFails::~MemoryThatFails() { failing = 0; }
bool MemoryThatFails::has_failed() const noexcept { return allowed < 0; }

}  // namespace basalt::base

// NOLINTEND(google-build-namespaces)
