// Collections: vectors with ids and attributes, over basalt::VectorIndex.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <deque>
#include <limits>
#include <utility>

#include "basalt/vector_index.h"
#include "convert.h"
#include "store.h"
#include "values.h"

namespace basalt::python {
namespace {

/// A collection, or a view of it inside a transaction.
struct PyCollection {
  std::shared_ptr<State> state;
  std::shared_ptr<VectorIndex> index;
  std::string name;
  std::shared_ptr<PyTransaction::Shared> tx{};

  /// For what sees committed vectors only.
  VectorIndex& Committed() const {
    state->Use();
    if (tx != nullptr) {
      Raise(Status(StatusCode::kUnsupported,
                   "a transaction adds, changes, removes and gets vectors; call this on the "
                   "collection, which sees what is committed"));
    }
    return *index;
  }
};

Status StatusOf(Status status) { return status; }
Status StatusOf(const Result<Commit>& result) { return result ? Status() : result.error(); }

std::optional<VectorMetric> FromMetric(nb::handle metric) {
  if (metric.is_none()) return std::nullopt;
  const std::string name = FromText(metric, "a metric");
  if (name == "cosine") return VectorMetric::kCosine;
  if (name == "l2") return VectorMetric::kL2;
  if (name == "ip") return VectorMetric::kInnerProduct;
  throw nb::value_error("a metric is 'cosine', 'l2' or 'ip'");
}

const char* MetricName(VectorMetric metric) {
  switch (metric) {
    case VectorMetric::kL2:
      return "l2";
    case VectorMetric::kInnerProduct:
      return "ip";
    default:
      return "cosine";
  }
}

/// The collection that is open under this name, if it was made with these options and its keyspace
/// was not dropped since.
std::shared_ptr<VectorIndex> OpenAlready(const State& state, const std::string& name,
                                         const VectorIndexOptions& options) {
  const auto found = state.collections.find(name);
  if (found == state.collections.end()) return nullptr;
  const VectorIndex& index = *found->second;
  if (options.dimension != 0 && options.dimension != index.dimension()) return nullptr;
  if (options.metric && *options.metric != index.metric()) return nullptr;
  if (!options.model.empty() && options.model != index.model()) return nullptr;
  const Result<KeyspaceId> keyspace = state.store->OpenKeyspace(name);
  return keyspace && *keyspace == index.keyspace() ? found->second : nullptr;
}

PyCollection OpenCollection(PyDb& self, std::string name, std::optional<size_t> dim,
                            nb::handle metric, std::string model) {
  Store& store = self.store();
  const VectorIndexOptions options{
      .dimension = dim.value_or(0), .metric = FromMetric(metric), .model = std::move(model)};
  std::shared_ptr<VectorIndex> index = OpenAlready(*self.state, name, options);
  if (index == nullptr) {
    std::unique_ptr<VectorIndex> opened = WithoutGil([&] {
      return dim ? VectorIndex::OpenOrCreate(&store, name, options)
                 : VectorIndex::Open(&store, name, options);
    });
    // A forked child leaves the parent's index alone: its locks may be held for ever.
    index = {opened.release(), [fork_count = ForkCount()](VectorIndex* ended) {
               if (fork_count == ForkCount()) delete ended;
             }};
    self.store();  // Somebody may have closed it.
    self.state->collections.insert_or_assign(name, index);
  }
  return {.state = self.state, .index = std::move(index), .name = std::move(name)};
}

void Add(PyCollection& self, nb::handle id, nb::handle vector, const nb::kwargs& attributes) {
  const std::string id_bytes = FromText(id, "an id");
  const std::vector<float> elements = FromVector(vector);
  const Attributes values = FromAttributes(attributes);
  Change(*self.state, self.tx.get(),
         [&](auto&... tx) { return StatusOf(self.index->Add(tx..., id_bytes, elements, values)); });
}

void AddMany(PyCollection& self, nb::handle ids, nb::handle vectors, nb::handle attributes) {
  std::vector<std::string> names = FromTexts(ids, "an id");
  std::vector<std::vector<float>> rows = FromVectors(vectors);
  std::vector<Attributes> values;
  if (attributes.is_none()) {
    values.resize(names.size());
  } else {
    for (nb::handle mapping : nb::iter(attributes)) values.push_back(FromAttributes(mapping));
  }
  if (rows.size() != names.size() || values.size() != names.size()) {
    throw nb::value_error(("there are " + std::to_string(names.size()) + " ids, " +
                           std::to_string(rows.size()) + " vectors and " +
                           std::to_string(values.size()) + " mappings of attributes")
                              .c_str());
  }
  std::vector<VectorItem> items;
  items.reserve(names.size());
  for (size_t i = 0; i < names.size(); ++i)
    items.push_back({std::move(names[i]), std::move(rows[i]), std::move(values[i])});
  Change(*self.state, self.tx.get(), [&](auto&... tx) {
    if constexpr (sizeof...(tx) == 0) {
      return StatusOf(self.index->AddBatch(items));
    } else {
      for (const VectorItem& item : items) {
        Status added = self.index->Add(tx..., item.id, item.vector, item.attributes);
        if (!added.ok()) return added;
      }
      return Status();
    }
  });
}

void Update(PyCollection& self, nb::handle id, const nb::kwargs& attributes) {
  const std::string id_bytes = FromText(id, "an id");
  const Attributes values = FromAttributes(attributes);
  Change(*self.state, self.tx.get(),
         [&](auto&... tx) { return StatusOf(self.index->Update(tx..., id_bytes, values)); });
}

void Remove(PyCollection& self, nb::handle id) {
  const std::string id_bytes = FromText(id, "an id");
  Change(*self.state, self.tx.get(),
         [&](auto&... tx) { return StatusOf(self.index->Remove(tx..., id_bytes)); });
}

std::optional<VectorItem> Find(PyCollection& self, nb::handle id) {
  const std::string id_bytes = FromText(id, "an id");
  return Change(*self.state, self.tx.get(),
                [&](auto&... tx) { return self.index->Get(tx..., id_bytes); });
}

nb::object ToItem(const VectorItem& item) {
  return Make("Item", ToText(item.id), ToVector(item.vector), ToAttributes(item.attributes));
}

nb::object GetOr(PyCollection& self, nb::handle id, nb::handle otherwise) {
  const std::optional<VectorItem> item = Find(self, id);
  return item ? ToItem(*item) : nb::borrow(otherwise);
}

nb::list Search(PyCollection& self, nb::handle vector, size_t k, nb::handle filter, double recall,
                bool exact, std::optional<float> max_distance) {
  const VectorIndex& index = self.Committed();
  const std::vector<float> query = FromVector(vector);
  VectorSearchOptions options{.k = k, .recall = recall, .exact = exact, .with_attributes = true};
  options.max_distance = max_distance.value_or(std::numeric_limits<float>::infinity());
  if (!filter.is_none()) options.filter = Check(VectorFilter::Parse(FromText(filter, "a filter")));
  const VectorSearchResult found = WithoutGil([&] { return index.Search(query, options); });
  nb::list hits;
  for (const VectorHit& hit : found.hits) {
    hits.append(Make("Hit", ToText(hit.id), hit.distance, hit.score, ToAttributes(hit.attributes)));
  }
  return hits;
}

/// Walks over a collection by ids, a part of it at a time. Each part is one moment of the
/// collection.
class CollectionScan {
 public:
  CollectionScan(PyCollection collection, bool ids_only)
      : collection_(std::move(collection)), ids_only_(ids_only) {}

