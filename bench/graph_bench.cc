// Measures searches and changes of graphs against igraph, NetworkX, LadybugDB and SQLite on the
// same edges, in one run. bench/README.md says what each figure means.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "basalt/graph.h"
#include "basalt/transaction.h"
#include "base/random.h"
#include "bench/options.h"
#include "bench/report.h"
#include "bench/text.h"

namespace basalt::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Settings {
  std::string output = "build/bench/graph.json";
  std::string directory = "build/bench/graph_data";
  std::string peers = "build/bench/graph_peers";
  std::vector<std::string> kinds = {"uniform", "power_law"};
  uint32_t nodes = 1'000'000;
  uint32_t edges = 10'000'000;
  uint32_t queries = 1'000;
  uint32_t hub_degree = 1'000'000;
};

struct Edge {
  uint32_t from;
  uint32_t to;
};

template <class T>
T Take(Result<T> result, std::string_view what) {
  if (!result) Fail(what, result.error().ToString());
  return *std::move(result);
}
void Check(const Status& status, std::string_view what) {
  if (!status.ok()) Fail(what, status.ToString());
}

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Processor time of this thread.
double ThreadSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

/// Without loops and parallel edges. power_law: a node is chosen as an end with a probability that
/// falls with the square root of its number, so that degrees follow a power law with exponent 3.
std::vector<Edge> MakeEdges(const Settings& settings, std::string_view kind) {
  base::Random random(1);
  const auto uniform = [&] { return static_cast<uint32_t>(random.Below(settings.nodes)); };
  const auto skewed = [&] {
    const double share = static_cast<double>(random.Below(uint64_t{1} << 53)) * 0x1p-53;
    return static_cast<uint32_t>(share * share * settings.nodes);
  };
  std::vector<Edge> edges;
  while (edges.size() < settings.edges) {
    const size_t missing = settings.edges - edges.size();
    for (size_t i = 0; i < missing + missing / 50 + 10; ++i) {
      const Edge edge = kind == "uniform" ? Edge{uniform(), uniform()} : Edge{skewed(), skewed()};
      if (edge.from != edge.to) edges.push_back(edge);
    }
    const auto key = [](const Edge& edge) { return std::pair(edge.from, edge.to); };
    std::ranges::sort(edges, {}, key);
    const auto repeated = std::ranges::unique(edges, {}, key);
    edges.erase(repeated.begin(), repeated.end());
  }
  // In random order, as they come from elsewhere.
  for (size_t i = edges.size(); i > 1; --i) std::swap(edges[i - 1], edges[random.Below(i)]);
  edges.resize(settings.edges);
  return edges;
}

/// Ends of edges, so that each has a neighbour.
std::vector<uint32_t> MakeQueries(const Settings& settings, const std::vector<Edge>& edges) {
  base::Random random(2);
  std::vector<uint32_t> queries;
  for (uint32_t i = 0; i < settings.queries; ++i) {
    queries.push_back(edges[random.Below(edges.size())].from);
  }
  return queries;
}

template <class T>
void WriteNumbers(const std::string& path, const std::vector<T>& numbers) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(numbers.data()),
             static_cast<std::streamsize>(numbers.size() * sizeof(T)));
  if (!file.flush()) Fail(path, "it cannot be written");
}

std::string NameOf(uint32_t node) { return std::to_string(node); }

class BasaltGraph {
 public:
  BasaltGraph(const Settings& settings, Report* report, std::string kind)
      : settings_(settings), report_(*report), kind_(std::move(kind)) {
    std::filesystem::remove_all(path());
    db_ = Take(DB::Open(path(), {.memory_budget = uint64_t{1} << 30}), "open the database");
    graph_ = Take(Graph::Open(db_.get()), "open the graph");
  }
  ~BasaltGraph() {
    graph_.reset();
    db_.reset();
    std::filesystem::remove_all(path());
  }
  BasaltGraph(const BasaltGraph&) = delete;
  BasaltGraph& operator=(const BasaltGraph&) = delete;

