// A leaderboard in memory: many threads report scores, one reads the best ten in order, from one
// moment, while they go on:
//
//     ./leaderboard

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "basalt/memtable.h"

namespace {

/// Sorts as the number does.
std::string Key(int score, int player) {
  char key[32];
  std::snprintf(key, sizeof key, "%08d/%04d", score, player);
  return key;
}

}  // namespace

int main() {
  auto table = basalt::MemTable::Create({.memory_budget = 64 << 20}).value();

  std::vector<std::thread> players;
  for (int player = 0; player < 4; ++player) {
    players.emplace_back([&table, player] {
      for (int round = 1; round <= 1000; ++round) {
        // A player's old score goes and the new one comes in one step.
        basalt::WriteBatch batch;
        batch.Delete(Key((round - 1) * (player + 1), player));
        batch.Put(Key(round * (player + 1), player), "player " + std::to_string(player));
        if (!table->Write(batch).ok()) return;
      }
    });
  }
  for (std::thread& player : players) player.join();

  // An iterator sees one moment: each player once, whatever is written meanwhile.
  auto best = table->NewIterator();
  int shown = 0;
  for (best->SeekToLast(); best->Valid() && shown < 10; best->Prev(), ++shown) {
    std::cout << best->key() << "  " << best->value() << '\n';
  }

  // Scores below 2,000 are of no interest any more.
  if (!table->DeleteRange("", Key(2000, 0)).ok() || !table->Compact().ok()) return 1;
  std::cout << table->GetStats().records << " records left\n";
  return shown == 4 ? 0 : 1;
}
