#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/out_of_memory.h"
#include "shared_map/core.h"
#include "shared_map/file_names.h"

namespace basalt::shared_map {

/// Files that are removed unless a version that names them is published.
class NewFiles {
 public:
  explicit NewFiles(Core* core) : core_(core) {}
  ~NewFiles() {
    // What cannot be removed is when the map is opened to write next.
    for (const std::string& path : paths_) {
      static_cast<void>(
          base::OrOutOfMemory([&] { return core_->environment().fs->RemoveFile(path); }));
    }
  }
  NewFiles(const NewFiles&) = delete;
  NewFiles& operator=(const NewFiles&) = delete;

  std::string Add(FileKind kind, uint64_t number) {
    return paths_.emplace_back(core_->PathOf(NameOf(kind, number)));
  }
  /// An index stays mapped to be written until the version that has it is opened.
  void Hold(std::shared_ptr<const void> mapped) { held_.push_back(std::move(mapped)); }
  void Keep() { paths_.clear(); }

 private:
  Core* const core_;
  std::vector<std::string> paths_;
  std::vector<std::shared_ptr<const void>> held_;
};

}  // namespace basalt::shared_map
