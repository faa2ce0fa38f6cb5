#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/base64.h"
#include "base/check.h"
#include "tools/basalt/map_csv.h"
#include "tools/basalt/map_json.h"
#include "tools/basalt/text_format.h"

// Any bytes as each form of text that the program reads: what is refused is InvalidArgument with a
// reason; what is accepted and is written again is read as the same.

namespace {

using basalt::Result;
using basalt::StatusCode;
using basalt::tools::CsvReader;
using basalt::tools::Record;
using basalt::tools::RecordFormat;

using Rows = std::vector<std::vector<std::string>>;

/// Whether it was accepted.
template <class T>
bool Accepted(const Result<T>& parsed) {
  if (parsed) return true;
  BASALT_CHECK(parsed.error().code() == StatusCode::kInvalidArgument);
  BASALT_CHECK(!parsed.error().message().empty());
  return false;
}

void CheckBase64(std::string_view text) {
  const Result<std::string> bytes = basalt::base::DecodeBase64(text);
  if (!Accepted(bytes)) return;
  std::string again;
  basalt::base::AppendBase64(*bytes, again);
  BASALT_CHECK(again == text);
}

void CheckText(std::string_view text) {
  BASALT_CHECK(basalt::tools::ParseText(basalt::tools::ToText(text)).value() == text);
  const Result<std::string> bytes = basalt::tools::ParseText(text);
  if (!Accepted(bytes)) return;
  BASALT_CHECK(basalt::tools::ParseText(basalt::tools::ToText(*bytes)).value() == *bytes);
}

void CheckRecord(RecordFormat format, std::string_view line) {
  const Result<Record> record = basalt::tools::ParseRecord(format, line);
  if (!Accepted(record)) return;
  std::string again;
  basalt::tools::AppendRecord(format, record->key, record->value, again,
                              {.expiry = record->expiry, .keyspace = record->keyspace});
  BASALT_CHECK(again.ends_with('\n'));
  again.pop_back();
  const Record read = basalt::tools::ParseRecord(format, again).value();
  BASALT_CHECK(read.key == record->key && read.value == record->value &&
               read.expiry == record->expiry);
}

void CheckJson(std::string_view text) {
  const Result<std::string> compact = basalt::tools::CompactJson(text);
  if (!Accepted(compact)) return;
  BASALT_CHECK(basalt::tools::CompactJson(*compact).value() == *compact);
}

/// The good rows of a file that holds `text`; none of UTF-16, which alone is refused as a whole.
Rows ReadCsv(std::string_view text) {
  const int file = memfd_create("csv", MFD_CLOEXEC);
  BASALT_CHECK(file >= 0);
  BASALT_CHECK(write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  CsvReader reader = CsvReader::Open("/proc/self/fd/" + std::to_string(file)).value();
  close(file);
  Rows rows;
  for (;;) {
    const Result<CsvReader::Step> step = reader.Next();
    if (!Accepted(step)) {
      BASALT_CHECK(text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"));
      return rows;
    }
    if (*step == CsvReader::Step::kEnd) return rows;
    if (*step == CsvReader::Step::kBadRow) {
      BASALT_CHECK(!reader.fault().empty());
    } else {
      BASALT_CHECK(!reader.cells().empty());
      rows.emplace_back(reader.cells().begin(), reader.cells().end());
    }
  }
}

void CheckCsv(std::string_view text) {
  const Rows rows = ReadCsv(text);
  std::string again;
  for (const std::vector<std::string>& row : rows) {
    for (const std::string& cell : row) {
      if (&cell != &row.front()) again += ',';
      again += '"';
      for (const char c : cell) again.append(c == '"' ? 2 : 1, c);
      again += '"';
    }
    again += '\n';
  }
  BASALT_CHECK(ReadCsv(again) == rows);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckBase64(text);
  CheckText(text);
  CheckRecord(RecordFormat::kText, text);
  CheckRecord(RecordFormat::kJson, text);
  CheckJson(text);
  CheckCsv(text);
  return 0;
}
