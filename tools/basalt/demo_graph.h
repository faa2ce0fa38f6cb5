#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/db.h"
#include "basalt/graph.h"
#include "tools/basalt/demo_input.h"

namespace basalt::tools {

/// The demo's packages as a property graph: a node for each package, an edge for each dependency,
/// whose type is the field that names it.
class DemoGraph {
 public:
  static constexpr std::string_view kName = "packages";

  struct Figures {
    uint64_t packages = 0;
    uint64_t dependencies = 0;
    double seconds = 0;
  };

  /// Puts the packages of `input`, and then reads the edges into memory.
  static Result<DemoGraph> Load(DB* db, const DemoInput& input);

  const Figures& figures() const { return figures_; }
  /// The first of some names that is a package. Empty: none of them is.
  Result<std::string> FirstOf(const std::vector<std::string>& names) const;

  struct Needing {
    std::vector<std::string> direct;  ///< Up to five.
    uint64_t count = 0;               ///< Within two hops.
    double microseconds = 0;
  };
  /// Which packages need `name`, directly or through one other.
  Result<Needing> WhatNeeds(const std::string& name) const;
  /// A shortest chain of dependencies, as text. Empty: there is none.
  Result<std::string> WhyNeeds(const std::string& name, const std::string& needed) const;

 private:
  DemoGraph(std::unique_ptr<Graph> graph, GraphView view)
      : graph_(std::move(graph)), view_(std::move(view)) {}

  std::unique_ptr<Graph> graph_;
  GraphView view_;
  Figures figures_;
};

}  // namespace basalt::tools
