#include "tests/serializability/checker.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace basalt::serializability {
namespace {

/// Transaction `id`, which committed at `sequence`.
ObservedTransaction At(uint64_t id, uint64_t sequence) {
  ObservedTransaction made;
  made.id = id;
  made.sequence = sequence;
  return made;
}

constexpr KeyNumber kX = 1;
constexpr KeyNumber kY = 2;

/// Transaction 1, which puts x and y.
ObservedTransaction First() {
  ObservedTransaction first = At(1, 10);
  first.Put(kX);
  first.Put(kY);
  return first;
}

void ExpectCycle(const CheckReport& report) {
  EXPECT_EQ(report.cycles, 1u);
  ASSERT_FALSE(report.faults.empty());
  EXPECT_NE(report.faults.back().find("a cycle"), std::string::npos) << report.faults.back();
}

TEST(SerializabilityChecker, ASerialHistoryIsFine) {
  ObservedTransaction second = At(2, 11);
  second.Read(kX, "1.");
  second.Append(kX);
  ObservedTransaction third = At(3, 12);
  third.Read(kX, "1.2.");
  third.Delete(kX);
  ObservedTransaction last = At(4, 0);
  last.Read(kX, "");
  last.Read(kY, "1.");
  const CheckReport report = CheckHistory({last, third, First(), second});
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report.transactions, 4u);
  EXPECT_EQ(report.reads, 4u);
  EXPECT_GT(report.edges, 3u);
}

TEST(SerializabilityChecker, FindsALostUpdate) {
  ObservedTransaction second = At(2, 11);
  ObservedTransaction third = At(3, 12);
  for (ObservedTransaction* one : {&second, &third}) {
    one->Read(kX, "1.");
    one->Put(kX);
  }
  ExpectCycle(CheckHistory({First(), second, third}));
}

TEST(SerializabilityChecker, FindsWriteSkew) {
  ObservedTransaction second = At(2, 11);
  ObservedTransaction third = At(3, 12);
  for (ObservedTransaction* one : {&second, &third}) {
    one->Read(kX, "1.");
    one->Read(kY, "1.");
  }
  second.Put(kX);
  third.Put(kY);
  ExpectCycle(CheckHistory({First(), second, third}));
}

TEST(SerializabilityChecker, FindsAPhantom) {
  ObservedTransaction second = At(2, 11);
  ObservedTransaction third = At(3, 12);
  for (ObservedTransaction* one : {&second, &third}) {
    one->Scan(0, 10, {{.key = kX, .value = "1."}, {.key = kY, .value = "1."}});
  }
  second.Put(5);
  third.Put(7);
  ExpectCycle(CheckHistory({First(), second, third}));
}

TEST(SerializabilityChecker, FindsAPhantomByRangeDelete) {
  ObservedTransaction second = At(2, 11);
  second.Read(kX, "1.");
  second.DeleteRange(kY, 10);
  ObservedTransaction third = At(3, 12);
  third.Scan(0, 10, {{.key = kX, .value = "1."}, {.key = kY, .value = "1."}});
  third.Put(kX);
  EXPECT_EQ(CheckHistory({First(), second, third}).against_order, 1u);
  second.Put(kX);
  ExpectCycle(CheckHistory({First(), second, third}));
}

TEST(SerializabilityChecker, FindsTheReadOnlyAnomaly) {
  ObservedTransaction deposit = At(2, 11);
  deposit.Read(kY, "1.");
  deposit.Put(kY);
  ObservedTransaction report = At(3, 0);
  report.Read(kX, "1.");
  report.Read(kY, "2.");
  ObservedTransaction withdrawal = At(4, 12);
  withdrawal.Read(kX, "1.");
  withdrawal.Read(kY, "1.");
  withdrawal.Put(kX);
  EXPECT_EQ(CheckHistory({First(), deposit, withdrawal}).cycles, 0u);
  ExpectCycle(CheckHistory({First(), deposit, report, withdrawal}));
}

TEST(SerializabilityChecker, FindsAReaderOfHalfATransaction) {
  ObservedTransaction second = At(2, 11);
  second.Put(kX);
  second.Put(kY);
  ObservedTransaction reader = At(3, 0);
  reader.Read(kX, "2.");
  reader.Read(kY, "1.");
  const CheckReport report = CheckHistory({First(), second, reader});
  EXPECT_EQ(report.against_order, 1u);
  ExpectCycle(report);
}

TEST(SerializabilityChecker, FindsAReaderThatMissesWhatWasThereWhenItBegan) {
  ObservedTransaction reader = At(3, 0);
  reader.began_after = 10;
  reader.Read(kX, "");
  EXPECT_EQ(CheckHistory({First(), reader}).against_order, 1u);
}

TEST(SerializabilityChecker, FindsAReadOfWhatNobodyHasLeft) {
  ObservedTransaction aborted = At(2, 11);
  aborted.Read(kX, "7.");
  aborted.Put(kX);
  EXPECT_EQ(CheckHistory({First(), aborted}).unknown_reads, 1u);
  ObservedTransaction halfway = At(1, 10);
  halfway.Put(kX);
  halfway.Append(kX);
  ObservedTransaction reader = At(3, 11);
  reader.Read(kX, "1.");
  reader.Put(kY);
  EXPECT_EQ(CheckHistory({halfway, reader}).unknown_reads, 1u);
}

TEST(SerializabilityChecker, FindsAnEdgeAgainstTheOrderOfCommits) {
  ObservedTransaction second = At(2, 11);
  second.Put(kX);
  ObservedTransaction third = At(3, 12);
  third.Read(kX, "1.");
  third.Put(kY);
  const CheckReport report = CheckHistory({First(), second, third});
  EXPECT_EQ(report.cycles, 0u);
  EXPECT_EQ(report.against_order, 1u);
}

TEST(SerializabilityChecker, TakesAbsentKeysForTheDeleteThatFits) {
  ObservedTransaction removal = At(2, 11);
  removal.Delete(kX);
  ObservedTransaction again = At(3, 12);
  again.Put(kX);
  again.Put(kY);
  ObservedTransaction gone = At(4, 13);
  gone.Delete(kX);
  ObservedTransaction early = At(5, 0);  // between 2 and 3
  early.Read(kX, "");
  early.Read(kY, "1.");
  ObservedTransaction late = At(6, 0);  // behind 4
  late.Read(kX, "");
  late.Read(kY, "3.");
  ObservedTransaction writer = At(7, 14);
  writer.Read(kX, "");
  writer.Put(9);
  EXPECT_TRUE(CheckHistory({First(), removal, again, gone, early, late, writer}).ok());
  EXPECT_FALSE(CheckHistory({First(), removal, again, late, writer}).ok());
}

TEST(SerializabilityChecker, AConditionThatDidNotHoldIsFound) {
  ObservedTransaction second = At(2, 11);
  second.reads.push_back({.key = kX, .any_present = true});
  second.Put(kY);
  EXPECT_TRUE(CheckHistory({First(), second}).ok());
  second.reads.push_back({.key = 9, .any_present = true});
  EXPECT_EQ(CheckHistory({First(), second}).unknown_reads, 1u);
}

}  // namespace
}  // namespace basalt::serializability
