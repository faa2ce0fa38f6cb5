#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "basalt/retrieve.h"
#include "base/random.h"
#include "retrieve/corpus_core.h"
#include "retrieve/test_corpus.h"

namespace basalt::retrieve {
namespace {

/// Keeps vectors in a keyspace and compares all of them. A vector counts the letters of a text.
class LetterIndex final : public DenseIndex {
 public:
  explicit LetterIndex(Store* store)
      : store_(store), keyspace_(store->OpenOrCreateKeyspace("letters").value()) {}

  Result<std::vector<std::vector<float>>> Embed(std::span<const std::string> texts) override {
    std::vector<std::vector<float>> vectors;
    for (const std::string& text : texts) vectors.push_back(VectorOf(text));
    return vectors;
  }
  Status Put(Transaction& tx, NodeId passage, std::span<const float> vector) override {
    const std::string_view bytes(reinterpret_cast<const char*>(vector.data()), vector.size_bytes());
    return tx.Put(std::to_string(static_cast<uint64_t>(passage)), bytes, {.keyspace = keyspace_});
  }
  Status Remove(Transaction& tx, NodeId passage) override {
    return tx.Delete(std::to_string(static_cast<uint64_t>(passage)), {.keyspace = keyspace_});
  }
  Result<std::vector<DenseHit>> Search(std::string_view query, size_t k) override {
    const std::vector<float> wanted = VectorOf(query);
    std::vector<DenseHit> hits;
    const auto it = store_->NewIterator({.keyspace = keyspace_});
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      std::vector<float> vector(it->value().size() / sizeof(float));
      it->value().copy(reinterpret_cast<char*>(vector.data()), it->value().size());
      double product = 0;
      for (size_t i = 0; i < vector.size(); ++i) {
        product += static_cast<double>(vector[i]) * static_cast<double>(wanted[i]);
      }
      hits.push_back({NodeId{std::stoull(std::string(it->key()))}, product});
    }
    std::ranges::sort(hits, [](const DenseHit& a, const DenseHit& b) {
      return a.similarity != b.similarity ? a.similarity > b.similarity : a.passage < b.passage;
    });
    hits.resize(std::min(hits.size(), k));
    return hits;
  }

 private:
  static std::vector<float> VectorOf(std::string_view text) {
    std::vector<float> vector(26, 1e-3F);
    for (const char c : text) {
      if (c >= 'a' && c <= 'z') vector[static_cast<size_t>(c - 'a')] += 1;
    }
    float length = 0;
    for (const float element : vector) length += element * element;
    for (float& element : vector) element /= std::sqrt(length);
    return vector;
  }

