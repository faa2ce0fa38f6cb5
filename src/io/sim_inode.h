#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "io/file_system.h"

namespace basalt::io {

/// What a power cut leaves of the bytes of one file that were written but not synced.
enum class CrashMode : uint8_t {
  kRandom,    ///< Draws one of the others for every file.
  kNone,      ///< Only what was synced.
  kAll,       ///< Everything.
  kPrefix,    ///< The unsynced writes up to some point in time; the rest is lost.
  kTornTail,  ///< The same, and the last of them only in part, cut at any byte.
  kSubset,    ///< Any subset of the unsynced 512-byte sectors.
};

/// The content of one simulated file, as programs see it (live) and as a power cut may leave it.
/// The model is told at the head of sim_file_system.h.
///
/// Layout: the live bytes; the durable bytes, as of the last successful sync; and a log of the
/// changes since, with their bytes, in order. Both images end before their file's size where only
/// zeros follow, so that a preallocated file costs nothing.
///
/// Invariants: the durable image with all of the log replayed is the live image. An empty log means
/// that both are equal. Without tracking, log and durable image stay empty.
///
/// Cost: a write is two copies of its bytes, a sync one copy of what was written since the last
/// one, a crash a copy of the durable bytes and of the log's; nothing depends on the allocated
/// size. Not thread-safe: the file system's mutex covers it.
class SimInode {
 public:
  explicit SimInode(bool tracked) : tracked_(tracked) {}
  ~SimInode() = default;
  SimInode& operator=(const SimInode&) = delete;

  /// A copy with its own bytes.
  std::shared_ptr<SimInode> Clone() const;

  uint64_t size() const noexcept { return size_; }
  /// Bytes copied: fewer than asked only at the end.
  size_t Read(uint64_t offset, std::span<char> out) const;
  /// Writes the first `length` bytes of the pieces. One change.
  void Write(uint64_t offset, std::span<const std::string_view> pieces, uint64_t length);
  void Truncate(uint64_t size);
  void Allocate(uint64_t size);
  void Sync();
  /// A sync that the device refused: what was dirty counts as clean from now on, but is not
  /// durable.
  void FailSync();

  /// The live bytes [0, size), which stay where they are, and follow the live image, for as long as
  /// the pointer is held. `size` is at most size().
  std::shared_ptr<const std::string> Map(uint64_t size);

  /// Draws what is left after a power cut. It is then live and durable.
  void Crash(CrashMode mode, base::Random* random);
  /// Flips a bit of a byte below size(), as of always.
  void FlipBit(uint64_t bit);

 private:
  struct Change {
    enum class Kind : uint8_t { kWrite, kTruncate, kAllocate };
    enum class State : uint8_t {
      kDirty,      // The next sync makes it durable.
      kAbandoned,  // A failed sync had its turn: no later one helps.
      kDurable,    // Synced, but it may lie above an abandoned one, and so cannot be folded.
    };
    Kind kind;
    State state;
    uint64_t offset;    // kWrite
    uint64_t length;    // kWrite: bytes; the others: the size.
    size_t position;    // kWrite: of its bytes in logged_bytes_.
    uint64_t old_size;  // Of the live image before the change.
  };
  struct Image {
    std::string bytes;
    uint64_t size = 0;
  };
  class Survival;

  SimInode(const SimInode&) = default;
  void Log(Change::Kind kind, uint64_t offset, uint64_t length);
  std::string* GrowLive(uint64_t size);
  void SetLiveSize(uint64_t size);
  Image Replay(const Survival& survival) const;

  const bool tracked_;
  uint64_t size_ = 0;
  std::shared_ptr<std::string> live_ = std::make_shared<std::string>();
  std::vector<std::weak_ptr<std::string>> moved_;  // Mapped buffers that live_ has outgrown.
  Image durable_;
  std::vector<Change> log_;
  std::string logged_bytes_;
};

}  // namespace basalt::io
