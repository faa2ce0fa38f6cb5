#include "basalt/value.h"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace basalt {
namespace {

/// Counts how often its reference was given back.
struct CountingPin : Value::Pin {
  explicit CountingPin(const std::string& bytes)
      : Pin{.data = bytes.data(),
            .release = [](Pin* pin) noexcept { ++static_cast<CountingPin*>(pin)->released; }} {}
  int released = 0;
};

TEST(Value, DefaultIsEmpty) {
  const Value value;
  EXPECT_TRUE(value.empty());
  EXPECT_EQ(value.view(), "");
  EXPECT_EQ(Value::Copy({}).ToString(), "");
}

TEST(Value, ShortBytesLieInTheObject) {
  const std::string bytes(Value::kInlineBytes, 'v');
  const Value value = Value::Copy(bytes);
  EXPECT_EQ(value.view(), bytes);
  const auto* object = reinterpret_cast<const char*>(&value);
  EXPECT_GE(value.view().data(), object);
  EXPECT_LT(value.view().data(), object + sizeof value);
}

TEST(Value, LongBytesLieOnTheHeapAndStayInPlaceWhenMoved) {
  const std::string bytes(Value::kInlineBytes + 1, 'v');
  Value value = Value::Copy(bytes);
  const std::string_view view = value.view();
  const Value moved = std::move(value);
  EXPECT_EQ(moved.view().data(), view.data());
  EXPECT_EQ(moved.view(), bytes);
}

TEST(Value, EverySizeAroundTheInlineLimitSurvivesMoves) {
  for (size_t size = 0; size < 2 * Value::kInlineBytes; ++size) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 + size);
    // Of memory that ends where they end: the copy reads nothing else.
    const std::vector<char> exact(bytes.begin(), bytes.end());
    Value first = Value::Copy({exact.data(), exact.size()});
    Value second = std::move(first);
    EXPECT_TRUE(
        first.empty());  // NOLINT(bugprone-use-after-move): what a move leaves is specified.
    Value third = Value::Copy("something else");
    third = std::move(second);
    ASSERT_EQ(third.view(), bytes);
    ASSERT_EQ(third.ToString(), bytes);
  }
}

TEST(Value, PinIsReleasedOnceByTheLastHolder) {
  const std::string block = "block bytes";
  CountingPin pin(block);
  {
    Value value = Value::Pinned(&pin, block.size());
    EXPECT_EQ(value.view().data(), block.data());
    Value moved = std::move(value);
    EXPECT_EQ(pin.released, 0);
    EXPECT_EQ(moved.view(), block);
  }
  EXPECT_EQ(pin.released, 1);
}

TEST(Value, AssignmentReleasesWhatWasHeld) {
  const std::string block = "block bytes";
  CountingPin first(block);
  CountingPin second(block);
  Value value = Value::Pinned(&first, block.size());
  value = Value::Pinned(&second, block.size());
  EXPECT_EQ(first.released, 1);
  EXPECT_EQ(second.released, 0);
  value = Value::Copy("short");
  EXPECT_EQ(second.released, 1);
  EXPECT_EQ(value, "short");
}

TEST(Value, SelfMoveKeepsTheBytes) {
  Value value = Value::Copy("kept");
  Value& same = value;
  value = std::move(same);
  EXPECT_EQ(value, "kept");
}

TEST(Value, EqualsWhatHasTheSameBytes) {
  const Value a = Value::Copy("abc");
  EXPECT_TRUE(a == Value::Copy("abc"));
  EXPECT_TRUE(a != Value::Copy("abd"));
  EXPECT_TRUE(a == "abc" && "abc" == a && a == std::string("abc"));
  EXPECT_TRUE(MaybeValue(Value::Copy("abc")) == MaybeValue(Value::Copy("abc")));
}

TEST(Value, TemporariesGiveNoViews) {
  static_assert(std::is_convertible_v<const Value&, std::string_view>);
  static_assert(!std::is_convertible_v<Value, std::string_view>);
  static_assert(!std::is_copy_constructible_v<Value>);
  static_assert(std::is_nothrow_move_constructible_v<Value>);
  EXPECT_EQ(Value::Copy("text").ToString(), "text");
}

}  // namespace
}  // namespace basalt