  void Load(const std::vector<Edge>& edges) {
    PutNodes(settings_.nodes);
    const auto begin = Clock::now();
    GraphLoader loader(graph_.get());
    for (size_t i = 0; i < edges.size(); ++i) {
      Check(loader.PutEdge({NameOf(edges[i].from), "to", NameOf(edges[i].to)}), "put an edge");
      if ((i + 1) % kBatch == 0) Check(loader.Commit().status(), "commit");
    }
    Check(loader.Commit().status(), "commit");
    Check(db_->Sync(), "sync");
    Add("load", "edges/s", static_cast<double>(edges.size()) / SecondsSince(begin));
    const auto build = Clock::now();
    Check(graph_->RebuildAdjacency(), "build the adjacency");
    Add("build_adjacency", "s", SecondsSince(build));
    const GraphStats stats = Take(graph_->GetStats(), "read the counts");
    Add("adjacency", "bytes/edge",
        static_cast<double>(stats.adjacency_bytes) / static_cast<double>(edges.size()));
  }

  void Search(const std::vector<uint32_t>& queries) {
    const GraphView view = Take(graph_->Read(), "read the graph");
    std::vector<NodeId> nodes;
    for (const uint32_t query : queries) {
      nodes.push_back(*Take(view.FindNode(NameOf(query)), "find a node"));
    }
    Measure("two_hop", nodes, nodes.size(),
            [&](size_t i) { return Take(view.KHop(nodes[i], 2), "two_hop").nodes.size() - 1; });
    Measure("page_rank", nodes, 200, [&](size_t i) {
      const NodeScore seed{nodes[i], 1};
      return Take(view.PersonalizedPageRank({&seed, 1}), "page_rank").nodes.size();
    });
    Measure("path", nodes, 20, [&](size_t i) {
      const PathResult found =
          Take(view.ShortestPath(nodes[i], nodes[(i + 1) % nodes.size()]), "path");
      return found.paths.empty() ? 0 : found.paths[0].edges.size();
    });
  }

  void Insert() {
    const auto begin = Clock::now();
    constexpr uint32_t kInserts = 1'000;
    for (uint32_t i = 0; i < kInserts; ++i) {
      Transaction tx = Take(db_->Begin(), "begin");
      Check(graph_->PutEdge(
                tx, {NameOf(i % settings_.nodes), "new", NameOf((i + 1) % settings_.nodes)}),
            "put an edge");
      Check(tx.Commit({.durability = Durability::kPower}).status(), "commit");
    }
    Add("durable_insert", "edges/s", kInserts / SecondsSince(begin));
  }

  /// The rate of single inserts at a hub of `degree`, alternating with those at a smaller one.
  void InsertAtHubs() {
    constexpr uint32_t kSmallDegree = 1'000;
    constexpr uint32_t kRounds = 5;
    constexpr uint32_t kInserts = 2'000;
    Check(graph_->PutNode("large").status(), "put a node");
    FillHub("large", settings_.hub_degree);
    Check(graph_->RebuildAdjacency(), "build the adjacency");
    std::vector<double> ratios;
    for (uint32_t round = 0; round < kRounds; ++round) {
      const std::string small = "small" + std::to_string(round);
      Check(graph_->PutNode(small).status(), "put a node");
      FillHub(small, kSmallDegree);
      const std::string type = "round" + std::to_string(round);
      const double at_small = InsertsAt(small, type, kInserts);
      ratios.push_back(InsertsAt("large", type, kInserts) / at_small);
    }
    Add("hub_insert_ratio", "ratio", Median(ratios));
  }

 private:
  static constexpr size_t kBatch = 1'000;  // As basalt graph load has it.

  std::string path() const { return settings_.directory + "/" + kind_ + ".basalt"; }
  void Add(std::string_view metric, std::string_view unit, double value) {
    report_.Add(kind_, "basalt", Level::kProcess, metric, unit, value);
  }

