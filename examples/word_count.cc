// Counts the words of a text in a database, so that counts add up from run to run:
//
//     ./word_count text.txt
//
// Update reads, computes and writes one key as one atomic step, whoever else writes meanwhile.

#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "basalt/db.h"

namespace {

basalt::Status CountWord(basalt::DB& db, const std::string& word) {
  return db.Update("count/" + word, [](basalt::EntryUpdate& count) {
    const uint64_t before = count.exists() ? std::stoull(std::string(count.value())) : 0;
    count.Set(std::to_string(before + 1));
    return basalt::Status();
  });
}

}  // namespace

int main(int argc, char** argv) {
  std::ifstream file(argc > 1 ? argv[1] : "/dev/null");
  std::istringstream sample("a rose is a rose is a rose");
  std::istream& text = argc > 1 ? static_cast<std::istream&>(file) : sample;

  auto db = basalt::DB::Open("words.db").value();
  for (std::string word; text >> word;) {
    if (basalt::Status status = CountWord(*db, word); !status.ok()) {
      std::cerr << status.ToString() << '\n';
      return 1;
    }
  }
  constexpr std::string_view kPrefix = "count/";
  auto it = db->NewIterator({.prefix = kPrefix});
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    std::cout << it->value() << '\t' << it->key().substr(kPrefix.size()) << '\n';
  }
  return it->status().ok() && db->Close().ok() ? 0 : 1;
}
