#include "shared_map/core.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>

#include "shared_map/control_page.h"
#include "shared_map/file_names.h"
#include "shared_map/test_map.h"

namespace basalt::shared_map {
namespace {

/// Two maps on the machine's own disk, which one relative path or one link may lead to.
class SharedMapPath : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "basalt-path-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = std::filesystem::canonical(pattern);
    working_directory_ = std::filesystem::current_path();
    for (const char* name : {"one", "two"}) std::filesystem::create_directory(root_ / name);
  }
  void TearDown() override {
    std::filesystem::current_path(working_directory_);
    std::filesystem::remove_all(root_);
  }

  /// `leads_to_two` makes `path`, which leads to a map in "one", lead to another in "two".
  void ExpectBothStayWhole(const std::string& path, SharedMap* writer,
                           const std::function<void()>& leads_to_two) const {
    ASSERT_TRUE(writer->Put("whose", "of one").ok());
    auto attached = SharedMap::Attach(path).value();
    auto reader = attached->NewReader().value();
    leads_to_two();
    ASSERT_TRUE(
        SharedMap::Create((root_ / "two/map").string()).value()->Put("whose", "of two").ok());
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(writer->Put("key", std::to_string(i)).ok());
      ASSERT_TRUE(writer->Compact().ok());
      EXPECT_EQ(Lookup(&reader, "whose"), "of one");
      EXPECT_EQ(Lookup(&reader, "key"), std::to_string(i));
    }
    ASSERT_TRUE(writer->Close().ok());
    EXPECT_EQ(Lookup(&reader, "key"), "2");
    for (const char* name : {"one", "two"}) {
      const auto map = SharedMap::Attach((root_ / name / "map").string());
      ASSERT_TRUE(map) << map.error().ToString();
      auto read = (*map)->NewReader().value();
      EXPECT_EQ(Lookup(&read, "whose"), std::string("of ") + name);
    }
  }

  std::filesystem::path root_;
  std::filesystem::path working_directory_;
};

TEST_F(SharedMapPath, ARelativeOneIsThatOfTheWorkingDirectoryOfBefore) {
  std::filesystem::current_path(root_ / "one");
  auto writer = SharedMap::Create("map").value();
  ExpectBothStayWhole("map", writer.get(), [&] { std::filesystem::current_path(root_ / "two"); });
}

TEST_F(SharedMapPath, ThatOfABuildIsTakenWhenItBegins) {
  std::filesystem::current_path(root_ / "one");
  auto build = SharedMapBuilder::Create("map").value();
  std::filesystem::current_path(root_ / "two");
  auto writer = build->Finish().value();
  ExpectBothStayWhole((root_ / "one/map").string(), writer.get(), [] {});
}

TEST_F(SharedMapPath, ALinkIsFollowedOnce) {
  const std::filesystem::path link = root_ / "current";
  std::filesystem::create_directory_symlink("one", link);
  ASSERT_TRUE(SharedMap::Create((link / "map").string()).value()->Close().ok());
  auto writer = SharedMap::Open((link / "map").string()).value();
  ExpectBothStayWhole((link / "map").string(), writer.get(), [&] {
    std::filesystem::remove(link);
    std::filesystem::create_directory_symlink("two", link);
  });
}

TEST(SharedMapCore, AListOfAnotherMapIsRefused) {
  TestMachine machine;
  io::FileSystem* const fs = &machine.fs();
  auto map = machine.Create().value();
  Environment elsewhere = machine.environment();
  ++elsewhere.new_map_id;
  auto other = CreateMap("/other", {}, elsewhere).value();
  auto attached = machine.Attach().value();
  auto reader = attached->NewReader().value();
  ASSERT_TRUE(map->Compact().ok());
  ASSERT_TRUE(map->Close().ok());
  ASSERT_TRUE(other->Compact().ok());
  ASSERT_TRUE(other->Close().ok());
  const std::string name = NameOf(FileKind::kVersion, NewestVersionNumber(fs, "/other").value());
  const std::string list = io::ReadWholeFile(fs, "/other/" + name, 1 << 20).value();
  ASSERT_TRUE(io::ReplaceFile(fs, "/map/" + name, list).ok());
  for (const Status& status :
       {reader.Get("key").status(), machine.Attach().status(), machine.Open().status()}) {
    EXPECT_EQ(status.code(), StatusCode::kCorruption) << status.ToString();
    EXPECT_NE(status.message().find("another map"), std::string_view::npos) << status.ToString();
  }
  EXPECT_FALSE(CheckMap(TestMachine::kPath, nullptr, machine.environment()).value().ok());
}

constexpr std::string_view kControlPath = "/map/CONTROL";

/// CONTROL as a power cut may leave one that was not synced, or not at all.
void Damage(io::FileSystem* fs, int how) {
  const auto file = fs->Open(kControlPath, io::OpenMode::kReadWrite).value();
  switch (how) {
    case 0:
      ASSERT_TRUE(fs->RemoveFile(kControlPath).ok());
      break;
    case 1:
      ASSERT_TRUE(file->Truncate(0).ok());
      break;
    case 2:
      ASSERT_TRUE(file->WriteAt(0, std::string(ControlPage::kBytes, '\0')).ok());
      break;
    default:
      ASSERT_TRUE(file->WriteAt(0, "B4SALT").ok());
  }
}
constexpr int kDamages = 4;

