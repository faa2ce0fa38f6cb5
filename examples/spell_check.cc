// A spelling checker that forgets its words: 10 bits answer for each, whatever its length. Of what
// is no word, one of 256 passes for one.
//
//     ./spell_check

#include <cstdint>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/perfect_hash.h"

int main() {
  std::vector<std::string> words = {""};
  for (int syllables = 0; syllables < 4; ++syllables) {
    std::vector<std::string> longer;
    for (const std::string& word : words) {
      for (const char* syllable : {"ba", "con", "der", "fo", "gra", "lin", "mel", "nor", "pa",
                                   "qui", "ros", "sta", "tur", "ven", "wick"}) {
        longer.push_back(word + syllable);
      }
    }
    words = std::move(longer);
  }
  size_t letters = 0;
  for (const std::string& word : words) letters += word.size();
  const std::vector<std::string_view> keys(words.begin(), words.end());

  const auto built = basalt::FingerprintSet::Build(keys, /*fingerprint_bits=*/8).value();
  std::ofstream("words.set", std::ios::binary) << built.bytes();

  // Another day: the file's bytes are the set. They may as well be mapped.
  std::ostringstream file;
  file << std::ifstream("words.set", std::ios::binary).rdbuf();
  const std::string bytes = file.str();
  const auto set = basalt::FingerprintSet::Open(bytes).value();
  std::cout << set.size() << " words of " << letters << " letters in " << bytes.size()
            << " bytes: " << set.bits_per_key() << " bits a word\n";
  for (const std::string_view word : {"granorvenpa", "bafolinros", "granorvepna", "bafloinros"}) {
    std::cout << word << (set.MayContain(word) ? ": perhaps a word\n" : ": no word\n");
  }

  // The function inside gives each word its own number: an array will do for what we know of it.
  std::vector<uint32_t> counts(set.size());
  for (const std::string_view word : {"granorvenpa", "bafolinros", "granorvenpa"}) {
    ++counts[set.numbers().Index(word)];
  }
  std::cout << "granorvenpa was read " << counts[set.numbers().Index("granorvenpa")] << " times\n";
  for (const std::string_view word : keys) {
    if (!set.MayContain(word)) return 1;
  }
  return counts[set.numbers().Index("granorvenpa")] == 2 ? 0 : 1;
}
