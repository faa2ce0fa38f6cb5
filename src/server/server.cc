#include "server/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "db/served_url.h"
#include "net/address.h"
#include "server/connection.h"

namespace basalt::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr size_t kPoolThreads = 4;
constexpr auto kStopPatience = std::chrono::seconds(5);
constexpr auto kSweepInterval = std::chrono::milliseconds(500);
constexpr size_t kSweptAtOnce = 256;
/// How long accepting pauses when there are no descriptors left.
constexpr auto kAcceptPause = std::chrono::milliseconds(50);

Status ListenError(const std::string& where, const error_code& failed) {
  return {StatusCode::kIoError, "cannot listen on " + where + ": " + failed.message()};
}

uint32_t ThreadsOf(const ServerOptions& options) {
  if (options.threads != 0) return options.threads;
  return std::max(2U, std::thread::hardware_concurrency()) - 1;
}

/// An event loop and its thread.
class Loop {
 public:
  Loop() : context_(1), work_(context_.get_executor()) {}
  ~Loop() { Join(); }
  asio::io_context& context() noexcept { return context_; }
  void Run() {
    thread_ = std::thread([this] { context_.run(); });
  }
  void Join() {
    work_.reset();
    context_.stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  asio::io_context context_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread thread_;
};

}  // namespace

class Server::Loops {
 public:
  Loops(std::unique_ptr<Dataset> dataset, std::unique_ptr<base::ThreadPool> pool,
        const ServerOptions& options)
      : dataset_(std::move(dataset)),
        hub_(dataset_.get(), options.settings),
        pool_(std::move(pool)),
        address_(options.address) {
    for (uint32_t i = 0; i < ThreadsOf(options); ++i) loops_.push_back(std::make_unique<Loop>());
  }

  Status Listen(const ServerOptions& options);
  void Run();
  void Stop();
  Hub& hub() noexcept { return hub_; }
  std::string url() const;

 private:
  Status ListenOnTcp(const ServerOptions& options);
  Status ListenOnUnix(const std::string& path);
  template <class Protocol>
  void Accept(asio::basic_socket_acceptor<Protocol>* acceptor);
  template <class Socket>
  void Admit(Socket socket);
  void Sweep();

  std::unique_ptr<Dataset> dataset_;
  Hub hub_;
  std::vector<std::unique_ptr<Loop>> loops_;
  std::unique_ptr<base::ThreadPool> pool_;
  std::optional<asio::ip::tcp::acceptor> tcp_;
  std::optional<asio::local::stream_protocol::acceptor> unix_;
  const std::string address_;
  std::string unix_path_;
  size_t next_loop_ = 0;
  bool is_stopped_ = false;
  std::thread sweeper_;
  std::mutex sweeper_mutex_;
  std::condition_variable sweeper_wakes_;
};

Status Server::Loops::Listen(const ServerOptions& options) {
  if (options.listens_on_tcp) {
    if (Status listening = ListenOnTcp(options); !listening.ok()) return listening;
  }
  if (options.unix_socket.empty()) return {};
  return ListenOnUnix(options.unix_socket);
}

Status Server::Loops::ListenOnTcp(const ServerOptions& options) {
  error_code failed;
  const asio::ip::address address = asio::ip::make_address(options.address, failed);
  if (failed) {
    return {StatusCode::kInvalidArgument,
            "'" + options.address + "' is not an address: give one such as 127.0.0.1 or ::1"};
  }
  const asio::ip::tcp::endpoint endpoint(address, options.port);
  const std::string where = options.address + ", port " + std::to_string(options.port);
  tcp_.emplace(loops_.front()->context());
  tcp_->open(endpoint.protocol(), failed);
  if (!failed) tcp_->set_option(asio::socket_base::reuse_address(true), failed);
  if (!failed) tcp_->bind(endpoint, failed);
  if (!failed) tcp_->listen(asio::socket_base::max_listen_connections, failed);
  if (failed) return ListenError(where, failed);
  hub_.set_port(tcp_->local_endpoint(failed).port());
  return {};
}

Status Server::Loops::ListenOnUnix(const std::string& path) {
  error_code failed;
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return {StatusCode::kInvalidArgument,
            "the path of the Unix socket is too long; use a shorter one: " + path};
  }
  const asio::local::stream_protocol::endpoint endpoint(path);
  // A socket that nobody listens on was left behind by a server that was killed.
  asio::local::stream_protocol::socket probe(loops_.front()->context());
  probe.connect(endpoint, failed);
  if (!failed) {
    return {StatusCode::kBusy,
            "another server listens on the Unix socket " + path + "; stop it, or use another path"};
  }
  struct stat found{};
  if (::stat(path.c_str(), &found) == 0 && S_ISSOCK(found.st_mode)) ::unlink(path.c_str());
  unix_.emplace(loops_.front()->context());
  failed.clear();
  unix_->open(endpoint.protocol(), failed);
  // Connecting needs the right to write: the socket is its owner's and group's.
  const mode_t mask = ::umask(0117);
  if (!failed) unix_->bind(endpoint, failed);
  ::umask(mask);
  if (!failed) unix_->listen(asio::socket_base::max_listen_connections, failed);
  if (failed) return ListenError(path, failed);
  error_code unknown;
  const std::filesystem::path absolute = std::filesystem::absolute(path, unknown);
  unix_path_ = unknown ? path : absolute.lexically_normal().string();
  return {};
}

std::string Server::Loops::url() const {
  net::Address address{.host = address_, .port = hub_.port()};
  if (!tcp_) address.unix_socket = unix_path_;
  return address.ToString();
}

