#ifdef BASALT_LUA

#include "server/script_interpreter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/random.h"
#include "server/sha1.h"

namespace basalt::server {
namespace {

/// Answers each command with its arguments as an array; "fail" with an error.
class EchoHost final : public ScriptHost {
 public:
  void RunCommand(std::span<const std::string_view> args, Reply& reply) override {
    ++commands;
    if (args.front() == "fail") return reply.Error("OOPS it failed");
    reply.Array(args.size());
    for (const std::string_view arg : args) reply.Bulk(arg);
  }
  bool MayRun(std::span<const std::string_view> args) override { return args.front() != "fail"; }

  int commands = 0;
};

class ScriptInterpreterTest : public testing::Test {
 protected:
  static constexpr ScriptLimits kLimits{
      .memory_bytes = 4 << 20, .steps = 500'000, .time = std::chrono::seconds(60)};

  void SetUp() override {
    interpreter_ = ScriptInterpreter::Create(kLimits);
    ASSERT_NE(interpreter_, nullptr);
  }

  std::string Run(std::string_view text) {
    std::string out;
    Reply reply(&out, 1 << 20);
    const std::vector<std::string_view> keys = {"k1", "k2"};
    const std::vector<std::string_view> args = {"a1"};
    const std::string sha1 = Sha1Hex(text);
    is_whole_ = interpreter_->Run({sha1, text, keys, args}, host_, reply);
    EXPECT_LE(interpreter_->used_bytes(), kLimits.memory_bytes) << text;
    return out;
  }

  void ExpectError(std::string_view text, std::string_view part) {
    const std::string out = Run(text);
    EXPECT_EQ(out.substr(0, 1), "-") << text;
    EXPECT_NE(out.find(part), std::string::npos) << text << "\n" << out;
    EXPECT_FALSE(is_whole_) << text;
  }

  EchoHost host_;
  bool is_whole_ = false;
  std::unique_ptr<ScriptInterpreter> interpreter_;
};

TEST(Sha1, GivesTheDigestsOfRfc3174) {
  EXPECT_EQ(Sha1Hex("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(Sha1Hex(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(Sha1Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(Sha1Hex(std::string(1'000'000, 'a')), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

TEST_F(ScriptInterpreterTest, ConvertsValuesAsRedisDoes) {
  EXPECT_EQ(Run("return {KEYS[2], ARGV[1], 3.9, true, {ok='fine'}, 'x', nil, 'lost'}"),
            "*6\r\n$2\r\nk2\r\n$2\r\na1\r\n:3\r\n:1\r\n+fine\r\n$1\r\nx\r\n");
  EXPECT_EQ(Run("return redis.call('set', 'a', 10, 1.5)"),
            "*4\r\n$3\r\nset\r\n$1\r\na\r\n$2\r\n10\r\n$3\r\n1.5\r\n");
  EXPECT_EQ(Run("return redis.pcall('fail').err"), "$14\r\nOOPS it failed\r\n");
  EXPECT_EQ(Run("return redis.pcall('fail')"), "-OOPS it failed\r\n");
  EXPECT_TRUE(is_whole_);  // An error that is returned is a value.
  ExpectError("redis.call('fail')", "OOPS it failed script: ");
  EXPECT_EQ(Run("return 1 --[[ ]]"), ":1\r\n");
}

TEST_F(ScriptInterpreterTest, NothingOfARunIsLeftForTheNext) {
  Run("rawset(_G, 'left', 1)");
  Run("pcall(function() string.rep = nil end) pcall(rawset, string, 'rep', nil)");
  Run("pcall(setmetatable, _G, {}) pcall(table.insert, string, 1)");
  Run("cjson.encode_max_depth(1) math.randomseed(7)");
  Run("pcall(function() getmetatable('').__index = nil end)");
  EXPECT_EQ(Run("return {rawget(_G, 'left') == nil and 1 or 0, ('ab'):rep(2), #string,"
                "cjson.encode({{{1}}}), tostring(math.random()):sub(1, 6)}"),
            "*5\r\n:1\r\n$4\r\nabab\r\n:0\r\n$7\r\n[[[1]]]\r\n$6\r\n0.1708\r\n");
}

TEST_F(ScriptInterpreterTest, WhatReachesOutsideIsNotThere) {
  for (const char* name : {"os", "io", "debug", "require", "package", "dofile", "loadfile", "print",
                           "getfenv", "setfenv", "newproxy", "module"}) {
    ExpectError(std::string("return ") + name, "nonexistent global variable");
  }
  EXPECT_EQ(Run("return {type(string.dump), type(loadstring('\\27Lua'))}"),
            "*2\r\n$3\r\nnil\r\n$3\r\nnil\r\n");
  ExpectError("\x1bLua", "binary chunks");
  ExpectError("return load(function() return nil_global end)", "nonexistent global");
  EXPECT_EQ(Run("return loadstring('return KEYS[1]')()"), "$2\r\nk1\r\n");
}

TEST_F(ScriptInterpreterTest, EndlessScriptsEnd) {
  const std::vector<std::string_view> endless = {
      "while true do end",
      "while true do pcall(function() while true do end end) end",
      "local function f() while true do pcall(f) end end f()",
      "xpcall(function() while true do end end, function() while true do end end)",
      "coroutine.wrap(function() while true do end end)()",
      "while true do coroutine.wrap(function() while true do pcall(error) end end)() end",
      "local s = ('a'):rep(30) return s:find(('a*'):rep(30) .. 'b')",
      "for i = 1, 1e9 do ('x'):rep(100000):upper() end",
      "local t = {} table.insert(t, -2^31, 1)",
      "local t = {} for i = 1, 1e6 do t[i] = i end table.sort(t, function() return true end)",
      "return ('x'):rep(2^31 - 1)",
      "return ('x'):rep(100000):gsub('.-b', '')",
      "while true do redis.call('get', 'x') end",
  };
  for (const std::string_view text : endless) {
    ExpectError(text, "");
    EXPECT_EQ(Run("return 1"), ":1\r\n") << text;
  }
}

TEST_F(ScriptInterpreterTest, MemoryHasABound) {
  for (const std::string_view text : {
           "local t = {} while true do t[#t + 1] = {} end",
           "local s = 'x' while true do s = s .. s end",
           "local t = {} for i = 1, 1e6 do t[i] = 'x' .. i end",
           "local s = ('x'):rep(100000) local t = {} for i = 1, 1000 do t[i] = s end "
           "return cjson.encode(t)",
           "local s = ('x'):rep(100000) local t = {} for i = 1, 1000 do t[i] = s end "
           "return cmsgpack.pack(t)",
           "local function f() return f() .. 'x' end return f()",
           "return cjson.decode(('['):rep(5000))",
           "return loadstring(('('):rep(5000))() ",
           "return ('a'):rep(50000):find(('a?'):rep(50000))",
       }) {
    ExpectError(text, "");
    EXPECT_EQ(Run("return 1"), ":1\r\n") << text;
  }
}

TEST_F(ScriptInterpreterTest, RepliesHaveABound) {
  ExpectError("local t = {} t[1] = t return t", "nests too deep");
  std::string out;
  Reply reply(&out, 10'000);
  const std::string_view text = "local t = {1} for i = 1, 60 do t = {t, t} end return t";
  interpreter_->Run({"sha", text, {}, {}}, host_, reply);
  EXPECT_TRUE(reply.is_over_limit());
}

TEST_F(ScriptInterpreterTest, AKilledScriptEnds) {
  const ScriptLimits patient{
      .memory_bytes = 4 << 20, .steps = uint64_t{1} << 60, .time = std::chrono::minutes(10)};
  const auto interpreter = ScriptInterpreter::Create(patient);
  std::string out;
  std::thread runner([&] {
    Reply reply(&out, 10'000);
    interpreter->Run({"sha", "redis.call('x') while true do pcall(error) end", {}, {}}, host_,
                     reply);
  });
  std::atomic<bool> ended = false;
  std::thread killer([&] {
    while (!ended) {
      interpreter->Kill();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  runner.join();
  ended = true;
  killer.join();
  EXPECT_NE(out.find("Script killed by user"), std::string::npos) << out;
}

TEST_F(ScriptInterpreterTest, LibrariesReadWhatTheyWrite) {
  EXPECT_EQ(Run("local t = cjson.decode('{\"a\":[1,2.5,\"x\\\\u00e9\\\\n\",true,null]}') "
                "return {cjson.encode(t.a), tostring(t.a[5] == cjson.null)}"),
            "*2\r\n$25\r\n[1,2.5,\"x\xc3\xa9\\n\",true,null]\r\n$4\r\ntrue\r\n");
  EXPECT_EQ(Run("return {cmsgpack.unpack(cmsgpack.pack({1, -70000, 2.5, {a = 'b'}, 2^40}))}"),
            "*1\r\n*5\r\n:1\r\n:-70000\r\n:2\r\n*0\r\n:1099511627776\r\n");
  EXPECT_EQ(Run("return {struct.unpack('>I2<i4hs', struct.pack('>I2<i4hs', 258, -2, -3, 'z'))}"),
            "*5\r\n:258\r\n:-2\r\n:-3\r\n$1\r\nz\r\n:11\r\n");
  EXPECT_EQ(Run("return {bit.band(0xFF, 0x0F), bit.lshift(1, 31), bit.bnot(0), bit.tohex(255)}"),
            "*4\r\n:15\r\n:-2147483648\r\n:-1\r\n$8\r\n000000ff\r\n");
  EXPECT_EQ(Run("local out = {} for k, v in ('a=1, b=2'):gmatch('(%w+)=(%w+)') do "
                "out[#out + 1] = k .. v end return {out, ('hello'):gsub('l', {l = 'L'}), "
                "('x(y(z))'):match('%b()'), ('THE (quick) fox'):find('%((%a+)%)')}"),
            "*6\r\n*2\r\n$2\r\na1\r\n$2\r\nb2\r\n$5\r\nheLLo\r\n$6\r\n(y(z))\r\n:5\r\n:11\r\n"
            "$5\r\nquick\r\n");
  EXPECT_EQ(Run("local t = {5, 2, 8, 1, 9, 3} table.sort(t) table.insert(t, 1, 0) "
                "table.remove(t, 3) table.sort(t, function(a, b) return a > b end) return t"),
            "*6\r\n:9\r\n:8\r\n:5\r\n:3\r\n:1\r\n:0\r\n");
}

/// Random programs from pieces that are likely to be harmful together.
class ProgramMaker {
 public:
  explicit ProgramMaker(uint64_t seed) : random_(seed) {}
  std::string Block(int depth) {
    std::string text;
    for (uint64_t i = random_.Next() % 3 + 1; i > 0; --i) text += Statement(depth) + " ";
    return text;
  }

 private:
  std::string Pick(const std::vector<std::string>& choices) {
    return choices[random_.Next() % choices.size()];
  }
  std::string Value(int depth) {
    if (depth <= 0) {
      return Pick({"1", "2^31", "-1", "'x'", "nil", "{}", "t", "s", "KEYS", "_G", "0/0", "true"});
    }
    const std::string a = Value(depth - 1);
    const std::string b = Value(depth - 1);
    return Pick({"(" + a + " .. " + b + ")",
                 "s:rep(" + a + ")",
                 "s:gsub('.-(.)', " + a + ")",
                 "cjson.encode(" + a + ")",
                 "cjson.decode(" + a + ")",
                 "cmsgpack.pack(" + a + ")",
                 "cmsgpack.unpack(" + a + ")",
                 "struct.pack(" + a + ", " + b + ")",
                 "struct.unpack(" + a + ", " + b + ")",
                 "pcall(" + a + ", " + b + ")",
                 "setmetatable(" + a + ", {__index = " + b + "})",
                 "string.format('%5.9s', " + a + ")",
                 "function(...) " + Block(depth - 1) + " return ... end",
                 "redis.pcall(" + a + ", " + b + ")",
                 "bit.bxor(" + a + ", " + b + ")",
                 "coroutine.wrap(" + a + ")",
                 "unpack(" + a + ", " + b + ")",
                 "loadstring(" + a + ")",
                 "s:find(" + a + ", " + b + ")",
                 "rawset(" + a + ", 1, 2)",
                 "table.concat(" + a + ", " + b + ")"});
  }
  std::string Statement(int depth) {
    const std::string value = Value(depth);
    if (depth <= 0) return Pick({"s = " + value, "t[#t + 1] = s", "t[s] = t"});
    const std::string block = Block(depth - 1);
    return Pick({"s = s .. tostring(" + value + ")", "t[#t + 1] = " + value,
                 "while true do " + block + " end", "for i = 1, 1e9 do " + block + " end",
                 "pcall(function() " + block + " end)",
                 "do local f = " + value + " pcall(f, f, t) end",
                 "xpcall(function() " + block + " end, function(...) " + block + " end)",
                 "repeat " + block + " until " + value,
                 "table.sort(t, function(a, b) " + block + " return true end)",
                 "if " + value + " then " + block + " end"});
  }

  base::Random random_;
};

/// BASALT_SCRIPTS sets how many.
TEST_F(ScriptInterpreterTest, UnpackIsBoundedWhateverItsRange) {
  EXPECT_EQ(Run("return {unpack({1, 2, 3})}"), "*3\r\n:1\r\n:2\r\n:3\r\n");
  EXPECT_EQ(Run("return {unpack({1, 2, 3}, 2)}"), "*2\r\n:2\r\n:3\r\n");
  EXPECT_EQ(Run("return select('#', unpack({}, -2, 2))"), ":5\r\n");
  EXPECT_EQ(Run("return select('#', unpack({1}, 2))"), ":0\r\n");
  EXPECT_EQ(Run("return select('#', unpack({}, 1, 7000))"), ":7000\r\n");
  // The greatest number that is exact below 2^63.
  EXPECT_EQ(Run("return select('#', unpack({}, 2^63 - 1024, 2^63 - 1024))"), ":1\r\n");
  for (const char* range :
       {"-2^31", "-2^31, 0", "-2^31, 2^31 - 1", "-2^63, 2^62", "1, 2^31", "1, 8001", "1, 2^53"}) {
    ExpectError("return unpack({}, " + std::string(range) + ")", "too many results to unpack");
  }
  EXPECT_EQ(Run("return select('#', unpack({}, 2^31))"), ":0\r\n");
}

TEST_F(ScriptInterpreterTest, RandomScriptsStayWithinTheLimits) {
  const char* wanted = std::getenv("BASALT_SCRIPTS");
  const int count = wanted == nullptr ? 100 : std::atoi(wanted);
  const uint64_t seed = base::RandomSeed();
  for (int i = 0; i < count; ++i) {
    ProgramMaker maker(seed + static_cast<uint64_t>(i));
    const std::string text = "local s, t = 'x', {} " + maker.Block(3);
    SCOPED_TRACE("seed " + std::to_string(seed + static_cast<uint64_t>(i)) + ": " + text);
    Run(text);
    ASSERT_EQ(Run("return ('a'):rep(2)"), "$2\r\naa\r\n");
    if (interpreter_->is_worn()) SetUp();
  }
}

}  // namespace
}  // namespace basalt::server

#endif  // BASALT_LUA