TEST(SharedMapCore, AReaderDoesWithoutControlAndFollowsTheNextWriter) {
  for (int how = 0; how < kDamages; ++how) {
    SCOPED_TRACE(how);
    TestMachine machine;
    auto map = machine.Create({.durability = Durability::kPower}).value();
    Model model = {{"a", "1"}, {"b", "2"}};
    ASSERT_TRUE(PutAll(map.get(), model).ok());
    ASSERT_TRUE(map->Compact().ok());
    model["a"] = "changed";
    ASSERT_TRUE(PutAll(map.get(), model).ok());
    machine.Restart(1, io::CrashMode::kAll);
    map.reset();
    Damage(&machine.fs(), how);

    auto attached = machine.Attach();
    ASSERT_TRUE(attached) << attached.error().ToString();
    ExpectHolds(**attached, model);
    auto reader = (*attached)->NewReader().value();
    map = machine.Open().value();
    model["b"] = "of the next writer";
    ASSERT_TRUE(PutAll(map.get(), model).ok());
    ExpectReads(&reader, model);
    ExpectHolds(**attached, model);
    for (int i = 0; i < 2; ++i) {
      model["c"] = std::to_string(i);
      ASSERT_TRUE(PutAll(map.get(), model).ok());
      ASSERT_TRUE(map->Compact().ok());
      ExpectReads(&reader, model);
    }
    EXPECT_EQ((*attached)->GetStats().value().writer_pid, static_cast<uint64_t>(getpid()));
  }
}

TEST(SharedMapCore, AReaderFollowsAWriterWhoseControlPageIsDamaged) {
  TestMachine machine;
  auto map = machine.Create().value();
  Model model = {{"a", "1"}, {"b", "2"}};
  ASSERT_TRUE(PutAll(map.get(), model).ok());
  Damage(&machine.fs(), kDamages);
  auto attached = machine.Attach().value();
  auto reader = attached->NewReader().value();
  for (int i = 0; i < 3; ++i) {
    model["a"] = std::to_string(i);
    ASSERT_TRUE(PutAll(map.get(), model).ok());
    ExpectReads(&reader, model);
    ASSERT_TRUE(map->Compact().ok());
    ExpectReads(&reader, model);
  }
  const SharedMap::Reader snapshot = reader.GetSnapshot().value();
  map.reset();
  ASSERT_TRUE(DestroyMap(TestMachine::kPath, machine.environment()).ok());
  ExpectReads(&reader, model);
}

TEST(SharedMapCore, AttachBesideTheFirstCreateFindsAMapOrNone) {
  for (const bool cut : {false, true}) {
    for (uint64_t at_call = 1;; ++at_call) {
      SCOPED_TRACE(at_call);
      TestMachine machine;
      bool is_reached = false;
      const auto expect_one_or_none = [&] {
        const auto attached = machine.Attach();
        if (!attached) {
          EXPECT_EQ(attached.error().code(), StatusCode::kNotFound) << attached.error().ToString();
        } else {
          ExpectHolds(**attached, {});
        }
      };
      machine.fs().SetObserver([&](uint64_t call, auto, auto) {
        if (call != at_call) return;
        is_reached = true;
        machine.fs().SetObserver({});
        if (cut) machine.Restart(at_call);
        expect_one_or_none();
      });
      static_cast<void>(machine.Create());
      machine.fs().SetObserver({});
      expect_one_or_none();
      if (!is_reached) break;
      if (cut) {
        EXPECT_TRUE(machine.Create({.overwrite = true}));
      }
    }
  }
}

TEST(SharedMapCore, AWriterWithAnotherBootIdIsNoDamage) {
  TestMachine machine;
  auto map = machine.Create().value();
  Environment elsewhere = machine.environment();
  elsewhere.boot_id = machine.boots() + 1;
  auto attached = AttachMap(TestMachine::kPath, elsewhere).value();
  auto reader = attached->NewReader().value();
  ASSERT_TRUE(map->Put("key", "value").ok());
  ASSERT_TRUE(map->Compact().ok());
  for (int i = 0; i < 2; ++i) {
    const Status status = reader.Get("key").status();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status.ToString();
    EXPECT_NE(status.message().find(kBootIdPath), std::string_view::npos) << status.ToString();
  }
}

TEST(SharedMapEnvironment, WithoutABootIdThereAreNoMaps) {
  io::SimFileSystem fs;
  const auto expect_refused = [&] {
    const Status status = ReadBootId(&fs).status();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status.ToString();
    EXPECT_NE(status.message().find(kBootIdPath), std::string_view::npos) << status.ToString();
  };
  expect_refused();
  for (const char* directory :
       {"/proc", "/proc/sys", "/proc/sys/kernel", "/proc/sys/kernel/random"}) {
    ASSERT_TRUE(fs.CreateDirectory(directory).ok());
  }
  const auto file = fs.Open(kBootIdPath, io::OpenMode::kCreate).value();
  expect_refused();
  ASSERT_TRUE(file->WriteAt(0, "0f5e0b1c-3d1e-4f2a-9a57-0c2d4e6f8a1b\n").ok());
  const uint64_t first = ReadBootId(&fs).value();
  EXPECT_EQ(ReadBootId(&fs).value(), first);
  ASSERT_TRUE(file->WriteAt(0, "1").ok());
  EXPECT_NE(ReadBootId(&fs).value(), first);
}

}  // namespace
}  // namespace basalt::shared_map
