#include "vector/hnsw_checkpoint.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/test_memory.h"
#include "vector/hnsw_index.h"
#include "vector/test_reseal.h"
#include "vector/test_rows.h"

namespace basalt::vector {
namespace {

constexpr size_t kSavedDimension = 8;

std::unique_ptr<HnswIndex> MakeIndex(Clusters* clusters) {
  std::vector<float> sample;
  for (int i = 0; i < 200; ++i) {
    const auto vector = clusters->Next();
    sample.insert(sample.end(), vector.begin(), vector.end());
  }
  return std::make_unique<HnswIndex>(
      CodeBook::Fit(VectorMetric::kL2, kSavedDimension, 5, sample.data(), 200).value());
}

std::string SaveOf(HnswIndex* index, uint64_t id = 77) {
  std::string image;
  EXPECT_TRUE(index
                  ->Save(id,
                         [&](std::string_view piece) {
                           image += piece;
                           return Status();
                         })
                  .ok());
  return image;
}

// Some added, some copies, some removed: of each kind of slot there is one.
void Fill(HnswIndex* index, TestRows* rows, Clusters* clusters, size_t count) {
  std::vector<float> copied = clusters->Next();
  for (size_t i = 0; i < count; ++i) {
    const auto vector = i % 7 == 3 ? copied : clusters->Next();
    rows->Put(index->Add(vector.data()).value(), vector);
  }
  const auto remove = [&](size_t first, size_t step) {
    for (size_t slot = first; slot < count; slot += step) {
      if (!rows->Has(static_cast<uint32_t>(slot))) continue;
      EXPECT_TRUE(index->Remove(static_cast<uint32_t>(slot)).ok());
      rows->Erase(static_cast<uint32_t>(slot));
    }
  };
  remove(0, 5);
  EXPECT_TRUE(index->Repair().ok());
  remove(3, 6);
}

std::vector<uint32_t> Answers(const HnswIndex& index, const TestRows& rows,
                              const std::vector<float>& query) {
  SearchRequest request;
  request.ef = 12;
  const auto result = index.Search(query.data(), request, TestRows::Source(&rows, &query));
  std::vector<uint32_t> slots;
  for (const SearchHit& hit : result->hits) slots.push_back(hit.slot);
  return slots;
}

TEST(HnswCheckpoint, IsTheSameIndexWhenItIsReadBack) {
  base::Random random(1);
  Clusters clusters(40, kSavedDimension, 0.6, &random);
  auto index = MakeIndex(&clusters);
  TestRows rows(VectorMetric::kL2, kSavedDimension);
  Fill(index.get(), &rows, &clusters, 6'000);
  const std::string image = SaveOf(index.get());
  auto loaded = HnswIndex::Load(image);
  ASSERT_TRUE(loaded.has_value()) << loaded.status().ToString();
  EXPECT_EQ((*loaded)->Audit().value().fault, "");
  EXPECT_EQ((*loaded)->size(), index->size());
  EXPECT_EQ((*loaded)->Stats().removed, index->Stats().removed);
  EXPECT_EQ((*loaded)->Stats().free, index->Stats().free);
  for (int i = 0; i < 100; ++i) {
    const auto query = clusters.Next();
    EXPECT_EQ(Answers(**loaded, rows, query), Answers(*index, rows, query));
  }
  EXPECT_EQ(SaveOf(loaded->get()), image);
  EXPECT_NE(SaveOf(loaded->get(), 78), image);

  // It goes on like any other.
  const uint32_t slots = (*loaded)->slots();
  const size_t free = (*loaded)->Stats().free;
  ASSERT_GT(free, 100u);
  for (size_t i = 0; i < free; ++i) {
    const auto vector = clusters.Next();
    const uint32_t slot = (*loaded)->Add(vector.data()).value();
    EXPECT_FALSE(rows.Has(slot));
    rows.Put(slot, vector);
  }
  EXPECT_EQ((*loaded)->slots(), slots);
  ASSERT_TRUE((*loaded)->Repair().ok());
  EXPECT_EQ((*loaded)->Audit().value().fault, "");
}

TEST(HnswCheckpoint, OfAnEmptyIndexIsRead) {
  base::Random random(2);
  Clusters clusters(4, kSavedDimension, 0.6, &random);
  auto index = MakeIndex(&clusters);
  auto loaded = HnswIndex::Load(SaveOf(index.get()));
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ((*loaded)->size(), 0u);
  const auto vector = clusters.Next();
  EXPECT_EQ((*loaded)->Add(vector.data()).value(), 0u);
}

TEST(HnswCheckpoint, TheSameInsertionsGiveTheSameBytes) {
  std::string images[2];
  for (std::string& image : images) {
    base::Random random(3);
    Clusters clusters(40, kSavedDimension, 0.6, &random);
    auto index = MakeIndex(&clusters);
    TestRows rows(VectorMetric::kL2, kSavedDimension);
    Fill(index.get(), &rows, &clusters, 3'000);
    image = SaveOf(index.get());
  }
  EXPECT_TRUE(images[0] == images[1]);
}

TEST(HnswCheckpoint, CutAnywhereOrFlippedAnywhereIsRefused) {
  base::Random random(4);
  Clusters clusters(5, kSavedDimension, 0.6, &random);
  auto index = MakeIndex(&clusters);
  TestRows rows(VectorMetric::kL2, kSavedDimension);
  Fill(index.get(), &rows, &clusters, 60);
  const std::string image = SaveOf(index.get());
  for (size_t size = 0; size < image.size(); ++size) {
    const auto loaded = HnswIndex::Load(std::string_view(image).substr(0, size));
    ASSERT_EQ(loaded.status().code(), StatusCode::kCorruption) << size;
    ASSERT_FALSE(loaded.error().message().empty());
  }
  for (size_t at = 0; at < image.size(); ++at) {
    std::string flipped = image;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << random.Below(8)));
    ASSERT_EQ(HnswIndex::Load(flipped).status().code(), StatusCode::kCorruption) << at;
  }
  EXPECT_EQ(HnswIndex::Load(image + "x").status().code(), StatusCode::kCorruption);
  std::string later = image;
  later[8] = 2;
  ResealCheckpoint(&later);
  EXPECT_EQ(HnswIndex::Load(later).status().code(), StatusCode::kUnsupported);
}

// Checksums do not help against what writes them wrong: nothing that is read leads astray.
TEST(HnswCheckpoint, WithRightChecksumsWhatIsWrongIsRefusedOrHarmless) {
  base::Random random(5);
  Clusters clusters(5, kSavedDimension, 0.6, &random);
  auto index = MakeIndex(&clusters);
  TestRows rows(VectorMetric::kL2, kSavedDimension);
  Fill(index.get(), &rows, &clusters, 60);
  const std::string image = SaveOf(index.get());
  size_t refused = 0;
  size_t read = 0;
  for (int turn = 0; turn < 20'000; ++turn) {
    std::string changed = image;
    const size_t changes = random.Between(1, 3);
    for (size_t i = 0; i < changes; ++i) {
      changed[random.Below(changed.size())] = static_cast<char>(random.Next());
    }
    ResealCheckpoint(&changed);
    auto loaded = HnswIndex::Load(changed);
    if (!loaded) {
      ++refused;
      continue;
    }
    ++read;
    const auto query = clusters.Next();
    Answers(**loaded, rows, query);
    if ((*loaded)->book().dimension() != kSavedDimension) continue;
    EXPECT_TRUE((*loaded)->Repair().ok());
    EXPECT_EQ((*loaded)->Audit().value().fault, "");
  }
  EXPECT_GT(refused, 1'000u);
  EXPECT_GT(read, 1'000u);  // Other codes, other floats.
}

TEST(HnswCheckpoint, AnErrorOfTheSinkIsReturned) {
  base::Random random(6);
  Clusters clusters(5, kSavedDimension, 0.6, &random);
  auto index = MakeIndex(&clusters);
  TestRows rows(VectorMetric::kL2, kSavedDimension);
  Fill(index.get(), &rows, &clusters, 3'000);
  for (int allowed = 0; allowed < 4; ++allowed) {
    int pieces = 0;
    const Status saved = index->Save(1, [&](std::string_view) {
      return pieces++ < allowed ? Status() : Status(StatusCode::kIoError, "full");
    });
    EXPECT_EQ(saved.message(), "full");
  }
}

TEST(HnswCheckpoint, WithoutMemoryIsReadNotAtAll) {
  base::Random random(8);
  Clusters clusters(5, kSavedDimension, 0.6, &random);
  auto index = MakeIndex(&clusters);
  TestRows rows(VectorMetric::kL2, kSavedDimension);
  Fill(index.get(), &rows, &clusters, 60);
  const std::string image = SaveOf(index.get());
  base::EachAllocation each({.later_stride = 7});
  while (each.Next()) {
    SCOPED_TRACE(each.ToString());
    Result<std::unique_ptr<HnswIndex>> loaded = Status(StatusCode::kCancelled, "");
    const Status status = each.Call([&] {
      loaded = HnswIndex::Load(image);
      return loaded.status();
    });
    if (!status.ok()) {
      EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
    } else {
      EXPECT_EQ((*loaded)->size(), index->size());
    }
  }
}

}  // namespace
}  // namespace basalt::vector
