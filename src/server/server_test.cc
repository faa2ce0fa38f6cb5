#include "server/server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace basalt::server {
namespace {

/// A client that sends lines and reads as many bytes as the expected reply has.
class LineClient {
 public:
  explicit LineClient(uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  ~LineClient() { ::close(fd_); }
  LineClient(const LineClient&) = delete;
  LineClient& operator=(const LineClient&) = delete;

  bool is_connected() const { return connected_; }
  /// How long Receive waits for bytes at most.
  void SetPatience(int seconds) const {
    const timeval patience{.tv_sec = seconds, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  bool Send(std::string_view text) const {
    return ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  /// Empty: the connection has ended.
  std::string Receive(size_t bytes) const {
    std::string text(bytes, '\0');
    size_t got = 0;
    while (got < bytes) {
      const ssize_t part = ::recv(fd_, text.data() + got, bytes - got, 0);
      if (part <= 0) return {};
      got += static_cast<size_t>(part);
    }
    return text;
  }
  /// All bytes up to the end of the connection.
  std::string Rest() const {
    std::string text;
    std::string part(1 << 16, '\0');
    for (ssize_t got = 1; got > 0;) {
      got = ::recv(fd_, part.data(), part.size(), 0);
      if (got > 0) text.append(part, 0, static_cast<size_t>(got));
    }
    return text;
  }
  std::string Line() const {
    std::string line;
    while (!line.ends_with("\r\n")) {
      const std::string byte = Receive(1);
      if (byte.empty()) return {};
      line += byte;
    }
    return line;
  }
  void Expect(std::string_view command, std::string_view reply) const {
    ASSERT_TRUE(Send(std::string(command) + "\r\n"));
    EXPECT_EQ(Receive(reply.size()), reply) << command;
  }

 private:
  int fd_;
  bool connected_ = false;
};

class ServerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto db = DB::Open(":memory:", {.memory_budget = 16 << 20});
    ASSERT_TRUE(db) << db.error().ToString();
    db_ = *std::move(db);
    auto server = Server::Start(db_.get(), {.port = 0, .threads = 2});
    ASSERT_TRUE(server) << server.error().ToString();
    server_ = *std::move(server);
  }

  std::unique_ptr<DB> db_;
  std::unique_ptr<Server> server_;
};

TEST_F(ServerTest, AnswersCommandsInOrderAndInOnePipeline) {
  const LineClient client(server_->port());
  ASSERT_TRUE(client.is_connected());
  client.Expect("SET a 1\r\nINCR a\r\nGET a\r\nKEYS *\r\nDEL a\r\nGET a",
                "+OK\r\n:2\r\n$1\r\n2\r\n*1\r\n$1\r\na\r\n:1\r\n$-1\r\n");
  client.Expect("HELLO 3", "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n");
}

TEST_F(ServerTest, ClientsOnSeveralLoopsLoseNoUpdate) {
  constexpr int kClients = 4;
  constexpr int kRounds = 100;
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([this] {
      const LineClient client(server_->port());
      for (int round = 0; round < kRounds; ++round) {
        ASSERT_TRUE(client.Send("MULTI\r\nINCR sum\r\nRPUSH queue x\r\nEXEC\r\nPUBLISH c m\r\n"));
        EXPECT_EQ(client.Line(), "+OK\r\n");
        EXPECT_EQ(client.Line(), "+QUEUED\r\n");
        EXPECT_EQ(client.Line(), "+QUEUED\r\n");
        EXPECT_EQ(client.Line(), "*2\r\n");
        for (int line = 0; line < 3; ++line) EXPECT_EQ(client.Line().substr(0, 1), ":");
      }
    });
    threads.emplace_back([this] {
      const LineClient client(server_->port());
      for (int round = 0; round < kRounds; ++round) {
        client.Expect("BLPOP queue 0", "*2\r\n$5\r\nqueue\r\n$1\r\nx\r\n");
      }
    });
  }
  const LineClient subscriber(server_->port());
  subscriber.Expect("SUBSCRIBE c", "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
  for (std::thread& thread : threads) thread.join();
  const LineClient client(server_->port());
  client.Expect("GET sum", "$3\r\n400\r\n");
  client.Expect("EXISTS queue", ":0\r\n");
}

TEST_F(ServerTest, PipelinesThatConflictLoseNoUpdateAndAnErrorUndoesOnlyItself) {
  constexpr int kClients = 4;
  constexpr int kRounds = 50;
  constexpr int kCommands = 16;
  std::string commands;
  for (int i = 0; i < kCommands; ++i) {
    commands +=
        "INCR sum\r\nLPUSH sum x\r\nRPUSH list x\r\nSET own v\r\nAPPEND own w\r\nGET own\r\n";
  }
  const LineClient first(server_->port());
  first.Expect("SET sum 0", "+OK\r\n");
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([&] {
      const LineClient client(server_->port());
      int64_t before = 0;
      for (int round = 0; round < kRounds; ++round) {
        ASSERT_TRUE(client.Send(commands));
        for (int command = 0; command < kCommands; ++command) {
          const int64_t sum = std::stoll(client.Line().substr(1));
          EXPECT_GT(sum, before);
          before = sum;
          EXPECT_EQ(client.Line().substr(0, 10), "-WRONGTYPE");
          EXPECT_EQ(client.Line().substr(0, 1), ":");
          EXPECT_EQ(client.Line(), "+OK\r\n");
          EXPECT_EQ(client.Line().substr(0, 1), ":");
          EXPECT_EQ(client.Line().substr(0, 1), "$");
          EXPECT_EQ(client.Line().substr(0, 2), "vw");
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  first.Expect("GET sum", "$4\r\n3200\r\n");
  first.Expect("LLEN list", ":3200\r\n");
  EXPECT_GT(server_->hub().counters().pipelines.load(), 0U);
}

// Arguments of one pipeline may arrive in pieces of any size.
TEST_F(ServerTest, PipelineThatArrivesInPiecesIsAnsweredInOrder) {
  const LineClient client(server_->port());
  const std::string commands =
      "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n5\r\n*2\r\n$4\r\nINCR\r\n$1\r\na\r\nINCR a\r\n\r\n"
      "NOSUCH\r\nINCR a\r\nPING\r\nDECR a\r\nDECR a\r\n";
  for (size_t piece = 1; piece <= commands.size(); piece += 3) {
    for (size_t at = 0; at < commands.size(); at += piece) {
      ASSERT_TRUE(client.Send(std::string_view(commands).substr(at, piece)));
      if (piece > 10) std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    EXPECT_EQ(client.Line(), "+OK\r\n");
    EXPECT_EQ(client.Line(), ":6\r\n");
    EXPECT_EQ(client.Line(), ":7\r\n");
    EXPECT_EQ(client.Line().substr(0, 4), "-ERR");
    EXPECT_EQ(client.Line(), ":8\r\n");
    EXPECT_EQ(client.Line(), "+PONG\r\n");
    EXPECT_EQ(client.Line(), ":7\r\n");
    EXPECT_EQ(client.Line(), ":6\r\n");
  }
}

TEST_F(ServerTest, PipelineWhoseRepliesAreLargeIsAnsweredToItsEnd) {
  constexpr int kGets = 100;
  const std::string value(100'000, 'x');
  const LineClient client(server_->port());
  client.SetPatience(20);
  client.Expect("SET a " + std::string(50'000, 'x'), "+OK\r\n");
  client.Expect("APPEND a " + std::string(50'000, 'x'), ":100000\r\n");
  std::string gets;
  for (int i = 0; i < kGets; ++i) gets += "GET a\r\n";
  // Some of the replies fit into the socket's buffers at once, and some do not.
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(client.Send(gets));
    for (int i = 0; i < kGets; ++i) {
      ASSERT_EQ(client.Receive(9), "$100000\r\n") << "reply " << i;
      ASSERT_EQ(client.Receive(value.size() + 2), value + "\r\n");
    }
  }
}

TEST_F(ServerTest, GetsOfAPipelineAreAnsweredLikeSingleOnes) {
  const LineClient client(server_->port());
  client.Expect("SET a 1\r\nRPUSH l x\r\nSET b 2 PX 600000", "+OK\r\n:1\r\n+OK\r\n");
  const std::string too_long(65'520, 'k');
  std::string commands;
  std::string replies;
  for (int i = 0; i < 200; ++i) {  // More than one run has.
    commands += "GET a\r\nget none\r\nGET l\r\nGET b\r\n";
    replies += "$1\r\n1\r\n$-1\r\n-";
    replies += kWrongTypeError;
    replies += "\r\n$1\r\n2\r\n";
  }
  client.Expect(commands + "SET a 3\r\nGET a\r\nGET a b\r\nGET a\r\nSELECT 1\r\nGET a",
                replies +
                    "+OK\r\n$1\r\n3\r\n"
                    "-ERR wrong number of arguments for 'get' command\r\n$1\r\n3\r\n"
                    "+OK\r\n$-1\r\n");
  client.Expect("MULTI\r\nGET a\r\nGET a\r\nEXEC\r\nGET a\r\nGET a",
                "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n");
  const std::string get_long = "*2\r\n$3\r\nGET\r\n$65520\r\n" + too_long + "\r\n";
  client.Expect("SELECT 0\r\n" + get_long + "GET a", "+OK\r\n$-1\r\n$1\r\n3\r\n");
}

TEST(Server, GetsOfAPipelineThatAreOnDiskAreReadOnThePool) {
  constexpr int kKeys = 1000;
  const std::string path = testing::TempDir() + "gets_" + std::to_string(::getpid());
  for (const bool is_filled : {false, true}) {
    auto db = DB::Open(path, {.memory_budget = 16 << 20});
    ASSERT_TRUE(db) << db.error().ToString();
    auto server = Server::Start(db->get(), {.port = 0, .threads = 1});
    ASSERT_TRUE(server) << server.error().ToString();
    const LineClient client((*server)->port());
    std::string gets;
    std::string values;
    for (int i = 0; i < kKeys; ++i) {
      const std::string number = std::to_string(100'000 + i);
      if (!is_filled) client.Expect("SETRANGE " + number + " 994 " + number, ":1000\r\n");
      gets += "GET " + number + "\r\n";
      values += "$1000\r\n" + std::string(994, '\0') + number + "\r\n";
    }
    if (is_filled) {
      ASSERT_TRUE(client.Send(gets));
      EXPECT_EQ(client.Receive(values.size()), values);
      EXPECT_GT((*server)->hub().counters().pool_commands.load(), 0U);
    } else {
      ASSERT_TRUE((*db)->Flush().ok());
    }
  }
  EXPECT_TRUE(DB::Destroy(path).ok());
}

/// A client that reads gets any number of large values, however few bytes it may leave unread.
void ExpectLargeReplies(const LineClient& client, const std::string& first, size_t gets) {
  std::string commands = first;
  for (size_t i = 0; i < gets; ++i) commands += "GET large\r\n";
  ASSERT_TRUE(client.Send(commands));
  if (!first.empty()) {
    ASSERT_EQ(client.Line(), "+OK\r\n");
  }
  for (size_t i = 0; i < gets; ++i) {
    ASSERT_EQ(client.Line(), "$300000\r\n") << "reply " << i;
    ASSERT_EQ(client.Receive(300'002).size(), 300'002U) << "reply " << i;
  }
}

TEST(Server, PipelineOfLargeValuesIsAnsweredToItsEnd) {
  const std::string path = testing::TempDir() + "large_" + std::to_string(::getpid());
  ServerOptions options{.port = 0, .threads = 1};
  options.settings.output_bytes = size_t{3} << 20;
  for (const bool is_on_disk : {false, true}) {
    auto db = DB::Open(path, {.memory_budget = 16 << 20});
    ASSERT_TRUE(db) << db.error().ToString();
    auto server = Server::Start(db->get(), options);
    ASSERT_TRUE(server) << server.error().ToString();
    const LineClient client((*server)->port());
    client.SetPatience(20);
    if (!is_on_disk) client.Expect("SETRANGE large 299999 x", ":300000\r\n");
    Counters& counters = (*server)->hub().counters();
    const uint64_t before = counters.commands.load();
    // On disk, the value is not in memory when the first pipeline comes. The transaction of the
    // second one cannot read it on the loop, either.
    ExpectLargeReplies(client, is_on_disk ? "SET small 1\r\n" : "", 15);
    ExpectLargeReplies(client, "", 64);
    EXPECT_EQ(counters.commands.load() - before, is_on_disk ? 80U : 79U);
    EXPECT_EQ(counters.pool_commands.load() > 0, is_on_disk);
    EXPECT_TRUE((*db)->Flush().ok());
  }
  EXPECT_TRUE(DB::Destroy(path).ok());
}

// The connection reads on while its command waits.
TEST_F(ServerTest, CommandsAroundABlockingOneAreAnswered) {
  const LineClient client(server_->port());
  client.SetPatience(20);
  ASSERT_TRUE(client.Send("BLPOP queue 0\r\nPING\r\n"));
  const LineClient other(server_->port());
  while (server_->hub().counters().commands.load() == 0) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  other.Expect("RPUSH queue x", ":1\r\n");
  EXPECT_EQ(client.Receive(22), "*2\r\n$5\r\nqueue\r\n$1\r\nx\r\n");
  EXPECT_EQ(client.Line(), "+PONG\r\n");
  client.Expect("ECHO next", "$4\r\nnext\r\n");
}

// A web page may send a request with a long address and with commands as its body.
TEST_F(ServerTest, RequestWithALongAddressNeverReachesTheRedisProtocol) {
  const LineClient other(server_->port());
  for (const std::string_view method : {"POST", "GET", "PUT"}) {
    const LineClient client(server_->port());
    client.SetPatience(5);
    ASSERT_TRUE(client.Send(std::string(method) + " /" + std::string(20'000, 'x')));
    EXPECT_EQ(client.Line(), "HTTP/1.1 431 Request Header Fields Too Large\r\n");
    client.Send(" HTTP/1.1\r\nHost: evil.example\r\n\r\nSET hit 1\r\n");
    EXPECT_EQ(client.Rest().find("+OK"), std::string::npos);
    other.Expect("EXISTS hit", ":0\r\n");
  }
  const LineClient client(server_->port());  // A long line of the Redis protocol.
  client.Expect("SET a " + std::string(20'000, '/'), "+OK\r\n");
  client.Expect("STRLEN a", ":20000\r\n");
}

TEST_F(ServerTest, LineOfHttpEndsAConnectionOfTheRedisProtocol) {
  const LineClient other(server_->port());
  for (const std::string_view line : {"POST /", "post x", "Host: localhost", "HOST:"}) {
    const LineClient client(server_->port());
    client.SetPatience(5);
    ASSERT_TRUE(client.Send("SET a 1\r\n" + std::string(line) + "\r\nSET hit 1\r\n"));
    EXPECT_EQ(client.Rest(),
              "+OK\r\n-ERR this connection speaks the Redis protocol, and got a line of HTTP\r\n")
        << line;
    other.Expect("EXISTS hit", ":0\r\n");
  }
}

TEST_F(ServerTest, StopsWhileClientsAreBusyBlockedAndSilent) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([this] {
      const LineClient client(server_->port());
      while (client.Send("SET k v\r\nKEYS *\r\n") && !client.Receive(5 + 4 + 7).empty()) {
      }
    });
  }
  const LineClient blocked(server_->port());
  ASSERT_TRUE(blocked.Send("BLPOP nothing 0\r\n"));
  const LineClient silent(server_->port());
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  server_->Stop();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(blocked.Receive(1), "");
  EXPECT_EQ(silent.Receive(1), "");
}

/// Ranges over HTTP, which are streamed to the client.
class StreamTest : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    server_.reset();
    ServerOptions options{.port = 0, .threads = 1};
    options.settings.stream_patience = std::chrono::milliseconds(300);
    auto server = Server::Start(db_.get(), options);
    ASSERT_TRUE(server) << server.error().ToString();
    server_ = *std::move(server);
    const LineClient client(server_->port());
    for (size_t i = 0; i < kKeys; ++i) {
      client.Expect("SETRANGE key" + std::to_string(i) + " 60000 x", ":60001\r\n");
    }
  }

  /// Asks for all keys, and for nothing else on this connection.
  void AskForAll(const LineClient& client) const {
    ASSERT_TRUE(
        client.Send("GET /v1/keys HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
  }

  static constexpr size_t kKeys = 100;
  /// Of JSON: a byte 0 takes six bytes.
  static constexpr size_t kAllBytes = kKeys * 60'000 * 6;
};

TEST_F(StreamTest, RangeIsWholeForAClientThatReads) {
  const LineClient client(server_->port());
  AskForAll(client);
  const std::string text = client.Rest();
  EXPECT_GT(text.size(), kAllBytes);
  EXPECT_TRUE(text.ends_with("{\"cursor\":null}\n\r\n0\r\n\r\n"));
}

TEST_F(StreamTest, RangeOfAClientThatReadsNothingEnds) {
  const LineClient client(server_->port());
  AskForAll(client);
  while (server_->hub().counters().http_requests.load() == 0 || server_->hub().CountClients() > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const std::string text = client.Rest();
  EXPECT_FALSE(text.ends_with("\r\n0\r\n\r\n"));
  // What the sockets keep, and a bounded rest.
  EXPECT_LT(text.size(), kAllBytes / 2);
}

TEST_F(StreamTest, StopCutsRangesOff) {
  const LineClient reader(server_->port());
  const LineClient silent(server_->port());
  AskForAll(silent);
  std::thread reading([&] {
    AskForAll(reader);
    EXPECT_FALSE(reader.Rest().empty());
  });
  while (server_->hub().counters().http_requests.load() < 2) std::this_thread::yield();
  server_->Stop();
  reading.join();
  EXPECT_FALSE(silent.Rest().ends_with("\r\n0\r\n\r\n"));
}

TEST(Server, WritesItsUrlIntoTheLockFileWhileItServes) {
  const std::string path = testing::TempDir() + "served_" + std::to_string(::getpid());
  const auto url_line = [&] {
    std::ifstream file(path + "/LOCK");
    std::string line;
    while (std::getline(file, line)) {
      if (line.starts_with("url ")) return line;
    }
    return std::string();
  };
  auto db = DB::Open(path);
  ASSERT_TRUE(db) << db.error().ToString();
  EXPECT_EQ(url_line(), "");
  auto server = Server::Start(db->get(), {.port = 0, .threads = 1});
  ASSERT_TRUE(server) << server.error().ToString();
  EXPECT_EQ(url_line(), "url redis://127.0.0.1:" + std::to_string((*server)->port()));
  (*server)->Stop();
  EXPECT_EQ(url_line(), "");
  server->reset();
  db->reset();
  EXPECT_TRUE(DB::Destroy(path).ok());
}

TEST_F(ServerTest, RefusesAnAddressThatIsTaken) {
  const auto second = Server::Start(db_.get(), {.port = server_->port()});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.code(), StatusCode::kIoError);
  const auto none = Server::Start(db_.get(), {.address = "nowhere"});
  EXPECT_EQ(none.code(), StatusCode::kInvalidArgument);
}

TEST_F(ServerTest, SweepsElementsOfExpiredCollections) {
  const LineClient client(server_->port());
  client.Expect("RPUSH l a b c\r\nPEXPIRE l 1", ":3\r\n:1\r\n");
  Dataset& dataset = server_->hub().dataset();
  const auto count = [&] {
    size_t records = 0;
    const auto it = db_->NewIterator({.keyspace = dataset.keyspace(), .lower = "E", .upper = "F"});
    for (it->SeekToFirst(); it->Valid(); it->Next()) ++records;
    return records;
  };
  while (count() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  // Nothing is left to expire; then there is again, but not yet at the next sweep.
  client.Expect("RPUSH l a b c", ":3\r\n");
  client.Expect("PEXPIRE l 700", ":1\r\n");
  EXPECT_EQ(count(), 3U);
  while (count() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

}  // namespace
}  // namespace basalt::server
