// Tests of addresses, error lines, requirements and requests.

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "net/address.h"
#include "net/error_line.h"
#include "net/request.h"
#include "net/requirement.h"

namespace basalt::net {
namespace {

TEST(Address, ParsesUrls) {
  const Address tcp = ParseServerUrl("redis://ann:p%40ss@[::1]:7000/").value();
  EXPECT_EQ(tcp.host, "::1");
  EXPECT_EQ(tcp.port, 7000);
  EXPECT_EQ(tcp.user, "ann");
  EXPECT_EQ(tcp.password, "p@ss");
  EXPECT_EQ(tcp.ToString(), "redis://[::1]:7000");
  EXPECT_EQ(ParseServerUrl("redis://localhost").value().ToString(), "redis://localhost:6379");
  const Address socket = ParseServerUrl("unix://:secret@/run/a@b").value();
  EXPECT_EQ(socket.unix_socket, "/run/a@b");
  EXPECT_EQ(socket.password, "secret");
  EXPECT_EQ(socket.ToString(), "unix:///run/a@b");
}

TEST(Address, RefusesBadUrlsWithoutShowingPasswords) {
  for (const std::string_view url :
       {"http://x", "redis://", "redis://:1", "redis://h:0", "redis://h:70000", "redis://h:x",
        "redis://h/0", "redis://[::1", "redis://[::1]x", "redis://me@h", "redis://:a%2@h",
        "unix://relative", "redis://:secret@h:bad"}) {
    const auto parsed = ParseServerUrl(url);
    EXPECT_EQ(parsed.code(), StatusCode::kInvalidArgument) << url;
    EXPECT_FALSE(parsed.status().ToString().contains("secret"));
  }
}

TEST(ErrorLine, KeepsEveryCodeAndSubCode) {
  for (int code = 1; code <= static_cast<int>(StatusCode::kOutOfRange); ++code) {
    for (int sub_code = 0; sub_code <= static_cast<int>(SubCode::kKeyspace); ++sub_code) {
      const Status sent(static_cast<StatusCode>(code), "what\r\nand why",
                        static_cast<SubCode>(sub_code));
      const Status got = StatusOf(ErrorLineOf(sent), "server");
      EXPECT_EQ(got.code(), sent.code());
      EXPECT_EQ(got.sub_code(), sent.sub_code());
      EXPECT_EQ(got.message(), "what  and why");
    }
  }
}

TEST(ErrorLine, GivesOtherServersErrorsACode) {
  const auto code_of = [](std::string_view line) { return StatusOf(line, "server").code(); };
  EXPECT_EQ(code_of("NOAUTH Authentication required."), StatusCode::kPermissionDenied);
  EXPECT_EQ(code_of("ERR unknown command 'BASALT.HELLO'"), StatusCode::kUnsupported);
  EXPECT_EQ(code_of("ERR max number of clients reached"), StatusCode::kUnavailable);
  EXPECT_EQ(code_of("ERR something"), StatusCode::kIoError);
  for (const std::string_view line :
       {"BASALT ", "BASALT 0 0 x", "BASALT 99 0 x", "BASALT 1", "BASALT 1 x", "BASALT 300 0 x"}) {
    EXPECT_EQ(code_of(line), StatusCode::kUnsupported) << line;
  }
}

TEST(Requirement, ComesBackAsItWasAndIsRefusedWhenCut) {
  using Kind = Requirement::Kind;
  const KeyspaceId keyspace{7};
  const std::vector<Requirement> all = {
      {.kind = Kind::kAbsent, .key = ""},
      {.kind = Kind::kUnchanged, .keyspace = keyspace, .key = "key", .number = 9},
      {.kind = Kind::kReadRange, .key = "a", .end = "b"},
      {.kind = Kind::kReadTail, .keyspace = keyspace, .key = "c"},
      {.kind = Kind::kExpiry, .number = 1000},
  };
  std::string bytes;
  for (const Requirement& requirement : all) AppendRequirement(requirement, &bytes);
  size_t count = 0;
  const Status read = ForEachRequirement(bytes, [&](const Requirement& got) {
    const Requirement& sent = all[count++];
    EXPECT_TRUE(got.kind == sent.kind && got.keyspace == sent.keyspace && got.key == sent.key &&
                got.end == sent.end && got.number == sent.number);
    return Status();
  });
  EXPECT_TRUE(read.ok() && count == all.size());
  const auto ignore = [](const Requirement&) { return Status(); };
  EXPECT_EQ(ForEachRequirement(bytes.substr(0, bytes.size() - 1), ignore).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(ForEachRequirement("\x08", ignore).code(), StatusCode::kInvalidArgument);
}

TEST(Request, IsAnArrayOfItsParts) {
  Request request("PUT");
  request.Add("a\r\n").Add(uint64_t{42});
  EXPECT_EQ(request.bytes(), "*3\r\n$3\r\nPUT\r\n$3\r\na\r\n\r\n$2\r\n42\r\n");
  request.Add("");
  EXPECT_EQ(request.bytes(), "*4\r\n$3\r\nPUT\r\n$3\r\na\r\n\r\n$2\r\n42\r\n$0\r\n\r\n");
}

}  // namespace
}  // namespace basalt::net
