#include "bench/shared_map_floor.h"

#include <algorithm>
#include <array>
#include <new>
#include <span>

#include "base/random.h"
#include "bench/shared_map_measure.h"
#include "shared_map/base_format.h"
#include "shared_map/record.h"

namespace basalt::bench {
namespace {

void Check(const Status& status) {
  if (!status.ok()) Fail("make the floor's file", status.ToString());
}

// The floor's values begin with a number, and then have its digits.
constexpr size_t kDigitsAt = sizeof(uint64_t);

// The first bytes of a key; the answer is known when they can be loaded.
uint64_t LoadKeyOf(Digits digits) noexcept {
  const RecordKey key = RecordKey::Of(digits);
  asm volatile("" : : "r"(key.bytes()) : "memory");
  return LoadWord(key.bytes());
}

// 0, and the compiler cannot know: `bits & NoBits()` waits for `bits`.
uint64_t NoBits() noexcept {
  uint64_t none = 0;
  asm volatile("" : "+r"(none));
  return none;
}

}  // namespace

SharedMapFloor::SharedMapFloor(const SharedMapRecords& records, const std::string& path) {
  const size_t key_bytes = RecordKey::Of(records.count() - 1).view().size();
  stride_ = shared_map::PaddedRecordBytes(key_bytes, kSharedMapValueBytes);
  value_at_ = shared_map::kRecordHeaderBytes + key_bytes;

  auto file = io::FileSystem::Posix()->Open(path, io::OpenMode::kCreate);
  Check(file.status());
  const uint64_t bytes = stride_ * records.count();
  // The pages come from the kernel's reading of how a file is written: whole huge pages at a time.
  constexpr uint64_t kStep = shared_map::kHugePageBytes;
  std::vector<char> record(stride_);
  std::vector<char> step;
  step.reserve(kStep + stride_);
  uint64_t written = 0;
  for (uint64_t number = 0; number < records.count(); ++number) {
    char* const value = record.data() + value_at_;
    records.FillValue(number, 'f', value);
    const uint64_t next = records.Next(number);
    const uint64_t digits = Digits::Of(next).text();
    std::memcpy(value, &next, sizeof next);
    std::memcpy(value + kDigitsAt, &digits, sizeof digits);
    std::memcpy(value + kSharedMapValueBytes - sizeof number, &number, sizeof number);
    step.insert(step.end(), record.begin(), record.end());
    const bool is_last = number + 1 == records.count();
    if (step.size() < kStep && !is_last) continue;
    const size_t count = std::min<size_t>(step.size(), kStep);
    Check((*file)->WriteAt(written, {step.data(), count}));
    written += count;
    step.erase(step.begin(), step.begin() + static_cast<ptrdiff_t>(count));
  }
  if (!step.empty()) Check((*file)->WriteAt(written, {step.data(), step.size()}));
  Check((*file)->Sync());
  auto mapping = (*file)->Map(bytes);
  Check(mapping.status());
  mapping_ = std::move(*mapping);
}

template <class PlaceOf>
double SharedMapFloor::WalkNs(uint64_t operations, uint64_t first_number,
                              const PlaceOf& place_of) const {
  const char* const first_value = mapping_->bytes().data() + value_at_;
  const char* value = first_value + stride_ * first_number;
  uint64_t number = first_number;
  uint64_t wrong = 0;
  const double start = ThreadSeconds();
  for (uint64_t i = 0; i < operations; ++i) {
    const Seen seen = LookAt({value, kSharedMapValueBytes});
    const uint64_t difference = seen.own ^ number;
    wrong |= difference;
    number = seen.next + difference;
    value = first_value + stride_ * place_of(number, value);
  }
  const double seconds = ThreadSeconds() - start;
  if (wrong != 0) Fail("walk over the floor", "the chain leads astray");
  return 1e9 * seconds / static_cast<double>(operations);
}

double SharedMapFloor::ChainNs(uint64_t operations, uint64_t first_number) const {
  return WalkNs(operations, first_number, [](uint64_t number, const char*) { return number; });
}

double SharedMapFloor::ChainWithKeysNs(uint64_t operations, uint64_t first_number) const {
  const uint64_t none = NoBits();
  return WalkNs(operations, first_number, [none](uint64_t number, const char* value) {
    return number + (LoadKeyOf(Digits(LoadWord(value + kDigitsAt))) & none);
  });
}

double SharedMapFloor::BatchNs(uint64_t operations, uint64_t seed) const {
  constexpr size_t kBatch = 64;
  constexpr uint64_t kLineBytes = 64;
  // The first level can wait for few lines at once, and would make the others wait.
  constexpr int kIntoSecondLevel = 2;
  const char* const data = mapping_->bytes().data();
  const uint64_t records = mapping_->bytes().size() / stride_;
  const uint64_t batches = (operations + kBatch - 1) / kBatch;
  base::Random random(seed);
  std::array<uint64_t, kBatch> numbers;
  alignas(64) std::array<char, kBatch * kSharedMapValueBytes> values;
  uint64_t wrong = 0;
  const double start = ThreadSeconds();
  for (uint64_t batch = 0; batch < batches; ++batch) {
    for (uint64_t& number : numbers) {
      number = random.Below(records);
      const char* const record = data + number * stride_;
      for (uint64_t at = 0; at < stride_; at += kLineBytes) {
        __builtin_prefetch(record + at, 0, kIntoSecondLevel);
      }
    }
    for (size_t i = 0; i < kBatch; ++i) {
      char* const value = values.data() + i * kSharedMapValueBytes;
      std::memcpy(value, data + numbers[i] * stride_ + value_at_, kSharedMapValueBytes);
      wrong |= LookAt({value, kSharedMapValueBytes}).own ^ numbers[i];
    }
  }
  const double seconds = ThreadSeconds() - start;
  if (wrong != 0) Fail("read from the floor", "a record is not the one that was asked for");
  return 1e9 * seconds / static_cast<double>(batches * kBatch);
}

double KeyNs(uint64_t operations) {
  const uint64_t none = NoBits();
  uint64_t digits = Digits::Of(123'456).text();
  const double start = ThreadSeconds();
  for (uint64_t i = 0; i < operations; ++i) digits += LoadKeyOf(Digits(digits)) & none;
  const double seconds = ThreadSeconds() - start;
  asm volatile("" : : "r"(digits));
  return 1e9 * seconds / static_cast<double>(operations);
}

}  // namespace basalt::bench
