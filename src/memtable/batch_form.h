#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "basalt/status.h"
#include "basalt/write_batch.h"
#include "io/expiry_clock.h"
#include "memtable/keyspaces.h"

namespace basalt::memtable {

/// A batch as it is inserted into a generation.
struct BatchForm {
  std::string_view bytes;  ///< Its times are absolute (base/batch_time.h).
  size_t count = 0;
  bool has_range_deletes = false;
  bool only_deletes = true;  ///< Of keys or of ranges.
  bool has_expiring = false;
  /// Of the list of keyspaces that it was made for. 0: it is right for any, because it writes to
  /// the default keyspace alone.
  uint64_t keyspaces_number = 0;

  /// What its records take in a generation, as a bound.
  size_t RoomBytes() const noexcept { return bytes.size() + count * kRecordBytes; }

 private:
  /// What a record takes beside its bytes in a batch.
  static constexpr size_t kRecordBytes = 160;
};

/// The form of a validated batch. `buffer` holds it where it differs from the batch. NotFound:
/// there is no such keyspace. Unsupported: a kind of record that no store has.
Result<BatchForm> ToForm(const WriteBatch& batch, const Keyspaces& keyspaces,
                         io::ExpiryClock* clock, std::string* buffer);

}  // namespace basalt::memtable
