#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "basalt/perfect_hash.h"
#include "base/coding.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/seeded_hash.h"
#include "phash/format.h"
#include "phash/function_builder.h"
#include "phash/test_functions.h"
#include "phash/test_reseal.h"

// Serialised forms: sound ones are read in place, others are refused or give numbers in range.
namespace basalt::phash {
namespace {

std::string FormOf(uint64_t keys, PerfectHashSeeds seeds = PerfectHashSeeds::kShift) {
  const std::vector<uint64_t> hashes = RandomHashes(keys, keys);
  const PerfectHashBuilder builder({.seeds = seeds, .threads = 1});
  const PerfectHash function = builder.BuildFromHashes(hashes).value();
  return std::string(function.bytes());
}

/// Of no level, of some, and of both kinds of seeds.
std::vector<std::string> FormsOfSmallFunctions() {
  std::vector<std::string> forms;
  for (const uint64_t keys : {0, 1, 20, 33, 200, 1'100}) forms.push_back(FormOf(keys));
  forms.push_back(FormOf(100, PerfectHashSeeds::kDense));
  return forms;
}

void Reseal(std::string* form, bool golden = false) {
  ResealFunction(form->data(), form->size(), golden);
}

/// Whatever the bytes are: an error, or numbers in range. True when they are opened.
bool OpensToNumbersInRange(const std::string& form) {
  const GuardedBytes guarded(form);
  const auto function = PerfectHash::Open(guarded.bytes());
  if (!function) {
    EXPECT_TRUE(function.error().code() == StatusCode::kCorruption ||
                function.error().code() == StatusCode::kUnsupported)
        << function.error().ToString();
    return false;
  }
  base::Random random(1);
  const uint64_t bound = std::max<uint64_t>(function->size(), 1);
  std::vector<uint64_t> hashes = {0, std::numeric_limits<uint64_t>::max()};
  for (int i = 0; i < 200; ++i) hashes.push_back(random.Next());
  std::vector<uint64_t> many(hashes.size());
  function->IndexMany(hashes, many);
  for (size_t i = 0; i < hashes.size(); ++i) {
    EXPECT_LT(function->Index(hashes[i]), bound);
    EXPECT_LT(many[i], bound);
  }
  (void)function->levels();
  return true;
}

TEST(PerfectHashOpen, AFunctionIsReadInPlaceAtAnyAlignment) {
  for (const uint64_t keys : {0, 1, 20, 1'000, 9'000, 300'000}) {
    for (const PerfectHashSeeds seeds : kBothKinds) {
      const std::vector<uint64_t> hashes = RandomHashes(keys, keys);
      const std::string form = FormOf(keys, seeds);
      for (const size_t shift : {0, 1, 3, 7}) {
        const std::string shifted = std::string(shift, '?') + form;
        const std::string_view view = std::string_view(shifted).substr(shift);
        const auto function = PerfectHash::Open(view);
        ASSERT_TRUE(function) << function.error().ToString();
        EXPECT_EQ(function->bytes().data(), view.data());
        EXPECT_EQ(function->bytes().size(), view.size());
        EXPECT_EQ(function->seeds(), seeds);
        ASSERT_TRUE(IsBijective(*function, hashes));
      }
    }
  }
}

TEST(PerfectHashOpen, WhatIsReadIsWhatWasBuilt) {
  const std::vector<uint64_t> hashes = RandomHashes(50'000, 1);
  const auto built = PerfectHashBuilder().BuildFromHashes(hashes).value();
  const auto read = PerfectHash::Open(built.bytes()).value();
  EXPECT_EQ(read.bits_per_key(), built.bits_per_key());
  EXPECT_EQ(read.hash_seed(), built.hash_seed());
  EXPECT_EQ(read.levels().size(), built.levels().size());
  base::Random random(2);
  for (int i = 0; i < 50'000; ++i) {
    const uint64_t hash = random.OneIn(2) ? hashes[random.Below(hashes.size())] : random.Next();
    ASSERT_EQ(read.Index(hash), built.Index(hash));
  }
  EXPECT_EQ(read.HashKey("some key"), built.HashKey("some key"));
}

TEST(PerfectHashOpen, CopiesOfAViewNeedItsBytesOnly) {
  const std::vector<uint64_t> hashes = RandomHashes(20'000, 20'000);
  const std::string form = FormOf(20'000);
  auto function = std::make_unique<PerfectHash>(PerfectHash::Open(form).value());
  const PerfectHash copy = *function;
  function.reset();
  EXPECT_EQ(copy.bytes().data(), form.data());
  EXPECT_TRUE(IsBijective(copy, hashes));
}

TEST(PerfectHashOpen, EveryTruncationIsRefused) {
  for (const std::string& form : FormsOfSmallFunctions()) {
    for (size_t size = 0; size < form.size(); ++size) {
      std::string cut = form.substr(0, size);
      const GuardedBytes guarded(cut);
      const auto function = PerfectHash::Open(guarded.bytes());
      ASSERT_FALSE(function) << size << " of " << form.size() << " bytes";
      ASSERT_EQ(function.error().code(), StatusCode::kCorruption);
      // And so it is if its header had been written for that.
      if (size < sizeof(Header)) continue;
      base::Store(cut.data() + offsetof(Header, bytes), uint64_t{size});
      Reseal(&cut);
      ASSERT_FALSE(OpensToNumbersInRange(cut)) << size << " of " << form.size() << " bytes";
    }
  }
}

TEST(PerfectHashOpen, BytesBehindTheEndAreRefused) {
  for (std::string form : FormsOfSmallFunctions()) {
    form.append(8, '\0');
    EXPECT_FALSE(OpensToNumbersInRange(form));
    base::Store(form.data() + offsetof(Header, bytes), uint64_t{form.size()});
    Reseal(&form);
    EXPECT_FALSE(OpensToNumbersInRange(form));
  }
}

TEST(PerfectHashOpen, EveryFlippedBitIsRefused) {
  for (std::string form : FormsOfSmallFunctions()) {
    for (size_t bit = 0; bit < 8 * form.size(); ++bit) {
      form[bit / 8] = static_cast<char>(form[bit / 8] ^ (1 << (bit % 8)));
      ASSERT_FALSE(PerfectHash::Open(form)) << "bit " << bit << " of " << 8 * form.size();
      form[bit / 8] = static_cast<char>(form[bit / 8] ^ (1 << (bit % 8)));
    }
    ASSERT_TRUE(PerfectHash::Open(form));
  }
}

/// A field of a header, and values that somebody may put there.
struct Field {
  size_t at;
  size_t bytes;
};

uint64_t ReadField(const std::string& form, const Field& field) {
  uint64_t value = 0;
  std::memcpy(&value, form.data() + field.at, field.bytes);
  return value;
}

std::vector<uint64_t> HostileValues(const std::string& form, const Field& field,
                                    base::Random* random) {
  const uint64_t value = ReadField(form, field);
  std::vector<uint64_t> values = {0,         1,         2,         ~uint64_t{0}, value + 1,
                                  value - 1, value / 2, value * 2, value + 8,    value - 8};
  for (int i = 0; i < 5; ++i) values.push_back(random->Next() >> random->Below(64));
  for (uint64_t high = 1; high != 0; high <<= 1) values.push_back(value ^ high);
  return values;
}

void WriteField(std::string* form, const Field& field, uint64_t value) {
  std::memcpy(form->data() + field.at, &value, field.bytes);
}

std::vector<Field> FieldsOf(const std::string& form) {
  std::vector<Field> fields = {
      {offsetof(Header, version), 4},     {offsetof(Header, required_features), 4},
      {offsetof(Header, keys), 8},        {offsetof(Header, hash_seed), 8},
      {offsetof(Header, golden_hash), 8}, {offsetof(Header, bytes), 8},
      {offsetof(Header, seeds), 1},       {offsetof(Header, levels), 1},
      {offsetof(Header, zero), 2},        {offsetof(Header, table_keys), 4}};
  const auto header = Read<Header>(form.data());
  for (size_t i = 0; i < header.levels; ++i) {
    const size_t record = sizeof(Header) + i * sizeof(LevelRecord);
    fields.push_back({record + offsetof(LevelRecord, keys), 8});
    fields.push_back({record + offsetof(LevelRecord, buckets), 4});
    fields.push_back({record + offsetof(LevelRecord, slice_log2), 1});
    fields.push_back({record + offsetof(LevelRecord, seeds), 1});
    fields.push_back({record + offsetof(LevelRecord, zero), 2});
  }
  return fields;
}

TEST(PerfectHashOpen, AHostileFieldIsRefusedOrGivesNumbersInRange) {
  base::Random random(3);
  uint64_t opened = 0;
  for (const std::string& form : FormsOfSmallFunctions()) {
    for (const Field& field : FieldsOf(form)) {
      for (const uint64_t value : HostileValues(form, field, &random)) {
        std::string hostile = form;
        WriteField(&hostile, field, value);
        Reseal(&hostile, /*golden=*/random.OneIn(2) && field.at != offsetof(Header, golden_hash));
        opened += OpensToNumbersInRange(hostile) ? 1 : 0;
        ASSERT_FALSE(HasFailure()) << "field at " << field.at << " is " << value;
      }
    }
  }
  EXPECT_GT(opened, 0u);
}

TEST(PerfectHashOpen, TwoHostileFieldsAreRefusedOrGiveNumbersInRange) {
  const uint64_t seed = base::RandomSeed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  base::Random random(seed);
  for (const std::string& form : FormsOfSmallFunctions()) {
    const std::vector<Field> fields = FieldsOf(form);
    for (uint64_t i = 0; i < 5'000 / kSlowdown; ++i) {
      std::string hostile = form;
      for (int j = 0; j < 2; ++j) {
        const Field& field = fields[random.Below(fields.size())];
        const std::vector<uint64_t> values = HostileValues(form, field, &random);
        WriteField(&hostile, field, values[random.Below(values.size())]);
      }
      Reseal(&hostile, true);
      OpensToNumbersInRange(hostile);
      ASSERT_FALSE(HasFailure());
    }
  }
}

TEST(PerfectHashOpen, HostileSeedsHolesAndTablesGiveNumbersInRange) {
  const uint64_t seed = base::RandomSeed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  base::Random random(seed);
  std::vector<std::string> forms = FormsOfSmallFunctions();
  forms.push_back(FormOf(20'000));
  forms.push_back(FormOf(20'000, PerfectHashSeeds::kDense));
  for (const std::string& form : forms) {
    const auto header = Read<Header>(form.data());
    const size_t body = sizeof(Header) + header.levels * sizeof(LevelRecord);
    if (body == form.size()) continue;
    for (uint64_t i = 0; i < 1'000 / kSlowdown; ++i) {
      std::string hostile = form;
      const size_t begin = body + random.Below(form.size() - body);
      const size_t end = random.Between(begin + 1, form.size());
      const uint64_t kind = random.Below(3);
      for (size_t at = begin; at < end; ++at) {
        hostile[at] = static_cast<char>(kind == 0 ? 0 : kind == 1 ? 0xFF : random.Next());
      }
      Reseal(&hostile);
      // What the parts hold is not looked at: the checksum has done that.
      ASSERT_TRUE(OpensToNumbersInRange(hostile));
      ASSERT_FALSE(HasFailure());
    }
  }
}

TEST(PerfectHashOpen, RandomBytesBehindAMagicAreRefused) {
  base::Random random(4);
  for (uint64_t i = 0; i < 20'000; ++i) {
    std::string form(random.Below(300), '\0');
    for (char& byte : form) byte = static_cast<char>(random.Next());
    if (form.size() >= sizeof(Header)) {
      base::Store(form.data(), kFunctionMagic);
      base::Store(form.data() + 8, uint64_t{kFormatVersion});
      base::Store(form.data() + offsetof(Header, keys), random.Next() >> random.Between(34, 63));
      base::Store(form.data() + offsetof(Header, bytes), uint64_t{form.size()});
      base::Store(form.data() + offsetof(Header, seeds),
                  static_cast<uint16_t>(random.Below(0x303)));
      Reseal(&form, true);
    }
    OpensToNumbersInRange(form);
    ASSERT_FALSE(HasFailure());
  }
}

TEST(PerfectHashOpen, WhatThisProgramCannotReadIsUnsupportedAndSaysWhy) {
  struct Case {
    Field field;
    uint64_t value;
    const char* message;
  };
  const Case cases[] = {
      {{offsetof(Header, version), 4}, kSeededFormatVersion + 1, "version 3"},
      {{offsetof(Header, required_features), 4}, 4, "features 4"},
      {{offsetof(Header, golden_hash), 8}, 12'345, "another hash function"},
      {{offsetof(Header, hash_seed), 8}, 1, "another hash function"},
  };
  for (const Case& some : cases) {
    std::string form = FormOf(100);
    WriteField(&form, some.field, some.value);
    Reseal(&form);
    const auto function = PerfectHash::Open(form);
    ASSERT_FALSE(function) << some.message;
    EXPECT_EQ(function.error().code(), StatusCode::kUnsupported) << some.message;
    EXPECT_NE(function.error().message().find(some.message), std::string_view::npos)
        << function.error().ToString();
  }
}

// Its hash is that of XXH3 with a seed, as only a build that met equal hashes has left it.
TEST(PerfectHashOpen, AFunctionOfTheFirstVersionWithASeedIsRead) {
  const std::vector<std::string> keys = NumberedKeys(1000);
  const auto hash_of = [](std::string_view key, const base::SeededHash& hash) {
    return base::Hash(key, hash.seed());
  };
  std::string form = FunctionBuilder({.hash_seed = 1}, hash_of).Build(Views(keys)).value();
  WriteField(&form, {offsetof(Header, version), 4}, kFormatVersion);
  Reseal(&form, /*golden=*/true);
  const auto function = PerfectHash::Open(form);
  ASSERT_TRUE(function) << function.error().ToString();
  EXPECT_EQ(function->HashKey("key"), base::Hash("key", 1));
  EXPECT_TRUE(IsBijective(*function, Views(keys)));
}

TEST(PerfectHashOpen, CorruptionSaysWhatIsWrong) {
  const std::string form = FormOf(100);
  const auto message = [](const std::string& bytes) {
    const auto function = PerfectHash::Open(bytes);
    EXPECT_FALSE(function);
    return function ? "" : function.error().ToString();
  };
  std::string other = form;
  other[0] = '?';
  EXPECT_NE(message(other).find("BSALTPH1"), std::string::npos);
  other = form;
  other.back() = static_cast<char>(other.back() ^ 1);
  EXPECT_NE(message(other).find("checksum"), std::string::npos);
  EXPECT_NE(message("short").find("5 bytes"), std::string::npos);
  EXPECT_NE(message(form + "!").find(std::to_string(form.size() + 1) + " bytes"),
            std::string::npos);
}

}  // namespace
}  // namespace basalt::phash
