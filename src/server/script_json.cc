#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <lua.hpp>
#include <string>

#include "server/script_interpreter.h"
#include "server/script_libraries.h"

// cjson: JSON as lua-cjson 2.1 reads and writes it. null is a light userdata, cjson.null. A table
// whose keys are whole numbers above zero is an array, any other an object; an empty one is an
// object. Options that a script sets hold until it ends.

namespace basalt::server {
namespace {

/// Of what encode has written and Lua does not count yet.
constexpr size_t kEncodedBytesMax = size_t{32} << 20;

JsonOptions& OptionsOf(lua_State* lua) { return ScriptInterpreter::Of(lua).json_options; }

class JsonEncoder {
 public:
  JsonEncoder(lua_State* lua, std::string* out) : lua_(lua), out_(out), options_(OptionsOf(lua)) {}
  /// Appends the value on top, and pops it.
  void Encode(int depth);

 private:
  [[noreturn]] void Refuse(const char* reason) {
    luaL_error(lua_, "Cannot serialise %s: %s", luaL_typename(lua_, -1), reason);
    __builtin_unreachable();
  }
  void AppendString(std::string_view text);
  void AppendNumber(double number);
  /// How many elements the table on top has as an array; -1: it is an object.
  int ArrayLength();
  void AppendTable(int depth);
  void AppendKey();

  lua_State* lua_;
  std::string* out_;
  const JsonOptions& options_;
};

void JsonEncoder::AppendString(std::string_view text) {
  constexpr std::string_view kEscaped = "\b\t\n\f\r\"\\/";
  constexpr std::string_view kLetters = "btnfr\"\\/";
  *out_ += '"';
  for (const char c : text) {
    const size_t known = kEscaped.find(c);
    if (known != std::string_view::npos) {
      *out_ += '\\';
      *out_ += kLetters[known];
    } else if (static_cast<unsigned char>(c) < 0x20 || c == '\x7f') {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      *out_ += code;
    } else {
      *out_ += c;
    }
  }
  *out_ += '"';
}

void JsonEncoder::AppendNumber(double number) {
  if (!std::isfinite(number) && !options_.encodes_invalid_numbers) {
    Refuse("must not be NaN or Inf");
  }
  char text[40];
  std::snprintf(text, sizeof text, "%.*g", options_.number_precision, number);
  *out_ += text;
}

int JsonEncoder::ArrayLength() {
  double most = 0;
  double count = 0;
  for (lua_pushnil(lua_); lua_next(lua_, -2) != 0; lua_pop(lua_, 1)) {
    const double key = lua_type(lua_, -2) == LUA_TNUMBER ? lua_tonumber(lua_, -2) : 0;
    if (key < 1 || std::floor(key) != key) {
      lua_pop(lua_, 2);
      return -1;
    }
    most = std::max(most, key);
    ++count;
  }
  ScriptInterpreter::Of(lua_).Spend(lua_, static_cast<uint64_t>(count));
  if (count == 0) return -1;
  const bool is_sparse = options_.sparse_ratio > 0 && most > count * options_.sparse_ratio &&
                         most > options_.sparse_safe;
  if (is_sparse && options_.sparse_becomes_object) return -1;
  if (is_sparse || most > static_cast<double>(kEncodedBytesMax)) Refuse("excessively sparse array");
  return static_cast<int>(most);
}

void JsonEncoder::AppendKey() {
  lua_pushvalue(lua_, -2);
  if (lua_type(lua_, -1) == LUA_TNUMBER) {
    *out_ += '"';
    AppendNumber(lua_tonumber(lua_, -1));
    *out_ += '"';
  } else if (lua_type(lua_, -1) == LUA_TSTRING) {
    AppendString(StringAt(lua_, -1));
  } else {
    Refuse("table key must be a number or string");
  }
  lua_pop(lua_, 1);
  *out_ += ':';
}

void JsonEncoder::AppendTable(int depth) {
  if (depth > options_.encode_depth) {
    luaL_error(lua_, "Cannot serialise, excessive depth (%d)", depth);
  }
  luaL_checkstack(lua_, 8, "the value nests too deep");
  const int length = ArrayLength();
  if (length >= 0) {
    *out_ += '[';
    for (int i = 1; i <= length; ++i) {
      if (i > 1) *out_ += ',';
      lua_rawgeti(lua_, -1, i);
      Encode(depth + 1);
    }
    *out_ += ']';
    return;
  }
  *out_ += '{';
  bool is_first = true;
  lua_pushnil(lua_);
  while (lua_next(lua_, -2) != 0) {
    if (!is_first) *out_ += ',';
    is_first = false;
    AppendKey();
    Encode(depth + 1);
  }
  *out_ += '}';
}

void JsonEncoder::Encode(int depth) {
  ScriptInterpreter::Of(lua_).Spend(lua_, 1);
  if (out_->size() > kEncodedBytesMax) luaL_error(lua_, "Cannot serialise: the text is too long");
  switch (lua_type(lua_, -1)) {
    case LUA_TSTRING:
      AppendString(StringAt(lua_, -1));
      break;
    case LUA_TNUMBER:
      AppendNumber(lua_tonumber(lua_, -1));
      break;
    case LUA_TBOOLEAN:
      *out_ += lua_toboolean(lua_, -1) != 0 ? "true" : "false";
      break;
    case LUA_TTABLE:
      AppendTable(depth + 1);
      break;
    case LUA_TNIL:
      *out_ += "null";
      break;
    case LUA_TLIGHTUSERDATA:
      if (lua_touserdata(lua_, -1) != nullptr) Refuse("type not supported");
      *out_ += "null";
      break;
    default:
      Refuse("type not supported");
  }
  lua_pop(lua_, 1);
}

class JsonDecoder {
 public:
  JsonDecoder(lua_State* lua, std::string_view text)
      : lua_(lua), text_(text), options_(OptionsOf(lua)) {}
  void Decode();

