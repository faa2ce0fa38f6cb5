#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "basalt/shared_map.h"
#include "base/executor.h"
#include "io/file_system.h"

namespace basalt::shared_map {

/// What a map stands on, injected so that a test can simulate all of it. Everything pointed to must
/// outlive the map and its readers.
struct Environment {
  io::FileSystem* fs = nullptr;
  base::Executor* executor = nullptr;  ///< Compactions in the background; null: nothing does.
  /// Another one after every start of the machine. What was written by mapping is not to be trusted
  /// after that: it may have reached the disk in part.
  uint64_t boot_id = 0;
  /// Of a map that is made, whose keys are hashed under it; 0: a random one.
  uint64_t new_map_id = 0;
  /// Keeps `fs` alive when the map owns it (":memory:").
  std::shared_ptr<io::FileSystem> owned_fs{};

  /// The machine's file system, the process's pool of low priority, the kernel's boot id.
  /// FailedPrecondition: that cannot be read.
  static Result<Environment> System();
  /// A file system of its own in memory, for one map.
  static Result<Environment> Memory();
};

/// What tells one start of the machine from another.
inline constexpr std::string_view kBootIdPath = "/proc/sys/kernel/random/boot_id";
/// Its hash. FailedPrecondition: it cannot be read. A number made up instead would keep readers
/// from seeing what is written, since each process would have one of its own.
Result<uint64_t> ReadBootId(io::FileSystem* fs);

/// SharedMap's functions on an injected environment.
Result<std::unique_ptr<SharedMap>> CreateMap(std::string_view path, const SharedMapOptions& options,
                                             const Environment& environment);
Result<std::unique_ptr<SharedMap>> OpenMap(std::string_view path, const SharedMapOptions& options,
                                           const Environment& environment);
Result<std::unique_ptr<SharedMap>> AttachMap(std::string_view path, const Environment& environment);
Result<std::unique_ptr<SharedMapBuilder>> CreateMapBuilder(std::string_view path,
                                                           const SharedMapOptions& options,
                                                           Duplicates duplicates,
                                                           const Environment& environment);
Result<SharedMapReport> CheckMap(std::string_view path,
                                 const SharedMapProgressFunction& on_progress,
                                 const Environment& environment);
Status DestroyMap(std::string_view path, const Environment& environment);

}  // namespace basalt::shared_map
