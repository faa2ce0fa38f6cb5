#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/arena.h"
#include "base/epoch.h"
#include "base/internal_key.h"
#include "base/second_hash.h"
#include "memtable/hash_index.h"
#include "memtable/record.h"
#include "memtable/segment.h"

namespace basalt::memtable {

/// The index of a part of a memtable, for the keys whose hashes begin alike. Thread-safe; `hash`
/// below is the key's hash with the keyspace mixed in. Its low half is the tag of the key's word.
///
/// Keys of one tag. If a search meets kKeysOfOneHashMax words of other keys with its tag, the key's
/// word has the tag of its SecondHash. Words are never removed and a search sees all words of its
/// tag, so later searches for the key take the same decision: the number of those words only grows,
/// and a thread that saw fewer of them cannot store a word in the empty place that it saw.
class alignas(64) Shard {
 public:
  using Position = base::Arena::Position;

  /// `places`: those of all segments. `records`: where positions lead. All but the pool outlives
  /// the shard.
  Shard(std::shared_ptr<base::ChunkPool> pool, base::ByteBudget* budget, base::RetireList* retired,
        std::span<InsertGate::Place* const> places, const base::Arena* records);

  /// A record that was laid down, by its place in its batch.
  struct Taken {
    uint64_t hash;
    Record* record;
    Position position;  ///< Of the record.
    uint32_t index;
  };
  /// Makes room for so many more records. False: the budget (if `within_limit`) or memory is used
  /// up.
  bool Reserve(size_t count, bool within_limit) noexcept {
    return index_.Reserve(count, within_limit);
  }
  /// For some, 8 or more as there are many; how many, or 0: as for Reserve.
  uint8_t ReserveSome(bool within_limit) noexcept { return index_.ReserveSome(within_limit); }
  /// Room that is not used.
  void GiveBack(size_t count) noexcept { index_.GiveBack(count); }

  // Inside an epoch, by the thread whose segment it is, which keeps it locked:

  /// Gives records for which there is room their sequences, `first` + index, and lets lookups find
  /// them. How many took room: the others are versions of keys that were there.
  size_t Finish(std::span<const Taken> records, base::SequenceNumber first,
                Segment* segment) noexcept;

  enum class Outcome : uint8_t { kNewKey, kNewVersion, kNotAssigned };
  /// The same for the record at `position`, made of `source`. `assign(newest)` gives its sequence;
  /// 0: the record is not to be. `newest` is the newest version that is there, or null; should
  /// another one come to stand there meanwhile, `assign` is called again with that. It has to make
  /// a sequentially consistent read-modify-write, unless only one thread writes to this table.
  template <class Assign>
  Outcome Put(const RecordSource& source, Record* record, Position position, uint64_t hash,
              Segment* segment, const Assign& assign) noexcept;

  /// Lets lookups find a fold, whose tag is that of a version that is there: in front of it.
  void LinkFold(Record* fold, Position position, uint64_t hash, Segment* segment) noexcept;

  /// The newest version with a sequence <= `at` that `check`, if there is one, does not hide; null:
  /// none. Inside an epoch; the record itself lives as long as the table.
  const Record* Find(uint32_t keyspace, std::string_view key, uint64_t hash,
                     base::SequenceNumber at, BatchCheck* check) const noexcept;
  void Prefetch(uint64_t hash) const noexcept { index_.Prefetch(static_cast<uint32_t>(hash)); }
  /// The same for who is about to Put.
  void PrefetchToPut(uint64_t hash) const noexcept {
    index_.PrefetchToWrite(static_cast<uint32_t>(hash));
  }
  /// The record that a lookup will look at first; null: no key has this hash. Inside an epoch.
  [[gnu::always_inline]] const Record* First(uint64_t hash) const noexcept {
    const Position position =
        index_.Find(static_cast<uint32_t>(hash), [](Position) { return true; });
    return position == 0 ? nullptr : RecordAt(position);
  }
  /// The same, and starts to load it.
  const Record* Candidate(uint64_t hash) const noexcept;

