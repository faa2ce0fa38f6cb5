#include "retrieve/passage_walk.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "basalt/retrieve.h"
#include "retrieve/corpus_core.h"
#include "retrieve/test_texts.h"

namespace basalt::retrieve {
namespace {

/// Passages by their sources, each naming entities.
class PassageWalkTest : public testing::Test {
 protected:
  void Add(const std::string& source, const std::string& text) {
    ASSERT_TRUE(corpus_->IngestText({.source = source, .text = text}).has_value());
  }
  /// What reaches each passage from the seeds, by source.
  std::map<std::string, double> Walk(const std::map<std::string, double>& seeds,
                                     const ReadLimits& limits = {}) {
    const GraphView view = corpus_->graph().Read().value();
    std::vector<NodeScore> scores;
    for (const auto& [source, share] : seeds) {
      scores.push_back({view.FindNode(PassageId(source, 0)).value().value(), share});
    }
    PassageWalk walk(&view, limits);
    std::map<std::string, double> reached;
    for (const NodeScore& score : walk.Run(scores).value()) {
      const Node node = view.GetNode(score.node).value().value();
      reached[std::string(SourceOfPassage(node.external_id))] += score.score;
    }
    truncated_ = walk.truncated();
    return reached;
  }

  std::unique_ptr<Store> store_ = NewMemoryDb();
  std::unique_ptr<Corpus> corpus_ = Corpus::Open(store_.get(), {.passage_bytes_max = 64}).value();
  bool truncated_ = false;
};

TEST_F(PassageWalkTest, TwoPassagesThatShareAnEntityExchangeTheirShares) {
  Add("a", "Paris");
  Add("b", "Paris");
  Add("alone", "Rome");
  // a has 1, 1/4, 1/16 ... of what is left after 0, 2, 4 ... steps; b the others.
  const auto reached = Walk({{"a", 1}});
  ASSERT_EQ(reached.size(), 2u);
  EXPECT_NEAR(reached.at("b"), 1.0 / 3, 1e-3);
  EXPECT_NEAR(reached.at("a"), 2.0 / 3 - 0.5, 1e-3);
  EXPECT_FALSE(truncated_);
  EXPECT_TRUE(Walk({{"alone", 1}}).empty());
}

TEST_F(PassageWalkTest, ARareEntityLeadsFartherThanAFrequentOne) {
  Add("seed", "Paris and Lagrange and Nobody");
  Add("rare", "Lagrange");
  for (int i = 0; i < 9; ++i) Add("frequent" + std::to_string(i), "Paris");
  const auto reached = Walk({{"seed", 1}});
  EXPECT_GT(reached.at("rare"), 5 * reached.at("frequent0"));
  EXPECT_NEAR(reached.at("frequent0"), reached.at("frequent8"), 1e-3);
}

TEST_F(PassageWalkTest, NeighboursInTheTextAreLinked) {
  Add("text", "this first passage has more than sixty bytes so that it is alone\n\nand the second");
  EXPECT_GT(Walk({{"text", 1}}).at("text"), 0.4);
}

TEST_F(PassageWalkTest, EntitiesOfManyPassagesAreLeftOut) {
  for (size_t i = 0; i <= kEntityPassagesMax; ++i) {
    Add(std::to_string(i), i < 2 ? "Paris or Lagrange" : "Paris");
  }
  const auto reached = Walk({{"0", 1}});
  EXPECT_EQ(reached.size(), 2u);
  EXPECT_FALSE(truncated_);
}

TEST_F(PassageWalkTest, LimitsTruncate) {
  for (int i = 0; i < 20; ++i) Add(std::to_string(i), "Paris");
  EXPECT_EQ(Walk({{"0", 1}}).size(), 20u);
  EXPECT_FALSE(truncated_);
  EXPECT_LE(Walk({{"0", 1}}, {.visited_max = 5}).size(), 5u);
  EXPECT_TRUE(truncated_);
  EXPECT_TRUE(Walk({{"0", 1}}, {.fan_out_max = 5}).empty());
  EXPECT_TRUE(truncated_);
  EXPECT_LE(Walk({{"0", 1}}, {.bytes_max = 1000}).size(), 10u);
  EXPECT_TRUE(truncated_);
  EXPECT_TRUE(Walk({{"0", 1}}, {.time_max = std::chrono::milliseconds(-1)}).empty());
  EXPECT_TRUE(truncated_);
}

}  // namespace
}  // namespace basalt::retrieve
