// Keeps notes and finds the passages that answer a question. Notes are linked by the names in them,
// so that an answer may need two notes:
//
//     ./retrieve_notes

#include <iostream>
#include <string>

#include "basalt/db.h"
#include "basalt/retrieve.h"

namespace {

int Fail(const basalt::Status& status) {
  std::cerr << status.ToString() << "\n";
  return 1;
}

int Run() {
  auto db = basalt::DB::Open("notes.db");
  if (!db) return Fail(db.error());
  auto corpus = basalt::Corpus::Open(db->get());
  if (!corpus) return Fail(corpus.error());

  const basalt::Document notes[] = {
      {.source = "notes/ada.md",
       .title = "Ada Lovelace",
       .text = "Ada Lovelace was a mathematician. Charles Babbage showed her a machine."},
      {.source = "notes/babbage.md",
       .title = "Charles Babbage",
       .text = "He was born in London, and lectured in Cambridge."},
      {.source = "notes/shopping.md", .title = "Shopping", .text = "Bread, two loaves."},
  };
  for (const basalt::Document& note : notes) {
    // A note that is ingested again replaces itself.
    auto ingested = (*corpus)->IngestText(note);
    if (!ingested) return Fail(ingested.error());
  }

  auto found = (*corpus)->Retrieve("Where did the friend of the mathematician lecture?",
                                   {.k = 2, .max_tokens = 500, .explain = true});
  if (!found) return Fail(found.error());
  for (const basalt::RetrievedPassage& passage : found->passages) {
    std::cout << passage.title << " (" << passage.source << ", " << passage.score
              << "): " << passage.text << "\n";
    for (const std::string& node : passage.evidence) std::cout << "  by " << node << "\n";
  }

  auto forgotten = (*corpus)->Forget("notes/shopping.md");
  if (!forgotten) return Fail(forgotten.error());
  return found->passages.size() == 2 ? 0 : 1;
}

}  // namespace

int main() { return Run(); }
