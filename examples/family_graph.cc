// A graph of people beside other keys of the same store:
//
//     ./family_graph

#include <iostream>

#include "basalt/db.h"
#include "basalt/graph.h"
#include "basalt/transaction.h"

namespace {

struct Line {
  const char* from;
  const char* type;
  const char* to;
};
constexpr Line kLines[] = {{"byron", "parent of", "ada"},     {"annabella", "parent of", "ada"},
                           {"ada", "parent of", "ralph"},     {"ada", "worked with", "babbage"},
                           {"babbage", "designed", "engine"}, {"ada", "wrote about", "engine"}};

/// All people, their edges and a counter, or nothing of it.
basalt::Status PutAll(basalt::Graph* graph, basalt::Transaction& tx) {
  for (const auto& [from, type, to] : kLines) {
    for (const char* id : {from, to}) {
      if (auto put = graph->PutNode(tx, id); !put) return put.error();
    }
    if (auto put = graph->PutEdge(tx, {.from = from, .type = type, .to = to}); !put.ok())
      return put;
  }
  return tx.Put("graph/version", "1");
}

}  // namespace

int main() {
  auto db = basalt::DB::Open(":memory:").value();
  auto graph = basalt::Graph::Open(db.get()).value();
  auto put =
      basalt::Transact(*db, [&](basalt::Transaction& tx) { return PutAll(graph.get(), tx); });
  if (!put) return 1;

  basalt::GraphView view = graph->Read().value();
  const auto name_of = [&](basalt::NodeId id) { return view.GetNode(id).value()->external_id; };

  std::cout << "grandparents of ralph:";
  auto found = view.Traverse("ralph").In("parent of").In("parent of").Run().value();
  for (basalt::NodeId id : found.nodes) std::cout << " " << name_of(id);

  std::cout << "\nfrom byron to the engine: byron";
  const auto byron = view.FindNode("byron").value().value();
  const auto engine = view.FindNode("engine").value().value();
  const basalt::PathResult shortest = view.ShortestPath(byron, engine).value();
  for (const basalt::Neighbor& edge : shortest.paths.at(0).edges) {
    std::cout << " -[" << edge.type << "]-> " << name_of(edge.node);
  }

  std::cout << "\nnearest to the engine:";
  const basalt::NodeScore seed{engine, 1};
  const basalt::PageRankResult ranking = view.PersonalizedPageRank({&seed, 1}).value();
  for (const auto& [id, score] : ranking.nodes) {
    if (id != engine) std::cout << " " << name_of(id);
  }
  std::cout << "\n";
  return found.nodes.size() == 2 ? 0 : 1;
}
