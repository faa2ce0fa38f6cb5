#include "basalt/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "basalt/changes.h"

namespace basalt {
namespace {

TEST(Status, DefaultIsOkAndEightBytes) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::kOk);
  EXPECT_EQ(status.message(), "");
  EXPECT_EQ(status.ToString(), "Ok");
  EXPECT_EQ(sizeof(Status), 8u);
}

TEST(Status, ErrorKeepsCodeAndMessage) {
  const Status status(StatusCode::kCorruption, "read block: a.table, offset 4096: bad checksum");
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::kCorruption);
  EXPECT_EQ(status.message(), "read block: a.table, offset 4096: bad checksum");
  EXPECT_EQ(status.ToString(), "Corruption: read block: a.table, offset 4096: bad checksum");
}

TEST(Status, ErrorWithoutTextIsItsName) {
  const Status status(StatusCode::kBusy, "");
  EXPECT_EQ(status.code(), StatusCode::kBusy);
  EXPECT_EQ(status.ToString(), "Busy");
  const std::vector<Status> copies(3, status);
  EXPECT_EQ(copies.back().code(), StatusCode::kBusy);
}

TEST(Status, MessageMayHoldAnyBytes) {
  const std::string text("a\0b", 3);
  const Status status(StatusCode::kIoError, text);
  EXPECT_EQ(status.message(), text);
}

TEST(Status, EveryCodeHasItsFrozenNumberAndName) {
  const std::vector<std::string_view> names = {"Ok",
                                               "InvalidArgument",
                                               "NotFound",
                                               "AlreadyExists",
                                               "FailedPrecondition",
                                               "ResourceExhausted",
                                               "Busy",
                                               "Aborted",
                                               "Cancelled",
                                               "Unsupported",
                                               "IoError",
                                               "Corruption"};
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(StatusCodeName(static_cast<StatusCode>(i)), names[i]);
  }
  EXPECT_EQ(StatusCodeName(static_cast<StatusCode>(200)), "Unknown");
}

TEST(Status, CopiesShareOneMessage) {
  const Status first(StatusCode::kIoError, "sync of log 7 failed");
  std::vector<Status> copies(3, first);
  copies.emplace_back();
  copies.back() = first;
  for (const Status& copy : copies) EXPECT_EQ(copy.message().data(), first.message().data());
}

TEST(Status, MessageLivesAsLongAsAnyCopy) {
  auto first = std::make_unique<Status>(StatusCode::kIoError, std::string(1000, 'x'));
  const Status copy = *first;
  const std::string_view text = copy.message();
  first.reset();
  EXPECT_EQ(text, std::string(1000, 'x'));
}

TEST(Status, MoveLeavesOkBehind) {
  Status from(StatusCode::kAborted, "conflict");
  const Status to = std::move(from);
  EXPECT_TRUE(from.ok());  // NOLINT(bugprone-use-after-move): what a move leaves is specified.
  EXPECT_EQ(to.code(), StatusCode::kAborted);
}

TEST(Status, SelfAssignmentKeepsTheError) {
  Status status(StatusCode::kAborted, "conflict");
  const Status& same = status;
  status = same;
  EXPECT_EQ(status.message(), "conflict");
}

