#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/shared_map.h"
#include "io/manual_executor.h"
#include "io/sim_file_system.h"
#include "shared_map/environment.h"

namespace basalt::shared_map {

inline std::string KeyOf(uint64_t number) { return "key:" + std::to_string(number); }

/// What a map should hold.
using Model = std::map<std::string, std::string>;

/// A simulated machine: a disk that loses power, jobs that run when the test says so, a boot id
/// that changes with every start.
class TestMachine {
 public:
  static constexpr std::string_view kPath = "/map";
  /// Of the maps that are made.
  static constexpr uint64_t kMapId = 2026;

  TestMachine() : fs_(std::make_unique<io::SimFileSystem>()) {}
  explicit TestMachine(std::unique_ptr<io::SimFileSystem> fs, uint64_t boots = 1)
      : fs_(std::move(fs)), boots_(boots) {}

  io::SimFileSystem& fs() { return *fs_; }
  io::ManualExecutor& executor() { return executor_; }
  Environment environment() {
    Environment environment;
    environment.fs = fs_.get();
    environment.executor = &executor_;
    environment.boot_id = boots_;
    environment.new_map_id = kMapId;
    return environment;
  }
  /// A power cut and a start. Handles of before must be gone, or not be used.
  void Restart(uint64_t seed, io::CrashMode mode = io::CrashMode::kRandom) {
    fs_->Crash(seed, mode);
    ++boots_;
  }
  uint64_t boots() const { return boots_; }
  /// Nothing may have a file of the old one open.
  void ReplaceDisk(std::unique_ptr<io::SimFileSystem> fs) { fs_ = std::move(fs); }

  Result<std::unique_ptr<SharedMap>> Create(const SharedMapOptions& options = {}) {
    return CreateMap(kPath, options, environment());
  }
  Result<std::unique_ptr<SharedMap>> Open(const SharedMapOptions& options = {}) {
    return OpenMap(kPath, options, environment());
  }
  Result<std::unique_ptr<SharedMap>> Attach() { return AttachMap(kPath, environment()); }

 private:
  std::unique_ptr<io::SimFileSystem> fs_;
  io::ManualExecutor executor_;
  uint64_t boots_ = 1;
};

inline Status PutAll(SharedMap* map, const Model& model) {
  for (const auto& [key, value] : model) {
    if (Status status = map->Put(key, value); !status.ok()) return status;
  }
  return Status();
}

inline std::optional<std::string> Lookup(SharedMap::Reader* reader, std::string_view key) {
  auto found = reader->Get(key);
  EXPECT_TRUE(found) << found.error().ToString();
  if (!found || !*found) return std::nullopt;
  return (*found)->ToString();
}

/// All that a scan gives; every key once.
inline Model Contents(SharedMap::Reader* reader, uint32_t threads = 1) {
  Model contents;
  std::mutex mutex;
  const Status status =
      reader->ParallelScan(threads, [&](std::string_view key, std::string_view value) {
        const std::lock_guard guard(mutex);
        EXPECT_TRUE(contents.emplace(key, value).second) << "twice: " << key;
        return Status();
      });
  EXPECT_TRUE(status.ok()) << status.ToString();
  return contents;
}

/// One batch, of keys that the model may have or not.
inline void ExpectMultiGet(SharedMap::Reader* reader, const Model& model,
                           std::span<const std::string> names) {
  const std::vector<std::string_view> keys(names.begin(), names.end());
  std::vector<Result<SharedMap::MaybeView>> results(keys.size());
  ASSERT_TRUE(reader->MultiGet(keys, results).ok());
  for (size_t i = 0; i < keys.size(); ++i) {
    ASSERT_TRUE(results[i]) << results[i].error().ToString();
    const auto at = model.find(names[i]);
    ASSERT_EQ(results[i]->has_value(), at != model.end()) << names[i];
    if (at != model.end()) {
      EXPECT_EQ((*results[i])->view(), at->second);
    }
  }
}

/// Compares by scan, by Get and by MultiGet, and probes absent keys: those given, and others.
inline void ExpectReads(SharedMap::Reader* reader, const Model& model,
                        std::vector<std::string> absent = {}) {
  EXPECT_EQ(Contents(reader), model);
  for (const std::string& key : absent) EXPECT_EQ(Lookup(reader, key), std::nullopt) << key;
  std::vector<std::string> names = std::move(absent);
  for (const auto& [key, value] : model) {
    EXPECT_EQ(Lookup(reader, key), value) << key;
    names.push_back(key);
    names.push_back(key + " absent");
  }
  ExpectMultiGet(reader, model, names);
}

/// The same of a whole map, and how many entries it counts.
inline void ExpectHolds(const SharedMap& map, const Model& model) {
  auto reader = map.NewReader();
  ASSERT_TRUE(reader) << reader.error().ToString();
  ExpectReads(&*reader, model);
  const auto stats = map.GetStats();
  ASSERT_TRUE(stats);
  EXPECT_EQ(stats->entries, model.size());
}

}  // namespace basalt::shared_map
