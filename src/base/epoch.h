#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include "base/asymmetric_fence.h"
#include "base/never_destroyed.h"

// Epoch-based reclamation: readers walk shared structures without locks; what a writer unlinks is
// freed only when no reader can still see it.
//
// Layout
//
//   EpochDomain   now ......... the present epoch, from 1 up; its own cache line
//                 safe below .. what the last scan gave
//                 first block . 64 slots; more blocks hang off it as threads come
//                 orphans ..... what destroyed retire lists had left over
//   Slot          entered ..... the epoch at which its thread last entered, and whether it has left
//                               since (the lowest bit: epochs are even); a cache line a slot
//                 parked ...... 0; 1: the thread makes a full fence when it enters next; or the
//                               epoch of the scan that asks for that, which has it do so, too
//                 taken ....... whether a thread has it
//                 depth ....... entries that have not left; only the slot's thread touches it
//   RetireList    retired ..... a stack of {object, deleter, bytes, epoch}; pushed by any thread,
//                               taken as a whole by whoever collects
//
// Operations
//
//   Enter    loads `now`, stores it into the thread's own slot, and a light fence. Nested entries
//            only count.
//   Leave    marks it as left there.
//   Retire   called after the unlinking; notes `now` with the object (a read-modify-write that
//            leaves it as it is) and pushes both.
//   Collect  advances `now`, a heavy fence, scans all slots for the oldest entry, frees what was
//            retired before both of these epochs. (Before the new `now` too: what is retired during
//            the scan may be in the hands of a reader that the scan has passed already.) What one
//            scan found holds for all: many that share a domain need few scans.
//   ScanFor  the same without the heavy fence, if all threads that are awake have entered since the
//            epoch was noted and advanced (NoteAndAdvance). With it, otherwise: and those that have
//            not entered are parked, so that they are not waited for again while they are idle.
//
// Light and heavy fences are a pair (base/asymmetric_fence.h): of what stands on both sides of the
// light one in one thread, and of the heavy one in another, one order holds, as if each were a full
// fence. The light one costs nothing, so that the loads of one read can overlap with those of the
// next one; the heavy one some microseconds. Where the system has no such pair, and where a test
// brings atomics of its own, Enter exchanges the epoch into the slot instead, which is the fence.
//
// Invariants. All changes of `now` are read-modify-writes, so who acquires an epoch above r sees
// all that its noting came after: a reader that got an unlinked pointer has entered at an epoch e
// of at most its r. What a Collect frees has r below the advanced `now`, so its unlinking comes
// before the advance, the heavy fence and the scan. Either the reader's store of e comes before
// that fence in the order above: the scan finds the slot at e, unless the reader has left, and
// nothing with r >= e is freed. Or the fence comes before all that follows the reader's light one:
// it loads pointers after the unlinking, and cannot get this one. Leaving is a release store and
// the scan acquires it, so all that a reader did happens before the freeing.
//
// Without the heavy fence. A slot that shows an epoch e above r, left or not: its thread acquired e
// before it loads anything in this stay and the next ones, so it sees the unlinking; the stays
// before are over, as the slot says. A slot that shows a smaller one and that it was left: perhaps
// its thread has just entered, and its store is not to be seen yet. Unless it is parked: a scan
// asks for that, makes its heavy fence, and parks the slot only if it says left after that. (Only
// what that scan has asked for: of others it does not know whether they did before the fence.) Who
// enters stores the epoch, and looks at `parked` behind the light fence: either the store came
// before the heavy one, and the slot is not parked; or the thread sees what was asked for, and
// makes a full fence before it loads pointers. A scan looks at `entered` first: a thread that wakes
// clears `parked` before it leaves, so one that is seen to have left since is not taken for parked.
//
// Rules for users: no I/O, no waiting for a lock and no user code between entering and leaving;
// what outlives that takes a reference of its own. Pointers are unlinked by a release store (or a
// stronger one) and loaded with acquire.
//
// Cost. Enter and leave: two stores to the thread's own line (a ns), `now` from a line that is
// shared and seldom written. Retire: an allocation of 40 bytes and one compare-exchange on the
// list. Collect: the heavy fence, a line for each slot (64 up to 64 threads) and for each retired
// item. ScanFor: a line for each slot; the heavy fence, which costs a virtual machine more than ten
// microseconds, once each time that a thread falls idle.

