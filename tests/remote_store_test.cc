#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "basalt/client.h"
#include "basalt/db.h"
#include "basalt/graph.h"
#include "basalt/transaction.h"
#ifdef BASALT_TOOL
#include "tests/command.h"
#endif
#ifdef BASALT_SERVER
#include "basalt/server.h"
#endif

// What a remote store does beyond what every store does (store_test.cc): lost connections, servers
// that die, limits.

#ifdef BASALT_SERVER

namespace basalt::net {
namespace {

using std::chrono::milliseconds;

testing::AssertionResult Ok(const Status& status) {
  if (status.ok()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << status.ToString();
}

std::unique_ptr<DB> NewDB() { return DB::Open(":memory:", {.memory_budget = 16 << 20}).value(); }

/// A server that answers BASALT.HELLO, and closes the connection at every other command.
class ClosingServer {
 public:
  ClosingServer() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ready_ = ::bind(fd_, reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
             ::listen(fd_, 16) == 0 &&
             ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0;
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Run(); });
  }
  ~ClosingServer() {
    ::shutdown(fd_, SHUT_RDWR);
    thread_.join();
    ::close(fd_);
  }
  bool is_ready() const { return ready_; }
  std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }
  /// Of the commands that were not answered.
  int commands() const { return commands_.load(); }

 private:
  void Run() {
    constexpr std::string_view kHello = "*4\r\n:127\r\n:1000000\r\n:1000\r\n:0\r\n";
    for (int client = ::accept(fd_, nullptr, nullptr); client >= 0;
         client = ::accept(fd_, nullptr, nullptr)) {
      char bytes[4096];
      if (::recv(client, bytes, sizeof bytes, 0) > 0 &&
          ::send(client, kHello.data(), kHello.size(), MSG_NOSIGNAL) > 0 &&
          ::recv(client, bytes, sizeof bytes, 0) > 0) {
        ++commands_;
      }
      ::close(client);
    }
  }

  int fd_;
  bool ready_ = false;
  uint16_t port_ = 0;
  std::atomic<int> commands_{0};
  std::thread thread_;
};

TEST(RemoteStore, AWriteWhoseAnswerIsLostIsNotRepeatedAndSaysSo) {
  ClosingServer server;
  ASSERT_TRUE(server.is_ready());
  const auto store = RemoteStore::Connect(server.url()).value();
  const Status put = store->Put("key", "value");
  EXPECT_EQ(put.code(), StatusCode::kUnavailable);
  EXPECT_TRUE(put.ToString().contains("not known")) << put.ToString();
  EXPECT_EQ(server.commands(), 1);
  int calls = 0;
  const auto transacted = Transact(*store, [&](Transaction& tx) {
    ++calls;
    return tx.Put("key", "value");
  });
  EXPECT_EQ(transacted.code(), StatusCode::kUnavailable);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(server.commands(), 2);
}

TEST(RemoteStore, AReadWhoseAnswerIsLostIsRepeatedAFewTimes) {
  ClosingServer server;
  ASSERT_TRUE(server.is_ready());
  const auto store = RemoteStore::Connect(server.url()).value();
  EXPECT_EQ(store->Get("key").code(), StatusCode::kUnavailable);
  EXPECT_GT(server.commands(), 1);
  EXPECT_LT(server.commands(), 10);
}

