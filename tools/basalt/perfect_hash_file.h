#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "basalt/perfect_hash.h"
#include "io/file_system.h"

namespace basalt::tools {

/// What a perfect hash file may hold.
using PerfectHashForm = std::variant<PerfectHash, FingerprintSet, FingerprintMap>;

/// The function that a form is, or stands on.
const PerfectHash& NumbersOf(const PerfectHashForm& form);
std::string_view BytesOf(const PerfectHashForm& form);

/// A file with the serialised form of a perfect hash function, set or map, mapped and checked. It
/// must not be cut short while it is open.
class PerfectHashFile {
 public:
  /// Corruption: it is none, or not as it was written. NotFound, IoError: it cannot be read. All
  /// name the file.
  static Result<PerfectHashFile> Open(const std::string& path);

  const PerfectHashForm& form() const noexcept { return form_; }

 private:
  PerfectHashFile(std::unique_ptr<io::Mapping> mapping, PerfectHashForm form)
      : mapping_(std::move(mapping)), form_(std::move(form)) {}

  std::unique_ptr<io::Mapping> mapping_;
  PerfectHashForm form_;
};

/// Whether `path` can become a new file: AlreadyExists when there is one and `replace` is false;
/// errors also when there is no such directory, or something that is no file.
Status CheckNewFile(const std::string& path, bool replace);
/// Makes the file `path`, durably, all of it or nothing: a reader finds what was there before,
/// or all of `bytes`. AlreadyExists as CheckNewFile.
Status WriteNewFile(const std::string& path, std::string_view bytes, bool replace);

}  // namespace basalt::tools
