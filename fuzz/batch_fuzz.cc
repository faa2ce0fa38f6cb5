#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "basalt/write_batch.h"
#include "base/batch_cursor.h"
#include "base/check.h"
#include "base/coding.h"

// Any bytes: either Parse refuses them as Corruption or Unsupported, or the cursor walks exactly
// the counted records, and what it saw, serialised again, gives the same bytes.

namespace {

using basalt::RecordKind;
using basalt::Status;
using basalt::StatusCode;
using basalt::WriteBatch;

/// Serialises the records of `batch` from the format's description, apart from the library's
/// writer.
std::string SerialiseAgain(const WriteBatch& batch) {
  std::string out;
  basalt::base::BatchCursor cursor(batch.bytes());
  while (cursor.Next()) {
    uint8_t flags = 0;
    if (cursor.keyspace() != 0) flags |= basalt::base::kBatchFlagKeyspace;
    if (cursor.time_ms() != 0) flags |= basalt::base::kBatchFlagTime;
    if (cursor.time_is_expiry()) flags |= basalt::base::kBatchFlagTimeIsExpiry;
    if (cursor.never_expires()) flags |= basalt::base::kBatchFlagNeverExpires;
    basalt::base::Append(&out, static_cast<uint8_t>(cursor.kind()));
    basalt::base::Append(&out, flags);
    basalt::base::Append(&out, static_cast<uint16_t>(cursor.key().size()));
    basalt::base::Append(&out, static_cast<uint32_t>(cursor.value().size()));
    if (cursor.keyspace() != 0) basalt::base::Append(&out, cursor.keyspace());
    if (cursor.time_ms() != 0) basalt::base::Append(&out, cursor.time_ms());
    out.append(cursor.key()).append(cursor.value());
  }
  return out;
}

/// A batch of what the public functions make, written once more through the public functions, is
/// the same.
void CheckPublicRoundTrip(const WriteBatch& batch) {
  WriteBatch written;
  const Status status = batch.ForEach([&written](const WriteBatch::Record& record) {
    if (record.kind == RecordKind::kPut && record.expiry) {
      written.Put(record.key, record.value, {.keyspace = record.keyspace, .expiry = record.expiry});
    } else if (record.kind == RecordKind::kPut) {
      written.Put(record.key, record.value, {.keyspace = record.keyspace, .ttl = record.ttl});
    } else if (record.kind == RecordKind::kDelete) {
      written.Delete(record.key, record.keyspace);
    } else if (record.kind == RecordKind::kDeleteRange && record.key < record.value) {
      written.DeleteRange(record.key, record.value, record.keyspace);
    } else {
      return Status(StatusCode::kUnsupported, "no public function writes this kind");
    }
    return Status();
  });
  if (!status.ok()) return;
  BASALT_CHECK(written.status().ok());
  BASALT_CHECK(written.count() == batch.count());
  BASALT_CHECK(written.bytes() == batch.bytes());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const basalt::Result<WriteBatch> batch = WriteBatch::Parse(bytes);
  if (!batch) {
    const StatusCode code = batch.error().code();
    BASALT_CHECK(code == StatusCode::kCorruption || code == StatusCode::kUnsupported);
    BASALT_CHECK(!batch.error().message().empty());
    return 0;
  }
  BASALT_CHECK(batch->bytes() == bytes);
  size_t records = 0;
  basalt::base::BatchCursor cursor(batch->bytes());
  while (cursor.Next()) ++records;
  BASALT_CHECK(records == batch->count());
  BASALT_CHECK(SerialiseAgain(*batch) == bytes);
  CheckPublicRoundTrip(*batch);
  return 0;
}
