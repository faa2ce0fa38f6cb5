// A real file system that fills up while a database or a shared map writes to it, is freed, and is
// written to again without reopening. Needs the right to mount; skipped where that is not given.

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "basalt/db.h"
#include "basalt/shared_map.h"
#include "io/file_system.h"
#include "tests/shared_map/child_process.h"

namespace basalt {
namespace {

/// An ext4 file system in a file, mounted for as long as this lives.
class SmallDisk {
 public:
  explicit SmallDisk(uint64_t mebibytes) {
    std::string pattern = (std::filesystem::temp_directory_path() / "basalt-full-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) return;
    root_ = pattern;
    mount_ = root_ + "/disk";
    std::filesystem::create_directory(mount_);
    const std::string image = root_ + "/image";
    std::ofstream(image).put('\0');
    std::filesystem::resize_file(image, mebibytes << 20);
    const std::string command = "(/sbin/mkfs.ext4 -q -m 0 " + image + " && mount -o loop " + image +
                                " " + mount_ + ") >/dev/null 2>&1";
    mounted_ = std::system(command.c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount(mount_.c_str());
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }
  std::string Path(const std::string& name) const { return mount_ + "/" + name; }
  uint64_t Free() const { return std::filesystem::space(mount_).available; }

  /// A file of this size that holds real bytes.
  void Ballast(uint64_t bytes) const {
    std::ofstream file(Path("ballast"), std::ios::binary);
    const std::string piece(1 << 20, 'b');
    for (uint64_t done = 0; done < bytes; done += piece.size()) {
      file.write(piece.data(), static_cast<std::streamsize>(piece.size()));
    }
  }

 private:
  std::string root_;
  std::string mount_;
  bool mounted_ = false;
};

std::string KeyOf(int i) { return "key" + std::to_string(1'000'000 + i); }

/// Bytes that do not compress, which follow from the number.
std::string ValueOf(int i) {
  std::string value(1000, '\0');
  uint64_t state = 0x9E37'79B9'7F4A'7C15 * static_cast<uint64_t>(i + 1);
  for (char& byte : value) {
    state = state * 6'364'136'223'846'793'005 + 1;
    byte = static_cast<char>(state >> 56);
  }
  return value;
}

TEST(FullDisk, LosesNothingAndGoesOnWhenThereIsRoomAgain) {
  const SmallDisk disk(96);
  if (!disk.mounted()) GTEST_SKIP() << "no right to mount a file system here";
  disk.Ballast(40 << 20);
  const std::string path = disk.Path("db");
  auto db = DB::Open(path, {.memory_budget = 16 << 20}).value();
  int written = 0;
  Status refused;
  for (; written < 100'000; ++written) {
    refused = db->Put(KeyOf(written), ValueOf(written));
    if (!refused.ok()) break;
  }
  ASSERT_FALSE(refused.ok()) << "the disk never filled up";
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted) << refused.ToString();
  ASSERT_GT(written, 20'000);
  // Reads go on, and a write that is refused again leaves nothing.
  EXPECT_TRUE((*db->Get(KeyOf(0)))->ToString() == ValueOf(0));
  for (int i = 0; i < 20; ++i) static_cast<void>(db->Put("late" + std::to_string(i), ValueOf(i)));

  std::filesystem::remove(disk.Path("ballast"));
  Status resumed;
  for (int attempt = 0; attempt < 3; ++attempt) {
    resumed = db->Put(KeyOf(written), ValueOf(written));
    if (resumed.ok()) break;
  }
  ASSERT_TRUE(resumed.ok()) << "with " << disk.Free() << " bytes free: " << resumed.ToString();
  const int end = written + 10'000;
  for (++written; written < end; ++written) {
    const Status status = db->Put(KeyOf(written), ValueOf(written));
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  ASSERT_TRUE(db->Flush().ok());
  ASSERT_TRUE(db->Close().ok());
  db.reset();

  EXPECT_TRUE(DB::Check(path).value().ok());
  db = DB::Open(path, {.memory_budget = 16 << 20}).value();
  for (int i = 0; i < written; ++i) {
    const auto value = db->Get(KeyOf(i));
    ASSERT_TRUE(value && *value && (*value)->view() == ValueOf(i)) << KeyOf(i);
  }
}

TEST(FullDisk, HasNoMoreRoomThanItSays) {
  const SmallDisk disk(16);
  if (!disk.mounted()) GTEST_SKIP() << "no right to mount a file system here";
  io::FileSystem* const fs = io::FileSystem::Posix();
  const auto file = fs->Open(disk.Path("file"), io::OpenMode::kCreate).value();
  ASSERT_TRUE(file->Allocate(1 << 20).ok());
  const std::optional<uint64_t> free = fs->FreeBytes(disk.Path("file"));
  ASSERT_TRUE(free);
  EXPECT_GE(*free, disk.Free());
  EXPECT_EQ(file->Allocate((1 << 20) + *free + 4096).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(fs->FreeBytes(disk.Path("absent")), std::nullopt);
}

/// Its parameter: whether the database is opened anew on the full disk.
class FullDiskDeletes : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(AtOnceOrReopened, FullDiskDeletes, testing::Bool(), [](const auto& test) {
  return std::string(test.param ? "Reopened" : "AtOnce");
});

TEST_P(FullDiskDeletes, MakeRoom) {
  const SmallDisk disk(64);
  if (!disk.mounted()) GTEST_SKIP() << "no right to mount a file system here";
  const auto open = [&] { return DB::Open(disk.Path("db"), {.memory_budget = 8 << 20}); };
  auto db = open().value();
  int written = 0;
  while (written < 100'000 && db->Put(KeyOf(written), ValueOf(written)).ok()) ++written;
  ASSERT_LT(written, 100'000);
  if (GetParam()) {
    db.reset();
    auto reopened = open();
    ASSERT_TRUE(reopened) << reopened.error().ToString() << ", " << disk.Free() << " bytes free";
    db = std::move(*reopened);
  }
  // What a compaction has taken comes back when it finds no more.
  const auto retried = [](const auto& step) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (true) {
      Status status = step();
      if (status.ok() || std::chrono::steady_clock::now() > deadline) return status;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  };
  // One delete: many would fill the memtable, and that is another way to a flush.
  Status deleted = retried([&] { return db->DeleteRange("key", "kez"); });
  if (deleted.ok()) deleted = retried([&] { return db->Flush(); });
  ASSERT_TRUE(deleted.ok()) << deleted.ToString() << ", " << disk.Free() << " bytes free";
  // A compaction that is under way may still hold some of the tables.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (disk.Free() < uint64_t{20} << 20 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_GT(disk.Free(), uint64_t{20} << 20) << db->GetStats().range_deletes << " range deletes";
  EXPECT_TRUE(db->Put("after", "1").ok());
}

/// What a writer of a map and the processes that read it tell one another.
struct Progress {
  std::atomic<int> acknowledged;  ///< Keys below have their values.
  std::atomic<uint64_t> reads;
  std::atomic<bool> stop;
};

/// A process that looks at what was acknowledged, as long as it may. A signal would end it.
int ReadMap(const std::string& path, const std::string& memory) {
  const SharedMemory<Progress> progress(memory);
  const auto map = SharedMap::Attach(path);
  auto reader = map ? (*map)->NewReader() : Result<SharedMap::Reader>(map.error());
  if (!reader) return 1;
  for (uint64_t at = 0; !progress->stop; at = at * 25'214'903'917 + 11) {
    const int acknowledged = progress->acknowledged;
    if (acknowledged == 0) continue;
    const int i = static_cast<int>((at >> 16) % static_cast<uint64_t>(acknowledged));
    const auto found = reader->Get(KeyOf(i));
    if (!found || !*found || (*found)->view() != ValueOf(i)) {
      std::fprintf(stderr, "%s: %s\n", KeyOf(i).c_str(),
                   found ? "is not there" : found.error().ToString().c_str());
      return 2;
    }
    ++progress->reads;
  }
  return 0;
}

TEST(FullDisk, OfASharedMapLosesNothingAndNoReaderEnds) {
  const SmallDisk disk(224);
  if (!disk.mounted()) GTEST_SKIP() << "no right to mount a file system here";
  // Room for log segments of 1, 2, 4, 8 and 16 MiB. A fold needs as much again, and the base.
  disk.Ballast(170 << 20);
  const std::string path = disk.Path("map");
  auto map = SharedMap::Create(path, {.compact_in_background = false}).value();
  const SharedMemory<Progress> progress;
  ChildProcess reader({"--read-map", path, progress.name()});
  const auto put = [&] {
    const int i = progress->acknowledged;
    const Status status = map->Put(KeyOf(i), ValueOf(i));
    if (status.ok()) ++progress->acknowledged;
    return status;
  };
  const auto reader_goes_on = [&] {
    const uint64_t before = progress->reads;
    while (progress->reads < before + 100 && !reader.HasEnded()) std::this_thread::yield();
    return !reader.HasEnded();
  };
  Status refused;
  while (refused.ok() && progress->acknowledged < 100'000) refused = put();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted) << refused.ToString();
  ASSERT_GT(progress->acknowledged, 5'000);
  ASSERT_TRUE(reader_goes_on());
  // To the last block.
  for (uint64_t bytes = disk.Free(); bytes >= 4096; bytes /= 2) {
    std::ofstream(disk.Path("rest" + std::to_string(bytes)), std::ios::binary)
        << std::string(bytes, 'r');
  }
  for (int i = 0; i < 20; ++i) EXPECT_EQ(put().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(map->Compact().code(), StatusCode::kResourceExhausted);
  ASSERT_TRUE(reader_goes_on());
  EXPECT_TRUE(SharedMap::Attach(path)) << "a reader that comes now";

  for (const auto& entry : std::filesystem::directory_iterator(disk.Path(""))) {
    const std::string name = entry.path().filename();
    if (name.starts_with("rest") || name == "ballast") std::filesystem::remove(entry.path());
  }
  const int end = progress->acknowledged + 10'000;
  while (progress->acknowledged < end) {
    const Status status = put();
    ASSERT_TRUE(status.ok()) << status.ToString() << ", " << disk.Free() << " bytes free";
  }
  const Status compacted = map->Compact();
  ASSERT_TRUE(compacted.ok()) << compacted.ToString() << ", " << disk.Free() << " bytes free";
  ASSERT_TRUE(put().ok());
  ASSERT_TRUE(reader_goes_on());
  progress->stop = true;
  EXPECT_EQ(reader.Wait(), 0);
  ASSERT_TRUE(map->Close().ok());
  map.reset();

  EXPECT_TRUE(SharedMap::Check(path).value().ok());
  map = SharedMap::Open(path).value();
  EXPECT_EQ(map->GetStats().value().entries, static_cast<uint64_t>(progress->acknowledged));
  auto all = map->NewReader().value();
  for (int i = 0; i < progress->acknowledged; ++i) {
    const auto value = all.Get(KeyOf(i));
    ASSERT_TRUE(value && *value && (*value)->view() == ValueOf(i)) << KeyOf(i);
  }
}

}  // namespace
}  // namespace basalt

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "--read-map") {
    return basalt::ReadMap(argv[2], argv[3]);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
