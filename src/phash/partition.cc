#include "phash/partition.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "phash/level.h"
#include "phash/threads.h"

namespace basalt::phash {
namespace {

constexpr uint64_t kLineHashes = 8;

struct alignas(64) Line {
  uint64_t hashes[kLineHashes];
};

// Writes hashes to as many places as there are parts, whole cache lines at a time.
class Scatter {
 public:
  /// `next[i]` is where part i's hashes of this thread go.
  Scatter(uint64_t* to, std::span<const uint64_t> next)
      : to_(to), lines_(next.size()), first_(next.begin(), next.end()), next_(first_) {}

  void Add(uint64_t part, uint64_t hash) noexcept {
    const uint64_t at = next_[part]++;
    lines_[part].hashes[at % kLineHashes] = hash;
    if (at % kLineHashes == kLineHashes - 1) WriteLine(part, at + 1);
  }
  void Finish() noexcept {
    for (uint64_t part = 0; part < lines_.size(); ++part) {
      if (next_[part] % kLineHashes != 0) WriteLine(part, next_[part]);
    }
  }

 private:
  // Writes what the part's line holds of the hashes before `end`.
  void WriteLine(uint64_t part, uint64_t end) noexcept {
    const uint64_t line = (end - 1) / kLineHashes * kLineHashes;
    const uint64_t begin = std::max(line, first_[part]);
    const uint64_t* const from = lines_[part].hashes + (begin - line);
    if (end - begin == kLineHashes) {
      std::memcpy(to_ + begin, from, sizeof(Line));
    } else {
      std::memcpy(to_ + begin, from, 8 * (end - begin));
    }
  }

  uint64_t* to_;
  std::vector<Line> lines_;
  std::vector<uint64_t> first_;
  std::vector<uint64_t> next_;
};

template <class Visit>
void ForEachHash(std::span<const uint64_t> hashes, Partition::Input input, const Visit& visit) {
  if (input == Partition::Input::kMixed) {
    for (const uint64_t hash : hashes) visit(hash);
  } else {
    for (const uint64_t hash : hashes) visit(Mix(hash));
  }
}

}  // namespace

Partition::Partition(const LevelShape& shape, Chunks chunks, std::span<const uint64_t> hashes,
                     Input input, uint32_t threads)
    : chunks_(chunks), first_part_(chunks.begin * shape.parts_per_chunk()) {
  const uint64_t count = (chunks.end - chunks.begin) * shape.parts_per_chunk();
  const uint64_t all_parts = shape.parts();
  // A share a thread; who starts first takes the first one.
  constexpr uint64_t kShareMin = 65'536;
  const uint64_t shares =
      std::clamp<uint64_t>(hashes.size() / kShareMin, 1, std::max<uint32_t>(threads, 1));
  std::vector<std::vector<uint64_t>> next(shares);
  const auto share = [&](uint64_t i) {
    const uint64_t begin = hashes.size() * i / shares;
    return hashes.subspan(begin, hashes.size() * (i + 1) / shares - begin);
  };
  const auto for_each_share = [&](const auto& work) {
    std::atomic<uint64_t> taken = 0;
    RunOnThreads(
        static_cast<uint32_t>(shares),
        [&](uint32_t) {
          for (uint64_t i = taken++; i < shares; i = taken++) work(i);
        },
        [&] { taken = shares; });
  };

  for_each_share([&](uint64_t i) {
    next[i].assign(count, 0);
    ForEachHash(share(i), input, [&](uint64_t mixed) {
      const uint64_t part = MulHigh(mixed, all_parts) - first_part_;
      if (part < count) ++next[i][part];
    });
  });
  uint64_t sum = 0;
  begins_.reserve(count + 1);
  for (uint64_t part = 0; part < count; ++part) {
    begins_.push_back(sum);
    for (std::vector<uint64_t>& places : next) {
      const uint64_t counted = places[part];
      places[part] = sum;
      sum += counted;
    }
  }
  begins_.push_back(sum);
  hashes_ = std::make_unique_for_overwrite<uint64_t[]>(sum);
  for_each_share([&](uint64_t i) {
    Scatter scatter(hashes_.get(), next[i]);
    ForEachHash(share(i), input, [&](uint64_t mixed) {
      const uint64_t part = MulHigh(mixed, all_parts) - first_part_;
      if (part < count) scatter.Add(part, mixed);
    });
    scatter.Finish();
  });
}

}  // namespace basalt::phash
