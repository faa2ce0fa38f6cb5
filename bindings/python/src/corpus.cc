// Corpora: documents that are found by their passages, over basalt::Corpus.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <exception>
#include <span>
#include <utility>

#include "basalt/retrieve.h"
#include "graph.h"
#include "store.h"
#include "values.h"

namespace basalt::python {
namespace {

// What a Python function raised while the engine called it. The engine returns an error instead,
// on the same thread.
thread_local std::exception_ptr raised;

/// Calls `work()`, and raises what a Python function raised inside instead of the engine's error.
template <class Work>
auto Reraise(const Work& work) {
  raised = nullptr;
  try {
    auto answer = work();
    raised = nullptr;
    return answer;
  } catch (const nb::python_error&) {
    if (raised != nullptr) std::rethrow_exception(std::exchange(raised, nullptr));
    throw;
  }
}

/// The vectors that `embed` makes of a list of str, one after the other. Without the GIL.
Result<std::vector<float>> Embed(const nb::object& embed, std::span<const std::string_view> texts) {
  const nb::gil_scoped_acquire acquire;
  try {
    nb::list list;
    for (const std::string_view text : texts) list.append(ToText(text));
    const std::vector<std::vector<float>> rows = FromVectors(embed(list));
    if (rows.size() != texts.size()) {
      throw nb::value_error(("embed gave " + std::to_string(rows.size()) + " vectors for " +
                             std::to_string(texts.size()) + " texts")
                                .c_str());
    }
    std::vector<float> elements;
    for (const std::vector<float>& row : rows)
      elements.insert(elements.end(), row.begin(), row.end());
    return elements;
  } catch (...) {
    raised = std::current_exception();
    return Status(StatusCode::kInvalidArgument, "embed raised an exception");
  }
}

/// A corpus with the index of its vectors, if it has one.
struct CorpusWithVectors {
  std::unique_ptr<DenseIndex> dense;
  std::unique_ptr<Corpus> corpus;
};

/// A corpus, or a view of it inside a transaction.
struct PyCorpus {
  std::shared_ptr<State> state;
  std::shared_ptr<Corpus> corpus;  // Owns a CorpusWithVectors.
  std::shared_ptr<PyTransaction::Shared> tx{};

