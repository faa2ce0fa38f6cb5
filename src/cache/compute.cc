#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>

#include "base/check.h"
#include "cache/core.h"
#include "cache/flight.h"

// One computation a key: who finds none under way computes, the others wait for it.

namespace basalt::cache {

Flight::~Flight() {
  if (entry != nullptr) shard->Unpin(entry);
}

namespace {

Status TooManyHandles() noexcept {
  return Status(StatusCode::kResourceExhausted,
                "get or compute: too many handles hold the value already");
}

}  // namespace

Result<EntryRef> CacheCore::FindPinnedLocked(Shard& shard, uint64_t hash, std::string_view key,
                                             Aftermath* after) {
  const Index::Found found = shard.Find(hash, key, after);
  if (!found) return EntryRef();
  if (!shard.TryPin(found.entry())) return TooManyHandles();
  Index::RaiseFrequency(found);
  return EntryRef(&shard, found.entry());
}

Result<EntryRef> CacheCore::Await(Flight* flight) {
  std::unique_lock lock(flight->mutex);
  flight->ended.wait(lock, [&] { return flight->state != Flight::State::kComputing; });
  if (flight->state == Flight::State::kThrew) return EntryRef();
  if (!flight->error.ok()) return flight->error;
  if (!flight->shard->TryPin(flight->entry)) {
    return TooManyHandles();
  }
  return EntryRef(flight->shard, flight->entry);
}

Result<EntryRef> CacheCore::Compute(const std::shared_ptr<Flight>& flight,
                                    const std::function<Result<NewEntry>()>& compute) {
  // First, and also when the function throws: else who waits would wait for ever.
  struct Ending {
    Flight* flight;
    Flight::State state = Flight::State::kThrew;
    ~Ending() {
      {
        const std::lock_guard guard(flight->shard->lock());
        std::erase_if(flight->shard->flights(),
                      [&](const auto& listed) { return listed.get() == flight; });
      }
      {
        const std::lock_guard guard(flight->mutex);
        flight->state = state;
      }
      flight->ended.notify_all();
    }
  } ending{.flight = flight.get()};

  Shard* const shard = flight->shard;
  computed_.fetch_add(1, std::memory_order_relaxed);
  Result<NewEntry> computed = compute();
  ending.state = Flight::State::kDone;
  if (!computed) {
    flight->error = computed.error();
    return computed.error();
  }
  NewEntry entry = std::move(*computed);
  BASALT_CHECK(shard->TryPin(entry.get()));
  BASALT_CHECK(shard->TryPin(entry.get()));
  EntryRef ref(shard, entry.get());
  flight->entry = entry.get();
  bool is_kept = false;
  {
    ShardGuard guard(shard);
    // Out of the list before it is linked, so that its own link does not beat it.
    std::erase(shard->flights(), flight);
    Moment now(&clock_);
    is_kept =
        !flight->is_beaten && !budget_.IsWithin(0) &&
        shard->Link(entry.get(), entry.hash(), Condition::kAlways, nullptr, &now, guard.after());
  }
  Entry* const unlinked = entry.Release();
  if (!is_kept) shard->Orphan(unlinked);
  return ref;
}

Result<EntryRef> CacheCore::GetOrCompute(std::string_view key, Ttl ttl,
                                         const std::function<Result<NewEntry>()>& compute) {
  BASALT_RETURN_IF_ERROR(CheckKeyAndTtl(key, ttl));
  const uint64_t hash = HashOf(key);
  Shard& shard = ShardOf(hash);
  if (EntryRef ref = Find(key, true)) return ref;
  for (;;) {
    std::shared_ptr<Flight> flight;
    bool computes = false;
    try {
      // Made before the lock: under it nothing is allocated but the list's growth.
      auto fresh = std::make_shared<Flight>(hash, std::string(key), &shard);
      ShardGuard guard(&shard);
      Result<EntryRef> present = FindPinnedLocked(shard, hash, key, guard.after());
      if (!present || *present) return present;
      // It has expired. Who is told may ask for the key, too, so nobody computes it until then.
      if (guard.after()->removed_count != 0) continue;
      for (const std::shared_ptr<Flight>& listed : shard.flights()) {
        if (listed->hash == hash && listed->key == key) flight = listed;
      }
      if (flight == nullptr) {
        shard.flights().push_back(fresh);
        flight = std::move(fresh);
        computes = true;
      }
    } catch (const std::bad_alloc&) {
      return NoMemory();
    }
    if (computes) return Compute(flight, compute);
    if (flight->computer == std::this_thread::get_id()) {
      return Status(StatusCode::kFailedPrecondition,
                    "get or compute: the function asks for the key that it computes");
    }
    Result<EntryRef> awaited = Await(flight.get());
    if (!awaited || *awaited) return awaited;
  }
}

}  // namespace basalt::cache
