#include "tools/basalt/map_sources.h"

#include <charconv>
#include <span>
#include <system_error>
#include <utility>

#include "basalt/db.h"
#include "basalt/write_batch.h"
#include "tools/basalt/figures.h"
#include "tools/basalt/line_reader.h"
#include "tools/basalt/map_csv.h"
#include "tools/basalt/open_database.h"
#include "tools/basalt/text_format.h"

namespace basalt::tools {
namespace {

/// What may have been meant by a line that is no record.
std::string Remark(std::string_view line) {
  if (line.starts_with('{')) return "";
  return line.starts_with('[') ? " (each line must be an object, not part of an array)"
                               : " (is this --csv?)";
}

class JsonLines : public RecordSource {
 public:
  explicit JsonLines(LineReader lines) : lines_(std::move(lines)) {}

  /// Passes over what has expired, as a database does.
  Result<Step> Next() override {
    do {
      std::string_view line;
      do {
        const Result<bool> more = lines_.Next(line);
        if (!more) return more.error();
        if (!*more) return Step::kEnd;
      } while (line.empty() || line == "\r");
      Result<Record> record = ParseRecord(RecordFormat::kJson, line);
      if (!record) {
        return Bad(std::string(record.error().message()) + Remark(line));
      }
      if (!record->keyspace.empty()) {
        return Bad("the record names the keyspace " + ToText(record->keyspace) +
                   ", and a map has none: dump one keyspace alone");
      }
      record_ = std::move(*record);
    } while (HasExpired(record_));
    return Take(record_.key, record_.value);
  }

  std::string position() const override { return lines_.position(); }
  ProgressUnit unit() const override { return ProgressUnit::kBytes; }
  uint64_t done() const override { return lines_.consumed_bytes(); }
  uint64_t total() const override { return lines_.total_bytes(); }

 private:
  LineReader lines_;
  Record record_;
};

/// Where commas have parted nothing, what else may have been meant to.
std::string RemarkOnOnlyCell(std::span<const std::string> cells) {
  return cells.size() == 1 ? SeparatorRemark(cells[0]) : "";
}

std::string Cells(size_t count) { return FormatCount(count) + (count == 1 ? " cell" : " cells"); }

/// The place, from 0, of the column that `text` names: a number from 1, or one of `names`.
Result<size_t> FindColumn(const std::string& text, std::span<const std::string> names) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number > 0) {
    if (names.empty() || number <= names.size()) return number - 1;
    return Status(StatusCode::kInvalidArgument, "there is no column " + text + ": the header has " +
                                                    Cells(names.size()) + RemarkOnOnlyCell(names));
  }
  if (names.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "'" + text + "' is not the number of a column (from 1); a name needs --header");
  }
  std::optional<size_t> found;
  std::string listed;
  for (size_t i = 0; i < names.size(); ++i) {
    listed.append(listed.empty() ? "" : ", ").append(ToText(names[i]));
    if (names[i] != text) continue;
    if (found) {
      return Status(StatusCode::kInvalidArgument,
                    "two columns are named '" + text + "': give the number of one");
    }
    found = i;
  }
  if (found) return *found;
  return Status(StatusCode::kInvalidArgument,
                "there is no column '" + text + "' among " + listed + RemarkOnOnlyCell(names));
}

class CsvRecords : public RecordSource {
 public:
  explicit CsvRecords(CsvReader rows) : rows_(std::move(rows)) {}

  /// Finds the columns; reads the header, if there is one.
  Status Begin(const CsvColumns& columns) {
    std::span<const std::string> names;
    if (columns.header) {
      const Result<CsvReader::Step> step = rows_.Next();
      if (!step) return step.error();
      if (*step == CsvReader::Step::kEnd) return {};
      if (*step == CsvReader::Step::kBadRow) {
        return {StatusCode::kInvalidArgument, rows_.position() + ": " + rows_.fault()};
      }
      names = rows_.cells();
      width_ = names.size();
    }
    for (const auto& [text, place] : {std::pair(&columns.key_column, &key_column_),
                                      std::pair(&columns.value_column, &value_column_)}) {
      const Result<size_t> found = FindColumn(*text, names);
      if (found) {
        *place = *found;
        continue;
      }
      if (names.empty()) return found.error();
      return {StatusCode::kInvalidArgument,
              rows_.position() + ": " + std::string(found.error().message())};
    }
    return {};
  }

