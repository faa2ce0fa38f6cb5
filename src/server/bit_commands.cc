#include <algorithm>
#include <bit>

#include "server/command.h"
#include "server/numbers.h"

namespace basalt::server {
namespace {

/// Bits are counted from the highest of the first byte. A string has at most 512 MiB.
constexpr int64_t kBitOffsetMax = (int64_t{512} << 23) - 1;

std::optional<int64_t> BitOffset(Call& call, size_t index) {
  const std::optional<int64_t> offset = ParseInteger(call.arg(index));
  if (offset && *offset >= 0 && *offset <= kBitOffsetMax) return offset;
  call.reply.Error("ERR bit offset is not an integer or out of range");
  return std::nullopt;
}

bool BitAt(std::string_view text, int64_t offset) {
  const auto byte = static_cast<size_t>(offset >> 3);
  return byte < text.size() &&
         ((static_cast<unsigned char>(text[byte]) >> (7 - (offset & 7))) & 1) != 0;
}

void RunGetbit(Call& call) {
  const std::optional<int64_t> offset = BitOffset(call, 2);
  if (!offset) return;
  Key key;
  if (!call.Open(call.arg(1), Type::kString, &key)) return;
  call.reply.Integer(BitAt(key.text, *offset) ? 1 : 0);
}

void RunSetbit(Call& call) {
  const std::optional<int64_t> offset = BitOffset(call, 2);
  if (!offset) return;
  const std::optional<int64_t> bit = ParseInteger(call.arg(3));
  if (!bit || (*bit != 0 && *bit != 1)) {
    return call.reply.Error("ERR bit is not an integer or out of range");
  }
  Key key;
  if (!call.Open(call.arg(1), Type::kString, &key)) return;
  const bool old = BitAt(key.text, *offset);
  const auto byte = static_cast<size_t>(*offset >> 3);
  if (key.text.size() <= byte) key.text.resize(byte + 1, '\0');
  const auto mask = static_cast<unsigned char>(1U << (7 - (*offset & 7)));
  const auto present = static_cast<unsigned char>(key.text[byte]);
  key.text[byte] = static_cast<char>(*bit == 1 ? present | mask : present & ~mask);
  call.view.Save(key);
  call.reply.Integer(old ? 1 : 0);
}

/// A range of bits, [begin, end).
struct BitRange {
  int64_t begin = 0;
  int64_t end = 0;
};

/// Reads start, end and BYTE or BIT from `index` on; without an end the range goes to that of the
/// string. Nothing: an error is replied.
std::optional<BitRange> ParseBitRange(Call& call, size_t index, int64_t bytes) {
  if (call.count() <= index) return BitRange{0, bytes * 8};
  const bool by_bits = call.count() == index + 3 && call.Is(index + 2, "bit");
  if (call.count() > index + 3 ||
      (call.count() == index + 3 && !by_bits && !call.Is(index + 2, "byte"))) {
    call.SyntaxError();
    return std::nullopt;
  }
  const std::optional<int64_t> first = call.Integer(index);
  if (!first) return std::nullopt;
  const std::optional<int64_t> last = call.count() > index + 1 ? call.Integer(index + 1) : -1;
  if (!last) return std::nullopt;
  const int64_t size = by_bits ? bytes * 8 : bytes;
  int64_t begin = *first < 0 ? std::max<int64_t>(*first + size, 0) : *first;
  int64_t end = *last < 0 ? std::max<int64_t>(*last + size, 0) : std::min(*last, size - 1);
  if (begin > end || size == 0) return BitRange{};
  end = std::min(end, size - 1) + 1;
  return by_bits ? BitRange{begin, end} : BitRange{begin * 8, end * 8};
}

int64_t CountBits(std::string_view text, BitRange range) {
  int64_t count = 0;
  int64_t at = range.begin;
  for (; at < range.end && (at & 7) != 0; ++at) count += BitAt(text, at) ? 1 : 0;
  for (; at + 8 <= range.end; at += 8) {
    count += std::popcount(static_cast<unsigned char>(text[static_cast<size_t>(at >> 3)]));
  }
  for (; at < range.end; ++at) count += BitAt(text, at) ? 1 : 0;
  return count;
}

void RunBitcount(Call& call) {
  Key key;
  if (!call.Open(call.arg(1), Type::kString, &key)) return;
  if (!key.exists) return call.reply.Integer(0);
  if (call.count() == 3) return call.SyntaxError();
  const auto range = ParseBitRange(call, 2, static_cast<int64_t>(key.text.size()));
  if (!range) return;
  // Redis counts nothing between two ends that are given from the end in the wrong order.
  const auto first = call.count() > 3 ? ParseInteger(call.arg(2)) : std::nullopt;
  const auto last = call.count() > 3 ? ParseInteger(call.arg(3)) : std::nullopt;
  const bool is_reversed = first && last && *first < 0 && *last < 0 && *first > *last;
  call.reply.Integer(is_reversed ? 0 : CountBits(key.text, *range));
}

void RunBitpos(Call& call) {
  const std::optional<int64_t> bit = call.Integer(2);
  if (!bit) return;
  if (*bit != 0 && *bit != 1) return call.reply.Error("ERR The bit argument must be 1 or 0.");
  Key key;
  if (!call.Open(call.arg(1), Type::kString, &key)) return;
  const auto bytes = static_cast<int64_t>(key.text.size());
  const auto range = ParseBitRange(call, 3, bytes);
  if (!range) return;
  if (!key.exists) return call.reply.Integer(*bit == 1 ? -1 : 0);
  if (range->begin >= range->end) return call.reply.Integer(-1);
  for (int64_t at = range->begin; at < range->end; ++at) {
    if (BitAt(key.text, at) == (*bit == 1)) return call.reply.Integer(at);
  }
  // Behind a string whose end was not given stand zeros.
  call.reply.Integer(*bit == 0 && call.count() <= 4 ? bytes * 8 : -1);
}

void RunBitop(Call& call) {
  const std::string name = ToLower(call.arg(1));
  if (name != "and" && name != "or" && name != "xor" && name != "not") return call.SyntaxError();
  if (name == "not" && call.count() != 4) {
    return call.reply.Error("ERR BITOP NOT must be called with a single source key.");
  }
  std::vector<std::string> texts;
  size_t longest = 0;
  for (size_t i = 3; i < call.count(); ++i) {
    Key key;
    if (!call.Open(call.arg(i), Type::kString, &key)) return;
    longest = std::max(longest, key.text.size());
    texts.push_back(std::move(key.text));
  }
  std::string result = texts[0];
  result.resize(longest, '\0');
  for (size_t at = 0; at < longest; ++at) {
    auto byte = static_cast<unsigned char>(result[at]);
    for (size_t i = 1; i < texts.size(); ++i) {
      const auto other = static_cast<unsigned char>(at < texts[i].size() ? texts[i][at] : '\0');
      byte = static_cast<unsigned char>(name == "and"  ? byte & other
                                        : name == "or" ? byte | other
                                                       : byte ^ other);
    }
    result[at] = static_cast<char>(name == "not" ? ~byte : byte);
  }
  Key target = call.view.Find(call.arg(2));
  call.view.Remove(target);
  if (longest > 0) {
    target = {.name = call.arg(2), .text = std::move(result)};
    call.view.Save(target);
  }
  call.reply.Integer(static_cast<int64_t>(longest));
}

constexpr Command kBitCommands[] = {
    {"getbit", "key offset", 3, kReadOnly | kFast | kSingleRead, 1, 1, 1, Group::kBitmap,
     "Returns a bit of a string value.", RunGetbit},
    {"setbit", "key offset value", 4, kWrite, 1, 1, 1, Group::kBitmap,
     "Sets a bit of a string value and returns what it was.", RunSetbit},
    {"bitcount", "key [start end [BYTE | BIT]]", -2, kReadOnly | kSingleRead, 1, 1, 1,
     Group::kBitmap, "Counts the bits that are set.", RunBitcount},
    {"bitpos", "key bit [start [end [BYTE | BIT]]]", -3, kReadOnly | kSingleRead, 1, 1, 1,
     Group::kBitmap, "Finds the first bit that is set, or is not.", RunBitpos},
    {"bitop", "AND|OR|XOR|NOT destkey key [key ...]", -4, kWrite, 2, -1, 1, Group::kBitmap,
     "Combines strings bit by bit and stores the result.", RunBitop},
};

}  // namespace

std::span<const Command> BitCommands() { return kBitCommands; }

}  // namespace basalt::server
