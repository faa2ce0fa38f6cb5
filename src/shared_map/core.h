#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "basalt/shared_map.h"
#include "shared_map/control_page.h"
#include "shared_map/environment.h"
#include "shared_map/generation.h"

namespace basalt::shared_map {

class Writer;

/// A map as one process has it: what readers follow, and the writer if this is the process that
/// writes. Readers keep it alive.
///
/// A generation is published by one store to the control page. Whoever reads compares that word
/// with the one that it has seen, and opens the new generation when they differ; one that has been
/// replaced meanwhile is gone, and then so is the word.
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
  GenerationOpener& opener() noexcept { return opener_; }
  ControlPage& control() const noexcept { return *control_; }

  /// The newest generation, and the control page's word that told so. After an error `*word` says
  /// nothing.
  Result<std::shared_ptr<const Generation>> Newest(uint64_t* word);

  /// Null: the map was attached.
  Writer* writer() const noexcept { return writer_.get(); }

  // Of the writer, and of who makes one.

  void SetControl(std::shared_ptr<ControlPage> control) { control_ = std::move(control); }
  void SetWriter(std::unique_ptr<Writer> writer);
  /// Makes a generation the newest one, here and for all processes.
  void Publish(std::shared_ptr<const Generation> generation);

 private:
  Result<std::shared_ptr<const Generation>> OpenNumber(uint64_t number);

  const Environment environment_;
  const std::string directory_;
  GenerationOpener opener_;
  std::shared_ptr<ControlPage> control_;
  std::unique_ptr<Writer> writer_;

  std::mutex mutex_;  // Covers the rest.
  std::shared_ptr<const Generation> newest_;
  uint64_t newest_word_ = 0;  // The control page's word when newest_ was the newest.
};

}  // namespace basalt::shared_map
