#include <bit>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <lua.hpp>
#include <string>

#include "server/script_interpreter.h"
#include "server/script_libraries.h"

// struct packs values into bytes by a format, as Roberto Ierusalimschy's lua-struct does.
//
// - ">" and "<": the order of bytes. "!n": the alignment. "x": a byte of padding.
// - "b" "B" "h" "H" "i" "I" "l" "L" "T": integers; i and I with a size. "f" "d": numbers.
// - "s": a text that ends with a zero.
// - "c": a text of a given length. For c0 the value before is the length.

namespace basalt::server {
namespace {

constexpr size_t kPackedBytesMax = size_t{32} << 20;
constexpr size_t kIntegerBytesMax = 8;
constexpr size_t kAlignmentMax = 8;

class StructFormat {
 public:
  StructFormat(lua_State* lua, std::string_view text) : lua_(lua), text_(text) {}

  /// Takes the next option; false: there is none. Settings of order and alignment are taken along.
  bool Next();
  char kind() const { return kind_; }
  size_t size() const { return size_; }  // c0 and s: 0.
  bool is_little() const { return is_little_; }
  /// Bytes before a value at this place so that it is aligned.
  size_t PaddingAt(size_t at) const {
    const size_t alignment = size_ < alignment_ ? size_ : alignment_;
    if (kind_ == 'c' || kind_ == 's' || kind_ == 'x' || alignment <= 1) return 0;
    return (alignment - at % alignment) % alignment;
  }

 private:
  size_t TakeNumber(size_t otherwise);
  bool TakeSetting(char option);
  void SetSize();

  lua_State* lua_;
  std::string_view text_;
  bool is_little_ = std::endian::native == std::endian::little;
  size_t alignment_ = 1;
  char kind_ = 0;
  size_t size_ = 0;
};

size_t StructFormat::TakeNumber(size_t otherwise) {
  if (text_.empty() || std::isdigit(static_cast<unsigned char>(text_.front())) == 0) {
    return otherwise;
  }
  size_t number = 0;
  while (!text_.empty() && std::isdigit(static_cast<unsigned char>(text_.front())) != 0) {
    number = number * 10 + static_cast<size_t>(text_.front() - '0');
    if (number > kPackedBytesMax) luaL_error(lua_, "integral size overflow");
    text_.remove_prefix(1);
  }
  return number;
}

bool StructFormat::TakeSetting(char option) {
  switch (option) {
    case ' ':
      return true;
    case '<':
    case '>':
      is_little_ = option == '<';
      return true;
    case '!':
      alignment_ = TakeNumber(kAlignmentMax);
      if (alignment_ == 0 || !std::has_single_bit(alignment_)) {
        luaL_error(lua_, "alignment is not a power of 2");
      }
      return true;
    default:
      return false;
  }
}

void StructFormat::SetSize() {
  switch (kind_) {
    case 'b':
    case 'B':
    case 'x':
      size_ = 1;
      break;
    case 'h':
    case 'H':
      size_ = 2;
      break;
    case 'i':
    case 'I':
      size_ = TakeNumber(4);
      if (size_ == 0 || size_ > kIntegerBytesMax) {
        luaL_error(lua_, "integral size %d is larger than limit of %d", static_cast<int>(size_),
                   static_cast<int>(kIntegerBytesMax));
      }
      break;
    case 'f':
      size_ = 4;
      break;
    case 'l':
    case 'L':
    case 'T':
    case 'd':
      size_ = 8;
      break;
    case 'c':
      size_ = TakeNumber(1);
      break;
    case 's':
      size_ = 0;
      break;
    default:
      luaL_error(lua_, "invalid format option '%c'", kind_);
  }
}

bool StructFormat::Next() {
  while (!text_.empty()) {
    const char option = text_.front();
    text_.remove_prefix(1);
    if (TakeSetting(option)) continue;
    kind_ = option;
    SetSize();
    return true;
  }
  return false;
}

void AppendInteger(std::string* out, uint64_t number, const StructFormat& format) {
  for (size_t i = 0; i < format.size(); ++i) {
    const size_t byte = format.is_little() ? i : format.size() - 1 - i;
    out->push_back(static_cast<char>(number >> (8 * byte)));
  }
}

uint64_t ReadInteger(std::string_view bytes, bool is_little) {
  uint64_t number = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const size_t at = is_little ? bytes.size() - 1 - i : i;
    number = number << 8 | static_cast<unsigned char>(bytes[at]);
  }
  return number;
}

/// A number as an integer of 64 bits; one that does not fit is 0.
uint64_t IntegerOf(double number) {
  constexpr double kSignedLimit = 9.2233720368547758e18;
  if (number >= -kSignedLimit && number < kSignedLimit) {
    return static_cast<uint64_t>(static_cast<int64_t>(number));
  }
  return number >= kSignedLimit && number < 2 * kSignedLimit ? static_cast<uint64_t>(number) : 0;
}

void AppendText(lua_State* lua, int index, const StructFormat& format, std::string* out) {
  luaL_checkstring(lua, index);
  const std::string_view text = StringAt(lua, index);
  const size_t size = format.kind() == 's' || format.size() == 0 ? text.size() : format.size();
  luaL_argcheck(lua, text.size() >= size, index, "string too short");
  if (out->size() + size > kPackedBytesMax) luaL_error(lua, "the packed text is too long");
  out->append(text.substr(0, size));
  if (format.kind() == 's') out->push_back('\0');
}

int RunStructPack(lua_State* lua) {
  luaL_checkstring(lua, 1);
  StructFormat format(lua, StringAt(lua, 1));
  std::string out;
  int index = 2;
  while (format.Next()) {
    ScriptInterpreter::Of(lua).Spend(lua, 1);
    out.append(format.PaddingAt(out.size()), '\0');
    if (format.kind() == 'x') {
      out.push_back('\0');
    } else if (format.kind() == 's' || format.kind() == 'c') {
      AppendText(lua, index++, format, &out);
    } else if (format.kind() == 'f') {
      const auto number = static_cast<float>(luaL_checknumber(lua, index++));
      AppendInteger(&out, std::bit_cast<uint32_t>(number), format);
    } else if (format.kind() == 'd') {
      AppendInteger(&out, std::bit_cast<uint64_t>(luaL_checknumber(lua, index++)), format);
    } else {
      AppendInteger(&out, IntegerOf(luaL_checknumber(lua, index++)), format);
    }
    if (out.size() > kPackedBytesMax) luaL_error(lua, "the packed text is too long");
  }
  PushString(lua, out);
  return 1;
}

/// Pushes the value of a format that has a fixed size.
void PushFixed(lua_State* lua, const StructFormat& format, std::string_view bytes) {
  const uint64_t bits = ReadInteger(bytes, format.is_little());
  if (format.kind() == 'f') {
    return lua_pushnumber(lua,
                          static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits))));
  }
  if (format.kind() == 'd') return lua_pushnumber(lua, std::bit_cast<double>(bits));
  const bool is_signed = std::islower(static_cast<unsigned char>(format.kind())) != 0;
  if (!is_signed) return lua_pushnumber(lua, static_cast<double>(bits));
  const auto shift = static_cast<int>(64 - 8 * bytes.size());
  lua_pushnumber(lua, static_cast<double>(static_cast<int64_t>(bits << shift) >> shift));
}

