#include "phash/level_builder.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include "phash/placer.h"
#include "phash/threads.h"

namespace basalt::phash {

struct LevelBuilder::Thread {
  explicit Thread(const LevelShape& shape) : placer(shape) {}

  Placer placer;
  std::unique_ptr<uint64_t[]> grouped;
  uint64_t capacity = 0;
  std::vector<uint32_t> begins;
  std::vector<uint64_t> bumped;
  std::vector<uint64_t> repeated;

  // Groups the hashes of `parts`, which follow each other from `first_bucket` on and have `count`
  // buckets each.
  Placer::Buckets Group(const LevelShape& shape, uint64_t first_bucket, uint64_t count,
                        std::span<const std::span<const uint64_t>> parts) {
    uint64_t hashes = 0;
    for (const std::span<const uint64_t> part : parts) hashes += part.size();
    if (capacity < hashes) {
      capacity = hashes + hashes / 16;
      grouped = std::make_unique_for_overwrite<uint64_t[]>(capacity);
    }
    begins.resize(count * parts.size() + 1);
    uint64_t place = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      GroupByBucket(shape, first_bucket + i * count, count, parts[i], grouped.get() + place,
                    static_cast<uint32_t>(place), begins.data() + i * count);
      place += parts[i].size();
    }
    begins.back() = static_cast<uint32_t>(place);
    return {.hashes = {grouped.get(), hashes}, .begins = begins};
  }
};

LevelBuilder::LevelBuilder(const LevelShape& shape, uint32_t threads)
    : shape_(shape),
      threads_(static_cast<uint32_t>(std::clamp<uint64_t>(shape.chunks(), 1, threads))),
      seam_buckets_(shape.SeamBuckets()),
      seeds_(shape.buckets()),
      taken_(shape),
      seams_(shape.chunks()) {}

uint64_t LevelBuilder::PlaceChunk(const Partition& partition, uint64_t chunk, Thread* thread) {
  const uint64_t first_bucket = chunk * shape_.buckets_per_chunk();
  std::vector<std::span<const uint64_t>> parts;
  for (uint64_t i = 0; i < shape_.parts_per_chunk(); ++i) {
    parts.push_back(partition[chunk * shape_.parts_per_chunk() + i]);
  }
  Placer::Buckets buckets = thread->Group(shape_, first_bucket, shape_.buckets_per_part(), parts);
  const uint64_t hashes = buckets.hashes.size();
  if (chunk + 1 < shape_.chunks()) {
    const uint64_t count = buckets.count() - seam_buckets_;
    const std::span<const uint64_t> seam = buckets.hashes.subspan(buckets.begins[count]);
    seams_[chunk].assign(seam.begin(), seam.end());
    buckets.begins = buckets.begins.first(count + 1);
  }
  thread->placer.Place(buckets, {taken_.Origin(chunk), taken_.Words(chunk)},
                       seeds_.data() + first_bucket, &thread->bumped, &thread->repeated);
  return hashes;
}

void LevelBuilder::PlaceSeam(uint64_t chunk, Thread* thread) {
  taken_.AskNext(chunk);
  const uint64_t first_bucket = (chunk + 1) * shape_.buckets_per_chunk() - seam_buckets_;
  const std::span<const uint64_t> seam = seams_[chunk];
  const Placer::Buckets buckets =
      thread->Group(shape_, first_bucket, seam_buckets_, std::span(&seam, 1));
  thread->placer.Place(buckets, {taken_.Origin(chunk), taken_.Words(chunk)},
                       seeds_.data() + first_bucket, &thread->bumped, &thread->repeated);
  taken_.TellNext(chunk);
}

void LevelBuilder::Collect(std::vector<Thread>* threads) {
  for (const Thread& thread : *threads) {
    bumped_.insert(bumped_.end(), thread.bumped.begin(), thread.bumped.end());
    repeated_.insert(repeated_.end(), thread.repeated.begin(), thread.repeated.end());
  }
}

bool LevelBuilder::Place(const Partition& partition, const Progress& progress) {
  const auto [begin, end] = partition.chunks();
  std::vector<Thread> threads;
  for (uint32_t i = 0; i < threads_; ++i) threads.emplace_back(shape_);
  std::atomic<uint64_t> next = begin;
  std::atomic<uint64_t> placed = placed_;
  const auto stop = [&next, end = end] { next = end; };
  bool stopped = false;
  RunOnThreads(
      threads_,
      [&, end = end](uint32_t i) {
        for (uint64_t chunk = next++; chunk < end; chunk = next++) {
          const uint64_t keys = placed += PlaceChunk(partition, chunk, &threads[i]);
          if (i == 0 && !progress(keys)) {
            stopped = true;
            stop();
          }
        }
      },
      stop);
  placed_ = placed;
  Collect(&threads);
  return !stopped;
}

void LevelBuilder::PlaceSeams() {
  if (shape_.chunks() == 1) return;
  const uint64_t seams = shape_.chunks() - 1;
  std::vector<Thread> threads;
  for (uint32_t i = 0; i < threads_; ++i) threads.emplace_back(shape_);
  std::atomic<uint64_t> next = 0;
  RunOnThreads(
      threads_,
      [&](uint32_t i) {
        for (uint64_t chunk = next++; chunk < seams; chunk = next++) PlaceSeam(chunk, &threads[i]);
      },
      [&] { next = seams; });
  Collect(&threads);
}

std::vector<uint64_t> LevelBuilder::Holes() const {
  std::vector<uint64_t> holes;
  holes.reserve(bumped_.size());
  for (uint64_t chunk = 0; chunk < shape_.chunks(); ++chunk) taken_.AppendHoles(chunk, &holes);
  return holes;
}

std::vector<uint64_t> LevelBuilder::TakeBumped() { return std::move(bumped_); }

uint64_t LevelBuilder::ScratchBytes(const LevelShape& shape, uint32_t threads) noexcept {
  // Slots and seams; bumped hashes and holes, some 4 of 100 keys, each twice for a while; and what
  // a thread groups a chunk in.
  const uint64_t chunk = shape.keys() / shape.chunks();
  return shape.keys() / 7 + shape.chunks() * 2048 * 8 + shape.keys() / 25 * 32 +
         std::min<uint64_t>(threads, shape.chunks()) * (chunk * 10 + (uint64_t{256} << 10));
}

}  // namespace basalt::phash
