#include "tools/basalt/document_line.h"

#include <gtest/gtest.h>

namespace basalt::tools {
namespace {

TEST(DocumentLine, CsvQuotesWhatHoldsCommasAndRawDoesNot) {
  const Document document = {{"workload", "get"}, {"a,b", 2.5}, {"layout", "fixed in 1,024"}};
  EXPECT_EQ(CsvNameLine(document), "workload,\"a,b\",layout\n");
  EXPECT_EQ(CsvLine(document), "get,2.5,\"fixed in 1,024\"\n");
  EXPECT_EQ(RawLine(document), "get\t2.5\tfixed in 1,024\n");
}

}  // namespace
}  // namespace basalt::tools
