#include "text/query.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "text/memory_index.h"
#include "text/test_words.h"

// Queries over an index in memory against a reference that keeps the texts as lists of terms, and
// knows neither postings nor iterators.

namespace basalt::text {
namespace {

std::vector<std::string> TermsOf(std::string_view text) {
  Tokenizer tokenizer;
  std::vector<std::string> terms;
  tokenizer.Reset(text);
  while (tokenizer.Next()) terms.emplace_back(tokenizer.token().term);
  return terms;
}

class Reference {
 public:
  void Put(uint64_t document, std::string_view text) {
    documents_[document] = TermsOf(text);
    idfs_.clear();
  }
  void Remove(uint64_t document) {
    documents_.erase(document);
    idfs_.clear();
  }

  std::vector<Hit> FindBest(const Query& query, size_t k) {
    double total = 0;
    for (const auto& [document, terms] : documents_) total += static_cast<double>(terms.size());
    average_length_ = total / static_cast<double>(documents_.size());
    std::vector<Hit> hits;
    for (const auto& [document, terms] : documents_) {
      const double score = Score(query, terms);
      if (score >= 0) hits.push_back({document, score});
    }
    std::sort(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) {
      return a.score != b.score ? a.score > b.score : a.document < b.document;
    });
    hits.resize(std::min(hits.size(), k));
    return hits;
  }

 private:
  using Terms = std::vector<std::string>;

  double Idf(const std::string& term) {
    const auto known = idfs_.find(term);
    if (known != idfs_.end()) return known->second;
    const auto holds = [&](const auto& each) {
      return std::find(each.second.begin(), each.second.end(), term) != each.second.end();
    };
    const auto n = static_cast<double>(std::count_if(documents_.begin(), documents_.end(), holds));
    const double idf = std::log(1 + (static_cast<double>(documents_.size()) - n + 0.5) / (n + 0.5));
    return idfs_[term] = idf;
  }

  double TermScore(double frequency, const Terms& terms) const {
    const double k1 = 1.2;
    const double b = 0.75;
    const double relative_length = static_cast<double>(terms.size()) / average_length_;
    return frequency * (k1 + 1) / (frequency + k1 * (1 - b + b * relative_length));
  }

  /// Negative: it does not match.
  double Score(const Query& query, const Terms& terms) {
    double score = -1;
    switch (query.kind) {
      case Query::Kind::kTerm: {
        const auto frequency = std::count(terms.begin(), terms.end(), query.term);
        if (frequency == 0) return -1;
        return query.weight * Idf(query.term) * TermScore(static_cast<double>(frequency), terms);
      }
      case Query::Kind::kPrefix:
        for (const std::string& term : std::set<std::string>(terms.begin(), terms.end())) {
          if (!term.starts_with(query.term)) continue;
          score = std::max(
              score,
              Score({.kind = Query::Kind::kTerm, .weight = query.weight, .term = term}, terms));
        }
        return score;
      case Query::Kind::kPhrase: {
        double frequency = 0;
        for (size_t begin = 0; begin < terms.size(); ++begin) {
          frequency += std::all_of(query.phrase.begin(), query.phrase.end(), [&](const auto& term) {
            return begin + term.offset < terms.size() && terms[begin + term.offset] == term.term;
          });
        }
        if (frequency == 0) return -1;
        double idf = 0;
        for (const auto& term : query.phrase) idf += Idf(term.term);
        return query.weight * idf * TermScore(frequency, terms);
      }
      case Query::Kind::kAny:
        for (const Query& child : query.children) {
          const double of_child = Score(child, terms);
          if (of_child >= 0) score = std::max(score, 0.0) + of_child;
        }
        return score;
      case Query::Kind::kAll:
        for (const Query& child : query.children) {
          const double of_child = Score(child, terms);
          if (of_child < 0) return -1;
          score = std::max(score, 0.0) + of_child;
        }
        return score;
    }
    return score;
  }