  HashIndex::ProbeCounts CountProbes() const noexcept { return index_.CountProbes(); }

 private:
  Record* RecordAt(Position position) const noexcept {
    return reinterpret_cast<Record*>(records_->At(position));
  }
  /// Where a key's word is, or belongs.
  struct Place {
    HashIndex::Seen seen;
    uint32_t tag;
  };
  template <class SameKey>
  Place Search(uint32_t keyspace, std::string_view key, uint64_t hash,
               const SameKey& has_same_key) noexcept;
  static uint32_t SecondTag(uint32_t keyspace, std::string_view key) noexcept;
  /// Not inline: most keys that are put are new, and their way is the shorter for it.
  static bool IsVersionOf(const Record& record, const RecordSource& source) noexcept;
  bool TryToLink(const Place& place, Record* record, Position position) noexcept;
  HashIndex::Seen Link(uint64_t hash, Record* record, Position position) noexcept;

  const base::Arena* const records_;
  HashIndex index_;
};

// Asked only of records with the hash's low half: seldom, if the key is new.
template <class SameKey>
[[gnu::always_inline]] inline Shard::Place Shard::Search(uint32_t keyspace, std::string_view key,
                                                         uint64_t hash,
                                                         const SameKey& has_same_key) noexcept {
  size_t others = 0;
  const auto is_it = [&](Position other) {
    if (has_same_key(*RecordAt(other))) return true;
    ++others;
    return false;
  };
  const auto tag = static_cast<uint32_t>(hash);
  const HashIndex::Seen seen = index_.FindOrPlace(tag, is_it);
  if (seen.was != 0 || others < base::kKeysOfOneHashMax) [[likely]]
    return {seen, tag};
  const uint32_t second_tag = SecondTag(keyspace, key);
  return {index_.FindOrPlace(second_tag, is_it), second_tag};
}

// The chain descends in sequence: a late smaller one goes behind the larger ones. Its tag is there
// already: whoever comes by the index must find it finished. False: what it would go in front of
// has changed.
inline bool Shard::TryToLink(const Place& place, Record* record, Position position) noexcept {
  const base::Tag tag = record->tag.load(std::memory_order_relaxed);
  Record* newer = nullptr;
  Position older = HashIndex::PositionOf(place.seen.was);
  while (older != 0 && RecordAt(older)->tag.load(std::memory_order_relaxed) > tag) {
    newer = RecordAt(older);
    older = newer->previous.load(std::memory_order_acquire);
  }
  record->previous.store(older, std::memory_order_relaxed);
  if (newer == nullptr) return HashIndex::Publish(place.seen, place.tag, position);
  return newer->previous.compare_exchange_strong(older, position, std::memory_order_seq_cst);
}

template <class Assign>
Shard::Outcome Shard::Put(const RecordSource& source, Record* record, Position position,
                          uint64_t hash, Segment* segment, const Assign& assign) noexcept {
  InsertGate::Visit visit(index_.gate(), segment->place());
  for (;;) {
    const Place place = Search(source.keyspace, source.key, hash, [&source](const Record& other) {
      return IsVersionOf(other, source);
    });
    const Position newest = HashIndex::PositionOf(place.seen.was);
    const base::SequenceNumber sequence = assign(newest == 0 ? nullptr : RecordAt(newest));
    if (sequence == 0) {
      record->tag.store(Record::kAbandonedTag, std::memory_order_release);
      return Outcome::kNotAssigned;
    }
    if (!visit.IsInside()) [[unlikely]] {
      visit.BeginAgain();
      continue;
    }
    record->tag.store(base::MakeTag(sequence, source.kind), std::memory_order_release);
    if (TryToLink(place, record, position)) {
      segment->CountFinished(*record);
      return newest == 0 ? Outcome::kNewKey : Outcome::kNewVersion;
    }
  }
}

}  // namespace basalt::memtable
