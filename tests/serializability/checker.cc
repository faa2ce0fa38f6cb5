#include "tests/serializability/checker.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/check.h"

namespace basalt::serializability {
namespace {

using Node = uint32_t;
constexpr Node kNobody = UINT32_MAX;  // wrote the first version of each key
constexpr size_t kFaultsMax = 10;

enum class EdgeKind : uint8_t { kWriteRead, kWriteWrite, kReadWrite };

struct Edge {
  Node to = 0;
  EdgeKind kind = EdgeKind::kWriteRead;
  KeyNumber key = 0;
};

struct KeyVersion {
  Node writer = kNobody;
  uint64_t sequence = 0;
  bool present = false;
};

struct Versions {
  std::vector<KeyVersion> list{KeyVersion()};
  std::unordered_map<std::string, size_t> by_value;

  /// The version that is in force at `sequence`.
  size_t At(uint64_t sequence) const {
    const auto behind = std::ranges::upper_bound(list, sequence, {}, &KeyVersion::sequence);
    return static_cast<size_t>(behind - list.begin()) - 1;
  }
};

const char* NameOf(EdgeKind kind) {
  switch (kind) {
    case EdgeKind::kWriteRead:
      return "wrote what was read by";
    case EdgeKind::kWriteWrite:
      return "wrote what was overwritten by";
    default:
      return "read what was overwritten by";
  }
}

class Checker {
 public:
  explicit Checker(History history) : history_(std::move(history)) {
    std::ranges::sort(history_, {}, &ObservedTransaction::sequence);
    edges_.resize(history_.size());
    report_.transactions = history_.size();
  }

  CheckReport Run() {
    for (Node node = 0; node < history_.size(); ++node) ReplayWrites(node);
    for (const auto& [key, versions] : keys_) {
      for (size_t i = 1; i + 1 < versions.list.size(); ++i) {
        AddEdge(versions.list[i].writer, versions.list[i + 1].writer, EdgeKind::kWriteWrite, key);
      }
    }
    for (Node node = 0; node < history_.size(); ++node) TakeReads(node);
    FindCycles();
    return std::move(report_);
  }

 private:
  std::string NameOfNode(Node node) const {
    const ObservedTransaction& one = history_[node];
    return "transaction " + std::to_string(one.id) +
           (one.sequence == 0 ? " (read only)" : " at " + std::to_string(one.sequence));
  }
  std::string InWords(Node from, const Edge& edge) const {
    return NameOfNode(from) + " " + NameOf(edge.kind) + " " + NameOfNode(edge.to) + " (key " +
           std::to_string(edge.key) + ")";
  }
  void AddFault(std::string fault) {
    if (report_.faults.size() < kFaultsMax) report_.faults.push_back(std::move(fault));
  }

  void ReplayWrites(Node node) {
    const ObservedTransaction& one = history_[node];
    std::map<KeyNumber, std::string> written;
    for (const ObservedWrite& write : one.writes) {
      const auto at = written.try_emplace(write.key, values_[write.key]).first;
      const std::string mark = std::to_string(one.id) + ".";
      if (write.kind == ObservedWrite::Kind::kDelete) {
        at->second.clear();
      } else if (write.kind == ObservedWrite::Kind::kPut) {
        at->second = mark;
      } else {
        at->second += mark;
      }
    }
    for (auto& [key, value] : written) {
      std::string& before = values_[key];
      if (value.empty() && before.empty()) continue;  // It stays absent: nothing has changed.
      Versions& versions = keys_[key];
      if (!value.empty()) versions.by_value.emplace(value, versions.list.size());
      versions.list.push_back({node, one.sequence, !value.empty()});
      before = std::move(value);
    }
  }

  void TakeReads(Node node) {
    const ObservedTransaction& one = history_[node];
    std::vector<std::pair<KeyNumber, size_t>> seen;
    std::vector<KeyNumber> absent;
    for (const ObservedRead& read : one.reads) {
      ++report_.reads;
      const Versions& versions = keys_[read.key];
      if (read.any_present) {
        seen.emplace_back(read.key, versions.At(one.sequence - 1));
        if (!versions.list[seen.back().second].present) AddUnknown(node, read);
      } else if (read.value.empty()) {
        absent.push_back(read.key);
      } else if (const auto found = versions.by_value.find(read.value);
                 found != versions.by_value.end()) {
        seen.emplace_back(read.key, found->second);
      } else {
        AddUnknown(node, read);
      }
    }
    if (one.sequence != 0) {
      for (const KeyNumber key : absent)
        seen.emplace_back(key, LastAbsentBefore(key, one.sequence));
    } else {
      PlaceAbsent(one.began_after, absent, &seen);
    }
    AddEdgesOf(node, seen);
  }

  void AddUnknown(Node node, const ObservedRead& read) {
    ++report_.unknown_reads;
    AddFault(NameOfNode(node) + " read \"" + read.value + "\" of key " + std::to_string(read.key) +
             ", which no committed transaction has left");
  }

  size_t LastAbsentBefore(KeyNumber key, uint64_t sequence) {
    const Versions& versions = keys_[key];
    size_t at = versions.At(sequence - 1);
    while (versions.list[at].present) --at;  // The first version is absent.
    return at;
  }

