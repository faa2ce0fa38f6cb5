#pragma once

#include <memory>
#include <string>

#include "basalt/db.h"
#include "basalt/graph.h"
#include "tools/basalt/open_store.h"

namespace basalt::tools {

/// A graph, and the store that it is in.
struct OpenGraph {
  std::unique_ptr<Store> store;
  std::unique_ptr<Graph> graph;
};

/// Opens a graph for a verb that only reads. NotFound: it is absent.
Result<OpenGraph> OpenGraphToRead(const std::string& path, const std::string& name,
                                  const ReadAccess& access);
/// Opens a graph for a verb that writes. Makes it, and the database, where they are not there.
Result<OpenGraph> OpenGraphToWrite(const std::string& path, const std::string& name,
                                   uint64_t memory_budget = 0);

}  // namespace basalt::tools
