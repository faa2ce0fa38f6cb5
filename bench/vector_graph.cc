#include "bench/vector_graph.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <map>
#include <memory>
#include <span>
#include <thread>

#include "base/random.h"
#include "bench/text.h"
#include "vector/hnsw_index.h"

namespace basalt::bench {
namespace {

using vector::CodeBook;
using vector::HnswIndex;
using vector::SearchRequest;

constexpr size_t kNeighbours = VectorData::kNeighbours;
constexpr size_t kSample = 2'000;

double ThreadSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

class Rows : public vector::RowSource {
 public:
  Rows(const VectorData* data, const std::vector<uint32_t>* ids, const VectorDistance* distance,
       const float* query)
      : data_(*data), ids_(*ids), distance_(*distance), query_(query) {}

  Status Distances(std::span<const uint32_t> slots, float* distances) const override {
    const void* rows[64];
    for (size_t i = 0; i < slots.size(); ++i) rows[i] = data_.Vector(ids_[slots[i]]);
    distance_.ToEach(query_, rows, slots.size(), distances);
    return Status();
  }

 private:
  const VectorData& data_;
  const std::vector<uint32_t>& ids_;
  const VectorDistance& distance_;
  const float* query_;
};

/// HnswIndex over the vectors of a VectorData, by their numbers.
class Ours {
 public:
  explicit Ours(const VectorData& data)
      : data_(data),
        distance_(
            *VectorDistance::Create(VectorMetric::kL2, VectorElement::kFloat32, data.dimension())),
        ids_(2 * data.vectors()),
        index_(std::move(*CodeBook::Fit(VectorMetric::kL2, data.dimension(), 42, data.Vector(0),
                                        std::min(kSample, data.vectors())))) {}

  HnswIndex& index() noexcept { return index_; }
  uint32_t Add(uint32_t id) {
    const uint32_t slot = *index_.Add(data_.Vector(id));
    ids_.at(slot) = id;
    return slot;
  }
  size_t Search(size_t query, const SearchRequest& request, uint32_t* ids) const {
    const float* const vector = data_.Query(query);
    const auto found = index_.Search(vector, request, Rows(&data_, &ids_, &distance_, vector));
    if (!found) Fail("search", found.status().ToString());
    for (size_t i = 0; i < found->hits.size(); ++i) ids[i] = ids_[found->hits[i].slot];
    return found->hits.size();
  }

 private:
  const VectorData& data_;
  VectorDistance distance_;
  std::vector<uint32_t> ids_;  ///< By slot.
  HnswIndex index_;
};

/// A peer's index over the same.
class Theirs {
 public:
  Theirs(const VectorPeer& peer, const VectorData& data)
      : peer_(peer), data_(data), index_(peer.make(data.dimension(), data.vectors())) {}
  ~Theirs() { peer_.destroy(index_); }
  Theirs(const Theirs&) = delete;
  Theirs& operator=(const Theirs&) = delete;

  void Add(uint32_t id) { peer_.add(index_, data_.Vector(id), id); }
  void set_ef(size_t ef) { peer_.set_ef(index_, ef); }
  size_t Search(size_t query, uint32_t* ids) const {
    return peer_.search(index_, data_.Query(query), kNeighbours, nullptr, nullptr, ids);
  }
  size_t SearchFiltered(size_t query, const std::vector<bool>& passes, uint32_t* ids) const {
    const auto ask = [](void* filter, uint32_t id) {
      return static_cast<bool>((*static_cast<const std::vector<bool>*>(filter))[id]);
    };
    return peer_.search(index_, data_.Query(query), kNeighbours, ask,
                        const_cast<std::vector<bool>*>(&passes), ids);
  }