  /// Absent keys of a reader that has no place in the order: it is behind all that it has seen.
  void PlaceAbsent(uint64_t behind, const std::vector<KeyNumber>& absent,
                   std::vector<std::pair<KeyNumber, size_t>>* seen) {
    for (const auto& [key, version] : *seen) {
      behind = std::max(behind, keys_[key].list[version].sequence);
    }
    bool has_moved = true;
    std::vector<size_t> placed(absent.size());
    while (std::exchange(has_moved, false)) {
      for (size_t i = 0; i < absent.size(); ++i) {
        const std::vector<KeyVersion>& list = keys_[absent[i]].list;
        size_t at = keys_[absent[i]].At(behind);
        if (list[at].present) {
          const auto next = std::find_if(list.begin() + static_cast<ptrdiff_t>(at), list.end(),
                                         [](const KeyVersion& one) { return !one.present; });
          if (next == list.end()) {  // It should have been there.
            while (list[at].present) --at;
          } else {
            at = static_cast<size_t>(next - list.begin());
            behind = next->sequence;
            has_moved = true;
          }
        }
        placed[i] = at;
      }
    }
    for (size_t i = 0; i < absent.size(); ++i) seen->emplace_back(absent[i], placed[i]);
  }

  void AddEdgesOf(Node node, const std::vector<std::pair<KeyNumber, size_t>>& seen) {
    uint64_t newest_seen = history_[node].began_after;
    uint64_t first_unseen = UINT64_MAX;
    for (const auto& [key, version] : seen) {
      const std::vector<KeyVersion>& list = keys_[key].list;
      if (list[version].writer != kNobody) {
        AddEdge(list[version].writer, node, EdgeKind::kWriteRead, key);
        newest_seen = std::max(newest_seen, list[version].sequence);
      }
      if (version + 1 == list.size()) continue;
      AddEdge(node, list[version + 1].writer, EdgeKind::kReadWrite, key);
      if (list[version + 1].writer != node) {
        first_unseen = std::min(first_unseen, list[version + 1].sequence);
      }
    }
    if (history_[node].sequence != 0 || newest_seen < first_unseen) return;
    ++report_.against_order;
    AddFault(NameOfNode(node) + " saw the commit at " + std::to_string(newest_seen) +
             " and not the one at " + std::to_string(first_unseen));
  }

  void AddEdge(Node from, Node to, EdgeKind kind, KeyNumber key) {
    if (from == to) return;
    const Edge edge{.to = to, .kind = kind, .key = key};
    edges_[from].push_back(edge);
    ++report_.edges;
    const uint64_t before = history_[from].sequence;
    const uint64_t after = history_[to].sequence;
    if (before == 0 || after == 0 || before < after) return;
    ++report_.against_order;
    AddFault("against the order of commits: " + InWords(from, edge));
  }

  // Strongly connected components (Tarjan, 1972), without recursion.
  void FindCycles() {
    struct Visit {
      Node node;
      size_t edge;
    };
    constexpr uint32_t kNew = 0;
    uint32_t visited = kNew;
    std::vector<uint32_t> order(history_.size(), kNew);
    std::vector<uint32_t> low(history_.size());
    std::vector<bool> is_open(history_.size());
    std::vector<Node> open;
    std::vector<Visit> path;
    const auto enter = [&](Node node) {
      order[node] = low[node] = ++visited;
      is_open[node] = true;
      open.push_back(node);
      path.push_back({node, 0});
    };
    for (Node root = 0; root < history_.size(); ++root) {
      if (order[root] == kNew) enter(root);
      while (!path.empty()) {
        const Node node = path.back().node;
        if (path.back().edge < edges_[node].size()) {
          const Node to = edges_[node][path.back().edge++].to;
          if (order[to] == kNew) {
            enter(to);
          } else if (is_open[to]) {
            low[node] = std::min(low[node], order[to]);
          }
          continue;
        }
        path.pop_back();
        if (!path.empty()) low[path.back().node] = std::min(low[path.back().node], low[node]);
        if (low[node] == order[node]) CloseComponent(node, &open, &is_open);
      }
    }
  }

  void CloseComponent(Node root, std::vector<Node>* open, std::vector<bool>* is_open) {
    std::vector<Node> members;
    do {
      members.push_back(open->back());
      (*is_open)[open->back()] = false;
      open->pop_back();
    } while (members.back() != root);
    if (members.size() == 1) return;
    ++report_.cycles;
    AddFault("a cycle: " + CycleInWords(root, members));
  }

  /// A shortest way from `root` back to it, within its component.
  std::string CycleInWords(Node root, const std::vector<Node>& members) const {
    std::unordered_map<Node, std::pair<Node, Edge>> reached;  // by whom
    std::vector<Node> queue{root};
    for (size_t i = 0; i < queue.size() && !reached.contains(root); ++i) {
      for (const Edge& edge : edges_[queue[i]]) {
        if (std::ranges::find(members, edge.to) == members.end()) continue;
        if (reached.try_emplace(edge.to, queue[i], edge).second && edge.to != root) {
          queue.push_back(edge.to);
        }
      }
    }
    std::string words;
    Node at = root;
    do {
      const auto& [from, edge] = reached.at(at);
      words = InWords(from, edge) + (words.empty() ? "" : "; ") + words;
      at = from;
    } while (at != root);
    return words;
  }

  History history_;
  std::unordered_map<KeyNumber, Versions> keys_;
  std::unordered_map<KeyNumber, std::string> values_;  // while writes are replayed
  std::vector<std::vector<Edge>> edges_;
  CheckReport report_;
};

}  // namespace

CheckReport CheckHistory(History history) { return Checker(std::move(history)).Run(); }

}  // namespace basalt::serializability