  Store* store_;
  const KeyspaceId keyspace_;
};

Document Ada() {
  return {.source = "notes/ada.md",
          .title = "Ada Lovelace",
          .text =
              "Ada Lovelace was a mathematician.\n\n"
              "She wrote about the Analytical Engine. Charles Babbage designed it."};
}
Document Engine() {
  return {.source = "notes/engine.md",
          .title = "Analytical Engine",
          .text = "A machine that was designed in London. It was never finished."};
}
Document Babbage() {
  return {.source = "notes/babbage.md",
          .title = "Charles Babbage",
          .text = "He was born in London, and lectured in Cambridge."};
}

std::vector<std::string> SourcesOf(const RetrieveResult& result) {
  std::vector<std::string> sources;
  for (const RetrievedPassage& passage : result.passages) sources.push_back(passage.source);
  return sources;
}

/// External ids of the nodes that begin with `prefix`.
std::set<std::string> IdsOf(Corpus* corpus, std::string_view prefix) {
  std::set<std::string> ids;
  const GraphView view = corpus->graph().Read().value();
  EXPECT_TRUE(view.ForEachNode(prefix,
                               [&](const Node& node) {
                                 ids.insert(node.external_id);
                                 return true;
                               })
                  .ok());
  return ids;
}

TEST(Corpus, FindsPassagesByWordsAndByLinks) {
  const auto store = NewMemoryDb();
  const auto corpus = Corpus::Open(store.get()).value();
  const IngestResult ingested = corpus->IngestText(Ada()).value();
  EXPECT_EQ(ingested.passages, 1u);
  EXPECT_EQ(ingested.entities, 3u);
  ASSERT_TRUE(corpus->IngestText(Engine()).has_value());
  ASSERT_TRUE(corpus->IngestText(Babbage()).has_value());

  const auto found = corpus->Retrieve("which mathematician", {.explain = true}).value();
  ASSERT_FALSE(found.passages.empty());
  EXPECT_EQ(found.passages[0].source, "notes/ada.md");
  EXPECT_TRUE(found.passages[0].parts.bm25.has_value());
  EXPECT_FALSE(found.passages[0].parts.dense.has_value());
  // No word of the question is in it.
  const auto linked =
      std::ranges::find(found.passages, "notes/babbage.md", &RetrievedPassage::source);
  ASSERT_NE(linked, found.passages.end());
  EXPECT_FALSE(linked->parts.bm25.has_value());
  EXPECT_GT(linked->parts.page_rank, 0);
  EXPECT_EQ(linked->evidence,
            (std::vector<std::string>{"passage/notes/ada.md/00000000", "entity/charles babbage",
                                      "passage/notes/babbage.md/00000000"}));
  for (const RetrievedPassage& passage : found.passages) {
    EXPECT_DOUBLE_EQ(passage.score, passage.parts.hybrid + passage.parts.links);
  }

  const auto by_words = corpus->Retrieve("which mathematician", {.link_weight = 0}).value();
  for (const RetrievedPassage& passage : by_words.passages) {
    EXPECT_TRUE(passage.parts.bm25.has_value());
    EXPECT_EQ(passage.parts.links, 0);
    EXPECT_TRUE(passage.evidence.empty());
  }
  EXPECT_EQ(corpus->Retrieve("ada", {.link_weight = -1}).error().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(corpus->Retrieve("ada", {.link_weight = std::nan("")}).error().code(),
            StatusCode::kInvalidArgument);
}

TEST(Corpus, AnOnlyMatchComesBeforeWhatItIsLinkedTo) {
  const auto store = NewMemoryDb();
  const auto corpus = Corpus::Open(store.get()).value();
  ASSERT_TRUE(corpus->IngestText({.source = "match", .text = "Paris is a city"}).has_value());
  ASSERT_TRUE(corpus->IngestText({.source = "linked", .text = "Paris"}).has_value());
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(corpus->IngestText({.source = std::to_string(i), .text = "other"}).has_value());
  }
  EXPECT_EQ(SourcesOf(corpus->Retrieve("city").value()),
            (std::vector<std::string>{"match", "linked"}));
}

TEST(Corpus, PassagesAreLinkedToTheEntitiesThatTheyName) {
  const auto store = NewMemoryDb();
  const auto corpus = Corpus::Open(store.get()).value();
  ASSERT_TRUE(corpus->IngestText(Ada()).has_value());
  ASSERT_TRUE(corpus->IngestText(Babbage()).has_value());
  EXPECT_EQ(IdsOf(corpus.get(), "entity/"),
            (std::set<std::string>{"entity/ada lovelace", "entity/analytical engine",
                                   "entity/cambridge", "entity/charles babbage", "entity/london"}));
  const GraphView view = corpus->graph().Read().value();
  const auto edge = [&](const char* from, const char* type, const char* to) {
    return view.GetEdge({.from = from, .type = type, .to = to}).value().has_value();
  };
  EXPECT_TRUE(edge("document/notes/ada.md", "has", "passage/notes/ada.md/00000000"));
  EXPECT_TRUE(edge("passage/notes/ada.md/00000000", "about", "entity/ada lovelace"));
  EXPECT_FALSE(edge("passage/notes/ada.md/00000000", "names", "entity/ada lovelace"));
  EXPECT_TRUE(edge("passage/notes/ada.md/00000000", "names", "entity/charles babbage"));
  EXPECT_TRUE(edge("passage/notes/babbage.md/00000000", "about", "entity/charles babbage"));
}

TEST(Corpus, SpansAreTheBytesOfTheDocument) {
  base::Random random(1);
  const auto store = NewMemoryDb();
  const auto corpus = Corpus::Open(store.get(), {.passage_bytes_max = 100}).value();
  std::map<std::string, std::string> texts;
  for (int i = 0; i < 20; ++i) {
    std::string text = "  \n";
    for (int paragraph = 0; paragraph < 5; ++paragraph) {
      text += AnyText(&random, random.Below(60)) + "東京都。\xff\r\n \n";
    }
    const std::string source = "text/" + std::to_string(i);
    texts[source] = text;
    ASSERT_TRUE(corpus->IngestText({.source = source, .title = "T", .text = text}).has_value());
  }
  size_t passages = 0;
  for (int i = 0; i < 20; ++i) {
    const auto found = corpus->Retrieve(AnyText(&random, 3), {.k = 50}).value();
    for (const RetrievedPassage& passage : found.passages) {
      const std::string& text = texts.at(passage.source);
      ASSERT_LE(passage.end, text.size());
      ASSERT_EQ(passage.text, text.substr(passage.begin, passage.end - passage.begin));
      ASSERT_LE(passage.text.size(), 100u);
      ASSERT_EQ(passage.tokens, (passage.title.size() + passage.text.size() + 3) / 4);
      ++passages;
    }
  }
  EXPECT_GT(passages, 100u);
}

/// Documents whose words and names overlap.
std::vector<Document> AnyDocuments(base::Random* random, int count) {
  std::vector<Document> documents;
  const auto name = [&] {
    std::string word = AnyWord(random) + AnyWord(random);
    word[0] = static_cast<char>(word[0] - 'a' + 'A');
    return word;
  };
  for (int i = 0; i < count; ++i) {
    Document document{.source = "d" + std::to_string(i), .title = name()};
    for (uint64_t left = random->Below(5); left > 0; --left) {
      document.text += AnyText(random, 30) + name() + " of " + name() + ". \n\n";
    }
    documents.push_back(std::move(document));
  }
  return documents;
}

TEST(Corpus, ForgettingADocumentLeavesWhatTheOthersAlone) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::Random random(seed);
    const std::vector<Document> documents = AnyDocuments(&random, 40);
    const auto store = NewMemoryDb();
    const auto corpus = Corpus::Open(store.get(), {.passage_bytes_max = 128}).value();
    for (const Document& document : documents) {
      ASSERT_TRUE(corpus->IngestText(document).has_value());
    }
    for (size_t i = 0; i < documents.size(); i += 2) {
      ASSERT_TRUE(corpus->Forget(documents[i].source).value());
      ASSERT_FALSE(corpus->Forget(documents[i].source).value());
    }
    const auto other_store = NewMemoryDb();
    const auto other = Corpus::Open(other_store.get(), {.passage_bytes_max = 128}).value();
    for (size_t i = 1; i < documents.size(); i += 2) {
      ASSERT_TRUE(other->IngestText(documents[i]).has_value());
    }
    EXPECT_EQ(DumpOf(corpus.get(), *store), DumpOf(other.get(), *other_store));
    EXPECT_TRUE(graph::IsSound(corpus->graph()));

