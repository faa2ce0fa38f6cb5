#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/retrieve.h"
#include "basalt/store.h"
#include "graph/test_graph.h"
#include "retrieve/store_postings.h"
#include "retrieve/test_texts.h"

// What tests compare corpora by.

namespace basalt::retrieve {

using graph::Lines;

/// The graph and the postings of a corpus by names, without the numbers of nodes and without how
/// postings are packed.
inline Lines DumpOf(Corpus* corpus, const Store& store, std::string_view name = "corpus") {
  Lines lines = graph::DumpOf(corpus->graph());
  const GraphView view = corpus->graph().Read().value();
  const auto keyspace = store.OpenKeyspace(std::string(name) + ".text").value();
  const auto postings = StorePostings::Open(&store, keyspace).value();
  const TextIndexStats stats = corpus->text().GetStats().value();
  lines.push_back("documents " + std::to_string(stats.documents) + ", tokens " +
                  std::to_string(stats.tokens));
  for (const std::string& term : postings->TermsWithPrefix("", SIZE_MAX).value()) {
    const text::TermPostings found = postings->Find(term).value();
    lines.push_back("term " + term + ": " + std::to_string(found.document_frequency));
    if (!found.cursor) continue;
    Lines of_term;
    std::vector<uint32_t> positions;
    for (; found.cursor->document() != text::kNoDocument; found.cursor->Next()) {
      const auto node = view.GetNode(NodeId{found.cursor->document()}).value();
      found.cursor->ReadPositions(&positions);
      std::string line = term + " in " + (node ? node->external_id : "?") + ":";
      for (const uint32_t position : positions) line += " " + std::to_string(position);
      of_term.push_back(line + " of " + std::to_string(found.cursor->length()));
    }
    EXPECT_TRUE(found.cursor->status().ok());
    std::ranges::sort(of_term);
    lines.insert(lines.end(), of_term.begin(), of_term.end());
  }
  return lines;
}

}  // namespace basalt::retrieve