namespace basalt::base {

template <template <class> class Atomic>
class BasicRetireList;

/// The fences of a domain. Atomics of a test's own have none, or bring a pair.
template <template <class> class Atomic>
struct EpochFences {
  static constexpr bool IsLight() noexcept { return false; }
  static void Prepare() noexcept {}
  static void Light() noexcept {}
  static void Heavy() noexcept {}
};
template <>
struct EpochFences<std::atomic> : AsymmetricFence {};

/// The epochs of one set of readers. The process has one (ProcessEpochs); others are for tests.
/// `Atomic` is std::atomic, or a stand-in that lets a test decide how threads interleave.
template <template <class> class Atomic = std::atomic>
class BasicEpochDomain {
  using Fences = EpochFences<Atomic>;
  static constexpr uint64_t kLeft = 1;
  static constexpr uint64_t kStep = 2;
  static constexpr uint64_t kParked = 1;

 public:
  /// A thread's place. Taken, entered, left and returned by one thread at a time.
  class alignas(64) Slot {
   public:
    /// Below any that is not taken, so small; no other thread that holds a slot has it.
    uint32_t number() const noexcept { return number_; }

   private:
    friend class BasicEpochDomain;
    Atomic<uint64_t> entered_{kLeft};
    Atomic<uint64_t> parked_{kParked};
    Atomic<bool> taken_{false};
    uint32_t depth_ = 0;
    uint32_t number_ = 0;
  };

  constexpr BasicEpochDomain() noexcept = default;
  /// Only when no thread is inside and all its retire lists are gone.
  ~BasicEpochDomain();
  BasicEpochDomain(const BasicEpochDomain&) = delete;
  BasicEpochDomain& operator=(const BasicEpochDomain&) = delete;

  /// Finds a free slot or makes 64 more. Throws std::bad_alloc.
  Slot* TakeSlot();
  /// Not while entered.
  void ReturnSlot(Slot* slot) noexcept { slot->taken_.store(false, std::memory_order_release); }
  /// In a forked child, where the threads of all slots but `own` (null: of all) do not exist, and
  /// will neither leave nor return them.
  void ReturnSlotsOfOthers(const Slot* own) noexcept;

  void Enter(Slot* slot) noexcept {
    if (slot->depth_++ != 0) return;
    if (Fences::IsLight()) {
      EnterLightly(slot);
    } else {
      slot->entered_.exchange(now_.load(std::memory_order_acquire), std::memory_order_seq_cst);
    }
  }
  /// True when this was the outermost entry.
  bool Leave(Slot* slot) noexcept {
    if (--slot->depth_ != 0) return false;
    LeaveQuickly(slot);
    return true;
  }

  /// Enter and LeaveQuickly for a stretch in which the thread does not enter again, where the light
  /// fence is there: they do not count. False: the thread is inside already.
  bool EnterQuickly(Slot* slot) noexcept {
    if (slot->depth_ != 0) return false;
    EnterLightly(slot);
    return true;
  }
  void LeaveQuickly(Slot* slot) noexcept {
    slot->entered_.store(slot->entered_.load(std::memory_order_relaxed) | kLeft,
                         std::memory_order_release);
  }

  // What retire lists are made of (see the operations above).

