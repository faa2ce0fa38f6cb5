#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "io/memory_file_system.h"
#include "shared_map/base_file.h"
#include "shared_map/test_base_reseal.h"

// Any bytes as the base file of a map, once as they are and once with all checksums made right, so
// that what they protect is reached. Either the file is refused with an error that names it, or
// every slot and every key gives an error or a record, and in a file that VerifyAll calls faultless
// every record is found by its key.

namespace {

using basalt::Result;
using basalt::Status;
using basalt::StatusCode;
using basalt::shared_map::BaseFile;
using basalt::shared_map::Found;
using basalt::shared_map::RecordRef;

constexpr std::string_view kPath = "/base";

void CheckError(const Status& status) {
  BASALT_CHECK(status.code() == StatusCode::kCorruption ||
               status.code() == StatusCode::kUnsupported);
  BASALT_CHECK(status.message().find(kPath) != std::string_view::npos);
}

// Where the value lies must be within what is mapped: reads it all.
void ReadAll(std::string_view bytes) {
  const volatile uint64_t hash = basalt::base::Hash(bytes);
  static_cast<void>(hash);
}

void CheckKey(const BaseFile& base, std::string_view key) {
  const uint64_t hash = basalt::base::Hash(key);
  std::string_view value;
  const Found found = base.Find(key, hash, &value);
  if (found == Found::kPresent) ReadAll(value);
  if (found == Found::kCorrupt) CheckError(base.Damage(base.Slot(hash, key)));
  if (base.figures().records == 0) return;
  base.PrefetchNear(hash);
  BASALT_CHECK(base.Slot(hash, key) < base.figures().records);
  BASALT_CHECK(base.Slot(base.PrefetchSeed(hash), key) == base.Slot(hash, key));
}

void CheckFile(const std::string& bytes) {
  const auto fs = basalt::io::NewMemoryFileSystem();
  BASALT_CHECK(fs->Open(kPath, basalt::io::OpenMode::kCreate).value()->WriteAt(0, bytes).ok());
  const auto opened = BaseFile::Open(fs.get(), kPath);
  if (!opened) return CheckError(opened.error());
  const BaseFile& base = **opened;
  BASALT_CHECK(base.figures().file_bytes == bytes.size() &&
               base.figures().records <= bytes.size() / 8);
  CheckKey(base, "");
  CheckKey(base, "key7");
  CheckKey(base, std::string(70'000, 'k'));
  bool whole = true;
  for (uint64_t slot = 0; slot < base.figures().records; ++slot) {
    if (!base.is_fixed()) base.PrefetchStart(slot);
    base.PrefetchRecord(slot);
    base.PrefetchLastLine(slot);
    std::string_view value;
    static_cast<void>(base.FindAt(slot, "key1", &value));
    ReadAll(value);
    const Result<RecordRef> record = base.At(slot);
    if (!record) {
      CheckError(record.error());
      BASALT_CHECK(base.FindAt(slot, "key1", &value) != Found::kPresent);
      whole = false;
      continue;
    }
    ReadAll(record->key());
    BASALT_CHECK(base.FindAt(slot, record->key(), &value) == Found::kPresent);
    BASALT_CHECK(value == record->value());
    ReadAll(value);
  }
  const Status verified = base.VerifyAll([](uint64_t) { return true; });
  if (!verified.ok()) return CheckError(verified);
  BASALT_CHECK(whole);
  for (uint64_t slot = 0; slot < base.figures().records; ++slot) {
    const RecordRef record = base.At(slot).value();
    std::string_view value;
    BASALT_CHECK(base.Find(record.key(), basalt::base::Hash(record.key()), &value) ==
                 Found::kPresent);
    BASALT_CHECK(value == record.value());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  CheckFile(bytes);
  basalt::shared_map::ResealBase(&bytes);
  CheckFile(bytes);
  return 0;
}
