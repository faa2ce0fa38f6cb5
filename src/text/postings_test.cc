#include "text/postings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "text/merged_postings.h"

namespace basalt::text {
namespace {

struct Entry {
  uint32_t length = 0;
  std::vector<uint32_t> positions{};

  friend bool operator==(const Entry&, const Entry&) = default;
};
/// The postings of a term, by document. No positions: a removal.
using Model = std::map<uint64_t, Entry>;

Entry AnyEntry(base::Random* random) {
  Entry entry;
  const uint64_t frequency = random->OneIn(20) ? random->Below(300) : random->Below(4);
  uint32_t position = 0;
  for (uint64_t i = 0; i < frequency; ++i) {
    position += static_cast<uint32_t>(random->Below(random->OneIn(10) ? 1'000 : 3));
    entry.positions.push_back(position++);
  }
  if (frequency > 0) entry.length = position + static_cast<uint32_t>(random->Below(100));
  return entry;
}

Model AnyModel(base::Random* random, uint64_t postings, uint64_t documents) {
  Model model;
  while (model.size() < postings) {
    model.emplace(random->OneIn(50) ? random->Next() - 1 : random->Below(documents),
                  AnyEntry(random));
  }
  return model;
}

std::string SegmentOf(const Model& model) {
  PostingsBuilder builder;
  for (const auto& [document, entry] : model) {
    builder.Add({document, entry.length, entry.positions});
  }
  return builder.Finish();
}

Model ReadAll(PostingsCursor* cursor) {
  Model model;
  for (; cursor->document() != kNoDocument; cursor->Next()) {
    Entry entry{.length = cursor->length()};
    cursor->ReadPositions(&entry.positions);
    EXPECT_EQ(entry.positions.size(), cursor->frequency());
    EXPECT_LE(cursor->frequency(), cursor->frequency_max());
    EXPECT_TRUE(cursor->frequency() == 0 || cursor->length() >= cursor->length_min());
    EXPECT_TRUE(model.emplace_hint(model.end(), cursor->document(), entry)->second == entry);
  }
  EXPECT_TRUE(cursor->status().ok()) << cursor->status().ToString();
  return model;
}

Model WithoutRemovals(Model model) {
  std::erase_if(model, [](const auto& each) { return each.second.positions.empty(); });
  return model;
}

TEST(Postings, WhatIsWrittenIsReadBack) {
  const uint64_t seed = 5;
  SCOPED_TRACE(seed);
  base::Random random(seed);
  for (const uint64_t postings : {1, 2, 127, 128, 129, 256, 1'000}) {
    for (const uint64_t documents : {uint64_t{1'500}, uint64_t{1'000'000}, UINT64_MAX}) {
      const Model model = AnyModel(&random, postings, documents);
      const std::string segment = SegmentOf(model);
      SegmentCursor cursor(segment);
      EXPECT_EQ(cursor.postings(), postings);
      EXPECT_EQ(cursor.removals(), postings - WithoutRemovals(model).size());
      ASSERT_EQ(ReadAll(&cursor), model);
      EXPECT_EQ(cursor.document(), kNoDocument);
      cursor.Next();
      EXPECT_EQ(cursor.document(), kNoDocument);
    }
  }
}

TEST(Postings, TheExtremesOfEachFieldFit) {
  const Model model = {{0, {UINT32_MAX, {0, UINT32_MAX - 1}}},
                       {1, {1, {UINT32_MAX - 1}}},
                       {kNoDocument - 1, {0, {0}}}};
  const std::string segment = SegmentOf(model);
  SegmentCursor cursor(segment);
  EXPECT_EQ(ReadAll(&cursor), model);
}

TEST(Postings, ASeekGoesToTheNextDocumentThatIsThere) {
  base::Random random(6);
  const Model model = AnyModel(&random, 2'000, 10'000);
  const std::string segment = SegmentOf(model);
  for (int round = 0; round < 300; ++round) {
    SegmentCursor cursor(segment);
    auto expected = model.begin();
    while (cursor.document() != kNoDocument) {
      if (random.OneIn(3)) {
        cursor.Next();
        ++expected;
      } else {
        const uint64_t ahead = random.Below(random.OneIn(4) ? 3'000 : 30);
        const bool is_ahead = ahead > 0 && cursor.document() < kNoDocument - ahead;
        const uint64_t target = is_ahead ? cursor.document() + ahead : random.Below(5);
        cursor.Seek(target);
        if (target > expected->first) expected = model.lower_bound(target);
      }
      ASSERT_EQ(cursor.document(), expected == model.end() ? kNoDocument : expected->first);
      if (expected == model.end()) break;
      Entry entry{.length = cursor.length()};
      cursor.ReadPositions(&entry.positions);
      ASSERT_EQ(entry, expected->second) << "seed 6";
    }
  }
}

TEST(Postings, OfSeveralSegmentsTheNewestDecides) {
  const uint64_t seed = 7;
  SCOPED_TRACE(seed);
  base::Random random(seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> segments;  // newest first
    Model expected;
    for (uint64_t i = 1 + random.Below(6); i > 0; --i) {
      const Model model = AnyModel(&random, 1 + random.Below(random.OneIn(2) ? 5 : 500), 600);
      for (const auto& [document, entry] : model) expected[document] = entry;
      segments.insert(segments.begin(), SegmentOf(model));
    }
    const std::vector<std::string_view> views(segments.begin(), segments.end());
    ASSERT_EQ(ReadAll(OpenSegments(views).get()), WithoutRemovals(expected));

    const auto kept = MergeSegments(views, /*is_oldest=*/false);
    ASSERT_TRUE(kept.has_value());
    SegmentCursor cursor(*kept);
    ASSERT_EQ(ReadAll(&cursor), expected);

    const auto last = MergeSegments(views, /*is_oldest=*/true);
    ASSERT_TRUE(last.has_value());
    if (WithoutRemovals(expected).empty()) {
      ASSERT_EQ(*last, "");
    } else {
      ASSERT_EQ(*last, SegmentOf(WithoutRemovals(expected)));
    }

    // Seeks pass what is hidden, too.
    const auto merged = OpenSegments(views);
    for (uint64_t target = 0; target < 700; target += random.Below(60)) {
      merged->Seek(target);
      const Model visible = WithoutRemovals(expected);
      const auto at = visible.lower_bound(target);
      ASSERT_EQ(merged->document(), at == visible.end() ? kNoDocument : at->first);
    }
  }
}

TEST(Postings, APostingOfATypicalPassageTakesFewBytes) {
  // 100,000 postings: every third document, twice in it, 100 tokens long.
  PostingsBuilder builder;
  base::Random random(8);
  for (uint64_t document = 0; document < 300'000; document += 1 + random.Below(5)) {
    const auto first = static_cast<uint32_t>(random.Below(50));
    const uint32_t positions[] = {first, first + 1 + static_cast<uint32_t>(random.Below(50))};
    builder.Add({document, 60 + static_cast<uint32_t>(random.Below(80)), positions});
  }
  const std::string segment = builder.Finish();
  EXPECT_LT(segment.size(), SegmentCursor(segment).postings() * 4);
  PostingsBuilder small;
  const uint32_t positions[] = {17};
  small.Add({1'000'000, 100, positions});
  EXPECT_LT(small.Finish().size(), 28U);
}

TEST(Postings, MalformedSegmentsAreRefusedWithTheOffset) {
  SegmentCursor empty("");
  EXPECT_EQ(empty.status().code(), StatusCode::kCorruption);
  SegmentCursor newer(std::string_view("\2\1\0\1\1", 5));
  EXPECT_EQ(newer.status().code(), StatusCode::kUnsupported);

  base::Random random(9);
  const std::string segment = SegmentOf(AnyModel(&random, 300, 1'000));
  SegmentCursor whole(segment);
  while (whole.document() != kNoDocument) whole.Next();
  for (size_t size = 1; size < segment.size(); ++size) {
    const std::string cut = segment.substr(0, size);  // so that a sanitizer sees its end
    SegmentCursor cursor(cut);
    uint64_t read = 0;
    for (; cursor.document() != kNoDocument; cursor.Next()) ++read;
    // A cut between two blocks leaves a shorter segment.
    if (cursor.status().ok()) {
      EXPECT_EQ(read % kPostingsBlock, 0U);
    } else {
      EXPECT_EQ(cursor.status().code(), StatusCode::kCorruption);
      EXPECT_NE(cursor.status().message().find("offset"), std::string_view::npos);
    }
  }
}

TEST(Postings, AnErrorOfOneSegmentIsThatOfTheMergedCursor) {
  base::Random random(10);
  const std::string good = SegmentOf(AnyModel(&random, 300, 1'000));
  std::string bad = SegmentOf(AnyModel(&random, 300, 1'000));
  bad.resize(bad.size() - 1);
  const auto merged = OpenSegments({good, bad});
  while (merged->document() != kNoDocument) merged->Next();
  EXPECT_EQ(merged->status().code(), StatusCode::kCorruption);
  EXPECT_EQ(MergeSegments({good, bad}, true).status().code(), StatusCode::kCorruption);
}

}  // namespace
}  // namespace basalt::text