    for (size_t i = 1; i < documents.size(); i += 2) {
      ASSERT_TRUE(corpus->Forget(documents[i].source).value());
    }
    EXPECT_TRUE(IdsOf(corpus.get(), "").empty());
    EXPECT_EQ(RecordsOf(*store, "corpus.text").size(), 3u);
    EXPECT_TRUE(graph::IsSound(corpus->graph()));
  }
}

TEST(Corpus, NoRecordMentionsWhatOnlyAForgottenDocumentSaid) {
  const auto store = NewMemoryDb();
  const auto corpus = Corpus::Open(store.get()).value();
  ASSERT_TRUE(
      corpus->IngestText({.source = "kept", .title = "Kept", .text = "Other words."}).has_value());
  ASSERT_TRUE(
      corpus
          ->IngestText({.source = "secret", .title = "Secret Plan", .text = "A secret Secretary."})
          .has_value());
  ASSERT_TRUE(corpus->Forget("secret").value());
  for (const char* keyspace : {"corpus", "corpus.text"}) {
    for (const auto& [key, value] : RecordsOf(*store, keyspace)) {
      EXPECT_EQ(key.find("ecret"), std::string::npos) << keyspace << " " << key;
      EXPECT_EQ(value.find("ecret"), std::string::npos) << keyspace << " " << key;
    }
  }
}