TEST(RemoteStore, SaysWhatIsWrongWithAnAddress) {
  EXPECT_EQ(RemoteStore::Connect("redis://127.0.0.1:1").code(), StatusCode::kUnavailable);
  EXPECT_EQ(RemoteStore::Connect("unix:///nowhere").code(), StatusCode::kUnavailable);
  EXPECT_EQ(RemoteStore::Connect("./db").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(RemoteStore::Connect("redis://127.0.0.1", {.connections = 0}).code(),
            StatusCode::kInvalidArgument);
}

TEST(RemoteStore, IsNotServedToOtherMachinesWithoutAPassword) {
  const auto db = NewDB();
  const Status refused = Serve(db.get(), {.address = "0.0.0.0"}).error();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << refused.ToString();
}

TEST(RemoteStore, AsksForThePassword) {
  const auto db = NewDB();
  const auto server = Serve(db.get(), {.password = "se:cret"}).value();
  const std::string host = server->url().substr(std::string_view("redis://").size());
  EXPECT_EQ(RemoteStore::Connect(server->url()).code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(RemoteStore::Connect("redis://:wrong@" + host).code(), StatusCode::kPermissionDenied);
  const auto store = RemoteStore::Connect("redis://:se%3Acret@" + host).value();
  EXPECT_TRUE(Ok(store->Put("key", "value")));
  EXPECT_EQ(store->address(), server->url());
}

TEST(RemoteStore, SharesTheDatabaseWithItsProcessOverAUnixSocket) {
  const auto db = NewDB();
  const std::string socket = (std::filesystem::temp_directory_path() /
                              ("basalt_remote_" + std::to_string(getpid()) + ".sock"));
  const auto server = Serve(db.get(), {.address = "", .unix_socket = socket}).value();
  EXPECT_EQ(server->url(), "unix://" + socket);
  const auto store = RemoteStore::Connect(server->url()).value();
  ASSERT_TRUE(Ok(store->Put("key", "value")));
  EXPECT_EQ(db->Get("key").value()->ToString(), "value");
  EXPECT_TRUE(store->Info().value().contains("redis_version"));
}

TEST(RemoteStore, DoesNotReachTheKeyspaceOfTheRedisTypes) {
  const auto db = NewDB();
  const auto server = Serve(db.get()).value();
  const auto store = RemoteStore::Connect(server->url()).value();
  const KeyspaceId redis = db->OpenKeyspace("redis").value();
  ASSERT_EQ(store->ListKeyspaces().value().size(), 1u);
  constexpr StatusCode kDenied = StatusCode::kPermissionDenied;
  EXPECT_EQ(store->OpenKeyspace("redis").code(), kDenied);
  EXPECT_EQ(store->CreateKeyspace("redis").code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(store->DropKeyspace(redis).code(), kDenied);
  EXPECT_EQ(store->Put("key", "value", {.keyspace = redis}).code(), kDenied);
  EXPECT_EQ(store->DeleteRange("", "z", {.keyspace = redis}).code(), kDenied);
  EXPECT_EQ(store->Get("key", {.keyspace = redis}).code(), kDenied);
  EXPECT_EQ(store->GetEntry("key", {.keyspace = redis}).code(), kDenied);
  EXPECT_EQ(store->Contains("key", {.keyspace = redis}).code(), kDenied);
  EXPECT_EQ(store->NewIterator({.keyspace = redis})->status().code(), kDenied);
  std::vector<Result<MaybeValue>> results(2);
  ASSERT_TRUE(Ok(store->MultiGet(
      std::vector<KeyspaceKey>{{KeyspaceId::kDefault, "a"}, {redis, "a"}}, results)));
  EXPECT_EQ(results[1].code(), kDenied);
  WriteBatch batch;
  batch.Put("a", "1");
  batch.RequireAbsent("key", redis);
  EXPECT_EQ(store->Write(batch).code(), kDenied) << "a condition tells what is there";
  Transaction tx = store->Begin().value();
  EXPECT_EQ(tx.Get("key", {.keyspace = redis}).code(), kDenied);
  EXPECT_EQ(db->Get("a").value().has_value(), false);
}

TEST(RemoteStore, ReadsMoreThanOneAnswerHolds) {
  const auto db = NewDB();
  const auto server = Serve(db.get()).value();
  const auto store = RemoteStore::Connect(server->url()).value();
  constexpr int kRecords = 6'000;  // More than a request of MultiGet and a block of a range have.
  std::vector<std::string> names;
  WriteBatch batch;
  for (int i = 0; i < kRecords; ++i) {
    names.push_back("key" + std::to_string(100'000 + i));
    batch.Put(names.back(), std::to_string(i));
  }
  ASSERT_TRUE(Ok(store->Write(batch)));
  const std::vector<std::string_view> keys(names.begin(), names.end());
  std::vector<Result<MaybeValue>> results(keys.size());
  ASSERT_TRUE(Ok(store->MultiGet(keys, results)));
  for (int i = 0; i < kRecords; ++i) {
    ASSERT_EQ(results[static_cast<size_t>(i)].value()->ToString(), std::to_string(i));
  }
  const auto it = store->NewIterator();
  int seen = 0;
  for (it->SeekToFirst(); it->Valid(); it->Next())
    ASSERT_EQ(it->key(), names[static_cast<size_t>(seen++)]);
  EXPECT_TRUE(Ok(it->status()));
  EXPECT_EQ(seen, kRecords);
  for (it->SeekToLast(); it->Valid(); it->Prev())
    ASSERT_EQ(it->key(), names[static_cast<size_t>(--seen)]);
  EXPECT_EQ(seen, 0);
  it->Seek(names[3'000]);
  for (int i = 0; i < 100; ++i) it->Next();
  for (int i = 0; i < 200; ++i) it->Prev();
  ASSERT_TRUE(it->Valid());
  EXPECT_EQ(it->key(), names[2'900]);
}

TEST(RemoteStore, ValuesTooLargeForOneAnswerAreOfOneMomentAllTheSame) {
  const auto db = DB::Open(":memory:", {.memory_budget = 256 << 20}).value();
  const auto server = Serve(db.get()).value();
  const auto store = RemoteStore::Connect(server->url()).value();
  constexpr size_t kValues = 10;
  std::vector<std::string> names;
  for (size_t i = 0; i < kValues; ++i) {
    names.push_back("key" + std::to_string(i));
    ASSERT_TRUE(Ok(store->Put(names.back(), std::string((size_t{2} << 20) + i, 'v'))));
  }
  const std::vector<std::string_view> keys(names.begin(), names.end());
  std::vector<Result<MaybeValue>> results(kValues);
  ASSERT_TRUE(Ok(store->MultiGet(keys, results)));
  for (size_t i = 0; i < kValues; ++i) {
    EXPECT_EQ(results[i].value()->size(), (size_t{2} << 20) + i);
  }
}

TEST(RemoteStore, SnapshotsAreBoundedAndLetGo) {
  const auto db = NewDB();
  const auto server = Serve(db.get()).value();
  const auto store = RemoteStore::Connect(server->url(), {.connections = 1}).value();
  std::vector<Snapshot> held;
  Status refused;
  while (refused.ok()) {
    Result<Snapshot> snapshot = store->GetSnapshot();
    refused = snapshot.status();
    if (snapshot) held.push_back(*std::move(snapshot));
  }
  EXPECT_EQ(refused.sub_code(), SubCode::kPins) << refused.ToString();
  EXPECT_EQ(held.size(), 1024u);
  held.clear();
  EXPECT_TRUE(store->GetSnapshot());
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Ok(store->NewIterator()->status()));
  server->Stop();
}

TEST(RemoteStore, ASnapshotGoesWithItsConnectionAndSaysSo) {
  const auto db = NewDB();
  auto server = Serve(db.get()).value();
  const std::string url = server->url();
  const auto port = static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
  const auto store = RemoteStore::Connect(url).value();
  ASSERT_TRUE(Ok(store->Put("key", "1")));
  const Snapshot snapshot = store->GetSnapshot().value();
  const auto it = store->NewIterator();
  Transaction tx = store->Begin().value();
  ASSERT_TRUE(tx.Get("key"));
  ASSERT_TRUE(Ok(tx.Put("key", "2")));
  server.reset();
  server = Serve(db.get(), {.port = port}).value();
  EXPECT_EQ(store->Get("key").value()->ToString(), "1") << "the client connects again";
  EXPECT_TRUE(Ok(store->Put("other", "1"))) << "a write, too, on a connection that is closed";
  EXPECT_EQ(store->Get("key", {.snapshot = &snapshot}).code(), StatusCode::kOutOfRange);
  it->SeekToFirst();
  EXPECT_EQ(it->status().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(tx.Commit().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(db->Get("key").value()->ToString(), "1");
}

TEST(RemoteStore, RefusesRequestsThatTheServerWouldNotTake) {
  const auto db = NewDB();
  const auto server = Serve(db.get()).value();
  const auto store = RemoteStore::Connect(server->url()).value();
  const Status refused = store->Put("key", std::string(size_t{65} << 20, 'v'));
  EXPECT_EQ(refused.sub_code(), SubCode::kBatchTooLarge) << refused.ToString();
  EXPECT_EQ(store->Put("key", std::string(size_t{8} << 20, 'v')).code(),
            db->Put("key", std::string(size_t{8} << 20, 'v')).code());
  EXPECT_EQ(store->Get("key", {.memory_only = true}).code(), StatusCode::kWouldBlock);
  EXPECT_EQ(store->Put("key", "value", {.may_wait = false}).code(), StatusCode::kWouldBlock);
}

TEST(RemoteStore, AGraphWorksOverTheWire) {
  const auto db = NewDB();
  const auto server = Serve(db.get()).value();
  const auto store = RemoteStore::Connect(server->url()).value();
  const auto opened = Graph::Open(store.get());
  ASSERT_TRUE(opened) << opened.error().ToString();
  Graph& graph = **opened;
  const auto put = Transact(*store, [&](Transaction& tx) -> Status {
    for (const char* id : {"byron", "ada", "ralph"}) {
      if (auto node = graph.PutNode(tx, id); !node) return node.error();
    }
    if (Status edge = graph.PutEdge(tx, {.from = "byron", .type = "parent of", .to = "ada"});
        !edge.ok()) {
      return edge;
    }
    return graph.PutEdge(tx, {.from = "ada", .type = "parent of", .to = "ralph"});
  });
  ASSERT_TRUE(put) << put.error().ToString();
  const auto found = graph.Read().value().Traverse("ralph").In("parent of").In("parent of").Run();
  ASSERT_TRUE(found) << found.error().ToString();
  EXPECT_EQ(found->nodes.size(), 1u);
  EXPECT_TRUE(graph.RemoveNode("ada").value());
  EXPECT_TRUE(graph.Verify().value().empty());
  EXPECT_EQ(graph.GetStats().value().edges, 0u);
}

#ifdef BASALT_TOOL

/// `basalt serve` on a database in a directory, which may be killed and started again.
class Program {
 public:
  explicit Program(std::filesystem::path home) : home_(std::move(home)) {
    std::filesystem::remove_all(home_);
    std::filesystem::create_directories(home_);
    Start();
  }
  ~Program() {
    Kill();
    std::filesystem::remove_all(home_);
  }
  std::string url() const { return "unix://" + (home_ / "socket").string(); }
  void Start() {
    const std::string db = home_ / "db";
    const std::string socket = home_ / "socket";
    pid_ = ::fork();
    if (pid_ == 0) {
      ::freopen("/dev/null", "w", stdout);
      ::execl(BASALT_TOOL, BASALT_TOOL, "serve", db.c_str(), "--no-tcp", "--unix-socket",
              socket.c_str(), "--memory-budget", "32M", nullptr);
      ::_exit(127);
    }
  }
  void Kill() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  /// Waits for a server that has just been started.
  std::unique_ptr<RemoteStore> Connect() const {
    Result<std::unique_ptr<RemoteStore>> store = RemoteStore::Connect(url());
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!store && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(milliseconds(5));
      store = RemoteStore::Connect(url());
    }
    return std::move(store).value();
  }

 private:
  const std::filesystem::path home_;
  pid_t pid_ = -1;
};

// Each writer puts 1, 2, 3, ... under its key, in batches of two records that must stay equal,
// until the server dies. What was acknowledged is there afterwards; at most one write more is.
TEST(RemoteStore, AKilledServerLosesNothingThatItHasAcknowledged) {
  constexpr int kRounds = 3;
  constexpr size_t kWriters = 3;
  constexpr uint64_t kEachRound = 40;
  Program program(std::filesystem::temp_directory_path() /
                  ("basalt_killed_" + std::to_string(getpid())));
  std::vector<std::atomic<uint64_t>> acknowledged(kWriters);
  for (int round = 0; round < kRounds; ++round) {
    // What each writer reaches before the server dies.
    const uint64_t goal = *std::ranges::max_element(acknowledged) + kEachRound;
    std::vector<std::thread> writers;
    for (size_t w = 0; w < kWriters; ++w) {
      writers.emplace_back([&, w] {
        const auto store = program.Connect();
        const std::string key = "writer" + std::to_string(w);
        while (true) {
          const std::string number = std::to_string(acknowledged[w].load() + 1);
          WriteBatch batch;
          batch.Put(key, number);
          batch.Put(key + "/twin", number);
          const Status written = store->Write(batch);
          if (!written.ok()) {
            EXPECT_EQ(written.code(), StatusCode::kUnavailable) << written.ToString();
            return;
          }
          ++acknowledged[w];
        }
      });
    }
    for (const std::atomic<uint64_t>& of_writer : acknowledged) {
      // A writer that is not connected yet would wait for the next server.
      while (of_writer.load() < goal) std::this_thread::sleep_for(milliseconds(1));
    }
    program.Kill();
    for (std::thread& writer : writers) writer.join();
    program.Start();
    const auto store = program.Connect();
    for (size_t w = 0; w < kWriters; ++w) {
      const std::string key = "writer" + std::to_string(w);
      const auto value = store->Get(key).value();
      const uint64_t found = value ? std::stoull(value->ToString()) : 0;
      EXPECT_GE(found, acknowledged[w].load());
      EXPECT_LE(found, acknowledged[w].load() + 1);
      if (value) {
        EXPECT_EQ(store->Get(key + "/twin").value()->ToString(), value->ToString());
      }
      acknowledged[w] = found;
    }
  }
}

using RemoteStoreCli = CommandTest;

TEST_F(RemoteStoreCli, VerbsTakeTheUrlOfAServer) {
  const Program program(At("db"));
  const std::string url = program.url();
  const auto store = program.Connect();
  EXPECT_EQ(Out("$B put " + url + " user/42 Ada"), "");
  EXPECT_EQ(store->Get("user/42").value()->ToString(), "Ada");
  EXPECT_EQ(Out("$B get " + url + " user/42"), "Ada\n");
  EXPECT_TRUE(Run("$B get " + url + " nobody").err.contains("no key")) << url;
  EXPECT_EQ(Out("$B scan " + url + " --keys-only"), "user/42\n");
  EXPECT_TRUE(Out("$B dump " + url).starts_with("user/42"));
  EXPECT_EQ(Out("$B del " + url + " user/42"), "");
  EXPECT_FALSE(store->Contains("user/42").value());
  EXPECT_TRUE(Out("$B stat " + url).contains("redis_version"));
  for (const char* verb : {"check ", "compact ", "repair "}) {
    const std::string complaint = Run(std::string("$B ") + verb + url).err;
    EXPECT_TRUE(complaint.contains("needs the directory of a database")) << complaint;
  }
}

#endif  // BASALT_TOOL

}  // namespace
}  // namespace basalt::net

#endif  // BASALT_SERVER
