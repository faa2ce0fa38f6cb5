#include "basalt/text_index.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "basalt/memtable.h"
#include "base/random.h"
#include "db/environment.h"
#include "io/manual_executor.h"
#include "io/sim_clock.h"
#include "io/sim_file_system.h"
#include "retrieve/posting_record.h"
#include "retrieve/test_texts.h"
#include "text/memory_index.h"
#include "text/query.h"
#include "text/scorer.h"

// A text index in a store against text::MemoryIndex, which its own tests compare with a reference
// that knows no postings.

namespace basalt::retrieve {
namespace {

/// What the index must answer.
class Expected {
 public:
  void Put(uint64_t document, std::string_view text) { index_.Put(document, text); }
  bool Remove(uint64_t document) { return index_.Remove(document); }
  std::vector<TextHit> Search(std::string_view query, size_t k) {
    text::Tokenizer tokenizer;
    const auto scorer = text::MakeScorer(text::ParseQuery(query, &tokenizer), &index_).value();
    std::vector<TextHit> hits;
    for (const text::Hit& hit : text::FindBest(scorer.get(), k).value()) {
      hits.push_back({hit.document, hit.score});
    }
    return hits;
  }
  text::CollectionStats GetStats() const { return index_.GetStats(); }

 private:
  text::MemoryIndex index_{std::make_unique<text::Tokenizer>()};
};

std::string AnyQuery(base::Random* random) {
  switch (random->Below(4)) {
    case 0:
      return AnyWord(random);
    case 1:
      return AnyWord(random).substr(0, 2) + "*";
    case 2:
      return "\"" + AnyWord(random) + " " + AnyWord(random) + "\"";
    default:
      return AnyText(random, random->Between(2, 6));
  }
}

void ExpectSame(const TextIndex& index, Expected* expected, base::Random* random, int queries) {
  const TextIndexStats stats = index.GetStats().value();
  ASSERT_EQ(stats.documents, expected->GetStats().documents);
  ASSERT_EQ(stats.tokens, expected->GetStats().total_length);
  for (int i = 0; i < queries; ++i) {
    const std::string query = AnyQuery(random);
    const size_t k = random->Below(20);
    ASSERT_EQ(index.Search(query, k).value(), expected->Search(query, k)) << query << ", " << k;
  }
}

int Operations() {
  const char* operations = std::getenv("BASALT_TEXT_INDEX_OPERATIONS");
  return operations == nullptr ? 400 : std::atoi(operations);
}

/// One random change of a document, in the index and in what is expected.
void ChangeOne(TextIndex* index, Expected* expected, base::Random* random) {
  const uint64_t document = random->Below(90);
  if (random->OneIn(4)) {
    ASSERT_EQ(index->Remove(document).value(), expected->Remove(document));
    return;
  }
  const std::string text = AnyText(random, random->Below(30));
  ASSERT_TRUE(index->Put(document, text).ok());
  expected->Put(document, text);
}

TEST(TextIndex, EqualsTheReferenceOnADatabaseThatIsReopened) {
  base::Random random(1);
  io::SimFileSystem disk;
  io::SimClock clock;
  io::ManualExecutor executor;
  db::Environment environment;
  environment.fs = &disk;
  environment.clock = &clock;
  environment.executor = &executor;
  environment.memtable_bytes = 64 << 10;
  environment.table_bytes = 32 << 10;
  std::unique_ptr<DB> db;
  std::unique_ptr<TextIndex> index;
  Expected expected;
  size_t packed = 0;
  for (int i = 0; i < Operations(); ++i) {
    if (i % 100 == 0) {
      index.reset();
      db.reset();
      executor.RunAll();
      auto opened = db::OpenDatabase("/db", {.memory_budget = uint64_t{4} << 20}, environment);
      ASSERT_TRUE(opened.ok()) << opened.error().ToString();
      db = std::move(*opened);
      index = TextIndex::Open(db.get()).value();
    }
    ASSERT_NO_FATAL_FAILURE(ChangeOne(index.get(), &expected, &random));
    if (i % 10 == 0) {
      ASSERT_NO_FATAL_FAILURE(ExpectSame(*index, &expected, &random, 3));
      packed += CountTag(*db, "text", kSegmentTag);
      executor.RunAll();
    }
  }
  EXPECT_GT(packed, 0u);
}

TEST(TextIndex, EqualsTheReferenceOnAMemTable) {
  base::Random random(2);
  const auto store = MemTable::Create().value();
  const auto index = TextIndex::Open(store.get()).value();
  Expected expected;
  for (int i = 0; i < Operations(); ++i) {
    ASSERT_NO_FATAL_FAILURE(ChangeOne(index.get(), &expected, &random));
    ASSERT_NO_FATAL_FAILURE(ExpectSame(*index, &expected, &random, i % 10 == 0 ? 3 : 0));
  }
}

TEST(TextIndex, ManyPostingsOfATermArePackedIntoSegments) {
  constexpr uint64_t kDocuments = 6000;
  base::Random random(3);
  const auto store = NewMemoryDb();
  const auto index = TextIndex::Open(store.get()).value();
  Expected expected;
  const auto put = [&](Transaction& tx, uint64_t document) {
    const std::string text = "common " + AnyWord(&random);
    expected.Put(document, text);
    return index->Put(tx, document, text);
  };
  for (uint64_t begin = 0; begin < kDocuments; begin += 500) {
    ASSERT_TRUE(Transact(*store, [&](Transaction& tx) -> Status {
                  for (uint64_t i = begin; i < begin + 500; ++i) {
                    if (Status s = put(tx, 2 * i); !s.ok()) return s;
                  }
                  return {};
                }).ok());
    ASSERT_TRUE(index->MergePostings().ok());
  }
  const std::string prefix = TermKey(kPostingTag, "common");
  const auto unpacked = [&] {
    const auto records = RecordsOf(*store, "text");
    return std::ranges::count_if(
        records, [&](const auto& record) { return record.first.starts_with(prefix); });
  };
  EXPECT_LT(unpacked(), 2000);
  EXPECT_GE(CountTag(*store, "text", kSegmentTag), 2u);
  ASSERT_NO_FATAL_FAILURE(ExpectSame(*index, &expected, &random, 10));
  EXPECT_EQ(index->Search("common", 10).value(), expected.Search("common", 10));

  // Changes in all segments: new documents between the others, replaced and removed ones.
  ASSERT_TRUE(Transact(*store, [&](Transaction& tx) -> Status {
                for (uint64_t i = 0; i < kDocuments; i += 4) {
                  if (Status s = put(tx, 2 * i + i / 4 % 2); !s.ok()) return s;
                  if (i % 16 != 0) continue;
                  expected.Remove(2 * i);
                  if (Status s = index->Remove(tx, 2 * i).status(); !s.ok()) return s;
                }
                return {};
              }).ok());
  EXPECT_EQ(index->Search("common", 7000).value(), expected.Search("common", 7000));
  ASSERT_TRUE(index->MergePostings().ok());
  EXPECT_EQ(unpacked(), 0);
  EXPECT_EQ(index->Search("common", 7000).value(), expected.Search("common", 7000));
  ASSERT_NO_FATAL_FAILURE(ExpectSame(*index, &expected, &random, 10));
}

TEST(TextIndex, NothingIsLeftOfDocumentsThatAreRemoved) {
  base::Random random(4);
  const auto store = NewMemoryDb();
  const auto index = TextIndex::Open(store.get()).value();
  for (uint64_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(index->Put(i, "secret" + std::to_string(i) + " " + AnyText(&random, 20)).ok());
  }
  ASSERT_GT(CountTag(*store, "text", kSegmentTag), 0u);
  for (uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(index->Remove(i).value());
  EXPECT_FALSE(index->Remove(5).value());
  for (const auto& [key, value] : RecordsOf(*store, "text")) {
    EXPECT_TRUE(key == kFormatKey || key == kDocumentsKey || key == kTokensKey) << key;
  }
  EXPECT_EQ(index->GetStats().value().documents, 0u);
  EXPECT_EQ(index->GetStats().value().tokens, 0u);
}

TEST(TextIndex, ReplacingOneDocumentAgainAndAgainLeavesFewRecords) {
  const auto store = NewMemoryDb();
  const auto index = TextIndex::Open(store.get()).value();
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(index->Put(7, "always the same words").ok());
  }
  // Four terms: a counter and a posting, packed or not, or both; a document; format and counters.
  EXPECT_LE(RecordsOf(*store, "text").size(), 4u * 3 + 4);
  EXPECT_EQ(index->Search("words", 10).value().size(), 1u);
}

TEST(TextIndex, AChangeInATransactionIsSeenWhenItCommits) {
  const auto store = NewMemoryDb();
  const auto index = TextIndex::Open(store.get()).value();
  Transaction tx = store->Begin().value();
  ASSERT_TRUE(index->Put(tx, 1, "hidden").ok());
  ASSERT_TRUE(index->Put(tx, 1, "replaced in the same transaction").ok());
  EXPECT_TRUE(index->Search("replaced", 1).value().empty());
  ASSERT_TRUE(tx.Commit().has_value());
  EXPECT_EQ(index->Search("replaced", 1).value().size(), 1u);
  EXPECT_TRUE(index->Search("hidden", 1).value().empty());
  EXPECT_EQ(index->GetStats().value().tokens, 5u);  // Of the second text.

  Transaction rolled_back = store->Begin().value();
  ASSERT_TRUE(index->Remove(rolled_back, 1).value());
  rolled_back.Rollback();
  EXPECT_EQ(index->Search("replaced", 1).value().size(), 1u);
}

TEST(TextIndex, TransactionsOfDifferentDocumentsDoNotConflict) {
  const auto store = NewMemoryDb();
  const auto index = TextIndex::Open(store.get()).value();
  Transaction first = store->Begin().value();
  Transaction second = store->Begin().value();
  ASSERT_TRUE(index->Put(first, 1, "the same words").ok());
  ASSERT_TRUE(index->Put(second, 2, "the same words").ok());
  EXPECT_TRUE(first.Commit().has_value());
  EXPECT_TRUE(second.Commit().has_value());
  EXPECT_EQ(index->Search("same", 10).value().size(), 2u);

  Transaction third = store->Begin().value();
  Transaction fourth = store->Begin().value();
  ASSERT_TRUE(index->Put(third, 1, "other words").ok());
  ASSERT_TRUE(index->Remove(fourth, 1).value());
  EXPECT_TRUE(third.Commit().has_value());
  EXPECT_EQ(fourth.Commit().error().code(), StatusCode::kAborted);
}

TEST(TextIndex, ARemovalConflictsWithAPackingOfItsTerm) {
  const auto store = NewMemoryDb();
  const auto index = TextIndex::Open(store.get()).value();
  Transaction remove = store->Begin().value();
  for (uint64_t i = 0; i < 31; ++i) ASSERT_TRUE(index->Put(i, "word").ok());
  ASSERT_TRUE(index->Remove(remove, 3).value());
  ASSERT_TRUE(index->Put(100, "word").ok());
  ASSERT_EQ(CountTag(*store, "text", kSegmentTag), 1u);
  EXPECT_EQ(remove.Commit().error().code(), StatusCode::kAborted);
  ASSERT_TRUE(index->Remove(3).value());
  EXPECT_EQ(index->Search("word", 100).value().size(), 31u);
}

TEST(TextIndex, OptionsAreKeptAndErrorsSayWhatIsWrong) {
  const auto store = NewMemoryDb();
  const auto code = [&](const TextIndexOptions& options) {
    const auto opened = TextIndex::Open(store.get(), options);
    return opened ? StatusCode::kOk : opened.error().code();
  };
  EXPECT_EQ(code({.create_if_missing = false}), StatusCode::kNotFound);
  EXPECT_EQ(code({.stemmer = "klingon"}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({}), StatusCode::kOk);
  EXPECT_EQ(code({.create_if_missing = false}), StatusCode::kOk);
  EXPECT_EQ(code({.stemmer = ""}), StatusCode::kOk);
  EXPECT_EQ(code({.stemmer = "english"}), StatusCode::kInvalidArgument);
  EXPECT_EQ(TextIndex::Open(store.get()).value()->Put(UINT64_MAX, "x").code(),
            StatusCode::kInvalidArgument);
}

TEST(TextIndex, TheStemmerStaysWithTheIndex) {
  const auto store = NewMemoryDb();
  const auto made = TextIndex::Open(store.get(), {.stemmer = "english"});
  if (!made) GTEST_SKIP() << made.error().ToString();
  ASSERT_TRUE((*made)->Put(1, "running").ok());
  const auto index = TextIndex::Open(store.get()).value();
  EXPECT_EQ(index->Search("runs", 1).value().size(), 1u);
  ASSERT_TRUE(index->Put(2, "she runs").ok());
  EXPECT_EQ((*made)->Search("running", 5).value().size(), 2u);
  EXPECT_EQ(TextIndex::Open(store.get(), {.stemmer = ""}).error().code(),
            StatusCode::kInvalidArgument);
}

TEST(TextIndex, StrangeTextsAreFoundByWhatIsReadable) {
  const auto store = NewMemoryDb();
  const auto index = TextIndex::Open(store.get()).value();
  ASSERT_TRUE(index->Put(1, "").ok());
  ASSERT_TRUE(index->Put(2, "\xff\xfe broken \xc3 bytes").ok());
  ASSERT_TRUE(index->Put(3, "東京都 tower").ok());
  ASSERT_TRUE(index->Put(4, std::string(1 << 20, 'x')).ok());
  ASSERT_TRUE(index->Put(5, std::string("a\0b", 3)).ok());
  const auto first = [&](std::string_view query) {
    const auto hits = index->Search(query, 1).value();
    return hits.empty() ? 0 : hits[0].document;
  };
  EXPECT_EQ(first("bytes"), 2u);
  EXPECT_EQ(first("京都"), 3u);
  EXPECT_EQ(first("都"), 3u);
  EXPECT_EQ(first(std::string(1 << 20, 'x')), 4u);
  EXPECT_EQ(first("b"), 5u);
  EXPECT_EQ(first(""), 0u);
  EXPECT_EQ(first("\xff\xff"), 0u);
  EXPECT_EQ(index->GetStats().value().documents, 5u);
  for (uint64_t document = 1; document <= 5; ++document) {
    EXPECT_TRUE(index->Remove(document).value());
  }
  EXPECT_EQ(index->GetStats().value().tokens, 0u);
}

TEST(TextIndex, AMalformedRecordIsCorruption) {
  const auto store = NewMemoryDb();
  const auto index = TextIndex::Open(store.get()).value();
  ASSERT_TRUE(index->Put(1, "word").ok());
  const auto keyspace = store->OpenKeyspace("text").value();
  const std::string posting = PostingKey(kPostingTag, "word", 1);
  ASSERT_TRUE(store->Put(posting, "\x01", {.keyspace = keyspace}).has_value());
  EXPECT_EQ(index->Search("word", 1).error().code(), StatusCode::kCorruption);
  ASSERT_TRUE(store->Put(DocumentKey(1), "\x80", {.keyspace = keyspace}).has_value());
  EXPECT_EQ(index->Remove(1).error().code(), StatusCode::kCorruption);
}

TEST(TextIndex, ThreadsThatWriteTheirOwnDocumentsAndSearch) {
  constexpr uint64_t kThreads = 4;
  constexpr int kChanges = 120;
  const auto store = NewMemoryDb();
  const auto index = TextIndex::Open(store.get()).value();
  const auto text_of = [](uint64_t thread, int change) {
    base::Random random(thread * 1000 + static_cast<uint64_t>(change));
    return AnyText(&random, 12);
  };
  const auto document_of = [](uint64_t thread, int change) {
    return static_cast<uint64_t>(change % 40) * kThreads + thread;
  };
  std::atomic<int> failures = 0;
  std::atomic<bool> is_done = false;
  std::thread reader([&] {
    base::Random random(9);
    while (!is_done) failures += !index->Search(AnyQuery(&random), 5).has_value();
  });
  std::vector<std::thread> writers;
  for (uint64_t thread = 0; thread < kThreads; ++thread) {
    writers.emplace_back([&, thread] {
      for (int i = 0; i < kChanges; ++i) {
        const uint64_t document = document_of(thread, i);
        const bool removes = i % 5 == 4;
        failures += removes ? !index->Remove(document).has_value()
                            : !index->Put(document, text_of(thread, i)).ok();
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  is_done = true;
  reader.join();
  EXPECT_EQ(failures, 0);

  Expected expected;
  for (uint64_t thread = 0; thread < kThreads; ++thread) {
    for (int i = 0; i < kChanges; ++i) {
      const uint64_t document = document_of(thread, i);
      if (i % 5 == 4) {
        expected.Remove(document);
      } else {
        expected.Put(document, text_of(thread, i));
      }
    }
  }
  base::Random random(10);
  ExpectSame(*index, &expected, &random, 50);
}

}  // namespace
}  // namespace basalt::retrieve