  void PutNodes(uint32_t count) {
    GraphLoader loader(graph_.get());
    for (uint32_t i = 0; i < count; ++i) {
      Check(loader.PutNode(NameOf(i)), "put a node");
      if ((i + 1) % kBatch == 0) Check(loader.Commit().status(), "commit");
    }
    Check(loader.Commit().status(), "commit");
  }

  void FillHub(const std::string& hub, uint32_t degree) {
    GraphLoader loader(graph_.get());
    for (uint32_t i = 0; i < degree; ++i) {
      Check(loader.PutEdge({hub, "to", NameOf(i % settings_.nodes), NameOf(i / settings_.nodes)}),
            "put an edge of a hub");
      if ((i + 1) % kBatch == 0) Check(loader.Commit().status(), "commit");
    }
    Check(loader.Commit().status(), "commit");
  }

  double InsertsAt(const std::string& hub, const std::string& type, uint32_t count) {
    const auto begin = Clock::now();
    for (uint32_t i = 0; i < count; ++i) {
      Check(graph_->PutEdge({hub, type, NameOf(i % settings_.nodes)}), "put an edge");
    }
    return count / SecondsSince(begin);
  }

  /// Once unmeasured, then the median.
  template <class Search>
  void Measure(const char* metric, const std::vector<NodeId>& nodes, size_t count,
               const Search& search) {
    count = std::min(count, nodes.size());
    std::vector<double> took;
    std::vector<double> found;
    for (size_t i = 0; i < count; ++i) search(i);
    for (size_t i = 0; i < count; ++i) {
      const double begin = ThreadSeconds();
      const size_t answers = search(i);
      took.push_back((ThreadSeconds() - begin) * 1e6);
      found.push_back(static_cast<double>(answers));
    }
    Add(metric, "us", Median(took));
    Add(std::string(metric) + "_found", "nodes", Median(found));
  }

  const Settings& settings_;
  Report& report_;
  const std::string kind_;
  std::unique_ptr<DB> db_;
  std::unique_ptr<Graph> graph_;
};

/// What the program of the peers prints: a line "subject metric unit value" a figure.
void RunPeers(const Settings& settings, const std::string& kind, Report* report,
              std::vector<std::string>* subjects) {
  const std::string python = settings.peers + "/venv/bin/python";
  if (!std::filesystem::exists(python)) {
    std::printf("no peers: %s is not there\n", python.c_str());
    return;
  }
  const std::string command = "'" + python + "' bench/graph_peers/peers.py '" + settings.directory +
                              "/" + kind + "' " + std::to_string(settings.nodes);
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) Fail(command, "it could not be started");
  char* line = nullptr;
  size_t capacity = 0;
  while (::getline(&line, &capacity, pipe) > 0) {
    std::istringstream figure(line);
    std::string subject;
    std::string metric;
    std::string unit;
    double value = 0;
    if (!(figure >> subject >> metric >> unit >> value)) Fail("read a figure of the peers", line);
    report->Add(kind, subject, Level::kProcess, metric, unit, value);
    if (std::ranges::find(*subjects, subject) == subjects->end()) subjects->push_back(subject);
  }
  std::free(line);
  if (::pclose(pipe) != 0) std::printf("a peer has failed: its figures are missing\n");
}

struct Metric {
  const char* name;
  bool is_rate;  ///< More is better, otherwise less.
};
constexpr Metric kMetrics[] = {{"two_hop", false},
                               {"two_hop_found", false},
                               {"page_rank", false},
                               {"page_rank_found", false},
                               {"path", false},
                               {"path_found", false},
                               {"load", true},
                               {"build_adjacency", false},
                               {"adjacency", false},
                               {"durable_insert", true},
                               {"hub_insert_ratio", true}};

