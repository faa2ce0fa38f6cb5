// Finds texts by their words. The index keeps words and scores, not the texts.

#include <iostream>

#include "basalt/db.h"
#include "basalt/text_index.h"

int main() {
  auto db = basalt::DB::Open(":memory:").value();
  auto index = basalt::TextIndex::Open(db.get(), {.stemmer = "english"}).value();
  if (!index->Put(7, "The quick brown fox").ok()) return 1;
  if (!index->Put(8, "A slow brown bear").ok()) return 1;
  const auto hits = index->Search("foxes quick", 10).value();
  for (const basalt::TextHit& hit : hits) {
    std::cout << hit.document << '\t' << hit.score << '\n';
  }
  return hits.size() == 1 && hits[0].document == 7 ? 0 : 1;
}