 private:
  const VectorPeer& peer_;
  const VectorData& data_;
  void* index_;
};

struct Point {
  double recall;
  double qps;
};

/// Recall over all queries, then the time of the quickest of three times all.
template <class Search, class Recall>
Point MeasurePoint(size_t queries, const Search& search, const Recall& recall, int tries = 3) {
  uint32_t ids[kNeighbours];
  double sum = 0;
  for (size_t query = 0; query < queries; ++query) {
    const size_t count = search(query, ids);
    sum += recall(query, std::span<const uint32_t>(ids, count));
  }
  double least = 1e9;
  for (int i = 0; i < tries; ++i) {
    const double start = ThreadSeconds();
    for (size_t query = 0; query < queries; ++query) search(query, ids);
    least = std::min(least, ThreadSeconds() - start);
  }
  const auto count = static_cast<double>(queries);
  return {sum / count, count / least};
}

/// Queries a second at a recall: between two points of the front by the logarithm; 0: not reached.
double QpsAt(std::vector<Point> points, double recall) {
  std::ranges::sort(points, {}, &Point::recall);
  std::vector<Point> front;
  for (const Point& point : points) {
    while (!front.empty() && front.back().qps <= point.qps) front.pop_back();
    front.push_back(point);
  }
  for (size_t i = 0; i < front.size(); ++i) {
    if (front[i].recall < recall) continue;
    if (i == 0) return front[0].qps;
    const double share = (recall - front[i - 1].recall) / (front[i].recall - front[i - 1].recall);
    return std::exp(std::log(front[i - 1].qps) * (1 - share) + std::log(front[i].qps) * share);
  }
  return 0;
}

void AddCurve(const std::string& name, const std::string& subject,
              const std::map<size_t, Point>& curve, VectorReport* report) {
  std::vector<Point> points;
  for (const auto& [ef, point] : curve) {
    report->Add(name, subject, Format("recall_ef_%zu", ef), "", point.recall);
    report->Add(name, subject, Format("qps_ef_%zu", ef), "/s", point.qps);
    points.push_back(point);
  }
  for (const double recall : {0.9, 0.95, 0.99}) {
    const double qps = QpsAt(points, recall);
    if (qps > 0) report->Add(name, subject, Format("qps_at_%.2f", recall), "/s", qps);
  }
}

void MeasureCurves(const std::string& name, const VectorData& data, const Ours& ours,
                   Theirs* theirs, VectorReport* report) {
  std::map<size_t, Point> our_curve;
  std::map<size_t, Point> their_curve;
  const auto recall = [&](size_t query, std::span<const uint32_t> ids) {
    return data.Recall(query, ids);
  };
  for (const size_t ef : {10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256}) {
    SearchRequest request;
    request.ef = ef;
    our_curve[ef] = MeasurePoint(
        data.queries(),
        [&](size_t query, uint32_t* ids) { return ours.Search(query, request, ids); }, recall);
    if (theirs == nullptr) continue;
    theirs->set_ef(ef);
    their_curve[ef] = MeasurePoint(
        data.queries(), [&](size_t query, uint32_t* ids) { return theirs->Search(query, ids); },
        recall);
  }
  AddCurve(name, "basalt", our_curve, report);
  if (theirs != nullptr) AddCurve(name, "hnswlib", their_curve, report);
}

void MeasureFilters(const std::string& name, const VectorData& data, const Ours& ours,
                    Theirs* theirs, VectorReport* report) {
  const size_t queries = std::min<size_t>(100, data.queries());
  base::Random random(5);
  for (const bool is_correlated : {false, true}) {
    // At random, or those on one side: of the first coordinate.
    std::vector<std::pair<double, uint32_t>> order;
    for (uint32_t id = 0; id < data.vectors(); ++id) {
      order.emplace_back(
          is_correlated ? static_cast<double>(data.Vector(id)[0]) : random.NextDouble(), id);
    }
    std::ranges::sort(order);
    for (const double percent : {0.1, 1.0, 10.0, 50.0}) {
      std::vector<bool> passes(data.vectors());
      std::vector<uint64_t> bits(data.vectors() / 64 + 1);
      const auto count = static_cast<size_t>(percent / 100 * static_cast<double>(data.vectors()));
      for (size_t i = 0; i < count; ++i) {
        const uint32_t id = order[i].second;
        passes[id] = true;
        bits[id / 64] |= uint64_t{1} << (id % 64);
      }
      const auto recall = [&](size_t query, std::span<const uint32_t> ids) {
        return data.Recall(query, ids, passes);
      };
      SearchRequest request;
      request.filter.bits = bits;
      request.filter.has_bits = true;
      const auto search = [&](size_t query, uint32_t* ids) {
        return ours.Search(query, request, ids);
      };
      const std::string metric = Format("%s_%g", is_correlated ? "side" : "rand", percent);
      const Point chosen = MeasurePoint(queries, search, recall);
      report->Add(name, "basalt", "recall_" + metric, "", chosen.recall);
      report->Add(name, "basalt", "qps_" + metric, "/s", chosen.qps);
      request.scans = true;
      const Point scanned = MeasurePoint(queries, search, recall, 1);
      report->Add(name, "basalt_scan", "recall_" + metric, "", scanned.recall);
      report->Add(name, "basalt_scan", "qps_" + metric, "/s", scanned.qps);
      if (!is_correlated && percent == 1)
        report->Add(name, "basalt", "scan_1_percent", "/s", chosen.qps);
      if (theirs == nullptr) continue;
      theirs->set_ef(16);
      const Point peer = MeasurePoint(
          std::min<size_t>(queries, 50),
          [&](size_t query, uint32_t* ids) { return theirs->SearchFiltered(query, passes, ids); },
          recall, 1);
      report->Add(name, "hnswlib", "recall_" + metric, "", peer.recall);
      report->Add(name, "hnswlib", "qps_" + metric, "/s", peer.qps);
      if (!is_correlated && percent == 1)
        report->Add(name, "hnswlib", "scan_1_percent", "/s", peer.qps);
    }
  }
}

// Searches while another thread adds: processor time of the searching thread alone.
void MeasureBesideAdds(const std::string& name, const VectorData& data, Ours* ours,
                       VectorReport* report) {
  SearchRequest request;
  request.ef = 64;
  uint32_t ids[kNeighbours];
  const auto qps = [&] {
    const double start = ThreadSeconds();
    for (size_t query = 0; query < data.queries(); ++query) ours->Search(query, request, ids);
    return static_cast<double>(data.queries()) / (ThreadSeconds() - start);
  };
  double alone = 0;
  double beside = 0;
  for (int turn = 0; turn < 3; ++turn) {
    alone = std::max(alone, qps());
    std::atomic<bool> stops{false};
    std::thread adder([&] {
      for (uint32_t id = 0; !stops.load(std::memory_order_relaxed) && id < data.vectors() / 4;
           ++id) {
        ours->Add(id);
      }
    });
    beside = std::max(beside, qps());
    stops = true;
    adder.join();
    for (uint32_t slot = static_cast<uint32_t>(data.vectors()); slot < ours->index().slots();
         ++slot) {
      (void)ours->index().Remove(slot);
    }
    if (!ours->index().Repair().ok()) Fail("repair", "no memory");
  }
  report->Add(name, "basalt", "qps_beside_adds", "/s", beside);
  report->Add(name, "basalt", "qps_beside_adds_share", "", beside / alone);
}

}  // namespace

const VectorPeer* LoadVectorPeer(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr
                            : static_cast<const VectorPeer*>(dlsym(library, "vector_peer"));
}

void MeasureVectorGraph(const std::string& name, const VectorData& data, const VectorPeer* peer,
                        VectorReport* report) {
  const auto count = static_cast<double>(data.vectors());
  const auto build = [&](auto* index) {
    const double start = ThreadSeconds();
    for (uint32_t id = 0; id < data.vectors(); ++id) index->Add(id);
    return ThreadSeconds() - start;
  };
  Ours ours(data);
  const double our_seconds = build(&ours);
  report->Add(name, "basalt", "build_seconds", "s", our_seconds);
  report->Add(name, "basalt", "build_rate", "/s", count / our_seconds);
  const double bytes = static_cast<double>(ours.index().Stats().bytes) / count;
  report->Add(name, "basalt", "bytes_beyond_rows", "B", bytes);
  report->Add(name, "basalt", "bytes_beyond_code", "B",
              bytes - static_cast<double>(data.dimension()));
  std::unique_ptr<Theirs> theirs;
  if (peer != nullptr) {
    theirs = std::make_unique<Theirs>(*peer, data);
    const double seconds = build(theirs.get());
    report->Add(name, "hnswlib", "build_seconds", "s", seconds);
    report->Add(name, "hnswlib", "build_rate", "/s", count / seconds);
  }
  MeasureCurves(name, data, ours, theirs.get(), report);
  MeasureFilters(name, data, ours, theirs.get(), report);
  MeasureBesideAdds(name, data, &ours, report);
}

void MeasureVectorChurn(const VectorData& data, VectorReport* report) {
  const size_t live = data.vectors() / 2;
  Ours churned(data);
  std::vector<std::pair<uint32_t, uint32_t>> slots;  // With the vector in each.
  std::vector<uint32_t> spare;
  for (uint32_t id = 0; id < data.vectors(); ++id) {
    if (id < live) {
      slots.emplace_back(churned.Add(id), id);
    } else {
      spare.push_back(id);
    }
  }
  base::Random random(6);
  double repair_seconds = 0;
  const double start = ThreadSeconds();
  size_t replaced = 0;
  for (int turn = 0; turn < 100; ++turn) {
    for (size_t i = 0; i < live / 20; ++i, ++replaced) {
      const size_t which = random.Below(slots.size());
      const size_t next = random.Below(spare.size());
      if (!churned.index().Remove(slots[which].first).ok()) Fail("remove", "no such slot");
      slots[which].first = churned.Add(spare[next]);
      std::swap(slots[which].second, spare[next]);
    }
    const double repair = ThreadSeconds();
    if (!churned.index().Repair().ok()) Fail("repair", "no memory");
    repair_seconds += ThreadSeconds() - repair;
  }
  const double seconds = ThreadSeconds() - start;
  Ours fresh(data);
  std::vector<bool> is_live(data.vectors());
  for (const auto& [slot, id] : slots) {
    is_live[id] = true;
    fresh.Add(id);
  }
  const auto recall = [&](size_t query, std::span<const uint32_t> ids) {
    return data.Recall(query, ids, is_live);
  };
  for (const size_t ef : {32, 64, 128}) {
    SearchRequest request;
    request.ef = ef;
    for (const auto& [subject, index] :
         {std::pair<const char*, const Ours*>{"basalt", &churned}, {"fresh", &fresh}}) {
      const Point point = MeasurePoint(
          std::min<size_t>(200, data.queries()),
          [&, of = index](size_t query, uint32_t* ids) { return of->Search(query, request, ids); },
          recall);
      report->Add("churn", subject, Format("recall_ef_%zu", ef), "", point.recall);
      report->Add("churn", subject, Format("qps_ef_%zu", ef), "/s", point.qps);
    }
  }
  const auto audit = churned.index().Audit();
  report->Add("churn", "basalt", "unreachable", "",
              static_cast<double>(audit->nodes - audit->reachable));
  report->Add("churn", "basalt", "microseconds_each", "us",
              seconds / static_cast<double>(replaced) * 1e6);
  report->Add("churn", "basalt", "of_repair", "us",
              repair_seconds / static_cast<double>(replaced) * 1e6);
  report->Add("churn", "basalt", "bytes", "MB",
              static_cast<double>(churned.index().Stats().bytes) / 1e6);
  report->Add("churn", "fresh", "bytes", "MB",
              static_cast<double>(fresh.index().Stats().bytes) / 1e6);
}

}  // namespace basalt::bench
