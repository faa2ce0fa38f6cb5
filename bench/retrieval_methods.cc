#include "bench/retrieval_methods.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

#include "basalt/db.h"
#include "bench/text.h"

namespace basalt::bench {
namespace {

/// So many passages of each ranking are looked at: enough for 2,000 tokens.
constexpr size_t kRanked = 100;
constexpr size_t kBytesPerToken = 4;
/// A document of the data is one passage, whatever its length.
constexpr size_t kPassageBytesMax = 1 << 20;

std::string SourceOf(size_t passage) { return std::to_string(passage); }

template <class T>
T OrFail(Result<T> result, const char* what) {
  if (!result) Fail(what, result.error().ToString());
  return std::move(*result);
}

}  // namespace

/// The vectors of the data. Passages are known by their titles, questions by their texts.
class RetrievalMethods::GivenVectors final : public DenseIndex {
 public:
  explicit GivenVectors(const RetrievalData& data) {
    for (size_t i = 0; i < data.passages.size(); ++i) {
      rows_[data.passages[i].title] = data.passage_vectors.Row(i);
    }
    for (size_t i = 0; i < data.questions.size(); ++i) {
      rows_[data.questions[i].text] = data.question_vectors.Row(i);
    }
  }

  Result<std::vector<std::vector<float>>> Embed(std::span<const std::string> texts) override {
    std::vector<std::vector<float>> vectors;
    for (const std::string& text : texts) {
      vectors.push_back(rows_.at(text.substr(0, text.find('\n'))));
    }
    return vectors;
  }
  Status Put(Transaction& /*tx*/, NodeId passage, std::span<const float> vector) override {
    vectors_[passage].assign(vector.begin(), vector.end());
    return {};
  }
  Status Remove(Transaction& /*tx*/, NodeId passage) override {
    vectors_.erase(passage);
    return {};
  }
  Result<std::vector<DenseHit>> Search(std::string_view query, size_t k) override {
    const std::vector<float>& wanted = rows_.at(std::string(query));
    std::vector<DenseHit> hits;
    for (const auto& [passage, vector] : vectors_) {
      const float product = std::inner_product(vector.begin(), vector.end(), wanted.begin(), 0.0F);
      hits.push_back({passage, static_cast<double>(product)});
    }
    std::ranges::sort(hits, std::greater(), &DenseHit::similarity);
    hits.resize(std::min(hits.size(), k));
    return hits;
  }

 private:
  std::unordered_map<std::string, std::vector<float>> rows_;
  std::map<NodeId, std::vector<float>> vectors_;
};

RetrievalMethods::RetrievalMethods(const RetrievalData& data)
    : data_(data), store_(OrFail(DB::Open(":memory:"), "open a database")) {
  const auto make = [&](const char* name, DenseIndex* dense) {
    auto corpus =
        OrFail(Corpus::Open(store_.get(),
                            {.name = name, .passage_bytes_max = kPassageBytesMax, .dense = dense}),
               "open a corpus");
    for (size_t i = 0; i < data.passages.size(); ++i) {
      const RetrievalData::Passage& passage = data.passages[i];
      OrFail(
          corpus->IngestText({.source = SourceOf(i), .title = passage.title, .text = passage.text}),
          "ingest a passage");
    }
    return corpus;
  };
  by_words_ = make("words", nullptr);
  if (!data.has_vectors()) return;
  vectors_ = std::make_unique<GivenVectors>(data);
  with_vectors_ = make("vectors", vectors_.get());
}

RetrievalMethods::~RetrievalMethods() = default;

std::vector<RankedPassage> RetrievalMethods::Retrieve(const Corpus& corpus, size_t question,
                                                      const RetrieveOptions& options) const {
  const RetrieveResult found =
      OrFail(corpus.Retrieve(data_.questions[question].text, options), "retrieve");
  std::vector<RankedPassage> ranked;
  for (const RetrievedPassage& passage : found.passages) {
    ranked.push_back({passage.title, passage.tokens});
  }
  return ranked;
}

RankedPassage RetrievalMethods::Ranked(NodeId passage) const {
  const GraphView view = OrFail(with_vectors_->graph().Read(), "read the graph");
  const std::optional<Node> node = OrFail(view.GetNode(passage), "read a passage");
  if (!node) Fail("read a passage", "it is not there");
  // The id is passage/SOURCE/NUMBER.
  const size_t begin = node->external_id.find('/') + 1;
  const size_t source = std::stoull(node->external_id.substr(begin));
  const RetrievalData::Passage& found = data_.passages[source];
  return {found.title,
          (found.title.size() + found.text.size() + kBytesPerToken - 1) / kBytesPerToken};
}

std::vector<RankedPassage> RetrievalMethods::ByVectors(size_t question) const {
  std::vector<RankedPassage> ranked;
  for (const DenseHit& hit :
       OrFail(vectors_->Search(data_.questions[question].text, kRanked), "search")) {
    ranked.push_back(Ranked(hit.passage));
  }
  return ranked;
}

/// The three nearest passages, and what is within two hops of them, in no order of worth.
std::vector<RankedPassage> RetrievalMethods::VectorThenExpand(size_t question) const {
  const GraphView view = OrFail(with_vectors_->graph().Read(), "read the graph");
  std::vector<NodeId> found;
  for (const DenseHit& hit :
       OrFail(vectors_->Search(data_.questions[question].text, 3), "search")) {
    const KHopResult near =
        OrFail(view.KHop(hit.passage, 2, {.direction = EdgeDirection::kBoth}), "expand");
    for (const NodeDistance& each : near.nodes) {
      const std::optional<Node> node = OrFail(view.GetNode(each.node), "read a node");
      const bool is_passage = node && std::ranges::count(node->labels, "Passage") > 0;
      if (is_passage && std::ranges::find(found, each.node) == found.end()) {
        found.push_back(each.node);
      }
    }
  }
  std::vector<RankedPassage> ranked;
  for (const NodeId passage : found) ranked.push_back(Ranked(passage));
  return ranked;
}

std::vector<RetrievalMethod> RetrievalMethods::All() const {
  const auto method = [this](const char* name, const Corpus* corpus, double link_weight) {
    return RetrievalMethod{name, [this, corpus, link_weight](size_t question) {
                             return Retrieve(*corpus, question,
                                             {.k = kRanked, .link_weight = link_weight});
                           }};
  };
  const double links = RetrieveOptions().link_weight;
  std::vector<RetrievalMethod> methods = {method("words", by_words_.get(), 0),
                                          method("words_links", by_words_.get(), links)};
  if (!with_vectors_) return methods;
  methods.push_back({"vectors", [this](size_t question) { return ByVectors(question); }});
  methods.push_back(
      {"vector_then_expand", [this](size_t question) { return VectorThenExpand(question); }});
  methods.push_back(method("hybrid", with_vectors_.get(), 0));
  methods.push_back(method("hybrid_links", with_vectors_.get(), links));
  return methods;
}

}  // namespace basalt::bench