  /// The present epoch, to be noted with what was unlinked before this call.
  uint64_t Note() noexcept { return now_.fetch_add(0, std::memory_order_acq_rel); }
  /// No reader can see what was noted with an epoch below the result. Of the last scan, free.
  uint64_t SafeBelow() const noexcept { return safe_below_.load(std::memory_order_acquire); }
  /// The same as of now: advances the epoch and scans.
  uint64_t AdvanceAndScan() noexcept { return AdvanceAndScan(0); }
  /// Note, and a new epoch: what ScanFor takes.
  uint64_t NoteAndAdvance() noexcept { return now_.fetch_add(kStep, std::memory_order_seq_cst); }
  /// SafeBelow as of now, as far as needed to know whether `noted` is below it. Costs little if all
  /// threads that use the domain have entered since NoteAndAdvance gave that.
  uint64_t ScanFor(uint64_t noted) noexcept;

 private:
  friend class BasicRetireList<Atomic>;

  static constexpr size_t kSlotsPerBlock = 64;

  struct Block {
    Slot slots[kSlotsPerBlock];
    Atomic<Block*> next{nullptr};
  };

  /// Something unlinked that waits for its readers to leave.
  struct Retired {
    void* object;
    void (*deleter)(void*);
    size_t bytes;
    uint64_t epoch;
    Retired* next;
  };
  using Stack = Atomic<Retired*>;

  void EnterLightly(Slot* slot) noexcept {
    const uint64_t now = now_.load(std::memory_order_acquire);
    slot->entered_.store(now, std::memory_order_release);
    Fences::Light();
    if (slot->parked_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      Wake(slot, now);
  }
  void Wake(Slot* slot, uint64_t now) noexcept;
  /// Parks who has left and has not entered in a later epoch than `idle_since`, if that is not 0.
  uint64_t AdvanceAndScan(uint64_t idle_since) noexcept;
  template <class Visit>
  void ForEachSlot(const Visit& visit) noexcept;
  /// A scan's result becomes known to all.
  uint64_t Learn(uint64_t safe_below) noexcept;

  static void Push(Stack* stack, Retired* first, Retired* last) noexcept;
  /// Frees what was retired in an epoch below `bound`, puts the rest back; gives the bytes freed.
  static size_t Sweep(Stack* stack, uint64_t bound) noexcept;

  alignas(64) Atomic<uint64_t> now_{kStep};
  alignas(64) Atomic<uint64_t> safe_below_{0};
  alignas(64) Block first_block_;
  Stack orphans_{nullptr};
};

/// What the owner of a shared structure has unlinked and readers may still see. Any thread may
/// retire and collect. Nothing is freed by itself: the owner collects, for example each time that
/// `bytes()` has grown by some share of its budget. A deleter gets the pointer only, and runs on
/// whatever thread collects, outside all locks; it may outlive the list: the destructor collects
/// once more, and leaves what is still seen to the domain, whose other lists free it when they
/// collect. Destruction never waits.
template <template <class> class Atomic = std::atomic>
class BasicRetireList {
 public:
  using Domain = BasicEpochDomain<Atomic>;

  explicit BasicRetireList(Domain* domain) noexcept : domain_(domain) {}
  ~BasicRetireList();
  BasicRetireList(const BasicRetireList&) = delete;
  BasicRetireList& operator=(const BasicRetireList&) = delete;

  /// What Retire notes an object in: had before the unlinking, so that retiring cannot fail.
  using Note = std::unique_ptr<typename Domain::Retired>;
  /// Throws std::bad_alloc.
  static Note NewNote() { return std::make_unique<typename Domain::Retired>(); }
  /// The same, but null where there is no memory.
  static Note TryNewNote() noexcept { return Note(new (std::nothrow) typename Domain::Retired); }
  /// Takes over `object`, which must be unlinked already and count `bytes` bytes.
  void Retire(Note note, void* object, size_t bytes, void (*deleter)(void*)) noexcept;

  /// Frees what no reader can see any more; gives its bytes. Inside an epoch that is only what was
  /// retired before entering it.
  size_t Collect() noexcept;
  /// The same of what the last scan has shown already, without a scan.
  size_t CollectKnown() noexcept;

  /// Retired and not freed.
  size_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  size_t SweepOwn(uint64_t bound) noexcept;