TEST(Corpus, ADocumentThatIsIngestedAgainReplacesItself) {
  const auto store = NewMemoryDb();
  const auto corpus = Corpus::Open(store.get(), {.passage_bytes_max = 64}).value();
  const std::string source = "notes/ada.md";
  ASSERT_TRUE(corpus->IngestText(Engine()).has_value());
  // Many passages: the document has more edges than one transaction removes.
  std::string text;
  for (int i = 0; i < 900; ++i) text += "Paragraph " + std::to_string(i) + " of Many.\n\n";
  ASSERT_EQ(corpus->IngestText({.source = source, .title = "Long", .text = text}).value().passages,
            449u);
  ASSERT_TRUE(corpus->IngestText(Ada()).has_value());
  EXPECT_EQ(corpus->graph().GetStats().value().removals, 0u);
  EXPECT_TRUE(corpus->Retrieve("paragraph many").value().passages.empty());

  const auto other_store = NewMemoryDb();
  const auto other = Corpus::Open(other_store.get(), {.passage_bytes_max = 64}).value();
  ASSERT_TRUE(other->IngestText(Ada()).has_value());
  ASSERT_TRUE(other->IngestText(Engine()).has_value());
  EXPECT_EQ(DumpOf(corpus.get(), *store), DumpOf(other.get(), *other_store));
  EXPECT_TRUE(graph::IsSound(corpus->graph()));
}

TEST(Corpus, WhatOthersSayOfAnEntityStays) {
  const auto store = NewMemoryDb();
  const auto corpus = Corpus::Open(store.get()).value();
  ASSERT_TRUE(corpus->IngestText(Ada()).has_value());
  Graph& graph = corpus->graph();
  ASSERT_TRUE(graph
                  .PutNode("entity/ada lovelace",
                           {.labels = {"Entity", "Person"}, .properties = {{"born", 1815}}})
                  .has_value());
  ASSERT_TRUE(graph.PutNode("byron").has_value());
  ASSERT_TRUE(
      graph.PutEdge({.from = "byron", .type = "father of", .to = "entity/ada lovelace"}).ok());
  ASSERT_TRUE(corpus->IngestText(Ada()).has_value());
  ASSERT_TRUE(corpus->Forget("notes/ada.md").value());
  const auto ada = graph.Read().value().GetNode("entity/ada lovelace").value();
  ASSERT_TRUE(ada.has_value());
  EXPECT_EQ(ada->properties.at("born"), PropertyValue(1815));
  EXPECT_EQ(IdsOf(corpus.get(), "entity/").size(), 1u);
}

TEST(Corpus, NearDuplicatesAreLeftOut) {
  base::Random random(1);
  const auto store = NewMemoryDb();
  const auto corpus = Corpus::Open(store.get()).value();
  const std::string text = AnyText(&random, 60);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(corpus
                    ->IngestText({.source = std::to_string(i),
                                  .title = "Copy",
                                  .text = text + " copy" + std::to_string(i)})
                    .has_value());
  }
  ASSERT_TRUE(
      corpus->IngestText({.source = "other", .text = "copy3 and nothing else"}).has_value());
  const auto found = corpus->Retrieve("copy3 " + text.substr(0, 20)).value();
  EXPECT_EQ(found.duplicates, 4u);
  const auto sources = SourcesOf(found);
  EXPECT_EQ(std::set<std::string>(sources.begin(), sources.end()),
            (std::set<std::string>{"3", "other"}));
  EXPECT_FALSE(found.truncated);
}

