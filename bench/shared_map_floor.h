#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "bench/shared_map_records.h"
#include "io/file_system.h"

namespace basalt::bench {

/// What no lookup can be faster than: records of the size of the map's, in a file that is written
/// in the same steps and mapped by the same call as the map's base, so by the same pages. A step of
/// the chain reads the ends of a value at the same place in the record as a lookup does, both at
/// once, and has the number of the next record from them: there is no key, and nothing to find.
class SharedMapFloor {
 public:
  SharedMapFloor(const SharedMapRecords& records, const std::string& path);

  /// Nanoseconds of a step.
  double ChainNs(uint64_t operations, uint64_t first_number) const;
  /// The same, if the next record's key has to be made before its place is known.
  double ChainWithKeysNs(uint64_t operations, uint64_t first_number) const;
  /// Nanoseconds a record of a batch of 64 random ones: their lines prefetched, then copied.
  double BatchNs(uint64_t operations, uint64_t seed) const;

 private:
  template <class PlaceOf>
  double WalkNs(uint64_t operations, uint64_t first_number, const PlaceOf& place_of) const;

  uint64_t stride_;
  uint64_t value_at_;  // Of a record.
  std::unique_ptr<io::Mapping> mapping_;
};

/// Nanoseconds until a key is made that depends on the one before: no memory is read.
double KeyNs(uint64_t operations);

}  // namespace basalt::bench
