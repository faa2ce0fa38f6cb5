#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "basalt/status.h"
#include "tools/basalt/progress.h"

namespace basalt::tools {

/// Records that a map is built from, one after the other.
class RecordSource {
 public:
  enum class Step : uint8_t { kRecord, kBadLine, kEnd };

  virtual ~RecordSource() = default;
  RecordSource(const RecordSource&) = delete;
  RecordSource& operator=(const RecordSource&) = delete;

  /// kRecord: `key` and `value` have the next record. kBadLine: `fault` says what is wrong with
  /// what stands there; the next call passes over it. An error: nothing can be read any more.
  virtual Result<Step> Next() = 0;

  /// Until the next call.
  std::string_view key() const noexcept { return key_; }
  std::string_view value() const noexcept { return value_; }
  const std::string& fault() const noexcept { return fault_; }

  /// Where the present record stands, for messages.
  virtual std::string position() const = 0;
  virtual ProgressUnit unit() const = 0;
  virtual uint64_t done() const = 0;
  /// 0: not known.
  virtual uint64_t total() const = 0;

 protected:
  RecordSource() = default;
  Step Bad(std::string fault) {
    fault_ = std::move(fault);
    return Step::kBadLine;
  }
  /// kRecord, or kBadLine when the key is larger than any.
  Step Take(std::string_view key, std::string_view value);

 private:
  std::string_view key_;
  std::string_view value_;
  std::string fault_;
};

/// The lines of JSON that `basalt dump --json` prints.
Result<std::unique_ptr<RecordSource>> OpenJsonLines(const std::string& path);

struct CsvColumns {
  bool header = false;           ///< The first row has the columns' names.
  std::string key_column = "1";  ///< A number from 1, or with `header` a name.
  std::string value_column = "2";
};
/// Two columns of comma-separated values. Every row must have as many cells as the first.
Result<std::unique_ptr<RecordSource>> OpenCsv(const std::string& path, const CsvColumns& columns);

struct DatabaseRange {
  std::string path;
  std::optional<std::string> prefix;  ///< Excludes `from` and `to`.
  std::optional<std::string> from;    ///< Inclusive.
  std::optional<std::string> to;      ///< Exclusive.
  std::optional<std::string> keyspace;
};
/// What a database holds now; another process may have it open.
Result<std::unique_ptr<RecordSource>> OpenDatabaseRange(const DatabaseRange& range);

}  // namespace basalt::tools
