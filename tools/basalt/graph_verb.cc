#include <string>

#include "tools/basalt/graph.h"
#include "tools/basalt/verb.h"

namespace basalt::tools {
namespace {

template <class Options>
void AddGraphName(const Verb<Options>& verb) {
  AddPathOrUrl(verb);
  verb.app->add_option("--graph", verb.options->graph, "The graph's name: its keyspace")
      ->capture_default_str()
      ->type_name("NAME");
}

template <class Options>
void AddEdgeFilter(const Verb<Options>& verb, const std::string& direction) {
  verb.app
      ->add_option("--direction", verb.options->edges.direction,
                   "out, in or both; default: " + direction)
      ->check(CLI::IsMember({"out", "in", "both"}).description(""))
      ->type_name("DIRECTION");
  verb.app
      ->add_option("--type", verb.options->edges.types, "Only edges of this type; may be repeated")
      ->allow_extra_args(false)
      ->type_name("TYPE");
  verb.app
      ->add_option("--as-of", verb.options->edges.as_of_ms,
                   "Only edges valid at this time, in milliseconds since 1970 UTC")
      ->type_name("MS");
}

void AddGraphLoad(const VerbList& verbs) {
  const auto load =
      verbs.Add<GraphLoadOptions>("load", "Put the nodes and edges of files", GraphLoad,
                                  R"(  basalt graph load ./db nodes.csv edges.csv --progress
  basalt graph load ./db < graph.ndjson
  basalt graph load ./db edges.csv --make-nodes

CSV files have the header of Neo4j's import tool: name:ID, :LABEL, born:int for
nodes; :START_ID, :END_ID, :TYPE, :WEIGHT, since:int for edges. A line of NDJSON is
  {"id":"ada","labels":["Person"],"properties":{"born":1815}}
  {"from":"ada","type":"wrote about","to":"engine","weight":2}
Nodes come before their edges. The lines before a fault have been loaded.
)");
  AddGraphName(load);
  load.app->add_option("INPUT", load.options->inputs, "Files; - or none is standard input")
      ->type_name("");
  load.app
      ->add_option_function<std::string>(
          "--format",
          [options = load.options](const std::string& name) {
            options->format = name == "csv" ? GraphFileFormat::kCsv : GraphFileFormat::kNdjson;
          },
          "csv or ndjson; default: by the name of INPUT")
      ->check(CLI::IsMember({"csv", "ndjson"}).description(""))
      ->type_name("FORMAT");
  load.app->add_flag("--make-nodes", load.options->make_nodes, "Make absent ends of edges");
  load.app->add_option("--batch", load.options->batch_items, "Nodes and edges in one write")
      ->check(WholeNumber(1, 1'000'000))
      ->capture_default_str()
      ->type_name("N");
  AddMemoryBudget(load);
  AddProgress(load);
}

void AddGraphAdd(const VerbList& verbs) {
  const auto add =
      verbs.Add<GraphAddOptions>("add", "Put one node or edge", GraphAdd,
                                 R"(  basalt graph add ./db ada --label Person --set born=1815
  basalt graph add ./db ada "wrote about" engine --weight 2 --set year=1843
A node replaces the labels and properties of the node with its id. A VALUE is JSON,
or else a string.
)");
  AddGraphName(add);
  add.app->add_option("ID", add.options->id, "The node, or the first node of the edge")
      ->required()
      ->type_name("");
  CLI::Option* type =
      add.app->add_option("TYPE", add.options->type, "Type of the edge")->type_name("");
  type->needs(
      add.app->add_option("TO", add.options->to, "The last node of the edge")->type_name(""));
  add.app->add_option("--label", add.options->labels, "A label of the node; may be repeated")
      ->allow_extra_args(false)
      ->type_name("LABEL");
  add.app->add_option("--set", add.options->set, "A property; may be repeated")
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE");
  add.app
      ->add_option("--discriminator", add.options->discriminator,
                   "Distinguishes parallel edges of one type")
      ->type_name("TEXT");
  add.app->add_option("--weight", add.options->weight, "Of the edge")
      ->capture_default_str()
      ->type_name("NUMBER");
}

void AddGraphNeighbors(const VerbList& verbs) {
  const auto neighbors =
      verbs.Add<GraphNeighborsOptions>("neighbors", "Print the edges of a node", GraphNeighbors,
                                       R"(  basalt graph neighbors ./db ada
  basalt graph neighbors ./db engine --direction in --type "wrote about"
A line is direction and type, the other node, weight and discriminator.
)");
  AddGraphName(neighbors);
  neighbors.app->add_option("ID", neighbors.options->id, "The node")->required()->type_name("");
  AddEdgeFilter(neighbors, "both");
  neighbors.app->add_option("--limit", neighbors.options->limit, "The most edges to print")
      ->check(WholeNumber(1, 1'000'000))
      ->capture_default_str()
      ->type_name("N");
  neighbors.app
      ->add_option("--from", neighbors.options->from, "Where the page before has ended, as it said")
      ->type_name("BASE64");
  AddOutput(neighbors, {"table", "json"});
  AddReadAccess(neighbors);
}

void AddGraphPath(const VerbList& verbs) {
  const auto path =
      verbs.Add<GraphPathOptions>("path", "Print how one node leads to another", GraphPath,
                                  R"(  basalt graph path ./db ada london
  basalt graph path ./db ada london --weighted --direction both
  basalt graph path ./db ada london --all 3 --count 20
A line is the cost and the path. Exit status 1: there is no path.
)");
  AddGraphName(path);
  path.app->add_option("FROM", path.options->from, "The first node")->required()->type_name("");
  path.app->add_option("TO", path.options->to, "The last node")->required()->type_name("");
  AddEdgeFilter(path, "out");
  CLI::Option* weighted = path.app->add_flag("--weighted", path.options->weighted,
                                             "The least sum of weights, not the fewest edges");
  path.app->add_option("--all", path.options->hops, "All paths of up to so many edges")
      ->check(WholeNumber(1, 64))
      ->excludes(weighted)
      ->type_name("HOPS");
  path.app->add_option("--count", path.options->count, "The most paths to print, with --all")
      ->check(WholeNumber(1, 1'000'000))
      ->capture_default_str()
      ->type_name("N");
  AddOutput(path, {"table", "json"});
  AddReadAccess(path);
}

void AddGraphRank(const VerbList& verbs) {
  const auto rank = verbs.Add<GraphRankOptions>(
      "rank", "Print the nodes nearest to seeds, by personalised PageRank", GraphRank,
      R"(  basalt graph rank ./db ada
  basalt graph rank ./db ada engine --count 20 --restart 0.3
A line is score and node.
)");
  AddGraphName(rank);
  rank.app->add_option("SEED", rank.options->seeds, "Nodes")->required()->type_name("");
  AddEdgeFilter(rank, "both");
  rank.app->add_option("--count", rank.options->count, "The most nodes to print")
      ->check(WholeNumber(1, 1'000'000))
      ->capture_default_str()
      ->type_name("N");
  rank.app
      ->add_option("--restart", rank.options->restart,
                   "Probability of a return to the seeds, 0.01 to 1")
      ->capture_default_str()
      ->type_name("SHARE");
  rank.app
      ->add_option("--epsilon", rank.options->epsilon, "Error for each edge of a node, 1e-12 to 1")
      ->capture_default_str()
      ->type_name("NUMBER");
  AddOutput(rank, {"table", "json"});
  AddReadAccess(rank);
}

void AddGraphExport(const VerbList& verbs) {
  const auto dump =
      verbs.Add<GraphExportOptions>("export", "Print all nodes and edges", GraphExport,
                                    R"(  basalt graph export ./db > graph.ndjson
  basalt graph export ./db --format dot | dot -Tsvg > graph.svg
  basalt graph export ./db --format graphml > graph.graphml
)");
  AddGraphName(dump);
  dump.app
      ->add_option_function<std::string>(
          "--format",
          [options = dump.options](const std::string& name) {
            options->format = name == "dot"       ? GraphExportFormat::kDot
                              : name == "graphml" ? GraphExportFormat::kGraphMl
                                                  : GraphExportFormat::kNdjson;
          },
          "ndjson (the default, which load reads), dot or graphml")
      ->check(CLI::IsMember({"ndjson", "dot", "graphml"}).description(""))
      ->type_name("FORMAT");
  AddProgress(dump);
  AddReadAccess(dump);
}

}  // namespace

void AddGraphVerb(const VerbList& verbs) {
  CLI::App* graph = verbs.app->add_subcommand("graph", "Keep and search a property graph");
  graph->group("Verbs");
  graph->require_subcommand(1);
  graph->footer(R"(Examples:
  basalt graph load ./db nodes.csv edges.csv
  basalt graph neighbors ./db ada
  basalt graph path ./db ada london
  basalt graph rank ./db ada

A graph is a keyspace of a database: nodes and edges with properties.
)");
  const VerbList below{graph, verbs.action};
  AddGraphLoad(below);
  AddGraphAdd(below);
  AddGraphNeighbors(below);
  AddGraphPath(below);
  AddGraphRank(below);
  const auto verify = below.Add<GraphVerifyOptions>(
      "verify", "Compare all records of a graph", GraphVerify,
      "  basalt graph verify ./db\nPrints a line for each fault; exit status 4: there is one.\n");
  AddGraphName(verify);
  AddReadAccess(verify);
  AddGraphExport(below);
  const auto stat = below.Add<GraphStatOptions>("stat", "Count nodes, edges and names", GraphStat,
                                                "  basalt graph stat ./db\n");
  AddGraphName(stat);
  AddFiguresOutput(stat);
  AddReadAccess(stat);
}

}  // namespace basalt::tools