 private:
  void SkipSpace() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) {
      ++at_;
    }
  }
  bool Take(char wanted) {
    SkipSpace();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  /// Raises "Expected ... but found ...", of the token at the present place.
  [[noreturn]] void Refuse(const char* expected, const char* found = nullptr);
  const char* TokenName() const;
  void PushValue(int depth);
  void PushString();
  void AppendEscape(std::string* out);
  uint32_t TakeHex();
  void PushNumber();
  void PushArray(int depth);
  void PushObject(int depth);
  void Enter(int depth);

  lua_State* lua_;
  std::string_view text_;
  const JsonOptions& options_;
  size_t at_ = 0;
};

const char* JsonDecoder::TokenName() const {
  if (at_ >= text_.size()) return "T_END";
  const std::string_view rest = text_.substr(at_);
  switch (rest.front()) {
    case '{':
      return "T_OBJ_BEGIN";
    case '}':
      return "T_OBJ_END";
    case '[':
      return "T_ARR_BEGIN";
    case ']':
      return "T_ARR_END";
    case '"':
      return "T_STRING";
    case ':':
      return "T_COLON";
    case ',':
      return "T_COMMA";
    default:
      break;
  }
  if (rest.starts_with("null")) return "T_NULL";
  if (rest.starts_with("true") || rest.starts_with("false")) return "T_BOOLEAN";
  const bool is_number = (rest.front() >= '0' && rest.front() <= '9') || rest.front() == '-';
  return is_number ? "T_NUMBER" : "invalid token";
}

void JsonDecoder::Refuse(const char* expected, const char* found) {
  luaL_error(lua_, "Expected %s but found %s at character %d", expected,
             found != nullptr ? found : TokenName(), static_cast<int>(at_ + 1));
  __builtin_unreachable();
}

uint32_t JsonDecoder::TakeHex() {
  uint32_t code = 0;
  const char* begin = text_.data() + at_;
  if (text_.size() - at_ < 4) Refuse("value", "invalid unicode escape code");
  const auto [end, error] = std::from_chars(begin, begin + 4, code, 16);
  if (error != std::errc() || end != begin + 4) Refuse("value", "invalid unicode escape code");
  at_ += 4;
  return code;
}

void AppendUtf8(std::string* out, uint32_t code) {
  if (code < 0x80) {
    *out += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr uint32_t kMarks[] = {0, 0xC0, 0xE0, 0xF0};
  *out += static_cast<char>(kMarks[more] | code >> (6 * more));
  for (int shift = 6 * (more - 1); shift >= 0; shift -= 6) {
    *out += static_cast<char>(0x80 | (code >> shift & 0x3F));
  }
}

void JsonDecoder::AppendEscape(std::string* out) {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  const char letter = at_ < text_.size() ? text_[at_] : '\0';
  const size_t known = kLetters.find(letter);
  if (letter != 'u') {
    if (known == std::string_view::npos) Refuse("value", "invalid escape code");
    ++at_;
    *out += kMeanings[known];
    return;
  }
  ++at_;
  uint32_t code = TakeHex();
  if (code >= 0xDC00 && code < 0xE000) Refuse("value", "invalid unicode escape code");
  if (code >= 0xD800 && code < 0xDC00) {
    if (text_.substr(at_, 2) != "\\u") Refuse("value", "invalid unicode escape code");
    at_ += 2;
    const uint32_t low = TakeHex();
    if (low < 0xDC00 || low >= 0xE000) Refuse("value", "invalid unicode escape code");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  AppendUtf8(out, code);
}

/// At the opening quote.
void JsonDecoder::PushString() {
  const size_t begin = at_++;
  std::string out;
  while (true) {
    const size_t stop = text_.find_first_of("\"\\", at_);
    if (stop == std::string_view::npos) {
      at_ = text_.size();
      Refuse("value", "unexpected end of string");
    }
    out.append(text_.substr(at_, stop - at_));
    at_ = stop + 1;
    if (text_[stop] == '"') break;
    AppendEscape(&out);
  }
  ScriptInterpreter::Of(lua_).Spend(lua_, (at_ - begin) / 16);
  server::PushString(lua_, out);
}

void JsonDecoder::PushNumber() {
  double number = 0;
  const char* begin = text_.data() + at_;
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), number);
  if (error == std::errc::invalid_argument) Refuse("value", "invalid number");
  if (error == std::errc::result_out_of_range) number = HUGE_VAL;
  if (!std::isfinite(number) && !options_.decodes_invalid_numbers) {
    Refuse("value", "invalid number");
  }
  at_ += static_cast<size_t>(end - begin);
  lua_pushnumber(lua_, number);
}

void JsonDecoder::Enter(int depth) {
  if (depth > options_.decode_depth) {
    luaL_error(lua_, "Found too many nested data structures (%d)", depth);
  }
  luaL_checkstack(lua_, 8, "the value nests too deep");
}

/// Behind the opening bracket.
void JsonDecoder::PushArray(int depth) {
  Enter(depth);
  lua_newtable(lua_);
  if (Take(']')) return;
  for (int i = 1;; ++i) {
    PushValue(depth);
    lua_rawseti(lua_, -2, i);
    if (Take(']')) return;
    if (!Take(',')) Refuse("comma or array end");
  }
}

void JsonDecoder::PushObject(int depth) {
  Enter(depth);
  lua_newtable(lua_);
  if (Take('}')) return;
  while (true) {
    SkipSpace();
    if (at_ >= text_.size() || text_[at_] != '"') Refuse("object key string");
    PushString();
    if (!Take(':')) Refuse("colon");
    PushValue(depth);
    lua_rawset(lua_, -3);
    if (Take('}')) return;
    if (!Take(',')) Refuse("comma or object end");
  }
}

void JsonDecoder::PushValue(int depth) {
  ScriptInterpreter::Of(lua_).Spend(lua_, 1);
  SkipSpace();
  const std::string_view rest = text_.substr(at_);
  const auto take_word = [&](std::string_view word) {
    if (!rest.starts_with(word)) return false;
    at_ += word.size();
    return true;
  };
  if (Take('{')) return PushObject(depth + 1);
  if (Take('[')) return PushArray(depth + 1);
  if (rest.starts_with('"')) return PushString();
  if (take_word("null")) return lua_pushlightuserdata(lua_, nullptr);
  if (take_word("true")) return lua_pushboolean(lua_, 1);
  if (take_word("false")) return lua_pushboolean(lua_, 0);
  if (std::string_view(TokenName()) == "T_NUMBER") return PushNumber();
  Refuse("value");
}

void JsonDecoder::Decode() {
  PushValue(0);
  SkipSpace();
  if (at_ < text_.size()) Refuse("the end");
}

int RunEncode(lua_State* lua) {
  luaL_argcheck(lua, lua_gettop(lua) == 1, 1, "expected 1 argument");
  std::string out;
  JsonEncoder(lua, &out).Encode(0);
  PushString(lua, out);
  return 1;
}

int RunDecode(lua_State* lua) {
  luaL_argcheck(lua, lua_gettop(lua) == 1, 1, "expected 1 argument");
  luaL_checkstring(lua, 1);
  JsonDecoder(lua, StringAt(lua, 1)).Decode();
  return 1;
}

// --- Options. Each function gives what holds, after it has taken its arguments.

void TakeNumber(lua_State* lua, int index, int low, int high, int* option) {
  if (!lua_isnoneornil(lua, index)) {
    const lua_Integer number = luaL_checkinteger(lua, index);
    luaL_argcheck(lua, number >= low && number <= high, index, "out of range");
    *option = static_cast<int>(number);
  }
  lua_pushinteger(lua, *option);
}

void TakeBoolean(lua_State* lua, int index, bool* option) {
  if (!lua_isnoneornil(lua, index)) *option = lua_toboolean(lua, index) != 0;
  lua_pushboolean(lua, *option ? 1 : 0);
}

int RunEncodeSparseArray(lua_State* lua) {
  JsonOptions& options = OptionsOf(lua);
  lua_settop(lua, 3);
  TakeBoolean(lua, 1, &options.sparse_becomes_object);
  TakeNumber(lua, 2, 0, 1 << 30, &options.sparse_ratio);
  TakeNumber(lua, 3, 0, 1 << 30, &options.sparse_safe);
  return 3;
}

constexpr int kJsonDepthMax = 1000;  // Deeper values would need too much of the stack.

int RunEncodeMaxDepth(lua_State* lua) {
  lua_settop(lua, 1);
  TakeNumber(lua, 1, 1, kJsonDepthMax, &OptionsOf(lua).encode_depth);
  return 1;
}
int RunDecodeMaxDepth(lua_State* lua) {
  lua_settop(lua, 1);
  TakeNumber(lua, 1, 1, kJsonDepthMax, &OptionsOf(lua).decode_depth);
  return 1;
}
int RunEncodeNumberPrecision(lua_State* lua) {
  constexpr int kPrecisionMax = 17;
  lua_settop(lua, 1);
  TakeNumber(lua, 1, 1, kPrecisionMax, &OptionsOf(lua).number_precision);
  return 1;
}
int RunEncodeInvalidNumbers(lua_State* lua) {
  lua_settop(lua, 1);
  TakeBoolean(lua, 1, &OptionsOf(lua).encodes_invalid_numbers);
  return 1;
}
int RunDecodeInvalidNumbers(lua_State* lua) {
  lua_settop(lua, 1);
  TakeBoolean(lua, 1, &OptionsOf(lua).decodes_invalid_numbers);
  return 1;
}
/// No buffer is kept.
int RunEncodeKeepBuffer(lua_State* lua) {
  lua_pushboolean(lua, 0);
  return 1;
}

}  // namespace

void OpenJsonLibrary(lua_State* lua) {
  lua_newtable(lua);
  SetFunction(lua, "encode", RunEncode);
  SetFunction(lua, "decode", RunDecode);
  SetFunction(lua, "encode_sparse_array", RunEncodeSparseArray);
  SetFunction(lua, "encode_max_depth", RunEncodeMaxDepth);
  SetFunction(lua, "decode_max_depth", RunDecodeMaxDepth);
  SetFunction(lua, "encode_number_precision", RunEncodeNumberPrecision);
  SetFunction(lua, "encode_invalid_numbers", RunEncodeInvalidNumbers);
  SetFunction(lua, "decode_invalid_numbers", RunDecodeInvalidNumbers);
  SetFunction(lua, "encode_keep_buffer", RunEncodeKeepBuffer);
  lua_pushlightuserdata(lua, nullptr);
  lua_setfield(lua, -2, "null");
}

}  // namespace basalt::server
