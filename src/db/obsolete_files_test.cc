#include "db/obsolete_files.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>

#include "io/sim_clock.h"
#include "io/sim_file_system.h"

namespace basalt::db {
namespace {

class ObsoleteFilesTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(fs_.CreateDirectory("/db").ok()); }

  std::string Make(const std::string& name) {
    const std::string path = "/db/" + name;
    EXPECT_TRUE(fs_.Open(path, io::OpenMode::kCreate));
    return path;
  }
  bool Exists(const std::string& path) { return fs_.Exists(path).value(); }

  io::SimFileSystem fs_;
  io::SimClock clock_;
  ObsoleteFiles files_{&fs_, "/db", &clock_};
};

TEST_F(ObsoleteFilesTest, GoAtOnceWhereNobodyReads) {
  const std::string path = Make("1");
  EXPECT_TRUE(files_.Remove(path).ok());
  EXPECT_FALSE(Exists(path));
  EXPECT_FALSE(files_.has_waiting());
  EXPECT_EQ(files_.Remove(path).code(), StatusCode::kNotFound);
}

TEST_F(ObsoleteFilesTest, WaitUntilTheLastReaderHasOpenedItsFiles) {
  const std::string path = Make("1");
  auto first = fs_.MarkDirectory("/db").value();
  auto second = fs_.MarkDirectory("/db").value();
  EXPECT_TRUE(files_.Remove(path).ok());
  first.reset();
  files_.RemoveWaiting();
  EXPECT_TRUE(Exists(path));
  EXPECT_TRUE(files_.has_waiting());
  second.reset();
  files_.RemoveWaiting();
  EXPECT_FALSE(Exists(path));
  EXPECT_FALSE(files_.has_waiting());
}

TEST_F(ObsoleteFilesTest, AReaderThatNeverEndsKeepsNoFileForEver) {
  const auto mark = fs_.MarkDirectory("/db").value();
  const std::string first = Make("1");
  EXPECT_TRUE(files_.Remove(first).ok());
  clock_.Advance((ObsoleteFiles::kPatienceMs - 1) * 1000);
  const std::string second = Make("2");
  EXPECT_TRUE(files_.Remove(second).ok());
  files_.RemoveWaiting();
  EXPECT_TRUE(Exists(first));
  clock_.Advance(1000);
  files_.RemoveWaiting();
  EXPECT_FALSE(Exists(first));
  EXPECT_TRUE(Exists(second));
}

TEST_F(ObsoleteFilesTest, AskOnlyWhereMarksAreKnown) {
  const auto answer = [&](int error) {
    fs_.SetFault({.at_call = 1,
                  .error = error,
                  .sticky = true,
                  .matches = [](std::string_view operation, std::string_view) {
                    return operation == "mark";
                  }});
  };
  const std::string path = Make("1");
  answer(EMFILE);
  EXPECT_TRUE(files_.Remove(path).ok());
  EXPECT_TRUE(Exists(path)) << "there may be a reader";
  answer(ENOLCK);
  files_.RemoveWaiting();
  EXPECT_FALSE(Exists(path)) << "there is none that is known by a mark";
}

TEST_F(ObsoleteFilesTest, NoneGoesAfterTheEnd) {
  const std::string waiting = Make("1");
  const std::string later = Make("2");
  auto mark = fs_.MarkDirectory("/db").value();
  EXPECT_TRUE(files_.Remove(waiting).ok());
  mark.reset();
  files_.End();
  EXPECT_FALSE(Exists(waiting));
  EXPECT_TRUE(files_.Remove(later).ok());
  EXPECT_TRUE(Exists(later)) << "it may belong to the next opening";
}

}  // namespace
}  // namespace basalt::db
