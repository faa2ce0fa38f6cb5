#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "basalt/status.h"
#include "io/file_system.h"
#include "tools/basalt/document.h"

namespace basalt::tools {

/// The findings about one file: a document that grows, and what is wrong with the file.
class Inspection {
 public:
  Inspection(std::string path, uint64_t limit) : path_(std::move(path)), limit_(limit) {}

  const std::string& path() const noexcept { return path_; }
  /// The most elements shown of a list whose length depends on the file.
  uint64_t limit() const noexcept { return limit_; }

  void Show(std::string_view name, boost::json::value value) { document_[name] = std::move(value); }
  void Find(uint64_t offset, const Status& fault);
  void Find(uint64_t offset, const std::string& fault) {
    Find(offset, Status(StatusCode::kCorruption, fault));
  }

  /// Ok, or the first fault.
  const Status& first_fault() const noexcept { return first_fault_; }
  /// What was shown, and behind it `findings`.
  Document Take() &&;

 private:
  std::string path_;
  uint64_t limit_;
  Document document_;
  boost::json::array findings_;
  Status first_fault_;
};

/// A key as it stands in an inspection: under "key", or, where it is long, its beginning under
/// "key_begins".
void ShowKey(std::string_view name, std::string_view key, Document& document);

// Show what a file holds and find what is wrong with it. `bytes` is all of it.

void InspectManifest(std::string_view bytes, Inspection& inspection);
void InspectLog(std::string_view bytes, Inspection& inspection);
void InspectTable(std::unique_ptr<io::File> file, std::string_view bytes, Inspection& inspection);

}  // namespace basalt::tools