TEST(Corpus, KAndTokensBoundTheAnswer) {
  base::Random random(1);
  const auto store = NewMemoryDb();
  const auto corpus = Corpus::Open(store.get()).value();
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(corpus
                    ->IngestText({.source = std::to_string(i),
                                  .text = "topic " + AnyText(&random, random.Between(5, 80))})
                    .has_value());
  }
  for (const size_t k : {size_t{0}, size_t{1}, size_t{7}, size_t{100}, SIZE_MAX}) {
    const auto found = corpus->Retrieve("topic", {.k = k}).value();
    EXPECT_EQ(found.passages.size(), std::min<size_t>(k, 30));
    EXPECT_FALSE(found.truncated);
  }
  const RetrieveResult all = corpus->Retrieve("topic", {.k = 30}).value();
  for (const uint64_t max_tokens : {uint64_t{0}, uint64_t{20}, uint64_t{300}, all.tokens - 1}) {
    const auto found = corpus->Retrieve("topic", {.k = 30, .max_tokens = max_tokens}).value();
    uint64_t tokens = 0;
    for (const RetrievedPassage& passage : found.passages) tokens += passage.tokens;
    EXPECT_EQ(found.tokens, tokens);
    EXPECT_LE(found.tokens, max_tokens);
    EXPECT_TRUE(found.truncated);
    EXPECT_EQ(found.passages.empty(), max_tokens == 0);
  }
  EXPECT_FALSE(corpus->Retrieve("topic", {.k = 30, .max_tokens = all.tokens}).value().truncated);
}

TEST(Corpus, AWalkThatMeetsItsLimitIsTruncated) {
  const auto store = NewMemoryDb();
  const auto corpus = Corpus::Open(store.get()).value();
  for (int i = 0; i < 40; ++i) {
    const std::string number = std::to_string(i);
    ASSERT_TRUE(
        corpus->IngestText({.source = number, .text = "word" + number + " in London"}).has_value());
  }
  EXPECT_FALSE(corpus->Retrieve("word7").value().truncated);
  EXPECT_TRUE(corpus->Retrieve("word7", {.limits = {.visited_max = 3}}).value().truncated);
  EXPECT_TRUE(corpus->Retrieve("word7", {.limits = {.fan_out_max = 3}}).value().truncated);
}

TEST(Corpus, VectorsFindWhatWordsDoNot) {
  const auto store = NewMemoryDb();
  LetterIndex letters(store.get());
  const auto corpus = Corpus::Open(store.get(), {.dense = &letters}).value();
  ASSERT_TRUE(corpus->IngestText({.source = "a", .text = "abba baobab"}).has_value());
  ASSERT_TRUE(corpus->IngestText({.source = "z", .text = "zzz fuzz buzz"}).has_value());
  const auto found = corpus->Retrieve("zz").value();
  ASSERT_EQ(SourcesOf(found), (std::vector<std::string>{"z", "a"}));
  EXPECT_FALSE(found.passages[0].parts.bm25.has_value());
  EXPECT_GT(found.passages[0].parts.dense.value(), found.passages[1].parts.dense.value());
  ASSERT_TRUE(corpus->IngestText({.source = "z", .text = "only one letter: o"}).has_value());
  EXPECT_EQ(RecordsOf(*store, "letters").size(), 2u);
  ASSERT_TRUE(corpus->Forget("a").value());
  ASSERT_TRUE(corpus->Forget("z").value());
  EXPECT_TRUE(RecordsOf(*store, "letters").empty());
}

