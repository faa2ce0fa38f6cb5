#include "phash/partition.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "phash/threads.h"

namespace basalt::phash {
namespace {

constexpr uint64_t kLineHashes = 8;

struct alignas(64) Line {
  uint64_t hashes[kLineHashes];
};

// Writes hashes to as many places as there are chunks, whole cache lines at a time.
class Scatter {
 public:
  /// `next[i]` is where chunk i's hashes of this thread go.
  Scatter(uint64_t* to, std::span<const uint64_t> next)
      : to_(to), lines_(next.size()), first_(next.begin(), next.end()), next_(first_) {}

  void Add(uint64_t chunk, uint64_t hash) noexcept {
    const uint64_t at = next_[chunk]++;
    lines_[chunk].hashes[at % kLineHashes] = hash;
    if (at % kLineHashes == kLineHashes - 1) WriteLine(chunk, at + 1);
  }
  void Finish() noexcept {
    for (uint64_t chunk = 0; chunk < lines_.size(); ++chunk) {
      if (next_[chunk] % kLineHashes != 0) WriteLine(chunk, next_[chunk]);
    }
  }

 private:
  // Writes what the chunk's line holds of the hashes before `end`.
  void WriteLine(uint64_t chunk, uint64_t end) noexcept {
    const uint64_t line = (end - 1) / kLineHashes * kLineHashes;
    const uint64_t begin = std::max(line, first_[chunk]);
    const uint64_t* const from = lines_[chunk].hashes + (begin - line);
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

// A level of one chunk has nothing to be parted.
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
    : chunks_(chunks) {
  const uint64_t count = chunks.end - chunks.begin;
  const uint64_t all_chunks = shape.chunks();
  // A part a thread; who starts first takes the first one.
  constexpr uint64_t kPartHashesMin = 65'536;
  const uint64_t parts =
      std::clamp<uint64_t>(hashes.size() / kPartHashesMin, 1, std::max<uint32_t>(threads, 1));
  std::vector<std::vector<uint64_t>> next(parts);
  const auto part = [&](uint64_t i) {
    const uint64_t begin = hashes.size() * i / parts;
    return hashes.subspan(begin, hashes.size() * (i + 1) / parts - begin);
  };
  const auto for_each_part = [&](const auto& work) {
    std::atomic<uint64_t> taken = 0;
    RunOnThreads(
        static_cast<uint32_t>(parts),
        [&](uint32_t) {
          for (uint64_t i = taken++; i < parts; i = taken++) work(i);
        },
        [&] { taken = parts; });
  };

  for_each_part([&](uint64_t i) {
    next[i].assign(count, 0);
    ForEachHash(part(i), input, [&](uint64_t mixed) {
      const uint64_t chunk = MulHigh(mixed, all_chunks) - chunks.begin;
      if (chunk < count) ++next[i][chunk];
    });
  });
  uint64_t sum = 0;
  begins_.reserve(count + 1);
  for (uint64_t chunk = 0; chunk < count; ++chunk) {
    begins_.push_back(sum);
    for (std::vector<uint64_t>& places : next) {
      const uint64_t counted = places[chunk];
      places[chunk] = sum;
      sum += counted;
    }
  }
  begins_.push_back(sum);
  hashes_ = std::make_unique_for_overwrite<uint64_t[]>(sum);
  for_each_part([&](uint64_t i) {
    Scatter scatter(hashes_.get(), next[i]);
    ForEachHash(part(i), input, [&](uint64_t mixed) {
      const uint64_t chunk = MulHigh(mixed, all_chunks) - chunks.begin;
      if (chunk < count) scatter.Add(chunk, mixed);
    });
    scatter.Finish();
  });
}

}  // namespace basalt::phash