TEST(Status, CopiesMayBeMadeAndDroppedOnManyThreads) {
  const Status shared(StatusCode::kIoError, "one failure, many waiters");
  std::vector<std::thread> threads;
  std::vector<int> good(4);
  threads.reserve(good.size());
  for (int& count : good) {
    threads.emplace_back([&shared, &count] {
      for (int i = 0; i < 10'000; ++i) {
        const std::vector<Status> copies(2, shared);
        if (copies.back().message() == "one failure, many waiters") ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int count : good) EXPECT_EQ(count, 10'000);
}

TEST(StatusDeathTest, OkCodeIsNoError) {
  EXPECT_DEATH(static_cast<void>(Status(StatusCode::kOk, "fine")),
               "Status made with a code that is not an error");
}

struct Base {
  virtual ~Base() = default;
  virtual std::string Name() const { return "base"; }
};
struct Derived : Base {
  std::string Name() const override { return "derived"; }
};

TEST(Result, HoldsAValue) {
  Result<std::string> result = std::string("bytes");
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(*result, "bytes");
  EXPECT_EQ(result->size(), 5u);
  EXPECT_EQ(result.value(), "bytes");
  EXPECT_TRUE(result.status().ok());
}

TEST(Result, HoldsAnError) {
  const Result<std::string> result = Status(StatusCode::kNotFound, "no such database");
  EXPECT_FALSE(result);
  EXPECT_EQ(result.error().code(), StatusCode::kNotFound);
  EXPECT_EQ(result.error().message(), "no such database");
  EXPECT_EQ(result.value_or("fallback"), "fallback");
}

TEST(Result, DefaultHoldsAnEmptyValue) {
  const std::vector<Result<int>> results(3);
  for (const Result<int>& result : results) EXPECT_EQ(result.value(), 0);
}

TEST(Result, ConvertsToItsTypeOnReturn) {
  struct Base {
    virtual ~Base() = default;
  };
  struct Derived : Base {};
  const auto make = []() -> Result<std::unique_ptr<Base>> { return std::make_unique<Derived>(); };
  EXPECT_NE(make().value(), nullptr);
  const auto nothing = []() -> Result<std::optional<std::string>> { return std::nullopt; };
  EXPECT_FALSE(nothing().value().has_value());
  const auto text = []() -> Result<std::optional<std::string>> { return "text"; };
  EXPECT_EQ(text().value(), "text");
}

TEST(Result, MovesItsValueOut) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 7);
}

TEST(Result, ChainsPassErrorsOn) {
  const auto half = [](int n) -> Result<int> {
    if (n % 2 != 0) return Status(StatusCode::kInvalidArgument, "odd");
    return n / 2;
  };
  EXPECT_EQ(half(8).and_then(half).value(), 2);
  EXPECT_EQ(half(6).and_then(half).error().ToString(), "InvalidArgument: odd");
  EXPECT_EQ(half(6).transform([](int n) { return std::to_string(n); }).value(), "3");
  EXPECT_EQ(half(5).transform([](int n) { return n; }).error().ToString(), "InvalidArgument: odd");
  EXPECT_EQ(half(5).or_else([](const Status&) -> Result<int> { return 42; }).value(), 42);
  EXPECT_EQ(half(4).or_else([](const Status&) -> Result<int> { return 42; }).value(), 2);
}

TEST(Result, ConvertsFromTheResultOfSomethingThatConverts) {
  const auto derived = [](bool fails) -> Result<std::unique_ptr<Derived>> {
    if (fails) return Status(StatusCode::kBusy, "held by process 7");
    return std::make_unique<Derived>();
  };
  const Result<std::unique_ptr<Base>> made = derived(/*fails=*/false);
  ASSERT_TRUE(made);
  EXPECT_EQ((*made)->Name(), "derived");
  const Result<std::unique_ptr<Base>> failed = derived(/*fails=*/true);
  EXPECT_EQ(failed.error().message(), "held by process 7");
  static_assert(!std::is_convertible_v<Result<std::string>, Result<int>>);
}

TEST(Result, ChainsLookAtWhatIsNoTemporary) {
  const Result<std::string> name("Ada");
  EXPECT_EQ(name.transform(&std::string::size).value(), 3u);
  EXPECT_EQ(name.and_then([](const std::string& n) -> Result<char> { return n[0]; }).value(), 'A');
  EXPECT_EQ(name.or_else([](const Status&) -> Result<std::string> { return ""; }).value(), "Ada");
  Result<std::string> missing = Status(StatusCode::kNotFound, "nobody");
  EXPECT_EQ(missing.transform(&std::string::size).status().ToString(), "NotFound: nobody");
  EXPECT_EQ(
      missing
          .or_else([](const Status& s) -> Result<std::string> { return std::string(s.message()); })
          .value(),
      "nobody");
  EXPECT_EQ(std::move(missing).transform(&std::string::size).status().ToString(),
            "NotFound: nobody");
}

TEST(Result, OfAWriteConvertsToAStatusAndIsPrintedAsOne) {
  const Result<Commit> written = Commit{.sequence = 7};
  EXPECT_TRUE(Status(written).ok());
  EXPECT_EQ(written.ToString(), "Ok");
  const Result<Commit> refused = Status(StatusCode::kBusy, "wait for it");
  EXPECT_EQ(Status(refused).code(), StatusCode::kBusy);
  EXPECT_EQ(refused.ToString(), "Busy: wait for it");
}

TEST(ResultDeathTest, ValueOfAnErrorEndsTheProcessWithItsText) {
  const Result<int> result = Status(StatusCode::kBusy, "locked by process 12");
  EXPECT_DEATH(static_cast<void>(result.value()), "holds an error: Busy: locked by process 12");
}

TEST(ResultDeathTest, OkStatusIsNoError) {
  EXPECT_DEATH(static_cast<void>(Result<int>(Status())), "Result made from an ok Status");
}

}  // namespace
}  // namespace basalt
