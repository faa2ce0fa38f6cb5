#include <algorithm>
#include <array>
#include <ctime>

#include "base/random.h"
#include "bench/shared_map_measure.h"

namespace basalt::bench {
namespace {

constexpr size_t kBatch = 64;

void CheckAnswers(uint64_t wrong, std::string_view what) {
  if (wrong != 0) Fail(what, "a value is missing, or not the one that was put");
}

// Looks up kBatch keys. What is wrong with the values.
uint64_t GetBatch(SharedMapSubject* subject, SharedMapRequests requests) {
  std::array<std::string_view, kBatch> keys;
  alignas(64) std::array<char, kBatch * kSharedMapValueBytes> values;
  std::ranges::transform(requests, keys.begin(), &RecordKey::view);
  subject->GetMany(keys, values.data());
  uint64_t wrong = 0;
  const char* value = values.data();
  for (const RecordKey& key : requests) {
    wrong |= LookAt({value, kSharedMapValueBytes}).own ^ key.digits().text();
    value += kSharedMapValueBytes;
  }
  return wrong;
}

template <class KeyOf>
std::vector<RecordKey> MakeKeys(uint64_t count, const KeyOf& key_of) {
  std::vector<RecordKey> keys;
  keys.reserve(count);
  for (uint64_t i = 0; i < count; ++i) keys.push_back(key_of(i));
  return keys;
}

}  // namespace

std::vector<RecordKey> RandomHits(uint64_t keys, uint64_t count, uint64_t seed) {
  base::Random random(seed);
  return MakeKeys(count, [&](uint64_t) { return RecordKey::Of(random.Below(keys)); });
}

std::vector<RecordKey> RandomMisses(uint64_t keys, uint64_t count, uint64_t seed) {
  base::Random random(seed);
  return MakeKeys(count, [&](uint64_t) { return RecordKey::Missing(random.Below(keys)); });
}

double ThreadSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double DependentNs(SharedMapSubject* subject, uint64_t operations, uint64_t first_number) {
  uint64_t digits = Digits::Of(first_number).text();
  uint64_t wrong = 0;
  const double start = ThreadSeconds();
  for (uint64_t i = 0; i < operations; ++i) {
    const RecordKey key = RecordKey::Of(Digits(digits));
    const Seen seen = subject->Get(key.view());
    const uint64_t difference = seen.own ^ digits;  // 0, but only the value's last bytes say so.
    wrong |= difference;
    digits = seen.next + difference;
  }
  const double seconds = ThreadSeconds() - start;
  CheckAnswers(wrong, "follow a chain of lookups");
  return 1e9 * seconds / static_cast<double>(operations);
}

double IndependentNs(SharedMapSubject* subject, SharedMapRequests requests) {
  uint64_t wrong = 0;
  const double start = ThreadSeconds();
  for (const RecordKey& key : requests) {
    const Seen seen = subject->Get(key.view());
    wrong |= seen.own ^ key.digits().text();
    asm volatile("" : : "r"(seen.next));
  }
  const double seconds = ThreadSeconds() - start;
  CheckAnswers(wrong, "look up keys");
  return 1e9 * seconds / static_cast<double>(requests.size());
}

double MissNs(SharedMapSubject* subject, SharedMapRequests requests) {
  uint64_t found = 0;
  const double start = ThreadSeconds();
  for (const RecordKey& key : requests) found |= ~subject->Get(key.view()).own;
  const double seconds = ThreadSeconds() - start;
  if (found != 0) Fail("look up absent keys", "one was found");
  return 1e9 * seconds / static_cast<double>(requests.size());
}

double BatchNs(SharedMapSubject* subject, SharedMapRequests requests) {
  const uint64_t batches = requests.size() / kBatch;
  uint64_t wrong = 0;
  const double start = ThreadSeconds();
  for (uint64_t batch = 0; batch < batches; ++batch) {
    wrong |= GetBatch(subject, requests.subspan(batch * kBatch, kBatch));
  }
  const double seconds = ThreadSeconds() - start;
  CheckAnswers(wrong, "look up batches of keys");
  return 1e9 * seconds / static_cast<double>(batches * kBatch);
}

void ReadAll(SharedMapSubject* subject, uint64_t keys) {
  uint64_t wrong = 0;
  for (uint64_t first = 0; first < keys; first += kBatch) {
    wrong |= GetBatch(subject, MakeKeys(kBatch, [&](uint64_t i) {
                        return RecordKey::Of(std::min(first + i, keys - 1));
                      }));
  }
  CheckAnswers(wrong, "look up all keys");
}

}  // namespace basalt::bench
