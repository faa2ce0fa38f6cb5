#pragma once

#include <memory>

#include "basalt/graph.h"
#include "store.h"

namespace basalt::python {

/// A graph, or a view of it inside a transaction. The graph of a corpus keeps the corpus alive.
struct PyGraph {
  std::shared_ptr<State> state;
  std::shared_ptr<Graph> graph;
  std::shared_ptr<PyTransaction::Shared> tx{};
};

}  // namespace basalt::python
