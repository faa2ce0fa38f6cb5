#include "shared_map/build.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "shared_map/test_map.h"

namespace basalt::shared_map {
namespace {

TEST(SharedMapBuild, AMapThatWasFinishedWhileAnotherWaitedForTheLockIsKept) {
  for (const bool by_builder : {false, true}) {
    SCOPED_TRACE(by_builder);
    TestMachine machine;
    const Environment environment = machine.environment();
    auto first = CreateMapBuilder(TestMachine::kPath, {}, Duplicates::kRefuse, environment).value();
    ASSERT_TRUE(first->Add("key", "precious").ok());
    // The second one has found no map there, and is about to take the lock.
    machine.fs().SetObserver([&](uint64_t, std::string_view operation, std::string_view) {
      if (operation != "lock" || first == nullptr) return;
      const auto finishing = std::move(first);
      EXPECT_TRUE(finishing->Finish().value()->Close().ok());
    });
    const Status second =
        by_builder
            ? CreateMapBuilder(TestMachine::kPath, {}, Duplicates::kRefuse, environment).status()
            : machine.Create().status();
    machine.fs().SetObserver({});
    EXPECT_EQ(second.code(), StatusCode::kAlreadyExists) << second.ToString();
    ExpectHolds(*machine.Open().value(), {{"key", "precious"}});
  }
}

}  // namespace
}  // namespace basalt::shared_map