  Corpus& Committed() const {
    state->Use();
    if (tx != nullptr) {
      Raise(Status(StatusCode::kUnsupported,
                   "a transaction ingests and forgets; call this on the corpus itself"));
    }
    return *corpus;
  }
};

PyCorpus OpenCorpus(PyDb& self, nb::handle name, nb::handle stemmer, bool create, nb::handle embed,
                    std::optional<size_t> dim, std::string model) {
  Store& store = self.store();
  CorpusOptions options{.name = FromText(name, "a name"), .create_if_missing = create};
  if (!stemmer.is_none()) options.stemmer = FromText(stemmer, "a stemmer");
  if (embed.is_none() != !dim)
    throw nb::value_error("embed and dim belong together: give both, or none");
  // A forked child leaves the parent's index alone: its locks may be held for ever.
  const std::shared_ptr<CorpusWithVectors> opened(
      new CorpusWithVectors, [fork_count = ForkCount()](CorpusWithVectors* ended) {
        if (fork_count == ForkCount()) delete ended;
      });
  if (dim) {
    const DenseIndexOptions of_vectors{
        .name = options.name + ".vectors",
        .dimension = *dim,
        .model = std::move(model),
        // Shared, because a copy of the object itself would need the GIL.
        .embed = [function = std::make_shared<nb::object>(nb::borrow(embed))](
                     std::span<const std::string_view> texts) { return Embed(*function, texts); }};
    opened->dense = WithoutGil([&] { return OpenDenseIndex(&store, of_vectors); });
    options.dense = opened->dense.get();
  }
  opened->corpus = WithoutGil([&] { return Corpus::Open(&store, options); });
  return {.state = self.state, .corpus = {opened, opened->corpus.get()}};
}

nb::object Ingest(PyCorpus& self, nb::handle source, nb::handle text, nb::handle title) {
  const Document document{.source = FromText(source, "a source"),
                          .title = FromText(title, "a title"),
                          .text = FromText(text, "a text")};
  const IngestResult result = Reraise([&] {
    return Change(*self.state, self.tx.get(),
                  [&](auto&... tx) { return self.corpus->IngestText(tx..., document); });
  });
  return Make("Ingested", result.passages, result.entities);
}

bool Forget(PyCorpus& self, nb::handle source) {
  const std::string name = FromText(source, "a source");
  return Change(*self.state, self.tx.get(),
                [&](auto&... tx) { return self.corpus->Forget(tx..., name); });
}

nb::object ToNumber(const std::optional<double>& number) {
  return number ? nb::object(nb::float_(*number)) : nb::none();
}

nb::object ToPassage(const RetrievedPassage& passage) {
  const ScoreParts& parts = passage.parts;
  nb::list evidence;
  for (const std::string& node : passage.evidence) evidence.append(ToText(node));
  return Make("Passage", ToText(passage.source), ToText(passage.title), ToText(passage.text),
              passage.begin, passage.end, passage.score,
              Make("ScoreParts", ToNumber(parts.bm25), ToNumber(parts.dense), parts.hybrid,
                   parts.page_rank, parts.links),
              passage.tokens, evidence);
}

nb::object Retrieve(PyCorpus& self, nb::handle query, size_t k, std::optional<uint64_t> max_tokens,
                    bool explain, double link_weight) {
  const Corpus& corpus = self.Committed();
  const std::string words = FromText(query, "a query");
  RetrieveOptions options{.k = k, .explain = explain, .link_weight = link_weight};
  if (max_tokens) options.max_tokens = *max_tokens;
  const RetrieveResult found =
      Reraise([&] { return WithoutGil([&] { return corpus.Retrieve(words, options); }); });
  nb::object passages = Make("Passages");
  passages.attr("tokens") = found.tokens;
  passages.attr("duplicates") = found.duplicates;
  passages.attr("truncated") = found.truncated;
  for (const RetrievedPassage& passage : found.passages) {
    if (PyList_Append(passages.ptr(), ToPassage(passage).ptr()) != 0) throw nb::python_error();
  }
  return passages;
}

}  // namespace

void DefineCorpora(nb::module_& module) {
  using nb::literals::operator""_a;
  nb::class_<PyCorpus>(module, "Corpus")
      .def("ingest", &Ingest, "source"_a, "text"_a, "title"_a = "")
      .def("forget", &Forget, "source"_a)
      .def("retrieve", &Retrieve, "query"_a, "k"_a = RetrieveOptions().k, nb::kw_only(),
           "max_tokens"_a = nb::none(), "explain"_a = false,
           "link_weight"_a = RetrieveOptions().link_weight)
      .def("tidy",
           [](PyCorpus& self) {
             Corpus& corpus = self.Committed();
             WithoutGil([&] { return corpus.Tidy(); });
           })
      .def_prop_ro("graph", [](PyCorpus& self) {
        // Shares the ownership of the corpus.
        return PyGraph{self.state, {self.corpus, &self.corpus->graph()}, self.tx};
      });

  nb::borrow<nb::class_<PyDb, PyStore>>(module.attr("DB"))
      .def("corpus", &OpenCorpus, "name"_a = CorpusOptions().name.c_str(), "stemmer"_a = nb::none(),
           nb::kw_only(), "create"_a = true, "embed"_a = nb::none(), "dim"_a = nb::none(),
           "model"_a = "");
  nb::borrow<nb::class_<PyTransaction>>(module.attr("Transaction"))
      .def(
          "corpus",
          [](PyTransaction& self, const PyCorpus& of) {
            return PyCorpus{of.state, of.corpus, TransactionOn(of.state, self)};
          },
          "corpus"_a, "The same transaction, on a corpus. Call tidy() after the commit.");
}

}  // namespace basalt::python
