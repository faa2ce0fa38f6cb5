// Counts the words of standard input in a database, so that counts add up from run to run:
//
//     ./word_count words.db < text
//
// Update reads, computes and writes one key as one atomic step, whoever else writes meanwhile.

#include <iostream>
#include <string>

#include "basalt/db.h"

namespace {

basalt::Status CountWord(basalt::DB& db, const std::string& word) {
  return db.Update("count/" + word, [](std::optional<std::string_view> count) {
    const uint64_t before = count ? std::stoull(std::string(*count)) : 0;
    return basalt::Result<std::optional<std::string>>(std::to_string(before + 1));
  });
}

}  // namespace

int main(int argc, char** argv) {
  auto db = basalt::DB::Open(argc > 1 ? argv[1] : "words.db");
  if (!db) {
    std::cerr << db.error().ToString() << '\n';
    return 1;
  }
  for (std::string word; std::cin >> word;) {
    if (basalt::Status status = CountWord(**db, word); !status.ok()) {
      std::cerr << status.ToString() << '\n';
      return 1;
    }
  }
  constexpr std::string_view kPrefix = "count/";
  auto it = (*db)->NewIterator({.prefix = kPrefix});
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    std::cout << it->value() << '\t' << it->key().substr(kPrefix.size()) << '\n';
  }
  return it->status().ok() && (*db)->Close().ok() ? 0 : 1;
}