TEST(Corpus, StrangeDocuments) {
  const auto store = NewMemoryDb();
  const auto corpus = Corpus::Open(store.get()).value();
  const auto ingest = [&](const std::string& source, const std::string& text) {
    return corpus->IngestText({.source = source, .text = text});
  };
  EXPECT_EQ(ingest("empty", "").value().passages, 0u);
  EXPECT_EQ(ingest("space", " \n \r\n\t\n").value().passages, 0u);
  EXPECT_EQ(ingest("punctuation", "...!?").value().passages, 1u);
  EXPECT_EQ(ingest(std::string("a\0/b\xff", 5), "zero in the source").value().passages, 1u);
  EXPECT_EQ(ingest("passage/p/00000001", "looks like a passage").value().passages, 1u);
  EXPECT_GT(ingest("line", std::string(1 << 20, 'x')).value().passages, 870u);
  EXPECT_GT(ingest("words",
                   [] {
                     std::string text;
                     while (text.size() < (1 << 20)) text += "Tall Tree ";
                     return text;
                   }())
                .value()
                .passages,
            870u);
  EXPECT_GT(ingest("cjk",
                   [] {
                     std::string text;
                     while (text.size() < 20'000) text += "東京都は日本の首都である";
                     return text;
                   }())
                .value()
                .passages,
            16u);
  EXPECT_GE(ingest("broken", std::string(5'000, '\xe6') + " bytes").value().passages, 5u);
  EXPECT_EQ(SourcesOf(corpus->Retrieve("zero in the source", {.k = 1}).value())[0],
            std::string("a\0/b\xff", 5));
  EXPECT_EQ(SourcesOf(corpus->Retrieve("looks like a passage", {.k = 1}).value())[0],
            "passage/p/00000001");
  EXPECT_EQ(SourcesOf(corpus->Retrieve("首都", {.k = 1}).value())[0], "cjk");
  EXPECT_EQ(SourcesOf(corpus->Retrieve("bytes", {.k = 1}).value())[0], "broken");
  EXPECT_TRUE(corpus->Retrieve("").value().passages.empty());
  EXPECT_TRUE(corpus->Retrieve("\xff\xfe ...").value().passages.empty());
  EXPECT_EQ(ingest("", "text").error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ingest(std::string(901, 's'), "text").error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(corpus->IngestText({.source = "s", .title = std::string(1001, 't')}).error().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Corpus::Open(store.get(), {.passage_bytes_max = 63}).error().code(),
            StatusCode::kInvalidArgument);
  EXPECT_TRUE(graph::IsSound(corpus->graph()));
  for (const char* source : {"empty", "space", "punctuation", "line", "words", "cjk", "broken"}) {
    EXPECT_TRUE(corpus->Forget(source).value()) << source;
  }
}

TEST(Corpus, ADocumentIsAddedInACallersTransaction) {
  const auto store = NewMemoryDb();
  const auto corpus = Corpus::Open(store.get()).value();
  Transaction tx = store->Begin().value();
  ASSERT_TRUE(corpus->IngestText(tx, Ada()).has_value());
  ASSERT_TRUE(tx.Put("together", "with it").ok());
  EXPECT_TRUE(corpus->Retrieve("mathematician").value().passages.empty());
  ASSERT_TRUE(tx.Commit().has_value());
  EXPECT_EQ(corpus->Retrieve("mathematician").value().passages.size(), 1u);
  Transaction forget = store->Begin().value();
  ASSERT_TRUE(corpus->Forget(forget, "notes/ada.md").value());
  ASSERT_TRUE(forget.Commit().has_value());
  ASSERT_TRUE(corpus->Tidy().ok());
  EXPECT_TRUE(corpus->Retrieve("mathematician").value().passages.empty());
  EXPECT_TRUE(IdsOf(corpus.get(), "").empty());
}

TEST(Corpus, ThreadsThatIngestForgetAndRetrieve) {
  constexpr size_t kThreads = 4;
  base::Random random(7);
  const std::vector<Document> documents = AnyDocuments(&random, 32);
  const auto store = NewMemoryDb();
  const auto corpus = Corpus::Open(store.get()).value();
  std::atomic<int> failures = 0;
  std::atomic<bool> is_done = false;
  std::thread reader([&] {
    base::Random words(8);
    while (!is_done) failures += !corpus->Retrieve(AnyText(&words, 3)).has_value();
  });
  // Each thread has documents of its own; they share entities and terms. Those of even numbers
  // stay, the others are forgotten.
  std::vector<std::thread> writers;
  for (size_t thread = 0; thread < kThreads; ++thread) {
    writers.emplace_back([&, thread] {
      for (int round = 0; round < 2; ++round) {
        for (size_t i = thread; i < documents.size(); i += kThreads) {
          failures += !corpus->IngestText(documents[i]).has_value();
          if (i / kThreads % 2 == 1) failures += !corpus->Forget(documents[i].source).has_value();
        }
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  is_done = true;
  reader.join();
  EXPECT_EQ(failures, 0);

  const auto other_store = NewMemoryDb();
  const auto other = Corpus::Open(other_store.get()).value();
  for (size_t i = 0; i < documents.size(); ++i) {
    if (i / kThreads % 2 == 1) continue;
    ASSERT_TRUE(other->IngestText(documents[i]).has_value());
  }
  EXPECT_EQ(DumpOf(corpus.get(), *store), DumpOf(other.get(), *other_store));
  EXPECT_TRUE(graph::IsSound(corpus->graph()));
}

}  // namespace
}  // namespace basalt::retrieve
