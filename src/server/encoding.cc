#include "server/encoding.h"

#include <cstring>

namespace basalt::server {
namespace {

constexpr uint64_t kSignBit = uint64_t{1} << 63;
constexpr size_t kIdBytes = 8;

size_t MetadataBytes(Type type) noexcept {
  switch (type) {
    case Type::kHash:
    case Type::kSet:
    case Type::kZset:
      return 1 + 2 * 8;
    case Type::kList:
      return 1 + 3 * 8;
    case Type::kStream:
      return 1 + 7 * 8;
    case Type::kString:
      return 1;
  }
  return 0;
}

std::string Prefixed(char kind, uint64_t number, size_t more) {
  std::string key;
  key.reserve(1 + kIdBytes + more);
  key.push_back(kind);
  AppendBigEndian(&key, number);
  return key;
}

}  // namespace

std::string_view TypeName(Type type) noexcept {
  switch (type) {
    case Type::kString:
      return "string";
    case Type::kList:
      return "list";
    case Type::kHash:
      return "hash";
    case Type::kSet:
      return "set";
    case Type::kZset:
      return "zset";
    case Type::kStream:
      return "stream";
  }
  return "none";
}

void AppendBigEndian(std::string* out, uint64_t number) {
  const uint64_t swapped = __builtin_bswap64(number);
  char bytes[sizeof swapped];
  std::memcpy(bytes, &swapped, sizeof swapped);
  out->append(bytes, sizeof bytes);
}

uint64_t LoadBigEndian(const char* at) noexcept {
  uint64_t number = 0;
  std::memcpy(&number, at, sizeof number);
  return __builtin_bswap64(number);
}

void AppendMetadataKey(std::string* out, uint8_t db, std::string_view key) {
  out->push_back('M');
  out->push_back(static_cast<char>(db));
  out->append(key);
}

std::string MetadataKey(uint8_t db, std::string_view key) {
  std::string out;
  out.reserve(2 + key.size());
  AppendMetadataKey(&out, db, key);
  return out;
}

std::string ElementPrefix(uint64_t id) { return Prefixed('E', id, 0); }

std::string ListElementKey(uint64_t id, int64_t position) {
  std::string key = Prefixed('E', id, 8);
  AppendBigEndian(&key, static_cast<uint64_t>(position) ^ kSignBit);
  return key;
}

std::string ElementKey(uint64_t id, std::string_view field) {
  std::string key = Prefixed('E', id, field.size());
  key.append(field);
  return key;
}

std::string MemberKey(uint64_t id, std::string_view member) {
  std::string key = Prefixed('E', id, 1 + member.size());
  key.push_back('m');
  key.append(member);
  return key;
}

std::string ScoreKey(uint64_t id, double score, std::string_view member) {
  std::string key = Prefixed('E', id, 9 + member.size());
  key.push_back('s');
  AppendBigEndian(&key, OrderedScore(score));
  key.append(member);
  return key;
}

std::string StreamKey(uint64_t id, StreamId at) {
  std::string key = Prefixed('E', id, 16);
  AppendBigEndian(&key, at.ms);
  AppendBigEndian(&key, at.seq);
  return key;
}

std::string ExpiryKey(uint64_t expiry_ms, uint64_t id) {
  std::string key = Prefixed('X', expiry_ms, 8);
  AppendBigEndian(&key, id);
  return key;
}

uint64_t OrderedScore(double score) noexcept {
  const auto bits = std::bit_cast<uint64_t>(score == 0 ? 0.0 : score);
  return (bits & kSignBit) != 0 ? ~bits : bits | kSignBit;
}

double ScoreOf(uint64_t ordered) noexcept {
  return std::bit_cast<double>((ordered & kSignBit) != 0 ? ordered & ~kSignBit : ~ordered);
}

std::string EncodeMetadata(const Metadata& metadata) {
  std::string bytes;
  bytes.reserve(MetadataBytes(metadata.type));
  bytes.push_back(static_cast<char>(metadata.type));
  AppendBigEndian(&bytes, metadata.id);
  if (metadata.type == Type::kList) {
    AppendBigEndian(&bytes, static_cast<uint64_t>(metadata.first));
    AppendBigEndian(&bytes, static_cast<uint64_t>(metadata.first) + metadata.count);
    return bytes;
  }
  AppendBigEndian(&bytes, metadata.count);
  if (metadata.type == Type::kStream) {
    for (const uint64_t number : {metadata.last.ms, metadata.last.seq, metadata.deleted.ms,
                                  metadata.deleted.seq, metadata.added}) {
      AppendBigEndian(&bytes, number);
    }
  }
  return bytes;
}

std::optional<Metadata> DecodeMetadata(std::string_view bytes) noexcept {
  if (bytes.empty()) return std::nullopt;
  Metadata metadata{.type = static_cast<Type>(bytes.front())};
  const size_t size = MetadataBytes(metadata.type);
  if (metadata.type == Type::kString) return metadata;
  if (size == 0 || bytes.size() != size) return std::nullopt;
  const auto number = [&](size_t index) { return LoadBigEndian(bytes.data() + 1 + index * 8); };
  metadata.id = number(0);
  metadata.count = number(1);
  if (metadata.type == Type::kList) {
    metadata.first = static_cast<int64_t>(number(1));
    metadata.count = number(2) - number(1);
  } else if (metadata.type == Type::kStream) {
    metadata.last = {number(2), number(3)};
    metadata.deleted = {number(4), number(5)};
    metadata.added = number(6);
  }
  return metadata;
}

std::string EndOfPrefix(std::string prefix) {
  while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xFF) prefix.pop_back();
  if (!prefix.empty()) {
    prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  }
  return prefix;
}

}  // namespace basalt::server