/// How many bytes the value takes; pushes it.
size_t PushUnpacked(lua_State* lua, const StructFormat& format, std::string_view rest, int first) {
  size_t size = format.size();
  if (format.kind() == 's') {
    size = rest.find('\0');
    if (size == std::string_view::npos) luaL_error(lua, "unfinished string in data");
    PushString(lua, rest.substr(0, size));
    return size + 1;
  }
  if (format.kind() == 'c' && size == 0) {
    if (lua_gettop(lua) < first || lua_isnumber(lua, -1) == 0) {
      luaL_error(lua, "format 'c0' needs a previous size");
    }
    const double wanted = lua_tonumber(lua, -1);
    lua_pop(lua, 1);
    if (!(wanted >= 0) || wanted > static_cast<double>(rest.size())) {
      luaL_argerror(lua, 2, "data string too short");
    }
    size = static_cast<size_t>(wanted);
  }
  if (size > rest.size()) luaL_argerror(lua, 2, "data string too short");
  if (format.kind() == 'c') {
    PushString(lua, rest.substr(0, size));
  } else if (format.kind() != 'x') {
    PushFixed(lua, format, rest.substr(0, size));
  }
  return size;
}

int RunStructUnpack(lua_State* lua) {
  luaL_checkstring(lua, 1);
  luaL_checkstring(lua, 2);
  const lua_Integer start = luaL_optinteger(lua, 3, 1);
  luaL_argcheck(lua, start >= 1, 3, "offset must be 1 or greater");
  lua_settop(lua, 2);
  StructFormat format(lua, StringAt(lua, 1));
  const std::string_view data = StringAt(lua, 2);
  auto at = static_cast<size_t>(start - 1);
  while (format.Next()) {
    ScriptInterpreter::Of(lua).Spend(lua, 1);
    luaL_checkstack(lua, 2, "too many results");
    at += format.PaddingAt(at);
    if (at > data.size()) return luaL_argerror(lua, 2, "data string too short");
    at += PushUnpacked(lua, format, data.substr(at), 3);
  }
  lua_pushinteger(lua, static_cast<lua_Integer>(at + 1));
  return lua_gettop(lua) - 2;
}

int RunStructSize(lua_State* lua) {
  luaL_checkstring(lua, 1);
  StructFormat format(lua, StringAt(lua, 1));
  size_t total = 0;
  while (format.Next()) {
    ScriptInterpreter::Of(lua).Spend(lua, 1);
    luaL_argcheck(lua, format.kind() != 's', 1, "variable-size format in 'size'");
    luaL_argcheck(lua, format.kind() != 'c' || format.size() != 0, 1,
                  "variable-length format in 'size'");
    total += format.PaddingAt(total) + format.size();
  }
  lua_pushinteger(lua, static_cast<lua_Integer>(total));
  return 1;
}

}  // namespace

void OpenStructLibrary(lua_State* lua) {
  lua_newtable(lua);
  SetFunction(lua, "pack", RunStructPack);
  SetFunction(lua, "unpack", RunStructUnpack);
  SetFunction(lua, "size", RunStructSize);
}

}  // namespace basalt::server
