#include "tools/basalt/open_graph.h"

#include <utility>

namespace basalt::tools {
namespace {

Result<OpenGraph> OpenGraphIn(Result<std::unique_ptr<Store>> store, const GraphOptions& options) {
  if (!store) return store.error();
  Result<std::unique_ptr<Graph>> graph = Graph::Open(store->get(), options);
  if (!graph) return graph.error();
  return OpenGraph{*std::move(store), *std::move(graph)};
}

}  // namespace

Result<OpenGraph> OpenGraphToRead(const std::string& path, const std::string& name,
                                  const ReadAccess& access) {
  return OpenGraphIn(OpenStoreToRead(path, access), {.name = name, .create_if_missing = false});
}

Result<OpenGraph> OpenGraphToWrite(const std::string& path, const std::string& name,
                                   uint64_t memory_budget) {
  return OpenGraphIn(OpenStoreToWrite(path, {.memory_budget = memory_budget}), {.name = name});
}

}  // namespace basalt::tools
