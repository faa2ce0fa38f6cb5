#include <gtest/gtest.h>

#include <cerrno>

#include "shared_map/test_map.h"

namespace basalt::shared_map {
namespace {

TEST(SharedMapReader, MovesOnAtTheNextCallWhenAMoveHasFailed) {
  TestMachine machine;
  auto map = machine.Create().value();
  ASSERT_TRUE(map->Put("price", "1").ok());
  auto attached = machine.Attach().value();
  auto reader = attached->NewReader().value();
  ASSERT_TRUE(map->Compact().ok());
  ASSERT_TRUE(map->Put("price", "2").ok());

  machine.fs().SetFault({.kind = io::Fault::Kind::kError, .at_call = 1, .error = EMFILE});
  EXPECT_EQ(reader.Get("price").status().code(), StatusCode::kResourceExhausted);
  machine.fs().ClearFault();
  EXPECT_EQ(Lookup(&reader, "price"), "2");
  EXPECT_EQ(reader.version(), map->GetStats().value().version);
}

}  // namespace
}  // namespace basalt::shared_map
