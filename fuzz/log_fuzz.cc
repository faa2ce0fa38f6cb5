#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/coding.h"
#include "base/hash.h"
#include "io/memory_file_system.h"
#include "wal/log.h"
#include "wal/recovery.h"

// Any bytes as one or two log files: recovery refuses them by name, or what it replays is
// contiguous from the flushed LSN on, the same again when repeated, and a new log goes on behind
// it.
//
//   offset size
//        0    1  1: right the header checksums, 2: right the record checksums, 4: check first
//        1    1  flushed LSN
//        2    1  durable LSN of the manifest
//        3    1  database id; 0: not known
//        4    4  length of the first file; what is left is the second
//        8       the files

namespace {

using basalt::Status;
using basalt::StatusCode;
using namespace basalt::wal;

constexpr size_t kPrologueBytes = 8;
constexpr char kDirectory[] = "/db";

struct Replayed {
  basalt::Result<RecoveryResult> result;
  std::vector<std::string> payloads;
};

Replayed RecoverFrom(basalt::io::FileSystem* fs, const ManifestClaims& claims, RecoveryMode mode) {
  std::vector<std::string> payloads;
  auto result = Recover(fs, kDirectory, claims, mode, [&](const RecordView& record) {
    BASALT_CHECK(record.lsn == claims.flushed_lsn + 1 + payloads.size());
    payloads.emplace_back(record.payload);
    return Status();
  });
  if (result) {
    BASALT_CHECK(result->records == payloads.size());
    BASALT_CHECK(result->start.next_lsn == claims.flushed_lsn + 1 + payloads.size());
    BASALT_CHECK(result->start.durable_lsn < result->start.next_lsn);
  } else {
    const StatusCode code = result.error().code();
    BASALT_CHECK(code == StatusCode::kCorruption || code == StatusCode::kUnsupported);
    BASALT_CHECK(!result.error().message().empty());
  }
  return {std::move(result), std::move(payloads)};
}

void RightHeaders(std::string* file) {
  for (const uint64_t offset : {uint64_t{0}, kSecondHeaderOffset}) {
    if (file->size() < offset + sizeof(FileHeader)) return;
    const size_t covered = sizeof(FileHeader) - sizeof(uint64_t);
    const auto file_id =
        basalt::base::Load<uint64_t>(file->data() + offset + offsetof(FileHeader, file_id));
    basalt::base::Store(
        file->data() + offset + covered,
        basalt::base::Checksum(file_id, offset, std::string_view(*file).substr(offset, covered)));
  }
}

void RightRecords(std::string* file) {
  const auto header =
      DecodeFileHeader(std::string_view(*file).substr(0, kRecordsOffset), "file.log");
  if (!header || !*header) return;
  for (uint64_t offset = kRecordsOffset; offset < file->size();) {
    const auto record = PeekRecord(*file, offset, **header);
    if (!record) return;
    char* const framed = file->data() + offset;
    const char* const end = record->payload.data() + record->payload.size();
    SealRecord(**header, offset, framed, static_cast<size_t>(end - framed));
    offset += record->framed_bytes;
  }
}

void GoOn(basalt::io::FileSystem* fs, const ManifestClaims& claims, const Replayed& before) {
  const Replayed again = RecoverFrom(fs, claims, RecoveryMode::kOpen);
  BASALT_CHECK(again.result && again.payloads == before.payloads);
  BASALT_CHECK(again.result->tail_file.empty());
  auto log = Log::Start(fs, kDirectory, again.result->start, {});
  BASALT_CHECK(log.has_value());
  Log::Ticket ticket = (*log)->Stage(1, 1, "one more");
  BASALT_CHECK((*log)->Wait(ticket).ok());
  const Replayed extended = RecoverFrom(fs, claims, RecoveryMode::kOpen);
  BASALT_CHECK(extended.result && extended.payloads.size() == before.payloads.size() + 1);
  BASALT_CHECK(extended.payloads.back() == "one more");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < kPrologueBytes) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const uint8_t choices = data[0];
  const ManifestClaims claims = {
      .database_id = data[3], .flushed_lsn = data[1], .durable_lsn = data[2]};
  const size_t first = basalt::base::Load<uint32_t>(data + 4);

  const auto fs = basalt::io::NewMemoryFileSystem();
  BASALT_CHECK(fs->CreateDirectory(kDirectory).ok());
  std::string files[] = {
      std::string(bytes.substr(kPrologueBytes, first)),
      std::string(bytes.substr(std::min(size, kPrologueBytes + first))),
  };
  for (size_t i = 0; i < 2; ++i) {
    if (i == 1 && files[i].empty()) break;
    if ((choices & 1) != 0) RightHeaders(&files[i]);
    if ((choices & 2) != 0) RightRecords(&files[i]);
    const std::string path = basalt::io::JoinPath(kDirectory, LogFileName(i + 1));
    BASALT_CHECK(basalt::io::ReplaceFile(fs.get(), path, files[i]).ok());
  }
  if ((choices & 4) != 0) {
    static_cast<void>(RecoverFrom(fs.get(), claims, RecoveryMode::kCheck));
  }
  const Replayed opened = RecoverFrom(fs.get(), claims, RecoveryMode::kOpen);
  if (opened.result) {
    GoOn(fs.get(), claims, opened);
  } else {
    static_cast<void>(RecoverFrom(fs.get(), claims, RecoveryMode::kRepair));
  }
  return 0;
}