void Server::Loops::Run() {
  // An older lock file that cannot be written is no reason not to serve.
  static_cast<void>(db::SetServedUrl(dataset_->db(), url()));
  asio::post(loops_.front()->context(), [this] {
    if (tcp_) Accept(&*tcp_);
    if (unix_) Accept(&*unix_);
  });
  for (const auto& loop : loops_) loop->Run();
  sweeper_ = std::thread([this] { Sweep(); });
}

template <class Protocol>
void Server::Loops::Accept(asio::basic_socket_acceptor<Protocol>* acceptor) {
  asio::io_context& context = loops_[next_loop_]->context();
  next_loop_ = (next_loop_ + 1) % loops_.size();
  acceptor->async_accept(
      context, [this, acceptor](const error_code& failed, typename Protocol::socket socket) {
        if (!acceptor->is_open()) return;
        if (!failed) {
          Admit(std::move(socket));
          return Accept(acceptor);
        }
        const auto timer =
            std::make_shared<asio::steady_timer>(loops_.front()->context(), kAcceptPause);
        timer->async_wait([this, acceptor, timer](const error_code&) {
          if (acceptor->is_open()) Accept(acceptor);
        });
      });
}

template <class Socket>
void Server::Loops::Admit(Socket socket) {
  constexpr bool kIsTcp = std::is_same_v<Socket, asio::ip::tcp::socket>;
  error_code ignored;
  hub_.counters().connections.fetch_add(1, std::memory_order_relaxed);
  if (hub_.CountClients() >= hub_.clients_max()) {
    hub_.counters().refused.fetch_add(1, std::memory_order_relaxed);
    constexpr std::string_view kRefusal = "-ERR max number of clients reached\r\n";
    socket.non_blocking(true, ignored);
    socket.write_some(asio::buffer(kRefusal.data(), kRefusal.size()), ignored);
    return;
  }
  std::string address = unix_path_ + ":0";
  if constexpr (kIsTcp) {
    socket.set_option(asio::ip::tcp::no_delay(true), ignored);
    socket.set_option(asio::socket_base::keep_alive(true), ignored);
    const asio::ip::tcp::endpoint peer = socket.remote_endpoint(ignored);
    address = peer.address().to_string() + ":" + std::to_string(peer.port());
  }
  const auto connection = std::make_shared<Connection>(Connection::Socket(std::move(socket)), &hub_,
                                                       pool_.get(), std::move(address));
  hub_.AddClient(connection->id(), connection);
  asio::post(connection->executor(), [connection] { connection->Start(); });
}

void Server::Loops::Sweep() {
  std::unique_lock lock(sweeper_mutex_);
  while (!hub_.is_stopping()) {
    sweeper_wakes_.wait_for(lock, kSweepInterval);
    if (hub_.is_stopping()) return;
    lock.unlock();
    hub_.snapshots().RemoveIdle(std::chrono::steady_clock::now());
    // What fails is tried again: garbage does no harm meanwhile.
    const Result<size_t> swept = dataset_->Sweep(kSweptAtOnce);
    if (swept) hub_.counters().swept.fetch_add(*swept, std::memory_order_relaxed);
    hub_.notifications().TellExpired(dataset_.get(), &hub_.pub_sub());
    lock.lock();
  }
}

void Server::Loops::Stop() {
  if (std::exchange(is_stopped_, true)) return;
  hub_.Stop();
  static_cast<void>(db::SetServedUrl(dataset_->db(), {}));
  asio::post(loops_.front()->context(), [this] {
    error_code ignored;
    if (tcp_) tcp_->close(ignored);
    if (unix_) unix_->close(ignored);
  });
  if (!unix_path_.empty()) ::unlink(unix_path_.c_str());
  const auto deadline = std::chrono::steady_clock::now() + kStopPatience;
  while (hub_.CountClients() > 0 && std::chrono::steady_clock::now() < deadline) {
    for (const std::shared_ptr<Peer>& peer : hub_.Clients()) {
      static_cast<Connection&>(*peer).Stop();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  {
    const std::lock_guard lock(sweeper_mutex_);
    sweeper_wakes_.notify_all();
  }
  if (sweeper_.joinable()) sweeper_.join();
  pool_.reset();  // Waits for the commands that run.
  for (const auto& loop : loops_) loop->Join();
  tcp_.reset();
  unix_.reset();
  loops_.clear();
}

Server::Server(std::unique_ptr<Loops> loops) : loops_(std::move(loops)) {}
Server::~Server() { Stop(); }

bool ServerOptions::IsReachedByOthers() const {
  in6_addr six{};
  if (!listens_on_tcp) return false;
  if (::inet_pton(AF_INET6, address.c_str(), &six) == 1) return !IN6_IS_ADDR_LOOPBACK(&six);
  return !address.starts_with("127.");
}

Result<std::unique_ptr<Server>> Server::Start(DB* db, const ServerOptions& options) {
  Result<std::unique_ptr<Dataset>> dataset = Dataset::Open(db, options.settings.is_power_durable);
  if (!dataset) return dataset.error();
  Result<std::unique_ptr<base::ThreadPool>> pool = base::ThreadPool::Create(kPoolThreads);
  if (!pool) return pool.error();
  auto loops = std::make_unique<Loops>(*std::move(dataset), *std::move(pool), options);
  if (Status listening = loops->Listen(options); !listening.ok()) return listening;
  loops->Run();
  return std::unique_ptr<Server>(new Server(std::move(loops)));
}

uint16_t Server::port() const noexcept { return loops_->hub().port(); }
std::string Server::url() const { return loops_->url(); }
Hub& Server::hub() noexcept { return loops_->hub(); }
void Server::Stop() { loops_->Stop(); }

}  // namespace basalt::server
