#pragma once

// src/shared_map: a map that one process writes and many read. Read Core first, then Writer
// (writer.h) and ReaderState (reader_state.h).

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "basalt/shared_map.h"
#include "shared_map/control_page.h"
#include "shared_map/environment.h"
#include "shared_map/version.h"

namespace basalt::shared_map {

class Writer;

/// A map as one process has it: what readers follow, and the writer if this is the process that
/// writes. Readers keep it alive.
///
/// A version is published by one store to the control page. Whoever reads compares that word
/// with the one that it has seen, and opens the new version when they differ; one that has been
/// replaced meanwhile is gone, and then so is the word.
///
/// A reader does without a control page that is damaged or gone: each call looks in the directory
/// for the highest list, and for a page that a writer of this start of the machine has made since.
class Core : public std::enable_shared_from_this<Core> {
 public:
  /// `directory`: as Resolve gives it. A writer that had it lead elsewhere would remove the files
  /// of a map of which it does not have the lock.
  Core(std::string directory, const Environment& environment);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  static Result<std::shared_ptr<Core>> Attach(std::string_view path,
                                              const Environment& environment);

  static std::unique_ptr<SharedMap> Handle(std::shared_ptr<Core> core);

  const Environment& environment() const noexcept { return environment_; }
  const std::string& directory() const noexcept { return directory_; }
  std::string PathOf(const std::string& name) const { return io::JoinPath(directory_, name); }
  VersionOpener& opener() noexcept { return opener_; }

  /// The newest version, and when to ask again: once the control page, which lives as long as
  /// this object, has another word.
  struct Followed {
    std::shared_ptr<const Version> version;
    const ControlPage* control;
    uint64_t word;
  };
  Result<Followed> Newest();

  /// Null: the map was attached.
  Writer* writer() const noexcept { return writer_.get(); }

  // Of the writer, and of who makes one.

  ControlPage& control() const noexcept { return *control_; }
  void SetControl(std::shared_ptr<ControlPage> control) { control_ = std::move(control); }
  void SetWriter(std::unique_ptr<Writer> writer);
  /// Makes a version the newest one, here and for all processes.
  void Publish(std::shared_ptr<const Version> version);

 private:
  bool has_control() const noexcept { return control_ != ControlPage::Missing(); }
  /// Opens the control page if there is none yet. One that is damaged or gone is no error.
  Result<std::shared_ptr<ControlPage>> FindControl() const;
  Result<Followed> NewestWithoutControl();
  Result<std::shared_ptr<const Version>> OpenNumber(uint64_t number, VersionOpener::Trust trust);

  const Environment environment_;
  const std::string directory_;
  VersionOpener opener_;
  std::unique_ptr<Writer> writer_;

  std::mutex mutex_;  // Covers the rest, once the map is in use.
  std::shared_ptr<ControlPage> control_ = ControlPage::Missing();  // Another one at most once.
  std::shared_ptr<const Version> newest_;
  uint64_t newest_word_ = 0;  // The control page's word when newest_ was the newest.
};

}  // namespace basalt::shared_map
