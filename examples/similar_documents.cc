// Finds documents by the nearness of their vectors, with a filter, and adds one in a transaction
// together with its text. Real vectors come from a model; here they count letters.

#include <array>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/db.h"
#include "basalt/transaction.h"
#include "basalt/vector_index.h"

namespace {

std::vector<float> Embed(std::string_view text) {
  std::vector<float> vector(26);
  for (const char c : text) {
    if (c >= 'a' && c <= 'z') vector[static_cast<size_t>(c - 'a')] += 1;
  }
  return vector;
}

}  // namespace

int main() {
  auto db = basalt::DB::Open("documents.db").value();
  auto index = basalt::VectorIndex::OpenOrCreate(db.get(), "documents",
                                                 {.dimension = 26, .model = "letters"})
                   .value();

  // Text and vector are committed together.
  constexpr std::array<std::string_view, 4> kTexts = {"a storage engine", "an engine that stores",
                                                      "das ist ein text", "vectors and distances"};
  basalt::Status added = basalt::Transact(*db, [&](basalt::Transaction& tx) {
    for (const std::string_view text : kTexts) {
      basalt::Status status = tx.Put("text/" + std::string(text), text);
      const std::string language = text.starts_with("das") ? "de" : "en";
      if (status.ok()) status = index->Add(tx, text, Embed(text), {{"lang", language}});
      if (!status.ok()) return status;
    }
    return basalt::Status();
  });
  if (!added.ok()) {
    std::cerr << added.ToString() << '\n';
    return 1;
  }

  auto english = basalt::VectorFilter::Parse("lang == 'en'").value();
  auto found = index->Search(Embed("storing engines"), {.k = 2, .filter = english}).value();
  for (const basalt::VectorHit& hit : found.hits) {
    std::cout << hit.score << '\t' << hit.id << '\n';
  }
  return found.hits.size() == 2 ? 0 : 1;
}
