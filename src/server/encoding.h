#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// How Redis keys and their values lie in a store. Everything is in the keyspace "redis"; the
// database's default keyspace stays the user's own. Integers in keys are big-endian, so that their
// order is the bytes' order.
//
//   key of the store                        value
//   'M' db key                              the metadata record of a key, see below; its expiry is
//                                           the store's own
//   'E' id field                            hash: the field's value
//   'E' id position                         list: the element; positions are consecutive
//   'E' id member                           set: empty
//   'E' id 'm' member                       sorted set: the score, as 8 bytes in order
//   'E' id 's' score member                 sorted set: empty
//   'E' id ms seq                           stream: fields and values, each with its length
//   'X' expiry id                           db key: a collection that expires then, or did
//   'I'                                     the epoch of ids, 8 bytes
//
//   db: 1 byte. id: 8 bytes, the collection's own; never used twice. position, expiry, ms, seq: 8
//   bytes; a position has its sign bit flipped. score: 8 bytes, the double's bits, flipped so that
//   their order is the numbers'.
//
// A metadata record: its first byte is the type.
//
//   's' bytes                               a string: the value itself
//   'h' | 't' | 'z', id, count              hash, set, sorted set
//   'l' id, first, end                      list: its elements are at [first, end)
//   'x' id, count, last ms, last seq, deleted ms, deleted seq, added      stream
//
// What always holds:
// - A collection has at least one element; with the last one its metadata record goes. Streams may
//   be empty.
// - Every change of a key, also of one element, writes its metadata record. So the record's version
//   (Entry::version) is the key's: WATCH, entity tags and the conflicts of transactions go by it,
//   and elements need not be tracked.
// - Elements are found by id alone. So RENAME moves one record; deleting a large collection deletes
//   its metadata record and one range; and elements whose metadata record has expired are garbage
//   that nobody can see. The sweeper (dataset.h) removes them: 'X' records tell it where they are.
//
// Ids: each opening of the database raises the stored epoch, and counts on from epoch * 2^40.
//
// Cost: a string is one record. A change of a collection writes the metadata record and the
// elements that it touches, whatever the size of the collection. LINSERT and LREM move the elements
// on the shorter side.

namespace basalt::server {

enum class Type : char {
  kString = 's',
  kList = 'l',
  kHash = 'h',
  kSet = 't',
  kZset = 'z',
  kStream = 'x',
};

/// As TYPE has it.
std::string_view TypeName(Type type) noexcept;

struct StreamId {
  uint64_t ms = 0;
  uint64_t seq = 0;
  auto operator<=>(const StreamId&) const = default;
};

/// A metadata record but for a string's bytes.
struct Metadata {
  Type type = Type::kString;
  uint64_t id = 0;
  uint64_t count = 0;
  int64_t first = 0;  ///< Of a list. Its end is first + count.
  // Of a stream.
  StreamId last{};
  StreamId deleted{};  ///< The greatest that was deleted.
  uint64_t added = 0;
};

void AppendBigEndian(std::string* out, uint64_t number);
/// `at` has 8 bytes.
uint64_t LoadBigEndian(const char* at) noexcept;

std::string MetadataKey(uint8_t db, std::string_view key);
void AppendMetadataKey(std::string* out, uint8_t db, std::string_view key);
std::string ElementPrefix(uint64_t id);
std::string ListElementKey(uint64_t id, int64_t position);
std::string ElementKey(uint64_t id, std::string_view field);
std::string MemberKey(uint64_t id, std::string_view member);
std::string ScoreKey(uint64_t id, double score, std::string_view member);
std::string StreamKey(uint64_t id, StreamId at);
std::string ExpiryKey(uint64_t expiry_ms, uint64_t id);
inline constexpr std::string_view kEpochKey = "I";
inline constexpr size_t kElementPrefixBytes = 9;

/// A number whose order is the score's. -0.0 is 0.0.
uint64_t OrderedScore(double score) noexcept;
double ScoreOf(uint64_t ordered) noexcept;

std::string EncodeMetadata(const Metadata& metadata);
/// Nothing: the bytes are no metadata record. Of a string only the type is read.
std::optional<Metadata> DecodeMetadata(std::string_view bytes) noexcept;

/// The least string above all that begin with `prefix`, which is not all bytes 255.
std::string EndOfPrefix(std::string prefix);

}  // namespace basalt::server
