#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// What concurrent transactions have read and written, for a checker of serializability.
//
// Keys are numbers. A value names everyone who made it: a put by transaction 7 writes "7.", and an
// append by transaction 9 to that leaves "7.9.". A value is thus of one version of its key, and
// shows which versions it builds on. Absent keys have the empty value.

namespace basalt::serializability {

/// A key of the history.
using KeyNumber = uint32_t;

struct ObservedRead {
  KeyNumber key = 0;
  std::string value{};       ///< Empty: absent.
  bool any_present = false;  ///< Some value was there, which one is not known.
};

struct ObservedWrite {
  enum class Kind : uint8_t { kPut, kAppend, kDelete };
  Kind kind = Kind::kPut;
  KeyNumber key = 0;
};

struct ObservedTransaction {
  uint64_t id = 0;
  uint64_t sequence = 0;  ///< Of its commit; 0: it wrote nothing.
  /// The greatest sequence number of a commit that had been acknowledged before it began.
  uint64_t began_after = 0;
  std::vector<ObservedRead> reads;  ///< Of what others wrote: not of its own writes.
  std::vector<ObservedWrite> writes;

  void Read(KeyNumber key, std::string_view value) {
    reads.push_back({.key = key, .value = std::string(value)});
  }
  /// All keys in [begin, end) were looked at; those that are not in `found`, which ascends, were
  /// absent.
  void Scan(KeyNumber begin, KeyNumber end, const std::vector<ObservedRead>& found) {
    auto next = found.begin();
    for (KeyNumber key = begin; key < end; ++key) {
      if (next != found.end() && next->key == key) {
        reads.push_back(*next++);
      } else {
        Read(key, "");
      }
    }
  }
  void Put(KeyNumber key) { writes.push_back({ObservedWrite::Kind::kPut, key}); }
  void Append(KeyNumber key) { writes.push_back({ObservedWrite::Kind::kAppend, key}); }
  void Delete(KeyNumber key) { writes.push_back({ObservedWrite::Kind::kDelete, key}); }
  void DeleteRange(KeyNumber begin, KeyNumber end) {
    for (KeyNumber key = begin; key < end; ++key) Delete(key);
  }
};

/// The transactions that committed, in any order.
using History = std::vector<ObservedTransaction>;

}  // namespace basalt::serializability
