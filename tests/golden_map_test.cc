// Shared maps that earlier versions wrote, under tests/golden_maps/: this one attaches to them,
// opens them to write and finds what content.txt lists. BASALT_WRITE_GOLDEN_MAP=<directory> makes a
// new one (CONTRIBUTING.md says when).

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "basalt/shared_map.h"
#include "base/random.h"

namespace basalt {
namespace {

using Content = std::map<std::string, std::string>;

Content ContentOf(const SharedMap& map) {
  Content content;
  auto reader = map.NewReader().value();
  const Status scanned = reader.ParallelScan(1, [&](std::string_view key, std::string_view value) {
    content.emplace(key, value);
    return Status();
  });
  EXPECT_TRUE(scanned.ok()) << scanned.ToString();
  return content;
}

/// One line a record: key, tab, value; golden content is printable.
Content ReadListing(const std::filesystem::path& path) {
  Content content;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t tab = line.find('\t');
    EXPECT_NE(tab, std::string::npos) << line;
    content[line.substr(0, tab)] = line.substr(tab + 1);
  }
  return content;
}

/// A base, and changes of all kinds: puts, overwritten ones, erasures, a batch.
void WriteGoldenMap(const std::filesystem::path& directory, const std::string& name,
                    SharedMapLayout layout) {
  const std::string path = (directory / name).string();
  base::Random random(2026);
  const auto value = [&] {
    return std::string(layout == SharedMapLayout::kFixed ? 20 : random.Below(200),
                       static_cast<char>('a' + random.Below(26)));
  };
  auto builder = SharedMapBuilder::Create(path, {.layout = layout}).value();
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(builder->Add("key" + std::to_string(1000 + i), value()).ok());
  }
  auto map = builder->Finish().value();
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(map->Put("key" + std::to_string(1000 + 3 * i), value()).ok());
    ASSERT_TRUE(map->Delete("key" + std::to_string(1200 + i)).ok());
    WriteBatch batch;
    batch.Put("new" + std::to_string(i), value());
    batch.Delete("new" + std::to_string(i - 5));
    ASSERT_TRUE(map->Write(batch).ok());
  }
  std::ofstream listing(directory / (name + ".txt"));
  for (const auto& [key, held] : ContentOf(*map)) listing << key << '\t' << held << '\n';
  ASSERT_TRUE(map->Close().ok());
}

TEST(GoldenMaps, AreReadAndWrittenByThisVersion) {
  if (const char* directory = std::getenv("BASALT_WRITE_GOLDEN_MAP"); directory != nullptr) {
    std::filesystem::create_directories(directory);
    WriteGoldenMap(directory, "fixed", SharedMapLayout::kFixed);
    WriteGoldenMap(directory, "variable", SharedMapLayout::kVariable);
    return;
  }
  const std::filesystem::path golden =
      std::filesystem::path(BASALT_SOURCE_DIR) / "tests/golden_maps";
  const std::filesystem::path scratch =
      std::filesystem::path(testing::TempDir()) / ("golden_maps_" + std::to_string(getpid()));
  size_t maps = 0;
  for (const auto& format : std::filesystem::directory_iterator(golden)) {
    for (const char* const name : {"fixed", "variable"}) {
      SCOPED_TRACE(format.path() / name);
      std::filesystem::copy(format.path() / name, scratch);
      Content content = ReadListing(format.path() / (std::string(name) + ".txt"));
      EXPECT_GT(content.size(), 400u);
      EXPECT_EQ(ContentOf(*SharedMap::Attach(scratch.string()).value()), content);
      EXPECT_TRUE(SharedMap::Check(scratch.string()).value().ok());
      auto map = SharedMap::Open(scratch.string()).value();
      EXPECT_EQ(map->GetStats().value().entries, content.size());
      ASSERT_TRUE(map->Put("now", "written").ok());
      ASSERT_TRUE(map->Compact().ok());
      content["now"] = "written";
      EXPECT_EQ(ContentOf(*map), content);
      map.reset();
      // One that is made in its place hashes keys in another way.
      const auto attached = SharedMap::Attach(scratch.string()).value();
      map = SharedMap::Create(scratch.string(), {.overwrite = true}).value();
      content = {{"now", "replaced"}};
      ASSERT_TRUE(map->Put("now", "replaced").ok());
      ASSERT_TRUE(map->Compact().ok());
      EXPECT_EQ(ContentOf(*attached), content);
      map.reset();
      std::filesystem::remove_all(scratch);
      ++maps;
    }
  }
  EXPECT_GE(maps, 2u);
}

}  // namespace
}  // namespace basalt
