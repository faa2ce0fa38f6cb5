#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/random.h"
#include "vector/hnsw_index.h"
#include "vector/test_rows.h"

// Adds, removals, repairs and searches at once. To be run under ThreadSanitizer.

namespace basalt::vector {
namespace {

constexpr size_t kDimension = 12;

struct Row {
  std::vector<float> vector;
  std::atomic<bool> is_removed{false};
};

// Who is in which slot, as the threads that add and remove write it down.
class SharedRows {
 public:
  explicit SharedRows(size_t slots) : rows_(slots) {}

  void Put(uint32_t slot, const Row* row) { rows_.at(slot).store(row, std::memory_order_release); }
  const Row* At(uint32_t slot) const { return rows_.at(slot).load(std::memory_order_acquire); }

 private:
  std::vector<std::atomic<const Row*>> rows_;
};

// Does not refuse rows that were removed: that is the index's to do.
class Source : public RowSource {
 public:
  Source(const SharedRows* rows, const std::vector<float>* query) : rows_(*rows), query_(*query) {}

  Status Distances(std::span<const uint32_t> slots, float* distances) const override {
    for (size_t i = 0; i < slots.size(); ++i) {
      const Row* const row = rows_.At(slots[i]);
      distances[i] = row == nullptr ? std::numeric_limits<float>::infinity()
                                    : kDistance(query_.data(), row->vector.data());
    }
    return Status();
  }

  static inline const VectorDistance kDistance =
      *VectorDistance::Create(VectorMetric::kL2, VectorElement::kFloat32, kDimension);

