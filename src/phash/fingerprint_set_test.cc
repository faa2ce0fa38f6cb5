#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "basalt/perfect_hash.h"
#include "base/random.h"
#include "phash/format.h"
#include "phash/test_functions.h"
#include "phash/test_reseal.h"

// Fingerprint sets and maps.
namespace basalt::phash {
namespace {

std::vector<uint64_t> RandomPayloads(uint64_t count, uint32_t bits, uint64_t seed) {
  std::vector<uint64_t> payloads = RandomHashes(count, seed);
  for (uint64_t& payload : payloads) payload >>= 64 - bits;
  // The widest one is there too.
  if (count > 0) payloads.back() = (uint64_t{1} << bits) - 1;
  return payloads;
}

void ExpectInvalid(const Status& status, const std::string& part) {
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.ToString();
  EXPECT_NE(status.message().find(part), std::string_view::npos) << status.ToString();
}

/// Five standard deviations around the number of false positives that is expected.
void ExpectRate(uint64_t positives, uint64_t tries, uint32_t bits) {
  const double expected = static_cast<double>(tries) * std::exp2(-static_cast<double>(bits));
  EXPECT_LE(std::abs(static_cast<double>(positives) - expected), 5 * std::sqrt(expected) + 5)
      << positives << " of " << tries << " at " << bits << " bits";
}

TEST(FingerprintSet, HasAllItsKeysAndAsFewOthersAsPromised) {
  const uint64_t seed = base::RandomSeed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const std::vector<uint64_t> all = RandomHashes(700'000 / kSlowdown, seed);
  const std::span<const uint64_t> keys = std::span(all).first(100'000 / kSlowdown);
  for (uint32_t bits = FingerprintSet::kBitsMin; bits <= FingerprintSet::kBitsMax; ++bits) {
    const auto set = FingerprintSet::BuildFromHashes(keys, bits);
    ASSERT_TRUE(set) << set.error().ToString();
    EXPECT_EQ(set->size(), keys.size());
    EXPECT_EQ(set->fingerprint_bits(), bits);
    for (const uint64_t key : keys) ASSERT_TRUE(set->MayContain(key));
    uint64_t positives = 0;
    for (size_t i = keys.size(); i < all.size(); ++i) positives += set->MayContain(all[i]) ? 1 : 0;
    ExpectRate(positives, all.size() - keys.size(), bits);
  }
}

TEST(FingerprintSet, AbsentKeysThatLookLikePresentOnesAreMissedToo) {
  // Counting numbers as hashes: keys are even.
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < 50'000; ++i) keys.push_back(2 * i);
  const auto set = FingerprintSet::BuildFromHashes(keys, 8).value();
  uint64_t positives = 0;
  for (uint64_t i = 0; i < 50'000; ++i) positives += set.MayContain(2 * i + 1) ? 1 : 0;
  ExpectRate(positives, 50'000, 8);
}

TEST(FingerprintSet, TakesTwoBitsMoreThanAFingerprint) {
  const std::vector<uint64_t> keys = RandomHashes(200'000, 1);
  for (const uint32_t bits : {4, 8, 16}) {
    const auto set = FingerprintSet::BuildFromHashes(keys, bits).value();
    EXPECT_LE(set.bits_per_key(), bits + 2.3);
    EXPECT_GE(set.bits_per_key(), bits + 1.5);
    EXPECT_DOUBLE_EQ(set.bits_per_key(), 8.0 * static_cast<double>(set.bytes().size()) / 200'000);
  }
}

TEST(FingerprintSet, OfStringsIsTheSameFromSpanAndSource) {
  const std::vector<std::string> keys = NumberedKeys(20'000);
  const auto from_span = FingerprintSet::Build(Views(keys), 12).value();
  const auto from_source = FingerprintSet::Build(VectorSource(Views(keys)), 12).value();
  EXPECT_EQ(from_span.bytes(), from_source.bytes());
  uint64_t positives = 0;
  for (const std::string& key : keys) {
    ASSERT_TRUE(from_span.MayContain(key));
    positives += from_span.MayContain("no " + key) ? 1 : 0;
  }
  ExpectRate(positives, keys.size(), 12);
  EXPECT_EQ(FingerprintSet::Build(Views(keys)).value().fingerprint_bits(), 8u);
}

TEST(FingerprintSet, MayContainManyAnswersAsMayContain) {
  for (const uint64_t count : {0, 1, 40, 30'000}) {
    const std::vector<uint64_t> keys = RandomHashes(count, 2);
    const auto set = FingerprintSet::BuildFromHashes(keys, 4).value();
    std::vector<uint64_t> asked = RandomHashes(10'000, 3);
    asked.insert(asked.end(), keys.begin(), keys.begin() + static_cast<ptrdiff_t>(count / 2));
    Shuffle(&asked, 4);
    const auto answers = std::make_unique<bool[]>(asked.size() + 1);
    for (size_t some = 0; some <= asked.size(); some = some < 600 ? some + 1 : some * 4) {
      const std::span<const uint64_t> hashes = std::span(asked).first(some);
      answers[some] = true;
      set.MayContainMany(hashes, {answers.get(), some});
      for (size_t i = 0; i < some; ++i) ASSERT_EQ(answers[i], set.MayContain(hashes[i]));
      ASSERT_TRUE(answers[some]);
    }
  }
}

TEST(FingerprintSet, OfNoKeyIsEmptyAndOfOneKeyHasIt) {
  const auto none = FingerprintSet::BuildFromHashes({}, 8).value();
  EXPECT_EQ(none.size(), 0u);
  EXPECT_EQ(none.bits_per_key(), 0.0);
  const auto none_opened = FingerprintSet::Open(none.bytes()).value();
  const std::vector<uint64_t> keys = {77};
  const auto one = FingerprintSet::BuildFromHashes(keys, 8).value();
  EXPECT_TRUE(one.MayContain(77));
  uint64_t positives = 0;
  for (const uint64_t hash : RandomHashes(10'000, 5)) {
    EXPECT_FALSE(none.MayContain(hash));
    EXPECT_FALSE(none_opened.MayContain(hash));
    positives += one.MayContain(hash) ? 1 : 0;
  }
  ExpectRate(positives, 10'000, 8);
}

TEST(FingerprintSet, BadOptionsAndKeysAreRefused) {
  const std::vector<uint64_t> keys = RandomHashes(100, 6);
  for (const uint32_t bits : {0, 3, 17, 64}) {
    const auto set = FingerprintSet::BuildFromHashes(keys, bits);
    ASSERT_FALSE(set);
    ExpectInvalid(set.error(), "fingerprint_bits is " + std::to_string(bits));
  }
  const auto threads = FingerprintSet::BuildFromHashes(keys, 8, {.threads = 1'000});
  ASSERT_FALSE(threads);
  ExpectInvalid(threads.error(), "threads is 1000");
  const std::vector<std::string_view> twice = {"a", "b", "a"};
  const auto duplicate = FingerprintSet::Build(twice);
  ASSERT_FALSE(duplicate);
  ExpectInvalid(duplicate.error(), "'a' is given twice (0 and 2)");
}

TEST(FingerprintSet, CopiesShareMemoryAndOutliveTheirOrigin) {
  const std::vector<uint64_t> keys = RandomHashes(10'000, 7);
  auto origin = std::make_unique<FingerprintSet>(FingerprintSet::BuildFromHashes(keys, 16).value());
  const FingerprintSet copy = *origin;
  EXPECT_EQ(copy.bytes().data(), origin->bytes().data());
  origin.reset();
  for (const uint64_t key : keys) ASSERT_TRUE(copy.MayContain(key));
  EXPECT_TRUE(IsBijective(copy.numbers(), keys));
}

TEST(FingerprintMap, GivesEachKeyItsPayloadOfAnyWidth) {
  const std::vector<uint64_t> all = RandomHashes(8'000, 8);
  const std::span<const uint64_t> keys = std::span(all).first(3'000);
  for (uint32_t payload_bits = 1; payload_bits <= FingerprintMap::kPayloadBitsMax; ++payload_bits) {
    const std::vector<uint64_t> payloads = RandomPayloads(keys.size(), payload_bits, payload_bits);
    for (const uint32_t bits : {4, 7, 16}) {
      const auto map = FingerprintMap::BuildFromHashes(keys, payloads, payload_bits, bits);
      ASSERT_TRUE(map) << map.error().ToString();
      EXPECT_EQ(map->payload_bits(), payload_bits);
      EXPECT_EQ(map->fingerprint_bits(), bits);
      const GuardedBytes guarded(map->bytes());
      const auto opened = FingerprintMap::Open(guarded.bytes()).value();
      for (size_t i = 0; i < keys.size(); ++i) {
        ASSERT_EQ(map->Get(keys[i]), payloads[i]) << payload_bits << " bits";
        ASSERT_EQ(opened.Get(keys[i]), payloads[i]) << payload_bits << " bits";
      }
      uint64_t positives = 0;
      for (size_t i = keys.size(); i < all.size(); ++i) {
        const auto got = map->Get(all[i]);
        if (!got) continue;
        ++positives;
        ASSERT_EQ(*got >> payload_bits, 0u);
      }
      ExpectRate(positives, all.size() - keys.size(), bits);
    }
  }
}

TEST(FingerprintMap, OfStringsGivesPayloads) {
  const std::vector<std::string> keys = NumberedKeys(50'000);
  const std::vector<uint64_t> payloads = RandomPayloads(keys.size(), 20, 9);
  const auto map = FingerprintMap::Build(Views(keys), payloads, 20).value();
  for (size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(map.Get(keys[i]), payloads[i]);
  EXPECT_LE(map.bits_per_key(), 20 + 8 + 3);
}

TEST(FingerprintMap, OfNoKeyGivesNothing) {
  const auto map = FingerprintMap::BuildFromHashes({}, {}, 10).value();
  EXPECT_EQ(map.size(), 0u);
  EXPECT_EQ(map.Get(5), std::nullopt);
  EXPECT_EQ(FingerprintMap::Open(map.bytes()).value().Get("x"), std::nullopt);
}

TEST(FingerprintMap, BadWidthsSizesAndPayloadsAreRefused) {
  const std::vector<uint64_t> keys = RandomHashes(100, 10);
  std::vector<uint64_t> payloads = RandomPayloads(100, 5, 11);
  for (const uint32_t bits : {0, 49, 64}) {
    const auto map = FingerprintMap::BuildFromHashes(keys, payloads, bits);
    ASSERT_FALSE(map);
    ExpectInvalid(map.error(), "payload_bits is " + std::to_string(bits));
  }
  const auto fingerprint = FingerprintMap::BuildFromHashes(keys, payloads, 5, 3);
  ASSERT_FALSE(fingerprint);
  ExpectInvalid(fingerprint.error(), "fingerprint_bits is 3");
  const auto fewer = FingerprintMap::BuildFromHashes(keys, std::span(payloads).first(99), 5);
  ASSERT_FALSE(fewer);
  ExpectInvalid(fewer.error(), "100 keys and 99 payloads");
  payloads[42] = 32;
  const auto wide = FingerprintMap::BuildFromHashes(keys, payloads, 5);
  ASSERT_FALSE(wide);
  ExpectInvalid(wide.error(), "payload 42 is 32");
}

TEST(FingerprintMap, IsNoSetAndASetIsNoMap) {
  const std::vector<uint64_t> keys = RandomHashes(100, 12);
  const auto set = FingerprintSet::BuildFromHashes(keys).value();
  const auto map = FingerprintMap::BuildFromHashes(keys, RandomPayloads(100, 5, 13), 5).value();
  const auto set_as_map = FingerprintMap::Open(set.bytes());
  ASSERT_FALSE(set_as_map);
  ExpectInvalid(set_as_map.error(), "this is a set");
  const auto map_as_set = FingerprintSet::Open(map.bytes());
  ASSERT_FALSE(map_as_set);
  ExpectInvalid(map_as_set.error(), "this is a map");
  EXPECT_FALSE(PerfectHash::Open(set.bytes()));
  EXPECT_FALSE(FingerprintSet::Open(set.numbers().bytes()));
}

// Serialised forms.

/// A set, or a map, as its form: a test of forms runs for both.
struct Form {
  std::string bytes;
  bool is_map;
};

template <class T>
std::string SerialisedForm(const Result<T>& built) {
  return std::string(built.value().bytes());
}

std::vector<Form> SmallForms() {
  std::vector<Form> forms;
  for (const uint64_t count : {0, 1, 40, 300}) {
    const std::vector<uint64_t> keys = RandomHashes(count, count);
    forms.push_back({SerialisedForm(FingerprintSet::BuildFromHashes(keys, 9)), false});
    forms.push_back({SerialisedForm(FingerprintMap::BuildFromHashes(
                         keys, RandomPayloads(count, 11, count), 11, 5)),
                     true});
  }
  return forms;
}

Status OpenAndAsk(const Form& form) {
  const GuardedBytes guarded(form.bytes);
  base::Random random(1);
  if (form.is_map) {
    const auto map = FingerprintMap::Open(guarded.bytes());
    if (!map) return map.error();
    for (int i = 0; i < 200; ++i) {
      const auto payload = map->Get(random.Next());
      EXPECT_TRUE(!payload || *payload >> map->payload_bits() == 0);
    }
    return Status();
  }
  const auto set = FingerprintSet::Open(guarded.bytes());
  if (!set) return set.error();
  const std::vector<uint64_t> hashes = RandomHashes(300, 2);
  const auto answers = std::make_unique<bool[]>(hashes.size());
  set->MayContainMany(hashes, {answers.get(), hashes.size()});
  for (size_t i = 0; i < hashes.size(); ++i) EXPECT_EQ(answers[i], set->MayContain(hashes[i]));
  return Status();
}

/// Whatever the bytes are: an error of the right kind, or answers.
void ExpectRefusedOrAnswered(const Form& form) {
  const Status status = OpenAndAsk(form);
  EXPECT_TRUE(status.ok() || status.code() == StatusCode::kCorruption ||
              status.code() == StatusCode::kUnsupported ||
              status.code() == StatusCode::kInvalidArgument)
      << status.ToString();
}

TEST(FingerprintOpen, SoundFormsAreReadInPlaceAtAnyAlignment) {
  const std::vector<uint64_t> keys = RandomHashes(9'000, 14);
  const std::vector<uint64_t> payloads = RandomPayloads(9'000, 13, 15);
  const std::string set = SerialisedForm(FingerprintSet::BuildFromHashes(keys, 11));
  const std::string map = SerialisedForm(FingerprintMap::BuildFromHashes(keys, payloads, 13, 4));
  for (const size_t shift : {0, 1, 5, 7}) {
    const GuardedBytes set_bytes(std::string(shift, '?') + set);
    const GuardedBytes map_bytes(std::string(shift, '?') + map);
    const auto opened_set = FingerprintSet::Open(set_bytes.bytes().substr(shift));
    const auto opened_map = FingerprintMap::Open(map_bytes.bytes().substr(shift));
    ASSERT_TRUE(opened_set);
    ASSERT_TRUE(opened_map);
    EXPECT_EQ(opened_set->bytes().data(), set_bytes.bytes().data() + shift);
    EXPECT_EQ(opened_map->bytes().data(), map_bytes.bytes().data() + shift);
    for (size_t i = 0; i < keys.size(); ++i) {
      ASSERT_TRUE(opened_set->MayContain(keys[i]));
      ASSERT_EQ(opened_map->Get(keys[i]), payloads[i]);
    }
  }
}

TEST(FingerprintOpen, EveryTruncationIsRefused) {
  for (const Form& form : SmallForms()) {
    for (size_t size = 0; size < form.bytes.size(); ++size) {
      Form cut = {form.bytes.substr(0, size), form.is_map};
      ASSERT_EQ(OpenAndAsk(cut).code(), StatusCode::kCorruption) << size;
      if (size < sizeof(CellsHeader)) continue;
      base::Store(cut.bytes.data() + offsetof(CellsHeader, bytes), uint64_t{size});
      ResealCells(&cut.bytes);
      ASSERT_EQ(OpenAndAsk(cut).code(), StatusCode::kCorruption) << size;
    }
  }
}

TEST(FingerprintOpen, EveryFlippedBitIsRefused) {
  for (Form form : SmallForms()) {
    std::string& bytes = form.bytes;
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
      ASSERT_FALSE(form.is_map ? FingerprintMap::Open(bytes).has_value()
                               : FingerprintSet::Open(bytes).has_value())
          << "bit " << bit << " of " << 8 * bytes.size();
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    }
    ASSERT_TRUE(OpenAndAsk(form).ok());
  }
}

TEST(FingerprintOpen, HostileHeadersAndCellsAreRefusedOrAnswered) {
  const uint64_t seed = base::RandomSeed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  base::Random random(seed);
  struct Field {
    size_t at;
    size_t bytes;
  };
  const Field fields[] = {{offsetof(CellsHeader, version), 4},
                          {offsetof(CellsHeader, required_features), 4},
                          {offsetof(CellsHeader, keys), 8},
                          {offsetof(CellsHeader, function_bytes), 8},
                          {offsetof(CellsHeader, bytes), 8},
                          {offsetof(CellsHeader, fingerprint_bits), 1},
                          {offsetof(CellsHeader, payload_bits), 1},
                          {offsetof(CellsHeader, zeros), 8},
                          {sizeof(CellsHeader) + offsetof(Header, keys), 8},
                          {sizeof(CellsHeader) + offsetof(Header, bytes), 8},
                          {sizeof(CellsHeader) + offsetof(Header, table_keys), 4}};
  for (const Form& form : SmallForms()) {
    for (const Field& field : fields) {
      uint64_t was = 0;
      std::memcpy(&was, form.bytes.data() + field.at, field.bytes);
      for (const uint64_t value :
           {uint64_t{0}, uint64_t{1}, ~uint64_t{0}, was + 1, was - 1, was + 8, was - 8, was * 2,
            uint64_t{4}, uint64_t{16}, uint64_t{48}, random.Next(), random.Next() >> 32}) {
        for (const bool golden : {false, true}) {
          Form hostile = form;
          std::memcpy(hostile.bytes.data() + field.at, &value, field.bytes);
          ResealCells(&hostile.bytes, golden);
          ExpectRefusedOrAnswered(hostile);
          ASSERT_FALSE(HasFailure()) << "field at " << field.at << " is " << value;
          hostile.is_map = !hostile.is_map;
          ExpectRefusedOrAnswered(hostile);
          ASSERT_FALSE(HasFailure()) << "field at " << field.at << " is " << value;
        }
      }
    }
    const auto header = Read<CellsHeader>(form.bytes.data());
    for (int i = 0; i < 200; ++i) {
      Form hostile = form;
      const size_t cells = sizeof header + header.function_bytes;
      for (size_t at = cells + random.Below(form.bytes.size() - cells); at < form.bytes.size();
           ++at) {
        hostile.bytes[at] = static_cast<char>(random.Next());
      }
      ResealCells(&hostile.bytes);
      ASSERT_TRUE(OpenAndAsk(hostile).ok());
      ASSERT_FALSE(HasFailure());
    }
  }
}

TEST(FingerprintOpen, WhatThisProgramCannotReadIsUnsupportedAndSaysWhy) {
  const std::vector<uint64_t> keys = RandomHashes(50, 16);
  const std::string form = SerialisedForm(FingerprintSet::BuildFromHashes(keys));
  struct Case {
    size_t at;
    uint32_t value;
    const char* message;
  };
  const Case cases[] = {
      {offsetof(CellsHeader, version), kFormatVersion + 1, "version 2"},
      {offsetof(CellsHeader, required_features), 8, "features 8"},
      {sizeof(CellsHeader) + offsetof(Header, version), kSeededFormatVersion + 1, "version 3"},
      {sizeof(CellsHeader) + offsetof(Header, golden_hash), 1, "another hash function"},
  };
  for (const Case& some : cases) {
    std::string changed = form;
    base::Store(changed.data() + some.at, some.value);
    ResealCells(&changed);
    const auto set = FingerprintSet::Open(changed);
    ASSERT_FALSE(set);
    EXPECT_EQ(set.error().code(), StatusCode::kUnsupported) << set.error().ToString();
    EXPECT_NE(set.error().message().find(some.message), std::string_view::npos)
        << set.error().ToString();
  }
}

}  // namespace
}  // namespace basalt::phash
