#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "io/file_system.h"
#include "shared_map/guarded_word.h"

// The file CONTROL, one page, which every process has mapped:
//
//   offset size
//        0    8  "BSALTMC1"
//        8    4  version: 1
//       12    4  required features: 0
//       16    8  map id: random, for life
//       24    8  checksum of the bytes before
//       64    8  number of the newest version (guarded_word.h)
//       72    8  boot id of the machine when that was stored
//       80    8  process id of the newest writer, for people
//
// What stands from byte 64 on is written through mappings and is never synced: it counts only while
// the boot id is the machine's own. Otherwise, and where the page is damaged or gone, the newest
// version is that of the highest number in the directory.

namespace basalt::shared_map {

class ControlPage {
 public:
  static constexpr uint64_t kBytes = 4096;
  static constexpr uint64_t kNumberAt = 64;
  static constexpr uint64_t kBootIdAt = 72;
  static constexpr uint64_t kWriterAt = 80;

  /// Writes and syncs a new file (not its name), or writes the old one anew, in place.
  static Status Write(io::FileSystem* fs, std::string_view path, uint64_t map_id);
  /// Maps it. Corruption: it is damaged; a writer's Open makes a new one.
  static Result<std::shared_ptr<ControlPage>> Open(io::FileSystem* fs, std::string_view path,
                                                   bool to_write);
  /// Stands for one that is damaged or gone: it names no version.
  static const std::shared_ptr<ControlPage>& Missing();

  uint64_t map_id() const noexcept { return map_id_; }
  /// The word of the newest version's number, as it is: it changes when a version is
  /// published. One cache line that is read only, until then.
  uint64_t word() const noexcept { return LoadShared(bytes_ + kNumberAt); }
  /// The number, if it was stored since the machine was started.
  std::optional<uint64_t> Number(uint64_t boot_id) const noexcept;
  uint64_t writer_pid() const noexcept { return LoadShared(bytes_ + kWriterAt); }

  /// Of a page that was opened to be written.
  void StoreNumber(uint64_t number) noexcept;
  void StoreWriter(uint64_t boot_id, uint64_t pid) noexcept;

 private:
  ControlPage() = default;

  std::unique_ptr<io::Mapping> read_;
  std::unique_ptr<io::WritableMapping> written_;
  const char* bytes_ = nullptr;
  uint64_t map_id_ = 0;
};

}  // namespace basalt::shared_map