  Result<Step> Next() override {
    const Result<CsvReader::Step> step = rows_.Next();
    if (!step) return step.error();
    if (*step == CsvReader::Step::kEnd) return Step::kEnd;
    if (*step == CsvReader::Step::kBadRow) return Bad(rows_.fault());
    const std::span<const std::string> cells = rows_.cells();
    const size_t last = std::max(key_column_, value_column_);
    if (last >= cells.size()) {
      return Bad(Cells(cells.size()) + ", but the " + (last == value_column_ ? "value" : "key") +
                 " is in column " + std::to_string(last + 1) + RemarkOnOnlyCell(cells));
    }
    if (width_ == 0) width_ = cells.size();
    if (cells.size() != width_) {
      return Bad(Cells(cells.size()) + " where the first row has " + FormatCount(width_) +
                 " (a cell that holds a comma must be quoted)");
    }
    return Take(cells[key_column_], cells[value_column_]);
  }

  std::string position() const override { return rows_.position(); }
  ProgressUnit unit() const override { return ProgressUnit::kBytes; }
  uint64_t done() const override { return rows_.consumed_bytes(); }
  uint64_t total() const override { return rows_.total_bytes(); }

 private:
  CsvReader rows_;
  size_t key_column_ = 0;
  size_t value_column_ = 1;
  size_t width_ = 0;  // Cells of the first good row, or of the header; 0: not known yet.
};

class DatabaseRecords : public RecordSource {
 public:
  DatabaseRecords(std::string path, std::unique_ptr<DB> db, const ReadOptions& scan)
      : path_(std::move(path)), db_(std::move(db)), it_(db_->NewIterator(scan)) {}

  Result<Step> Next() override {
    done_ == 0 ? it_->SeekToFirst() : it_->Next();
    if (!it_->Valid()) {
      if (!it_->status().ok()) return it_->status();
      return Step::kEnd;
    }
    ++done_;
    return Take(it_->key(), it_->value());
  }

  std::string position() const override { return path_ + ", key '" + ToText(it_->key()) + "'"; }
  ProgressUnit unit() const override { return ProgressUnit::kKeys; }
  uint64_t done() const override { return done_; }
  uint64_t total() const override { return 0; }

 private:
  std::string path_;
  std::unique_ptr<DB> db_;
  std::unique_ptr<Iterator> it_;
  uint64_t done_ = 0;
};

}  // namespace

RecordSource::Step RecordSource::Take(std::string_view key, std::string_view value) {
  if (key.size() > kMaxKeyBytes) {
    return Bad("the key has " + FormatCount(key.size()) + " bytes; the largest has " +
               FormatCount(kMaxKeyBytes));
  }
  key_ = key;
  value_ = value;
  return Step::kRecord;
}

Result<std::unique_ptr<RecordSource>> OpenJsonLines(const std::string& path) {
  Result<LineReader> lines = LineReader::Open(path);
  if (!lines) return lines.error();
  return std::make_unique<JsonLines>(std::move(*lines));
}

Result<std::unique_ptr<RecordSource>> OpenCsv(const std::string& path, const CsvColumns& columns) {
  Result<CsvReader> rows = CsvReader::Open(path);
  if (!rows) return rows.error();
  auto records = std::make_unique<CsvRecords>(std::move(*rows));
  if (Status begun = records->Begin(columns); !begun.ok()) return begun;
  return records;
}

Result<std::unique_ptr<RecordSource>> OpenDatabaseRange(const DatabaseRange& range) {
  Result<std::unique_ptr<DB>> db = OpenAsItIs(range.path);
  if (!db) return db.error();
  ReadOptions scan{
      .fill_cache = false, .lower = range.from, .upper = range.to, .prefix = range.prefix};
  if (range.keyspace) {
    const Result<KeyspaceId> keyspace = (*db)->OpenKeyspace(*range.keyspace);
    if (!keyspace) return keyspace.error();
    scan.keyspace = *keyspace;
  }
  return std::make_unique<DatabaseRecords>(range.path, std::move(*db), scan);
}

}  // namespace basalt::tools
