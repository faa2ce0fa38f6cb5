#include "retrieve/posting_record.h"

#include <gtest/gtest.h>

#include <string>

#include "base/random.h"

namespace basalt::retrieve {
namespace {

TEST(PostingRecord, IsReadAsItWasWritten) {
  for (const PostingRecord& posting :
       {PostingRecord{}, PostingRecord{1, {0}}, PostingRecord{500, {0, 1, 2, 130, 499}},
        PostingRecord{UINT32_MAX, {0, UINT32_MAX - 1}}}) {
    EXPECT_EQ(DecodePosting(EncodePosting(posting)).value(), posting);
  }
}

TEST(PostingRecord, EveryCutOfADocumentIsRefused) {
  const DocumentRecord document{300, {"a", "b", std::string(200, 'c')}};
  const std::string bytes = EncodeDocument(document);
  EXPECT_EQ(DecodeDocument(bytes).value(), document);
  size_t refused = 0;
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto decoded = DecodeDocument(bytes.substr(0, size));
    // A cut between two terms is a record with fewer terms.
    if (decoded) {
      EXPECT_LT(decoded->terms.size(), document.terms.size());
    } else {
      EXPECT_EQ(decoded.error().code(), StatusCode::kCorruption);
      ++refused;
    }
  }
  EXPECT_EQ(refused, bytes.size() - 3);
}

TEST(PostingRecord, ImpossiblePostingsAreRefused) {
  const auto code = [](std::string_view bytes) {
    const auto decoded = DecodePosting(bytes);
    return decoded ? StatusCode::kOk : decoded.error().code();
  };
  using namespace std::string_view_literals;
  EXPECT_EQ(code("\x05"sv), StatusCode::kCorruption) << "no positions";
  EXPECT_EQ(code("\x01\x00\x00"sv), StatusCode::kCorruption) << "more positions than tokens";
  EXPECT_EQ(code("\x05\x80"sv), StatusCode::kCorruption) << "a cut varint";
  EXPECT_EQ(code("\xff\xff\xff\xff\x1f\x00"sv), StatusCode::kCorruption) << "2^33 tokens";
  EXPECT_EQ(code("\x05\xff\xff\xff\xff\x0f"sv), StatusCode::kCorruption) << "position 2^32 - 1";
  EXPECT_EQ(code("\x05\xfe\xff\xff\xff\x0f\x00"sv), StatusCode::kCorruption) << "one behind it";
  EXPECT_EQ(code("\x05\xfe\xff\xff\xff\x0f"sv), StatusCode::kOk);
}

TEST(PostingRecord, TermsOfADocumentAscend) {
  using namespace std::string_view_literals;
  EXPECT_TRUE(DecodeDocument("\x02\x01"
                             "a"
                             "\x01"
                             "b"sv)
                  .ok());
  EXPECT_FALSE(DecodeDocument("\x02\x01"
                              "b"
                              "\x01"
                              "a"sv)
                   .ok());
  EXPECT_FALSE(DecodeDocument("\x02\x01"
                              "a"
                              "\x01"
                              "a"sv)
                   .ok());
  EXPECT_FALSE(DecodeDocument("\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
                              "a"sv)
                   .ok());
}

TEST(PostingRecord, BothPartsOfATermCounterAddUp) {
  base::Random random(1);
  uint64_t sum = 0;
  TermCounter expected;
  for (int i = 0; i < 1000; ++i) {
    const int64_t documents = expected.documents > 0 && random.OneIn(2) ? -1 : 1;
    const int64_t changes = expected.changes > 40 ? -40 : 1;
    const std::string operand = TermCounterOperand(documents, changes);
    ASSERT_EQ(operand.size(), sizeof sum);
    uint64_t amount = 0;
    operand.copy(reinterpret_cast<char*>(&amount), sizeof amount);
    sum += amount;
    expected.documents += static_cast<uint64_t>(documents);
    expected.changes += static_cast<uint64_t>(changes);
    const std::string value(reinterpret_cast<const char*>(&sum), sizeof sum);
    ASSERT_EQ(DecodeTermCounter(value).value(), expected);
  }
  EXPECT_EQ(DecodeTermCounter("1234567").error().code(), StatusCode::kCorruption);
}

TEST(PostingRecord, AKeyGivesItsDocument) {
  const std::string prefix = TermKey(kPostingTag, "word");
  EXPECT_EQ(DocumentOf(PostingKey(kPostingTag, "word", 77), prefix).value(), 77u);
  EXPECT_FALSE(DocumentOf(prefix, prefix).ok());
  EXPECT_FALSE(DocumentOf(PostingKey(kPostingTag, "words", 77), prefix).ok());
  EXPECT_LT(PostingKey(kPostingTag, "word", 255), PostingKey(kPostingTag, "word", 256));
}

}  // namespace
}  // namespace basalt::retrieve
