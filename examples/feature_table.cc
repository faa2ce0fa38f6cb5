// Two processes share a table of features that maps a user's number to sixteen floats. One writes
// it repeatedly, the other reads the floats in place:
//
//     ./feature_table

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <iostream>

#include "basalt/shared_map.h"

namespace {

using Features = std::array<float, 16>;
constexpr std::string_view kPath = "features.map";
constexpr uint64_t kUsers = 1000;
constexpr int kRounds = 50;

template <class T>
std::string_view BytesOf(const T& object) {
  return {reinterpret_cast<const char*>(&object), sizeof object};
}

bool WriteRound(basalt::SharedMap* map, int round) {
  Features features;
  features.fill(static_cast<float>(round));
  for (uint64_t user = 0; user < kUsers; ++user) {
    if (!map->Put(BytesOf(user), BytesOf(features)).ok()) return false;
  }
  return round % 10 != 0 || map->Compact().ok();  // The map also does this by itself, later.
}

bool SeesAllRoundsWhole() {
  alarm(60);                                            // The writer may fail.
  auto map = basalt::SharedMap::Attach(kPath).value();  // A reader; any number of processes.
  auto reader = map->NewReader().value();               // One for each thread.
  std::array<float, kUsers> seen{};
  while (seen.back() < kRounds) {
    for (uint64_t user = 0; user < kUsers; ++user) {
      // Destroyed before the next Get: a reader with a live View does not see later changes.
      auto found = reader.Get(BytesOf(user)).value();
      if (!found || found->size() != sizeof(Features)) return false;
      Features features;
      std::memcpy(features.data(), found->view().data(), sizeof features);
      if (features.front() != features.back() || features[0] < seen[user]) return false;
      seen[user] = features[0];
    }
  }
  std::cout << "reader: saw round " << seen.back() << ", no value in parts" << std::endl;
  return true;
}

}  // namespace

int main() {
  auto map = basalt::SharedMap::Create(kPath, {.overwrite = true}).value();  // The one writer.
  bool ok = WriteRound(map.get(), 1);
  const pid_t reader = fork();  // Any process can read: it needs only the path.
  if (reader == 0) _exit(SeesAllRoundsWhole() ? 0 : 1);
  for (int round = 2; round <= kRounds; ++round) ok = ok && WriteRound(map.get(), round);
  int status = 1;
  ok = waitpid(reader, &status, 0) == reader && status == 0 && ok;
  std::cout << "writer: " << map->GetStats().value().entries << " users\n";
  return map->Close().ok() && basalt::SharedMap::Destroy(kPath).ok() && ok ? 0 : 1;
}