/// How much better ours is than the best of the peers; 0: none has a figure.
double RatioToBestPeer(const Metric& metric, std::string_view kind, const Report& report,
                       const std::vector<std::string>& subjects) {
  const double ours = report.Find(kind, "basalt", metric.name)->Median();
  double least = 0;
  for (const std::string& subject : subjects) {
    const Figure* const figure = report.Find(kind, subject, metric.name);
    if (figure == nullptr || subject == "basalt") continue;
    const double ratio = metric.is_rate ? ours / figure->Median() : figure->Median() / ours;
    least = least == 0 ? ratio : std::min(least, ratio);
  }
  return least;
}

void PrintTable(const Settings& settings, const Report& report,
                const std::vector<std::string>& subjects) {
  for (const std::string& kind : settings.kinds) {
    std::printf("\n%s, %u nodes, %u edges\n%-18s", kind.c_str(), settings.nodes, settings.edges,
                "");
    for (const std::string& subject : subjects) std::printf("%14s", subject.c_str());
    std::printf("%14s\n", "over the best");
    for (const Metric& metric : kMetrics) {
      if (report.Find(kind, "basalt", metric.name) == nullptr) continue;
      std::printf("%-18s", metric.name);
      for (const std::string& subject : subjects) {
        const Figure* const figure = report.Find(kind, subject, metric.name);
        std::printf("%14s", figure == nullptr ? "-" : Format("%.4g", figure->Median()).c_str());
      }
      const bool is_count = std::string_view(metric.name).ends_with("_found");
      const double ratio = is_count ? 0 : RatioToBestPeer(metric, kind, report, subjects);
      std::printf("%14s\n", ratio == 0 ? "-" : Format("%.3gx", ratio).c_str());
    }
  }
}

void Run(const Settings& settings) {
  std::filesystem::create_directories(settings.directory);
  std::printf("%s\n", MachineDescription().c_str());
  Report report;
  std::vector<std::string> subjects = {"basalt"};
  for (const std::string& kind : settings.kinds) {
    const std::vector<Edge> edges = MakeEdges(settings, kind);
    const std::vector<uint32_t> queries = MakeQueries(settings, edges);
    {
      BasaltGraph graph(settings, &report, kind);
      graph.Load(edges);
      graph.Search(queries);
      graph.Insert();
      graph.InsertAtHubs();
    }
    WriteNumbers(settings.directory + "/" + kind + ".edges", edges);
    WriteNumbers(settings.directory + "/" + kind + ".queries", queries);
    RunPeers(settings, kind, &report, &subjects);
  }
  PrintTable(settings, report, subjects);
  WriteFile(settings.output, report.ToJson());
}

int Main(int argc, char** argv) {
  Settings settings;
  bool is_quick = false;
  CLI::App app("Measures searches and changes of graphs.");
  AddOutput(&app, &settings.output);
  AddChoice(&app, "--kinds", "kinds of graphs", &settings.kinds);
  app.add_option("--nodes", settings.nodes, "Nodes")
      ->capture_default_str()
      ->check(CLI::Range(1'000, 100'000'000));
  app.add_option("--edges", settings.edges, "Edges")
      ->capture_default_str()
      ->check(CLI::Range(1'000, 1'000'000'000));
  app.add_option("--dir", settings.directory, "Where the data lie")->capture_default_str();
  app.add_option("--peers", settings.peers, "Where bench/graph_peers/build has installed them")
      ->capture_default_str();
  app.add_flag("--quick", is_quick, "100,000 nodes, 1,000,000 edges, a hub of 100,000");
  CLI11_PARSE(app, argc, argv);
  if (is_quick) {
    settings.nodes = 100'000;
    settings.edges = 1'000'000;
    settings.hub_degree = 100'000;
  }
  Run(settings);
  return 0;
}

}  // namespace
}  // namespace basalt::bench

int main(int argc, char** argv) { return basalt::bench::Main(argc, argv); }
