#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "base/internal_key.h"
#include "io/memory_file_system.h"
#include "table/table.h"
#include "table/table_format.h"
#include "table/test_reseal.h"

// Any bytes as a whole table file, once as they are and once with all checksums made right, so that
// what they protect is reached, with its point index and with its filter. Either the table is
// refused with an error that names the file, or what it gives is in order, the same forward and
// backward, and lookups give records of the key that they ask for, none newer than they ask for; in
// a table that Verify calls faultless every lookup finds its record. Errors may come in between,
// but not from a faultless table.

namespace {

using basalt::Status;
using basalt::StatusCode;
using basalt::base::RecordIterator;
using basalt::table::MetadataBudget;
using basalt::table::Table;

constexpr std::string_view kPath = "/table";

struct SeenRecord {
  std::string key;
  basalt::base::Tag tag;
  std::string value;
  uint64_t time_ms;
};

void CheckError(const Status& status) {
  BASALT_CHECK(status.code() == StatusCode::kCorruption ||
               status.code() == StatusCode::kUnsupported);
  BASALT_CHECK(status.message().find(kPath) != std::string_view::npos);
}

bool HasFaults(const Table& table) {
  bool faults = false;
  const Status status = table.Verify({}, [&](uint64_t, const Status& fault) {
    CheckError(fault);
    faults = true;
  });
  BASALT_CHECK(status.ok());
  return faults;
}

// Gives false when an error ended the walk.
bool WalkForward(const Table& table, std::vector<SeenRecord>* seen) {
  const std::unique_ptr<RecordIterator> it = table.NewIterator(true);
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    BASALT_CHECK(seen->empty() || basalt::base::CompareInternal(seen->back().key, seen->back().tag,
                                                                it->key(), it->tag()) < 0);
    seen->push_back({std::string(it->key()), it->tag(), std::string(it->value()), it->time_ms()});
  }
  if (!it->status().ok()) CheckError(it->status());
  return it->status().ok();
}

void WalkBackward(const Table& table, const std::vector<SeenRecord>& seen) {
  const std::unique_ptr<RecordIterator> it = table.NewIterator(false);
  size_t left = seen.size();
  for (it->SeekToLast(); it->Valid(); it->Prev()) {
    BASALT_CHECK(left-- > 0);
    BASALT_CHECK(it->key() == seen[left].key && it->tag() == seen[left].tag &&
                 it->value() == seen[left].value && it->time_ms() == seen[left].time_ms);
  }
  BASALT_CHECK(left == 0 && it->status().ok());
}

void LookUpAll(const Table& table, const std::vector<SeenRecord>& seen, bool faultless) {
  for (const SeenRecord& record : seen) {
    basalt::table::TableRead found;
    const auto result = table.Get(record.key, basalt::base::Hash(record.key),
                                  basalt::base::TagSequence(record.tag), true, &found);
    if (!result) {
      CheckError(result.error());
      BASALT_CHECK(!faultless);
    } else if (*result) {
      const auto sequence = basalt::base::TagSequence(record.tag);
      const auto found_sequence = basalt::base::TagSequence(found.tag);
      // What leads to an older version, under a right checksum, only Verify tells.
      BASALT_CHECK(found_sequence == sequence || (!faultless && found_sequence < sequence));
      // Of two kinds at one sequence number the greater tag comes first.
      BASALT_CHECK(found.tag != record.tag ||
                   (found.value == record.value && found.time_ms == record.time_ms));
    } else {
      BASALT_CHECK(!faultless);  // a filter or a point index that does not know the key
    }
  }
}

// The limits of the budget: without room for point indexes a table keeps its filter, without any
// it reads index and filter in parts.
void CheckFile(const std::string& bytes, uint64_t limit_bytes, uint64_t point_indexes_bytes) {
  const std::unique_ptr<basalt::io::FileSystem> fs = basalt::io::NewMemoryFileSystem();
  BASALT_CHECK(fs->Open(kPath, basalt::io::OpenMode::kCreate).value()->WriteAt(0, bytes).ok());
  basalt::table::FileHeader header{};
  if (bytes.size() >= sizeof header) {
    header = basalt::table::FromBytes<basalt::table::FileHeader>(bytes);
  }
  const auto budget = std::make_shared<MetadataBudget>(limit_bytes, point_indexes_bytes);
  const auto table = Table::Open(
      fs->Open(kPath, basalt::io::OpenMode::kRead).value(), header.file_id, header.keyspace,
      bytes.size(), basalt::Cache::Create({.capacity_bytes = 1 << 20}).value(), budget);
  if (!table) return CheckError(table.error());
  BASALT_CHECK(budget->charged_bytes() == (*table)->metadata_bytes());
  const bool faultless = !HasFaults(**table);
  std::vector<SeenRecord> seen;
  const bool walked = WalkForward(**table, &seen);
  BASALT_CHECK(walked || !faultless);
  BASALT_CHECK(!faultless || seen.size() == (*table)->properties().records);
  if (walked) WalkBackward(**table, seen);
  LookUpAll(**table, seen, faultless);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  CheckFile(bytes, ~uint64_t{0}, ~uint64_t{0});
  basalt::table::ResealTable(&bytes);
  CheckFile(bytes, ~uint64_t{0}, ~uint64_t{0});
  CheckFile(bytes, ~uint64_t{0}, 0);
  CheckFile(bytes, 0, 0);
  return 0;
}