  std::map<uint64_t, Terms> documents_;
  std::map<std::string, double> idfs_;
  double average_length_ = 0;
};

Query AnyQuery(base::Random* random, int depth) {
  Query query;
  query.kind = static_cast<Query::Kind>(random->Below(depth > 0 ? 5 : 3));
  query.weight = 1 + static_cast<double>(random->Below(3));
  switch (query.kind) {
    case Query::Kind::kTerm:
      query.term = random->OneIn(20) ? "absent" : AnyWord(random);
      break;
    case Query::Kind::kPrefix:
      query.term = AnyWord(random).substr(0, 1 + random->Below(3));
      break;
    case Query::Kind::kPhrase: {
      uint32_t offset = 0;
      for (uint64_t i = 1 + random->Below(3); i > 0; --i) {
        query.phrase.push_back({AnyWord(random), offset});
        offset += 1 + static_cast<uint32_t>(random->OneIn(4));
      }
      break;
    }
    case Query::Kind::kAny:
    case Query::Kind::kAll:
      for (uint64_t i = random->Below(5); i > 0; --i) {
        query.children.push_back(AnyQuery(random, depth - 1));
      }
  }
  return query;
}

std::vector<Hit> Find(const Query& query, MemoryIndex* index, size_t k) {
  auto scorer = MakeScorer(query, index);
  EXPECT_TRUE(scorer.has_value());
  const double score_max = (*scorer)->score_max();
  auto hits = FindBest(scorer->get(), k);
  EXPECT_TRUE(hits.has_value());
  for (const Hit& hit : *hits) EXPECT_LE(hit.score, score_max);
  return *std::move(hits);
}

/// The same documents in the same order; where scores are equal but for rounding, order may differ.
void ExpectSame(const std::vector<Hit>& found, const std::vector<Hit>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i].score, expected[i].score, 1e-9 * expected[i].score + 1e-12);
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i].document == expected[i].document) continue;
    const auto other = std::find_if(expected.begin(), expected.end(), [&](const Hit& hit) {
      return hit.document == found[i].document;
    });
    if (other == expected.end()) {
      ASSERT_NEAR(found[i].score, expected.back().score, 1e-9 * found[i].score);
    } else {
      ASSERT_NEAR(other->score, found[i].score, 1e-9 * found[i].score);
    }
  }
}

class RankedIndex : public testing::Test {
 protected:
  void Put(uint64_t document, const std::string& text) {
    index_.Put(document, text);
    reference_.Put(document, text);
  }

  MemoryIndex index_{std::make_unique<Tokenizer>()};
  Reference reference_;
};