  nb::object Next() {
    const InUse in_use(&in_use_, "the iterator");
    if (items_.empty() && !ended_) Fill();
    if (items_.empty()) throw nb::stop_iteration();
    const VectorItem item = std::move(items_.front());
    items_.pop_front();
    return ids_only_ ? ToText(item.id) : ToItem(item);
  }

 private:
  void Fill() {
    constexpr size_t kItemsMax = 256;
    const VectorIndex& index = collection_.Committed();
    const Status status = [&] {
      const nb::gil_scoped_release release;
      return index.ForEach(last_.value_or(""), [&](const VectorItem& item) {
        if (item.id == last_) return Status();
        if (items_.size() == kItemsMax) return Status(StatusCode::kCancelled, "the part is full");
        items_.push_back(item);
        return Status();
      });
    }();
    ended_ = status.code() != StatusCode::kCancelled;
    if (ended_) Check(status);
    if (!items_.empty()) last_ = items_.back().id;
  }

  PyCollection collection_;
  bool ids_only_;
  bool in_use_ = false;
  bool ended_ = false;
  std::optional<std::string> last_;
  std::deque<VectorItem> items_;
};

}  // namespace

void DefineCollections(nb::module_& module) {
  using nb::literals::operator""_a;
  nb::class_<CollectionScan>(module, "CollectionScan", "Iterates over a collection.")
      .def("__iter__", [](nb::handle self) { return self; })
      .def("__next__", &CollectionScan::Next);

  nb::class_<PyCollection>(module, "Collection")
      .def_prop_ro("name", [](const PyCollection& self) { return self.name; })
      .def_prop_ro("dim", [](const PyCollection& self) { return self.index->dimension(); })
      .def_prop_ro("metric",
                   [](const PyCollection& self) { return MetricName(self.index->metric()); })
      .def_prop_ro("model", [](const PyCollection& self) { return self.index->model(); })
      .def("add", &Add, nb::arg(), nb::arg(), "attributes"_a)
      .def("add_many", &AddMany, "ids"_a, "vectors"_a, "attributes"_a = nb::none())
      .def("update", &Update, nb::arg(), "attributes"_a)
      .def("remove", &Remove, "id"_a)
      .def("get", &GetOr, "id"_a, "default"_a = nb::none())
      .def("__contains__",
           [](PyCollection& self, nb::handle id) { return Find(self, id).has_value(); })
      .def("search", &Search, "vector"_a, "k"_a = VectorSearchOptions().k, nb::kw_only(),
           "filter"_a = nb::none(), "recall"_a = VectorSearchOptions().recall, "exact"_a = false,
           "max_distance"_a = nb::none())
      .def("__len__",
           [](PyCollection& self) {
             const VectorIndex& index = self.Committed();
             return WithoutGil([&] { return index.Count(); });
           })
      .def("__iter__",
           [](PyCollection& self) {
             self.Committed();
             return CollectionScan(self, true);
           })
      .def("items",
           [](PyCollection& self) {
             self.Committed();
             return CollectionScan(self, false);
           })
      .def("compact",
           [](PyCollection& self) {
             VectorIndex& index = self.Committed();
             WithoutGil([&] { return index.Compact(); });
           })
      .def("save_checkpoint", [](PyCollection& self) {
        VectorIndex& index = self.Committed();
        WithoutGil([&] { return index.SaveCheckpoint(); });
      });

  nb::borrow<nb::class_<PyDb, PyStore>>(module.attr("DB"))
      .def("collection", &OpenCollection, "name"_a, "dim"_a = nb::none(), "metric"_a = nb::none(),
           "model"_a = "");
  nb::borrow<nb::class_<PyTransaction>>(module.attr("Transaction"))
      .def(
          "collection",
          [](PyTransaction& self, const PyCollection& of) {
            return PyCollection{of.state, of.index, of.name, TransactionOn(of.state, self)};
          },
          "collection"_a, "The same transaction, on a collection.");
}

}  // namespace basalt::python