 private:
  const SharedRows& rows_;
  const std::vector<float>& query_;
};

std::vector<float> RandomFloats(base::Random* random) {
  std::vector<float> vector(kDimension);
  for (float& x : vector) x = static_cast<float>(Gaussian(random));
  return vector;
}

CodeBook MakeBook(base::Random* random) {
  std::vector<float> sample;
  for (int i = 0; i < 300; ++i) {
    const auto vector = RandomFloats(random);
    sample.insert(sample.end(), vector.begin(), vector.end());
  }
  return CodeBook::Fit(VectorMetric::kL2, kDimension, 3, sample.data(), 300).value();
}

TEST(HnswIndexThreads, AddsRemovalsRepairsAndSearchesGoOnAtOnce) {
#if defined(__SANITIZE_THREAD__)
  constexpr int kTurns = 700;
#else
  constexpr int kTurns = 3'000;
#endif
  base::Random random(21);
  HnswIndex index(MakeBook(&random));
  SharedRows rows(20'000);
  std::deque<Row> first_rows;
  for (int i = 0; i < 100; ++i) {
    first_rows.emplace_back().vector = RandomFloats(&random);
    rows.Put(index.Add(first_rows.back().vector.data()).value(), &first_rows.back());
  }

  std::atomic<int> writers{2};
  const auto write = [&](uint64_t seed, std::deque<Row>* own_rows) {
    base::Random own_random(seed);
    std::vector<std::pair<uint32_t, Row*>> live;
    for (int turn = 0; turn < kTurns; ++turn) {
      Row* const row = &own_rows->emplace_back();
      row->vector = RandomFloats(&own_random);
      // Some are equal to the one before.
      if (turn % 5 == 4) row->vector = (*own_rows)[own_rows->size() - 2].vector;
      const uint32_t slot = index.Add(row->vector.data()).value();
      rows.Put(slot, row);
      live.emplace_back(slot, row);
      if (turn % 50 == 0) {
        const auto found = index.Search(row->vector.data(), {.k = 3}, Source(&rows, &row->vector));
        EXPECT_EQ(found->hits[0].distance, 0) << "a vector is found once it is added";
      }
      if (live.size() < 200) continue;
      const size_t leaving = own_random.Below(live.size());
      const auto [old_slot, old_row] = live[leaving];
      live[leaving] = live.back();
      live.pop_back();
      EXPECT_TRUE(index.Remove(old_slot).ok());
      old_row->is_removed = true;
      if (turn % 10 != 0) continue;
      const auto left = index.Search(old_row->vector.data(), {}, Source(&rows, &old_row->vector));
      for (const SearchHit& hit : left->hits) {
        EXPECT_FALSE(rows.At(hit.slot) == old_row && hit.slot == old_slot) << "removed and found";
      }
    }
    writers.fetch_sub(1);
  };
  const auto search = [&](uint64_t seed) {
    base::Random own_random(seed);
    while (writers.load() != 0) {
      const auto query = RandomFloats(&own_random);
      SearchRequest request;
      request.ef = own_random.Between(10, 60);
      request.scans = own_random.OneIn(5);
      if (own_random.OneIn(3)) {
        request.filter.predicate = [](uint32_t slot) { return slot % 2 == 0; };
      }
      const auto result = index.Search(query.data(), request, Source(&rows, &query));
      ASSERT_TRUE(result.has_value());
      EXPECT_EQ(result->hits.size(), 10u);
      for (const SearchHit& hit : result->hits) {
        EXPECT_TRUE(request.filter.predicate == nullptr || hit.slot % 2 == 0);
      }
    }
  };
  const auto repair = [&] {
    while (writers.load() != 0) {
      ASSERT_TRUE(index.Repair().ok());
      std::this_thread::yield();
    }
  };
  std::deque<Row> rows_of_writers[2];
  std::vector<std::thread> threads;
  threads.emplace_back(write, 1, &rows_of_writers[0]);
  threads.emplace_back(write, 2, &rows_of_writers[1]);
  threads.emplace_back(search, 3);
  threads.emplace_back(repair);
  for (std::thread& thread : threads) thread.join();

  ASSERT_TRUE(index.Repair().ok());
  const GraphAudit audit = index.Audit().value();
  EXPECT_EQ(audit.fault, "");
  EXPECT_EQ(audit.reachable, audit.nodes);
  EXPECT_EQ(index.size(), 100 + 2 * 199u);
  size_t lost = 0;
  for (const auto& own_rows : rows_of_writers) {
    for (const Row& row : own_rows) {
      if (row.is_removed) continue;
      const auto found = index.Search(row.vector.data(), {.k = 1}, Source(&rows, &row.vector));
      lost += static_cast<size_t>(found->hits.at(0).distance != 0);
    }
  }
  EXPECT_EQ(lost, 0u);
}

TEST(HnswIndexThreads, ACheckpointSavedBesideAddsHasAllThatWasThereBefore) {
  base::Random random(23);
  HnswIndex index(MakeBook(&random));
  SharedRows rows(20'000);
  std::deque<Row> first_rows;
  const auto add = [&](std::deque<Row>* own_rows, const std::vector<float>& vector) {
    Row* const row = &own_rows->emplace_back();
    row->vector = vector;
    rows.Put(index.Add(vector.data()).value(), row);
  };
  for (int i = 0; i < 600; ++i) add(&first_rows, RandomFloats(&random));
  // Slots that are free when the first checkpoint begins.
  for (uint32_t slot = 0; slot < 150; ++slot) {
    EXPECT_TRUE(index.Remove(slot).ok());
    first_rows[slot].is_removed = true;
  }
  ASSERT_TRUE(index.Repair().ok());
  constexpr size_t kTurns = 3;
  std::deque<Row> rows_of_adders[2 * kTurns];
  for (size_t turn = 0; turn < kTurns; ++turn) {
    std::atomic<int> added{0};
    std::vector<std::thread> adders;
    for (size_t adder = 2 * turn; adder < 2 * turn + 2; ++adder) {
      adders.emplace_back([&, adder] {
        base::Random own_random(100 + adder);
        for (int i = 0; i < 100; ++i) {
          // Copies join the rings of what is being saved.
          add(&rows_of_adders[adder], i % 4 == 0 ? first_rows[150 + own_random.Below(450)].vector
                                                 : RandomFloats(&own_random));
          added.fetch_add(1);
        }
      });
    }
    while (added.load() < 10) std::this_thread::yield();
    std::string image;
    const Status saved = index.Save(5, [&](std::string_view piece) {
      image += piece;
      return Status();
    });
    for (std::thread& adder : adders) adder.join();
    ASSERT_TRUE(saved.ok());
    const auto loaded = HnswIndex::Load(image);
    ASSERT_TRUE(loaded.has_value()) << loaded.status().ToString();
    EXPECT_GE((*loaded)->size(), 450 + 200 * turn);
    size_t lost = 0;
    for (const Row& row : first_rows) {
      if (row.is_removed) continue;
      const auto found = (*loaded)->Search(row.vector.data(), {.k = 1}, Source(&rows, &row.vector));
      lost += static_cast<size_t>(found->hits.at(0).distance != 0);
    }
    EXPECT_EQ(lost, 0u);
  }
}

// From nothing, all at once: one of them makes the first node.
TEST(HnswIndexThreads, TheFirstAddsMayBeAtOnce) {
  base::Random random(22);
  const CodeBook book = MakeBook(&random);
  for (int turn = 0; turn < 30; ++turn) {
    HnswIndex index(book);
    std::vector<std::vector<float>> vectors;
    for (int i = 0; i < 40; ++i) vectors.push_back(RandomFloats(&random));
    std::vector<std::thread> threads;
    for (size_t thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&, thread] {
        for (size_t i = thread; i < vectors.size(); i += 4) {
          EXPECT_TRUE(index.Add(vectors[i].data()).has_value());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    const GraphAudit audit = index.Audit().value();
    EXPECT_EQ(audit.fault, "");
    EXPECT_EQ(audit.nodes, 40u);
    EXPECT_EQ(audit.reachable, 40u);
  }
}

}  // namespace
}  // namespace basalt::vector
