#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "basalt/perfect_hash.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/seeded_hash.h"
#include "base/test_dispatch.h"
#include "base/test_equal_hashes.h"
#include "phash/format.h"
#include "phash/function_builder.h"
#include "phash/level_shape.h"
#include "phash/test_functions.h"

// The input of a build, and how it ends; perfect_hash_test.cc tests the results.
namespace basalt::phash {
namespace {

using Stage = PerfectHashProgress::Stage;

/// Enough keys for several chunks.
constexpr uint64_t kSomeChunks = 600'000;

std::string BytesOf(Result<PerfectHash> function) {
  return function ? std::string(function->bytes()) : function.error().ToString();
}

void ExpectError(const Status& status, StatusCode code, const std::vector<std::string>& parts) {
  EXPECT_EQ(status.code(), code) << status.ToString();
  for (const std::string& part : parts) {
    EXPECT_NE(status.message().find(part), std::string_view::npos)
        << "'" << part << "' is not in: " << status.ToString();
  }
}

// The same bytes.

void ExpectSameBytesFromHashes(uint64_t count, const std::vector<uint32_t>& numbers_of_threads) {
  ASSERT_GT(LevelShape(count, PerfectHashSeeds::kShift).chunks(), 1u);
  std::vector<uint64_t> hashes = RandomHashes(count, count);
  for (const PerfectHashSeeds seeds : kBothKinds) {
    const auto build = [&](const PerfectHashOptions& options) {
      return PerfectHashBuilder(options).BuildFromHashes(hashes);
    };
    const std::string expected = BytesOf(build({.seeds = seeds, .threads = 1}));
    for (const uint32_t threads : numbers_of_threads) {
      Shuffle(&hashes, threads);
      PerfectHashOptions options = {.seeds = seeds, .threads = threads};
      ASSERT_EQ(BytesOf(build(options)), expected) << threads << " threads";
      options.memory_budget = LeastBudget(options, build);
      ASSERT_EQ(BytesOf(build(options)), expected) << threads << " threads, least memory";
      options.memory_budget += count * 3;
      ASSERT_EQ(BytesOf(build(options)), expected) << threads << " threads, some memory";
    }
  }
}

TEST(PerfectHashBuilder, SixHundredThousandHashesGiveTheSameBytesHoweverTheyAreBuilt) {
  ExpectSameBytesFromHashes(kSomeChunks, {1, 2, 3, 8});
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(PerfectHashBuilder, AMillionHashesGiveTheSameBytesHoweverTheyAreBuilt) {
  ExpectSameBytesFromHashes(1'000'000, {3});
}
#endif

TEST(PerfectHashBuilder, StringsGiveTheSameBytesFromSpanAndSourceInAnyOrderAndMemory) {
  const std::vector<std::string> keys = NumberedKeys(kSomeChunks);
  std::vector<std::string_view> views = Views(keys);
  for (const PerfectHashSeeds seeds : kBothKinds) {
    const std::string expected =
        BytesOf(PerfectHashBuilder({.seeds = seeds, .threads = 1}).Build(views));
    for (const uint32_t threads : {2, 8}) {
      Shuffle(&views, threads);
      const VectorSource source(views, 1 + threads * 1'000);
      PerfectHashOptions options = {.seeds = seeds, .threads = threads};
      ASSERT_EQ(BytesOf(PerfectHashBuilder(options).Build(views)), expected);
      ASSERT_EQ(BytesOf(PerfectHashBuilder(options).Build(source)), expected);
      ASSERT_EQ(source.walks(), 1u);
      options.memory_budget = LeastBudget(options, [&](const PerfectHashOptions& some) {
        return PerfectHashBuilder(some).Build(views);
      });
      ASSERT_EQ(BytesOf(PerfectHashBuilder(options).Build(views)), expected);
      ASSERT_EQ(BytesOf(PerfectHashBuilder(options).Build(source)), expected);
      ASSERT_GT(source.walks(), 2u);
    }
  }
}

TEST(PerfectHashBuilder, FewKeysGiveTheSameBytesInAnyOrderAndByManyThreads) {
  for (const uint64_t count : {2, 32, 33, 1'000, 20'000}) {
    std::vector<uint64_t> hashes = RandomHashes(count, count);
    for (const PerfectHashSeeds seeds : kBothKinds) {
      const std::string expected =
          BytesOf(PerfectHashBuilder({.seeds = seeds, .threads = 1}).BuildFromHashes(hashes));
      for (const uint32_t threads : {1, 2, 256}) {
        Shuffle(&hashes, threads);
        ASSERT_EQ(
            BytesOf(
                PerfectHashBuilder({.seeds = seeds, .threads = threads}).BuildFromHashes(hashes)),
            expected);
      }
    }
  }
}

TEST(PerfectHashBuilder, EveryInstructionSetGivesTheSameBytes) {
  const std::vector<int64_t> targets = base::DispatchTargets();
  ASSERT_FALSE(targets.empty());
  for (const PerfectHashSeeds seeds : kBothKinds) {
    for (const uint64_t count : {uint64_t{40}, uint64_t{1'000}, uint64_t{10'000}, uint64_t{70'000},
                                 kSomeChunks / kSlowdown}) {
      const std::vector<uint64_t> hashes = RandomHashes(count, 1);
      std::string expected;
      for (const int64_t target : targets) {
        const base::ForcedTarget forced(target);
        const std::string bytes =
            BytesOf(PerfectHashBuilder({.seeds = seeds}).BuildFromHashes(hashes));
        if (expected.empty()) expected = bytes;
        ASSERT_EQ(bytes, expected) << hwy::TargetName(target) << ", " << count << " keys";
      }
    }
  }
}

TEST(PerfectHashBuilder, TheFormatHasNotChanged) {
  // XXH3-64 of the serialised forms. Who changes one on purpose raises kFormatVersion.
  struct Golden {
    PerfectHashSeeds seeds;
    uint64_t keys;
    uint64_t hash;
  };
  const Golden golden[] = {
      {PerfectHashSeeds::kShift, 10, 0x70D6'A396'D06F'DB23},
      {PerfectHashSeeds::kShift, 1'000, 0xF60A'88CB'B54B'4958},
      {PerfectHashSeeds::kShift, 10'000, 0xA577'866B'0165'1116},
      {PerfectHashSeeds::kShift, 600'000, 0xD354'55DF'9CDE'ED9C},
      {PerfectHashSeeds::kDense, 10, 0xAD97'7BB8'A48A'F199},
      {PerfectHashSeeds::kDense, 1'000, 0x9DFA'9D62'5FDE'50D4},
      {PerfectHashSeeds::kDense, 10'000, 0x1779'88DE'A107'8E98},
      {PerfectHashSeeds::kDense, 600'000, 0x7F61'FAA3'F847'A256},
  };
  for (const int64_t target : base::DispatchTargets()) {
    const base::ForcedTarget forced(target);
    for (const auto& [seeds, count, hash] : golden) {
      const std::vector<std::string> keys = NumberedKeys(count);
      const std::string bytes = BytesOf(PerfectHashBuilder({.seeds = seeds}).Build(Views(keys)));
      EXPECT_EQ(base::Hash(bytes), hash)
          << count << " keys, kind " << static_cast<int>(seeds) << ", " << hwy::TargetName(target)
          << ", " << bytes.size() << " bytes";
    }
  }
}

// Duplicates.

TEST(PerfectHashBuilder, AKeyThatIsThereTwiceIsNamedWithBothPlaces) {
  for (const uint64_t count : {2, 20, 40, 5'000, 200'000}) {
    std::vector<std::string> keys = NumberedKeys(count);
    const uint64_t first = count / 3;
    const uint64_t second = count - 1;
    keys[second] = keys[first];
    const std::vector<std::string> parts = {"key '" + keys[first] + "' is given twice (" +
                                            std::to_string(first) + " and " +
                                            std::to_string(second) + ")"};
    for (const PerfectHashSeeds seeds : kBothKinds) {
      const PerfectHashBuilder builder({.seeds = seeds});
      const auto from_span = builder.Build(Views(keys));
      ASSERT_FALSE(from_span);
      ExpectError(from_span.error(), StatusCode::kInvalidArgument, parts);
      const auto from_source = builder.Build(VectorSource(Views(keys), 7));
      ASSERT_FALSE(from_source);
      ExpectError(from_source.error(), StatusCode::kInvalidArgument, parts);
    }
  }
}

TEST(PerfectHashBuilder, ADuplicateKeyOfAnyBytesCanBeReadInTheMessage) {
  std::string key("it's \\ \x01\0\xFF", 10);
  key.append(100, 'x');
  const std::vector<std::string_view> keys = {"", key, key};
  const auto function = PerfectHashBuilder().Build(keys);
  ASSERT_FALSE(function);
  ExpectError(function.error(), StatusCode::kInvalidArgument,
              {"'it\\x27s \\x5C \\x01\\x00\\xFFxxx",
               "... (" + std::to_string(key.size()) + " bytes)", "(1 and 2)"});
  const std::vector<std::string_view> empty = {"", "a", ""};
  const auto of_empty = PerfectHashBuilder().Build(empty);
  ASSERT_FALSE(of_empty);
  ExpectError(of_empty.error(), StatusCode::kInvalidArgument, {"key '' is given twice (0 and 2)"});
}

TEST(PerfectHashBuilder, AHashThatIsThereTwiceIsNamedWithBothPlaces) {
  for (const uint64_t count : {2, 20, 40, 5'000, 200'000}) {
    std::vector<uint64_t> hashes = RandomHashes(count, 2);
    const uint64_t first = count / 3;
    hashes[count - 1] = hashes[first] = 0x00AB'CDEF'0123'4567;
    for (const PerfectHashSeeds seeds : kBothKinds) {
      const auto function = PerfectHashBuilder({.seeds = seeds}).BuildFromHashes(hashes);
      ASSERT_FALSE(function);
      ExpectError(function.error(), StatusCode::kInvalidArgument,
                  {"hash 0x00abcdef01234567 is given at " + std::to_string(first) +
                   " and again at " + std::to_string(count - 1)});
    }
  }
}

TEST(PerfectHashBuilder, TheSameKeyManyTimesIsRefused) {
  const std::vector<std::string_view> keys(100'000, "again");
  const auto of_keys = PerfectHashBuilder().Build(keys);
  ASSERT_FALSE(of_keys);
  ExpectError(of_keys.error(), StatusCode::kInvalidArgument, {"'again' is given twice (0 and 1)"});
  const std::vector<uint64_t> hashes(kSomeChunks, 42);
  const auto of_hashes = PerfectHashBuilder().BuildFromHashes(hashes);
  ASSERT_FALSE(of_hashes);
  ExpectError(of_hashes.error(), StatusCode::kInvalidArgument, {"is given at 0 and again at 1;"});
}

TEST(PerfectHashBuilder, OneOfSeveralDuplicatesAmongAMillionIsNamed) {
  const uint64_t seed = base::RandomSeed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  base::Random random(seed);
  std::vector<uint64_t> hashes = RandomHashes(1'000'000 / kSlowdown, random.Next());
  for (int i = 0; i < 5; ++i) {
    hashes[random.Below(hashes.size())] = hashes[random.Below(hashes.size())];
  }
  // Sure to be one even if all of these met themselves.
  hashes[0] = hashes[hashes.size() - 1];
  // Equal hashes in a row, each row in the order of places.
  std::vector<std::pair<uint64_t, uint64_t>> sorted;
  for (uint64_t i = 0; i < hashes.size(); ++i) sorted.emplace_back(hashes[i], i);
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::string> expected;
  for (size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i].first != sorted[i - 1].first) continue;
    expected.push_back("is given at " + std::to_string(sorted[i - 1].second) + " and again at " +
                       std::to_string(sorted[i].second) + ";");
  }
  for (const PerfectHashSeeds seeds : kBothKinds) {
    for (const uint32_t threads : {1, 3}) {
      const auto function =
          PerfectHashBuilder({.seeds = seeds, .threads = threads}).BuildFromHashes(hashes);
      ASSERT_FALSE(function);
      const std::string message(function.error().message());
      const bool named = std::ranges::any_of(expected, [&](const std::string& places) {
        return message.find(places) != std::string::npos;
      });
      EXPECT_TRUE(named) << message;
    }
  }
}

// Different keys of equal hashes. Key "b" takes the hash of "a" under the seeds that collide.

uint64_t HashWhereAllCollide(std::string_view key, const base::SeededHash& hash) {
  return hash(key == "b" ? "a" : key);
}
uint64_t HashWhereSeed0Collides(std::string_view key, const base::SeededHash& hash) {
  return hash.seed() == 0 ? HashWhereAllCollide(key, hash) : hash(key);
}

TEST(PerfectHashBuilder, EqualHashesUnderOneSeedAreSolvedByTheNext) {
  for (const uint64_t count : {0, 10, 1'000, 150'000}) {
    std::vector<std::string> keys = NumberedKeys(count);
    keys.insert(keys.begin() + static_cast<ptrdiff_t>(count / 2), "a");
    keys.emplace_back("b");
    const VectorSource source(Views(keys));
    FunctionBuilder builder({}, HashWhereSeed0Collides);
    const auto from_span = builder.Build(Views(keys));
    const auto from_source = builder.Build(source);
    ASSERT_TRUE(from_span) << from_span.error().ToString();
    ASSERT_TRUE(from_source) << from_source.error().ToString();
    EXPECT_EQ(*from_span, *from_source);
    const auto function = PerfectHash::Open(*from_span);
    ASSERT_TRUE(function) << function.error().ToString();
    EXPECT_NE(function->hash_seed(), 0u);
    EXPECT_TRUE(IsBijective(*function, Views(keys)));
  }
}

TEST(PerfectHashBuilder, EqualHashesUnderEverySeedAreToldFromDuplicates) {
  for (const uint64_t count : {0, 10, 1'000, 150'000}) {
    std::vector<std::string> keys = NumberedKeys(count);
    keys.insert(keys.begin() + static_cast<ptrdiff_t>(count / 2), "a");
    keys.emplace_back("b");
    const auto form = FunctionBuilder({}, HashWhereAllCollide).Build(Views(keys));
    ASSERT_FALSE(form);
    ExpectError(form.error(), StatusCode::kInvalidArgument,
                {"keys 'a' and 'b' (" + std::to_string(count / 2) + " and " +
                     std::to_string(count + 1) + ")",
                 "have equal 64-bit hashes"});
    EXPECT_EQ(form.error().message().find("twice"), std::string_view::npos);
  }
}

TEST(PerfectHashBuilder, ADuplicateIsFoundBesideKeysOfEqualHashes) {
  for (const std::vector<std::string_view>& keys :
       {std::vector<std::string_view>{"a", "b", "c", "c"},
        std::vector<std::string_view>{"a", "b", "a"}}) {
    const auto form = FunctionBuilder({}, HashWhereAllCollide).Build(keys);
    ASSERT_FALSE(form);
    ExpectError(form.error(), StatusCode::kInvalidArgument, {"is given twice"});
  }
  // Hidden behind a key of the same hash, until the next seed.
  const std::vector<std::string_view> keys = {"a", "c", "b", "b"};
  const auto form = FunctionBuilder({}, HashWhereSeed0Collides).Build(keys);
  ASSERT_FALSE(form);
  ExpectError(form.error(), StatusCode::kInvalidArgument, {"key 'b' is given twice (2 and 3)"});
}

// A comparison of each two would take minutes.
TEST(PerfectHashBuilder, KeysThatWereChosenForEqualHashesAreNumberedAsOthers) {
  const std::vector<std::string> keys = base::KeysOfOneHash(30'000 / kSlowdown);
  ASSERT_EQ(base::Hash(keys.front()), base::Hash(keys.back()));
  const auto function = PerfectHashBuilder().Build(Views(keys));
  ASSERT_TRUE(function) << function.error().ToString();
  EXPECT_TRUE(IsBijective(*function, Views(keys)));
  EXPECT_LT(function->bits_per_key(), 8);
  const auto again = PerfectHashBuilder().Build(Views(keys));
  EXPECT_EQ(again->bytes(), function->bytes());

  std::vector<std::string_view> repeated = Views(keys);
  repeated.push_back(keys[7]);
  const auto refused = PerfectHashBuilder().Build(repeated);
  ASSERT_FALSE(refused);
  ExpectError(refused.error(), StatusCode::kInvalidArgument,
              {"is given twice (7 and " + std::to_string(keys.size()) + ")"});
}

// Options.

TEST(PerfectHashBuilder, TheHashSeedIsThatOfTheFunction) {
  for (const uint64_t count : {0, 20, 20'000}) {
    const std::vector<std::string> keys = NumberedKeys(count);
    const PerfectHashBuilder builder({.hash_seed = 7});
    const auto function = builder.Build(Views(keys)).value();
    EXPECT_EQ(function.hash_seed(), 7u);
    EXPECT_EQ(function.HashKey("key"), base::SeededHash(7)("key"));
    EXPECT_TRUE(IsBijective(function, Views(keys)));
    const auto again = builder.Build(VectorSource(Views(keys))).value();
    EXPECT_EQ(again.bytes(), function.bytes());
    const auto read = PerfectHash::Open(function.bytes());
    ASSERT_TRUE(read) << read.error().ToString();
    EXPECT_TRUE(IsBijective(*read, Views(keys)));
    EXPECT_EQ(PerfectHashBuilder().Build(Views(keys)).value().hash_seed(), 0u);
  }
}

TEST(PerfectHashBuilder, OptionsOutOfRangeAreNamed) {
  const std::vector<uint64_t> hashes = RandomHashes(100, 3);
  const auto threads = PerfectHashBuilder({.threads = 257}).BuildFromHashes(hashes);
  ASSERT_FALSE(threads);
  ExpectError(threads.error(), StatusCode::kInvalidArgument, {"threads is 257", "256"});
  EXPECT_TRUE(PerfectHashBuilder({.threads = 256}).BuildFromHashes(hashes));
  for (const int kind : {0, 3, 255}) {
    const auto seeds =
        PerfectHashBuilder({.seeds = static_cast<PerfectHashSeeds>(kind)}).BuildFromHashes(hashes);
    ASSERT_FALSE(seeds);
    ExpectError(seeds.error(), StatusCode::kInvalidArgument, {"seeds"});
  }
}

TEST(PerfectHashBuilder, TooManyKeysAreRefusedBeforeTheyAreWalked) {
  class Endless : public KeySource {
   public:
    uint64_t size() const override { return PerfectHashBuilder::kKeysMax + 1; }
    Status Walk(const std::function<void(std::span<const std::string_view>)>&) const override {
      ADD_FAILURE() << "walked";
      return Status();
    }
  };
  const auto function = PerfectHashBuilder().Build(Endless());
  ASSERT_FALSE(function);
  ExpectError(function.error(), StatusCode::kInvalidArgument, {"1000000001 keys", "10^9"});
}

TEST(PerfectHashBuilder, TheLeastMemoryBudgetIsNamedAndSuffices) {
  const std::vector<uint64_t> hashes = RandomHashes(kSomeChunks, 4);
  for (const uint32_t threads : {1, 2}) {
    const auto build = [&](const PerfectHashOptions& options) {
      return PerfectHashBuilder(options).BuildFromHashes(hashes);
    };
    const uint64_t least = LeastBudget({.threads = threads}, build);
    const auto refused = build({.threads = threads, .memory_budget = least - 1});
    ASSERT_FALSE(refused);
    ExpectError(refused.error(), StatusCode::kInvalidArgument,
                {"memory_budget is " + std::to_string(least - 1),
                 std::to_string(kSomeChunks) + " keys on " + std::to_string(threads) + " threads"});
    const auto function = build({.threads = threads, .memory_budget = least});
    ASSERT_TRUE(function) << function.error().ToString();
    EXPECT_TRUE(IsBijective(*function, hashes));
  }
}

struct Reports {
  std::vector<PerfectHashProgress> all;
  std::function<bool(const PerfectHashProgress&)> Collect() {
    return [this](const PerfectHashProgress& progress) {
      all.push_back(progress);
      return true;
    };
  }
  /// Of one stage: `done` grows and stays within `total`, which is always `total`.
  void ExpectMonotone(Stage stage, uint64_t total) const {
    uint64_t done = 0;
    for (const PerfectHashProgress& progress : all) {
      if (progress.stage != stage) continue;
      EXPECT_EQ(progress.total, total);
      EXPECT_GE(progress.done, done);
      EXPECT_LE(progress.done, total);
      done = progress.done;
    }
  }
  uint64_t Last(Stage stage) const {
    uint64_t done = 0;
    for (const PerfectHashProgress& progress : all) {
      if (progress.stage == stage) done = progress.done;
    }
    return done;
  }
};

TEST(PerfectHashBuilder, ProgressGrowsToItsTotal) {
  const std::vector<std::string> keys = NumberedKeys(kSomeChunks);
  const std::vector<std::string_view> views = Views(keys);
  for (const uint32_t threads : {1, 2, 3}) {
    for (const bool sparing : {false, true}) {
      for (const bool from_source : {false, true}) {
        SCOPED_TRACE(testing::Message() << threads << " threads, sparing " << sparing
                                        << ", from a source " << from_source);
        Reports reports;
        PerfectHashOptions options = {.threads = threads};
        const VectorSource source(views);
        if (sparing) {
          options.memory_budget = LeastBudget(options, [&](const PerfectHashOptions& some) {
            return PerfectHashBuilder(some).Build(source);
          });
        }
        options.on_progress = reports.Collect();
        const PerfectHashBuilder builder(options);
        ASSERT_TRUE(from_source ? builder.Build(source) : builder.Build(views));
        const uint64_t walks =
            sparing ? LevelShape(kSomeChunks, PerfectHashSeeds::kShift).chunks() : 1;
        if (from_source) {
          ASSERT_EQ(source.walks(), walks);
        }
        reports.ExpectMonotone(Stage::kHashing, kSomeChunks * walks);
        reports.ExpectMonotone(Stage::kPlacing, kSomeChunks);
        // On several threads others may make the last step.
        if (threads == 1) {
          EXPECT_EQ(reports.Last(Stage::kPlacing), kSomeChunks);
          EXPECT_GT(reports.Last(Stage::kHashing), kSomeChunks * walks * 3 / 4);
        }
      }
    }
  }
}

TEST(PerfectHashBuilder, ABuildStopsWhenProgressSaysSo) {
  const std::vector<std::string> keys = NumberedKeys(kSomeChunks);
  const std::vector<std::string_view> views = Views(keys);
  for (const Stage stage : {Stage::kHashing, Stage::kPlacing}) {
    for (const uint64_t from : {uint64_t{0}, kSomeChunks / 3}) {
      uint64_t after = 0;
      bool stopped = false;
      const PerfectHashBuilder builder(
          {.threads = 1, .on_progress = [&](const PerfectHashProgress& progress) {
             after += stopped ? 1 : 0;
             stopped = stopped || (progress.stage == stage && progress.done >= from);
             return !stopped;
           }});
      for (const bool from_source : {false, true}) {
        stopped = false;
        const auto function =
            from_source ? builder.Build(VectorSource(views)) : builder.Build(views);
        ASSERT_FALSE(function);
        ExpectError(function.error(), StatusCode::kCancelled, {"on_progress"});
        EXPECT_EQ(after, 0u);
      }
    }
  }
  const std::vector<uint64_t> hashes = RandomHashes(100'000, 5);
  const PerfectHashBuilder builder(
      {.threads = 1, .on_progress = [](const auto&) { return false; }});
  const auto function = builder.BuildFromHashes(hashes);
  ASSERT_FALSE(function);
  ExpectError(function.error(), StatusCode::kCancelled, {});
}

TEST(PerfectHashBuilder, AnExceptionOfProgressReachesTheCaller) {
  const std::vector<std::string> keys = NumberedKeys(kSomeChunks);
  const std::vector<std::string_view> views = Views(keys);
  for (const uint32_t threads : {1, 3}) {
    for (const Stage stage : {Stage::kHashing, Stage::kPlacing}) {
      bool thrown = false;
      const PerfectHashBuilder builder(
          {.threads = threads, .on_progress = [&](const PerfectHashProgress& progress) {
             if (progress.stage == stage) {
               thrown = true;
               throw std::out_of_range("enough");
             }
             return true;
           }});
      const auto expect_thrown = [&](const auto& build) {
        // Whether this thread gets to report at all is up to the others when there are any.
        thrown = false;
        bool caught = false;
        try {
          EXPECT_TRUE(build());
        } catch (const std::out_of_range& error) {
          caught = true;
          EXPECT_STREQ(error.what(), "enough");
        }
        EXPECT_EQ(caught, thrown);
        EXPECT_TRUE(caught || threads > 1);
      };
      expect_thrown([&] { return builder.Build(views); });
      expect_thrown([&] { return builder.Build(VectorSource(views)); });
    }
  }
}

// Sources that do not keep to their word.

TEST(PerfectHashBuilder, ASourceOfMoreOrFewerKeysThanItsSizeIsRefused) {
  for (const uint64_t count : {0, 1, 31, 33, 5'000, 140'000}) {
    const std::vector<std::string> keys = NumberedKeys(count + 1);
    const std::vector<std::string_view> views = Views(keys);
    for (const uint64_t claimed : {count, count + 2, (count + 1) * 2, (count + 1) / 2}) {
      if (claimed == count + 1) continue;
      const OddSource source(claimed, [&](uint64_t, const auto& visit) {
        visit(views);
        return Status();
      });
      const auto function = PerfectHashBuilder().Build(source);
      ASSERT_FALSE(function) << count << " of " << claimed;
      ExpectError(
          function.error(), StatusCode::kInvalidArgument,
          {"gave " + std::to_string(count + 1) + " where size() is " + std::to_string(claimed)});
    }
  }
}

TEST(PerfectHashBuilder, TheErrorOfAWalkIsTheBuilds) {
  const std::vector<std::string> keys = NumberedKeys(kSomeChunks);
  const std::vector<std::string_view> views = Views(keys);
  for (const uint64_t failing : {0, 1}) {
    const OddSource source(kSomeChunks, [&](uint64_t walk, const auto& visit) {
      visit(std::span(views).first(1'000));
      if (walk == failing) return Status(StatusCode::kIoError, "the disk is gone");
      visit(std::span(views).subspan(1'000));
      return Status();
    });
    PerfectHashOptions options = {.threads = 1};
    options.memory_budget = LeastBudget(options, [&](const PerfectHashOptions& some) {
      return PerfectHashBuilder(some).Build(views);
    });
    const auto function = PerfectHashBuilder(options).Build(source);
    ASSERT_FALSE(function);
    EXPECT_EQ(function.error().code(), StatusCode::kIoError);
    EXPECT_EQ(function.error().message(), "the disk is gone");
  }
}

TEST(PerfectHashBuilder, AnExceptionOfAWalkReachesTheCaller) {
  const OddSource source(
      10, [](uint64_t, const auto&) -> Status { throw std::out_of_range("no more"); });
  EXPECT_THROW((void)PerfectHashBuilder().Build(source), std::out_of_range);
}

}  // namespace
}  // namespace basalt::phash