  Domain* domain_;
  typename Domain::Stack retired_{nullptr};
  Atomic<size_t> bytes_{0};
};

template <template <class> class Atomic>
BasicEpochDomain<Atomic>::~BasicEpochDomain() {
  Sweep(&orphans_, std::numeric_limits<uint64_t>::max());
  Block* block = first_block_.next.load(std::memory_order_acquire);
  while (block != nullptr) {
    delete std::exchange(block, block->next.load(std::memory_order_acquire));
  }
}

template <template <class> class Atomic>
auto BasicEpochDomain<Atomic>::TakeSlot() -> Slot* {
  Fences::Prepare();
  uint32_t number = 0;
  for (Block* block = &first_block_;;) {
    for (Slot& slot : block->slots) {
      if (!slot.taken_.load(std::memory_order_relaxed) &&
          !slot.taken_.exchange(true, std::memory_order_acquire)) {
        slot.number_ = number;
        return &slot;
      }
      ++number;
    }
    Block* next = block->next.load(std::memory_order_seq_cst);
    if (next == nullptr) {
      auto* fresh = new Block;
      if (block->next.compare_exchange_strong(next, fresh, std::memory_order_seq_cst)) {
        next = fresh;
      } else {
        delete fresh;  // Another thread was first: `next` is its block.
      }
    }
    block = next;
  }
}

template <template <class> class Atomic>
void BasicEpochDomain<Atomic>::ReturnSlotsOfOthers(const Slot* own) noexcept {
  for (Block* block = &first_block_; block != nullptr;
       block = block->next.load(std::memory_order_relaxed)) {
    for (Slot& slot : block->slots) {
      if (&slot == own) continue;
      slot.depth_ = 0;
      slot.entered_.store(kLeft, std::memory_order_relaxed);
      slot.taken_.store(false, std::memory_order_relaxed);
    }
  }
}

// The exchange is the full fence. (Not a fence by itself, of which ThreadSanitizer knows nothing.)
template <template <class> class Atomic>
[[gnu::noinline]] void BasicEpochDomain<Atomic>::Wake(Slot* slot, uint64_t now) noexcept {
  slot->entered_.exchange(now, std::memory_order_seq_cst);
  slot->parked_.store(0, std::memory_order_release);
}

template <template <class> class Atomic>
template <class Visit>
void BasicEpochDomain<Atomic>::ForEachSlot(const Visit& visit) noexcept {
  for (Block* block = &first_block_; block != nullptr;
       block = block->next.load(std::memory_order_seq_cst)) {
    for (Slot& slot : block->slots) visit(slot);
  }
}

template <template <class> class Atomic>
uint64_t BasicEpochDomain<Atomic>::Learn(uint64_t safe_below) noexcept {
  uint64_t known = safe_below_.load(std::memory_order_acquire);
  while (known < safe_below &&
         !safe_below_.compare_exchange_weak(known, safe_below, std::memory_order_acq_rel)) {
  }
  return std::max(known, safe_below);
}

template <template <class> class Atomic>
uint64_t BasicEpochDomain<Atomic>::AdvanceAndScan(uint64_t idle_since) noexcept {
  const uint64_t now = now_.fetch_add(kStep, std::memory_order_seq_cst) + kStep;
  const bool parks = idle_since != 0;
  if (parks) {
    ForEachSlot([&](Slot& slot) {
      const uint64_t entered = slot.entered_.load(std::memory_order_relaxed);
      uint64_t parked = 0;
      if ((entered & kLeft) == 0 || entered > (idle_since | kLeft)) return;
      slot.parked_.compare_exchange_strong(parked, now, std::memory_order_acq_rel);
    });
  }
  Fences::Heavy();
  uint64_t oldest = now;
  ForEachSlot([&](Slot& slot) {
    const uint64_t entered = slot.entered_.load(std::memory_order_seq_cst);
    if ((entered & kLeft) == 0) {
      oldest = std::min(oldest, entered);
    } else if (parks && slot.parked_.load(std::memory_order_relaxed) == now) {
      uint64_t parked = now;
      slot.parked_.compare_exchange_strong(parked, kParked, std::memory_order_acq_rel);
    }
  });
  return Learn(oldest);
}

template <template <class> class Atomic>
uint64_t BasicEpochDomain<Atomic>::ScanFor(uint64_t noted) noexcept {
  if (!Fences::IsLight()) return AdvanceAndScan();
  uint64_t oldest = now_.load(std::memory_order_seq_cst);
  ForEachSlot([&](const Slot& slot) {
    const uint64_t entered = slot.entered_.load(std::memory_order_seq_cst);
    const bool is_parked = slot.parked_.load(std::memory_order_acquire) == kParked;
    if ((entered & kLeft) == 0 || !is_parked) oldest = std::min(oldest, entered & ~kLeft);
  });
  return oldest > noted ? Learn(oldest) : AdvanceAndScan(noted);
}

template <template <class> class Atomic>
void BasicEpochDomain<Atomic>::Push(Stack* stack, Retired* first, Retired* last) noexcept {
  last->next = stack->load(std::memory_order_relaxed);
  while (!stack->compare_exchange_weak(last->next, first, std::memory_order_release,
                                       std::memory_order_relaxed)) {
  }
}

template <template <class> class Atomic>
size_t BasicEpochDomain<Atomic>::Sweep(Stack* stack, uint64_t bound) noexcept {
  Retired* rest = stack->exchange(nullptr, std::memory_order_acquire);
  Retired* kept_first = nullptr;
  Retired* kept_last = nullptr;
  Retired* unseen = nullptr;
  while (rest != nullptr) {
    Retired* item = std::exchange(rest, rest->next);
    if (item->epoch < bound) {
      item->next = std::exchange(unseen, item);
    } else {
      item->next = std::exchange(kept_first, item);
      if (kept_last == nullptr) kept_last = item;
    }
  }
  if (kept_first != nullptr) Push(stack, kept_first, kept_last);
  size_t freed_bytes = 0;
  while (unseen != nullptr) {
    Retired* item = std::exchange(unseen, unseen->next);
    item->deleter(item->object);
    freed_bytes += item->bytes;
    delete item;
  }
  return freed_bytes;
}

template <template <class> class Atomic>
BasicRetireList<Atomic>::~BasicRetireList() {
  Collect();
  auto* first = retired_.exchange(nullptr, std::memory_order_acquire);
  if (first == nullptr) return;
  auto* last = first;
  while (last->next != nullptr) last = last->next;
  Domain::Push(&domain_->orphans_, first, last);
}

template <template <class> class Atomic>
void BasicRetireList<Atomic>::Retire(Note note, void* object, size_t bytes,
                                     void (*deleter)(void*)) noexcept {
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  *note = {.object = object,
           .deleter = deleter,
           .bytes = bytes,
           .epoch = domain_->Note(),
           .next = nullptr};
  auto* const item = note.release();
  Domain::Push(&retired_, item, item);
}

template <template <class> class Atomic>
size_t BasicRetireList<Atomic>::Collect() noexcept {
  const bool has_orphans = domain_->orphans_.load(std::memory_order_relaxed) != nullptr;
  if (!has_orphans && retired_.load(std::memory_order_relaxed) == nullptr) return 0;
  const uint64_t bound = domain_->AdvanceAndScan();
  if (has_orphans) Domain::Sweep(&domain_->orphans_, bound);
  return SweepOwn(bound);
}

template <template <class> class Atomic>
size_t BasicRetireList<Atomic>::CollectKnown() noexcept {
  if (retired_.load(std::memory_order_relaxed) == nullptr) return 0;
  return SweepOwn(domain_->SafeBelow());
}

template <template <class> class Atomic>
size_t BasicRetireList<Atomic>::SweepOwn(uint64_t bound) noexcept {
  const size_t freed_bytes = Domain::Sweep(&retired_, bound);
  bytes_.fetch_sub(freed_bytes, std::memory_order_relaxed);
  return freed_bytes;
}

extern template class BasicEpochDomain<std::atomic>;
extern template class BasicRetireList<std::atomic>;

using EpochDomain = BasicEpochDomain<std::atomic>;

namespace internal {

extern NeverDestroyed<EpochDomain> process_epochs;

struct ThreadEpochSlot {
  EpochDomain::Slot* slot;  ///< Null: none taken yet.
  /// The same, or null where a QuickEpochGuard cannot be had.
  EpochDomain::Slot* quick_slot;
  bool thread_ends;  ///< Destructors of thread_locals are running: return it after each use.
};
// Of the threads' memory that is laid out when a program or library is loaded: no call to find it.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local ThreadEpochSlot thread_epoch_slot;
void TakeThreadSlot();
void ReturnThreadSlot() noexcept;
/// See ReturnSlotsOfOthers.
void ForgetSlotsOfParent() noexcept;

}  // namespace internal

/// The one domain of this process. A forked child has the slot of the thread that forked alone.
inline EpochDomain* ProcessEpochs() noexcept { return &internal::process_epochs.object; }

/// Keeps the calling thread inside the process's epochs: what it can reach is not freed before the
/// guard is gone. Guards nest. The first one of a thread takes a slot for it, which may throw
/// std::bad_alloc when there are more threads than ever; the slot is returned when the thread ends.
class EpochGuard {
 public:
  EpochGuard() {
    if (internal::thread_epoch_slot.slot == nullptr) internal::TakeThreadSlot();
    ProcessEpochs()->Enter(internal::thread_epoch_slot.slot);
  }
  ~EpochGuard() {
    if (ProcessEpochs()->Leave(internal::thread_epoch_slot.slot) &&
        internal::thread_epoch_slot.thread_ends) {
      internal::ReturnThreadSlot();
    }
  }
  /// Of the thread's slot: see EpochDomain::Slot.
  uint32_t thread_number() const noexcept { return internal::thread_epoch_slot.slot->number(); }
  EpochGuard(const EpochGuard&) = delete;
  EpochGuard& operator=(const EpochGuard&) = delete;
};

/// An EpochGuard in half as many steps, for a short stretch that enters no epoch by itself. It is
/// empty where it cannot be had at once: inside another guard, at a thread's first use and at its
/// end, and without a light fence. The caller then takes an EpochGuard.
class QuickEpochGuard {
 public:
  QuickEpochGuard() noexcept : slot_(internal::thread_epoch_slot.quick_slot) {
    if (slot_ != nullptr && !ProcessEpochs()->EnterQuickly(slot_)) slot_ = nullptr;
  }
  ~QuickEpochGuard() {
    if (slot_ != nullptr) ProcessEpochs()->LeaveQuickly(slot_);
  }
  QuickEpochGuard(const QuickEpochGuard&) = delete;
  QuickEpochGuard& operator=(const QuickEpochGuard&) = delete;

  explicit operator bool() const noexcept { return slot_ != nullptr; }
  /// Of the thread's slot; not when empty.
  uint32_t thread_number() const noexcept { return slot_->number(); }

  /// The thread stays inside, and is for whoever calls Resume next to leave: a function that goes
  /// on with what the guard's owner found, which need not keep the guard while that runs.
  void Suspend() noexcept { slot_ = nullptr; }
  static QuickEpochGuard Resume() noexcept {
    return QuickEpochGuard(internal::thread_epoch_slot.quick_slot);
  }

 private:
  explicit QuickEpochGuard(EpochDomain::Slot* slot) noexcept : slot_(slot) {}

  EpochDomain::Slot* slot_;
};

/// A retire list for readers that hold an EpochGuard.
class RetireList : public BasicRetireList<std::atomic> {
 public:
  RetireList() noexcept : BasicRetireList(ProcessEpochs()) {}
};

}  // namespace basalt::base
