#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "basalt/graph.h"
#include "tools/basalt/exit_code.h"
#include "tools/basalt/open_database.h"
#include "tools/basalt/output.h"
#include "tools/basalt/output_format.h"

namespace basalt::tools {

// The verbs on property graphs of a database. `graph` is the name of the graph: its keyspace.

enum class GraphFileFormat : uint8_t { kNdjson, kCsv };

struct GraphLoadOptions {
  std::string path;
  std::string graph = "graph";
  std::vector<std::string> inputs{};        ///< None, or "-": standard input.
  std::optional<GraphFileFormat> format{};  ///< Nothing: by the input's name.
  bool make_nodes = false;                  ///< Makes absent ends of edges.
  uint64_t batch_items = 1000;
  uint64_t memory_budget = 0;
  bool progress = false;
};
/// Puts the nodes and edges of files, in writes of many; makes the database where it is not
/// there. Stops at the first item that cannot be meant, and says what was loaded before it.
ExitCode GraphLoad(const GraphLoadOptions& options, Output& out);

struct GraphAddOptions {
  std::string path;
  std::string graph = "graph";
  std::string id;                     ///< Of the node; or of the first node of the edge.
  std::optional<std::string> type{};  ///< Of the edge. Nothing: a node is put.
  std::optional<std::string> to{};
  std::vector<std::string> labels{};
  std::vector<std::string> set{};  ///< NAME=VALUE.
  std::string discriminator;
  double weight = 1;
};
/// Puts one node or edge.
ExitCode GraphAdd(const GraphAddOptions& options, Output& out);

/// Which edges a verb follows.
struct GraphEdgeOptions {
  std::string direction;  ///< out, in or both; empty: the verb's default.
  std::vector<std::string> types{};
  std::optional<int64_t> as_of_ms{};
};

struct GraphNeighborsOptions {
  std::string path;
  std::string graph = "graph";
  std::string id;
  GraphEdgeOptions edges;
  uint64_t limit = 100;
  std::string from;  ///< Base64: where the page before has ended.
  OutputFormat output = OutputFormat::kTable;
  ReadAccess access;
};
/// Prints the edges of a node.
ExitCode GraphNeighbors(const GraphNeighborsOptions& options, Output& out);

struct GraphPathOptions {
  std::string path;
  std::string graph = "graph";
  std::string from;
  std::string to;
  GraphEdgeOptions edges;
  bool weighted = false;
  uint64_t hops = 0;  ///< 0: a shortest path; else all paths of up to so many edges.
  uint64_t count = 10;
  OutputFormat output = OutputFormat::kTable;
  ReadAccess access;
};
/// Prints a shortest path, or several paths. kAbsent: there is none.
ExitCode GraphPath(const GraphPathOptions& options, Output& out);

struct GraphRankOptions {
  std::string path;
  std::string graph = "graph";
  std::vector<std::string> seeds{};
  GraphEdgeOptions edges;
  uint64_t count = 10;
  double restart = 0.5;
  double epsilon = 1e-6;
  OutputFormat output = OutputFormat::kTable;
  ReadAccess access;
};
/// Prints the nodes nearest to seeds, by personalised PageRank.
ExitCode GraphRank(const GraphRankOptions& options, Output& out);

struct GraphVerifyOptions {
  std::string path;
  std::string graph = "graph";
  ReadAccess access;
};
/// Prints a line for each inconsistency. kCorruption: there is one.
ExitCode GraphVerify(const GraphVerifyOptions& options, Output& out);

enum class GraphExportFormat : uint8_t { kNdjson, kDot, kGraphMl };

struct GraphExportOptions {
  std::string path;
  std::string graph = "graph";
  GraphExportFormat format = GraphExportFormat::kNdjson;
  bool progress = false;
  ReadAccess access;
};
/// Prints all nodes, then all edges, as of one moment.
ExitCode GraphExport(const GraphExportOptions& options, Output& out);

struct GraphStatOptions {
  std::string path;
  std::string graph = "graph";
  OutputFormat output = OutputFormat::kTable;
  ReadAccess access;
};
ExitCode GraphStat(const GraphStatOptions& options, Output& out);

}  // namespace basalt::tools
