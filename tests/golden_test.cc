// Databases that earlier versions wrote, under tests/golden/: this one opens them and finds what
// content.txt lists. BASALT_WRITE_GOLDEN=<directory> makes a new one (CONTRIBUTING.md says when).

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "basalt/db.h"
#include "base/random.h"
#include "db/environment.h"
#include "tests/crash/write_history.h"

namespace basalt {
namespace {

using Content = std::map<std::string, std::string>;

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

std::string RandomText(base::Random* random, size_t size) {
  std::string text(size, ' ');
  for (char& c : text) c = static_cast<char>('a' + random->Below(20));
  return text;
}

void WriteListing(const DB& db, KeyspaceId keyspace, const std::filesystem::path& path) {
  const auto content = crash::ReadContent(db, keyspace);
  ASSERT_TRUE(content);
  std::ofstream listing(path);
  for (const auto& [key, value] : *content) listing << key << '\t' << value << '\n';
}

/// Merges, expiry, range deletes (one that tables still need), a keyspace, and one that was
/// dropped.
void WriteOperations(DB* db) {
  const KeyspaceId dropped = db->CreateKeyspace("dropped").value();
  const KeyspaceId users = db->CreateKeyspace("users").value();
  ASSERT_TRUE(db->Put("key1", "gone", {.keyspace = dropped}).ok());
  for (int i = 0; i < 300; ++i) {
    const std::string key = "user" + std::to_string(i);
    ASSERT_TRUE(db->Put(key, "name" + std::to_string(i), {.keyspace = users}).ok());
    ASSERT_TRUE(db->Merge(key, MergeOperator::kAppend, " in table", {.keyspace = users}).ok());
  }
  constexpr auto kCentury = std::chrono::hours(24 * 36'500);
  ASSERT_TRUE(db->Put("expires late", "still here", {.ttl = kCentury}).ok());
  ASSERT_TRUE(db->Put("expires soon", "gone", {.ttl = std::chrono::milliseconds(1)}).ok());
  ASSERT_TRUE(db->Flush().ok());
  ASSERT_TRUE(db->DeleteRange("user1", "user2", {.keyspace = users}).ok());
  ASSERT_TRUE(db->Flush().ok());
  ASSERT_TRUE(db->DropKeyspace(dropped).ok());
  ASSERT_TRUE(db->DeleteRange("key10", "key11").ok());
  ASSERT_TRUE(db->Merge("user5", MergeOperator::kAppend, " in log", {.keyspace = users}).ok());
}

/// Tables of several levels, deletes, a value of several blocks, and records that only the log has.
void WriteGolden(const std::filesystem::path& directory) {
  auto environment = db::Environment::System(0);
  ASSERT_TRUE(environment);
  environment->table_bytes = 16 << 10;
  environment->memtable_bytes = 64 << 10;
  auto db = db::OpenDatabase((directory / "db").string(),
                             {.compression = Compression::kLz4ThenZstd}, *environment)
                .value();
  base::Random random(2026);
  for (int i = 0; i < 600; ++i) {
    const std::string key = "key" + std::to_string(random.Below(300));
    if (random.OneIn(5)) {
      ASSERT_TRUE(db->Delete(key).ok());
    } else {
      ASSERT_TRUE(db->Put(key, RandomText(&random, random.Below(120))).ok());
    }
    if (i == 100) {
      ASSERT_TRUE(db->Put("large", RandomText(&random, 40'000)).ok());
    }
    if (i == 300) {
      ASSERT_TRUE(db->CompactRange().ok());
    }
    if (i == 450) {
      ASSERT_TRUE(db->Flush().ok());
    }
  }
  ASSERT_TRUE(db->Put("", "the empty key", {.durability = Durability::kPower}).ok());
  WriteOperations(db.get());
  WriteListing(*db, KeyspaceId::kDefault, directory / "content.txt");
  WriteListing(*db, db->OpenKeyspace("users").value(), directory / "users.txt");
  ASSERT_TRUE(db->Close().ok());
}

TEST(Golden, DatabasesOfEarlierVersionsOpenWithAllTheyHeld) {
  if (const char* directory = std::getenv("BASALT_WRITE_GOLDEN"); directory != nullptr) {
    WriteGolden(directory);
    return;
  }
  const std::filesystem::path golden = std::filesystem::path(BASALT_SOURCE_DIR) / "tests/golden";
  std::string pattern = (std::filesystem::temp_directory_path() / "basalt-golden-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  size_t opened = 0;
  for (const auto& entry : std::filesystem::directory_iterator(golden)) {
    if (!entry.is_directory()) continue;
    const std::filesystem::path copy = std::filesystem::path(pattern) / entry.path().filename();
    std::filesystem::copy(entry.path() / "db", copy, std::filesystem::copy_options::recursive);
    const auto report = DB::Check(copy.string());
    ASSERT_TRUE(report) << report.error().ToString();
    EXPECT_TRUE(report->ok()) << copy << ": " << report->findings.front().status.ToString();
    auto db = DB::Open(copy.string(), {.create_if_missing = false});
    ASSERT_TRUE(db) << db.error().ToString();
    const auto content = crash::ReadContent(**db);
    ASSERT_TRUE(content) << content.error().ToString();
    EXPECT_TRUE(*content == ReadListing(entry.path() / "content.txt")) << entry.path();
    EXPECT_GT(content->size(), 100U);
    size_t keyspaces = 1;
    for (const auto& listing : std::filesystem::directory_iterator(entry.path())) {
      const std::string name = listing.path().stem();
      if (listing.is_directory() || name == "content") continue;
      const auto keyspace = (*db)->OpenKeyspace(name);
      ASSERT_TRUE(keyspace) << keyspace.error().ToString();
      EXPECT_TRUE(crash::ReadContent(**db, *keyspace).value() == ReadListing(listing.path()))
          << listing.path();
      ++keyspaces;
    }
    EXPECT_EQ((*db)->ListKeyspaces().value().size(), keyspaces);
    ++opened;
  }
  EXPECT_GT(opened, 0U);
  std::filesystem::remove_all(pattern);
}

}  // namespace
}  // namespace basalt
