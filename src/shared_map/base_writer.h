#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "basalt/shared_map.h"
#include "basalt/status.h"
#include "io/file_system.h"
#include "shared_map/base_file.h"

namespace basalt::shared_map {

struct BaseWriteOptions {
  SharedMapLayout layout = SharedMapLayout::kDerived;
  /// 0: one a processor.
  uint32_t threads = 1;
  /// Of the function, unless keys have equal hashes under it.
  uint64_t hash_seed = 0;
  /// Called now and then, on the calling thread, with the records that are written; false:
  /// Cancelled.
  std::function<bool(uint64_t done_records)> go_on{};
};

/// Writes and syncs a base file (its name not: sync the directory) of records whose keys are
/// distinct: pointers to puts as record.h has them, at any address, which stay until it returns.
/// Their flags are not written. Any number of them, 0 too.
///
/// After an error nothing is left behind. AlreadyExists: there is such a file, which stays.
/// InvalidArgument: a key is there twice; it is named. ResourceExhausted: the disk is full, or more
/// than 32 GiB of records in the variable layout. Cancelled: options.go_on said so.
///
/// Takes some 16 bytes of memory a record, and 4 MiB.
Result<BaseFigures> WriteBaseFile(io::FileSystem* fs, const std::string& path,
                                  std::span<const char* const> records,
                                  const BaseWriteOptions& options);

}  // namespace basalt::shared_map