TEST_F(RankedIndex, ScoresEqualTheReferenceOnAThousandDocumentsAfterUpdatesAndRemovals) {
  const uint64_t seed = 21;
  SCOPED_TRACE(seed);
  base::Random random(seed);
  for (uint64_t document = 0; document < 1'000; ++document) {
    Put(document * 7, AnyText(&random, 1 + random.Below(60)));
  }
  for (int change = 0; change < 600; ++change) {
    const uint64_t document = random.Below(1'050) * 7;
    if (random.OneIn(3)) {
      index_.Remove(document);
      reference_.Remove(document);
    } else {
      Put(document, AnyText(&random, random.Below(60)));
    }
  }
  for (int round = 0; round < 400; ++round) {
    const Query query = AnyQuery(&random, 2);
    const size_t k = random.OneIn(4) ? 2'000 : 1 + random.Below(20);
    ExpectSame(Find(query, &index_, k), reference_.FindBest(query, k));
    ASSERT_FALSE(HasFatalFailure()) << "query " << round;
  }
}

TEST_F(RankedIndex, AThresholdLeavesOutNothingAndChangesNoDigit) {
  const uint64_t seed = 22;
  SCOPED_TRACE(seed);
  base::Random random(seed);
  for (uint64_t document = 0; document < 1'500; ++document) {
    index_.Put(document, AnyText(&random, 20 + random.Below(60)));
  }
  for (int round = 0; round < 200; ++round) {
    Query query;
    for (uint64_t i = 1 + random.Below(8); i > 0; --i)
      query.children.push_back(AnyQuery(&random, 0));
    const std::vector<Hit> all = Find(query, &index_, 10'000);
    for (const size_t k : {1, 3, 10, 100}) {
      const std::vector<Hit> some = Find(query, &index_, k);
      ASSERT_EQ(some.size(), std::min(k, all.size()));
      for (size_t i = 0; i < some.size(); ++i) ASSERT_EQ(some[i], all[i]) << "query " << round;
    }
  }
}

TEST_F(RankedIndex, WhatIsRemovedLeavesNoTrace) {
  MemoryIndex expected(std::make_unique<Tokenizer>());
  base::Random random(23);
  for (uint64_t document = 0; document < 200; ++document) {
    const std::string text = AnyText(&random, 30);
    index_.Put(document, text);
    if (document % 2 == 0) expected.Put(document, text);
  }
  index_.Put(1, "only here");
  for (uint64_t document = 1; document < 200; document += 2) EXPECT_TRUE(index_.Remove(document));
  EXPECT_FALSE(index_.Remove(1));
  EXPECT_EQ(index_.GetStats().documents, 100U);
  EXPECT_EQ(index_.GetStats().total_length, expected.GetStats().total_length);
  EXPECT_EQ(index_.TermsWithPrefix("", 1'000).value(), expected.TermsWithPrefix("", 1'000).value());
  for (int round = 0; round < 50; ++round) {
    const Query query = AnyQuery(&random, 2);
    EXPECT_EQ(Find(query, &index_, 1'000), Find(query, &expected, 1'000));
  }
}

TEST_F(RankedIndex, RefusedDocumentsTakeNoPlace) {
  for (uint64_t document = 0; document < 20; ++document) index_.Put(document, "same text");
  auto scorer = MakeScorer({.kind = Query::Kind::kTerm, .term = "same"}, &index_);
  const auto hits = FindBest(scorer->get(), 3, [](uint64_t document) { return document >= 5; });
  ASSERT_EQ(hits->size(), 3U);
  EXPECT_EQ((*hits)[0].document, 5U);
  EXPECT_EQ((*hits)[2].document, 7U);
}

std::vector<uint64_t> Documents(std::string_view text, MemoryIndex* index) {
  Tokenizer tokenizer;
  std::vector<uint64_t> documents;
  for (const Hit& hit : Find(ParseQuery(text, &tokenizer), index, 100)) {
    documents.push_back(hit.document);
  }
  std::sort(documents.begin(), documents.end());
  return documents;
}

TEST_F(RankedIndex, UsersFindWordsPhrasesAndPrefixes) {
  index_.Put(1, "The quick brown fox");
  index_.Put(2, "A brown and quick dog");
  index_.Put(3, "Foxes are quicker");
  index_.Put(4, "黒猫が好き");
  index_.Put(5, "猫");
  using Found = std::vector<uint64_t>;
  EXPECT_EQ(Documents("QUICK", &index_), Found({1, 2}));
  EXPECT_EQ(Documents("\"quick brown\"", &index_), Found({1}));
  EXPECT_EQ(Documents("\"brown quick", &index_), Found());
  EXPECT_EQ(Documents("fox* dog", &index_), Found({1, 2, 3}));
  EXPECT_EQ(Documents("Quick*", &index_), Found({1, 2, 3}));
  EXPECT_EQ(Documents("猫", &index_), Found({4, 5}));
  EXPECT_EQ(Documents("黒", &index_), Found({4}));
  EXPECT_EQ(Documents("き", &index_), Found({4}));
  EXPECT_EQ(Documents("\"猫が好\"", &index_), Found({4}));
  EXPECT_EQ(Documents("\"猫好\"", &index_), Found());
  EXPECT_EQ(Documents("* \"\" \" ... *** \xFF*", &index_), Found());
}

TEST(ParseQuery, TreesAreThoseThatTheTextSays) {
  Tokenizer tokenizer;
  const Query query = ParseQuery("b a b \"x y\" pre* 東京都 \"東京都 z\" \"one\"", &tokenizer);
  const auto term = [](std::string text, double weight = 1) {
    return Query{.kind = Query::Kind::kTerm, .weight = weight, .term = std::move(text)};
  };
  const std::vector<Query> expected = {
      term("b", 2),
      term("a"),
      {.kind = Query::Kind::kPhrase, .phrase = {{"x", 0}, {"y", 1}}},
      {.kind = Query::Kind::kPrefix, .term = "pre"},
      term("東京"),
      term("京都"),
      {.kind = Query::Kind::kPhrase, .phrase = {{"東京", 0}, {"京都", 1}, {"z", 3}}},
      term("one"),
  };
  EXPECT_EQ(query.kind, Query::Kind::kAny);
  EXPECT_EQ(query.children, expected);
}

TEST(ParseQuery, ALongTextIsCut) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "w" + std::to_string(i) + " ";
  Tokenizer tokenizer;
  EXPECT_EQ(ParseQuery(text, &tokenizer).children.size(), kQueryChildrenMax);
}

}  // namespace
}  // namespace basalt::text
