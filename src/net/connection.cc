#include "net/connection.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "base/check.h"

namespace basalt::net {
namespace {

constexpr uint64_t kAnswerBytesMax = uint64_t{1} << 30;
constexpr size_t kReadBytes = size_t{16} * 1024;
constexpr size_t kReadBytesMax = size_t{4} << 20;
/// A larger buffer is given back when it is empty.
constexpr size_t kKeptBytes = size_t{256} * 1024;

Status TooLate(const std::string& server) {
  return {StatusCode::kDeadlineExceeded, server + " does not answer in time"};
}

int MillisUntil(Deadline deadline) noexcept {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, INT32_MAX));
}

/// Ok: `fd` is ready. Interrupted waits go on.
Status WaitFor(int fd, Readiness awaited, Deadline deadline, const std::string& server) {
  while (true) {
    pollfd waited{};
    waited.fd = fd;
    waited.events = POLLIN;
    if (awaited == Readiness::kToWrite) waited.events = POLLOUT;
    const int ready = ::poll(&waited, 1, MillisUntil(deadline));
    if (ready > 0) return {};
    if (ready == 0) return TooLate(server);
    if (errno != EINTR) {
      return {StatusCode::kIoError, "wait for " + server + ": " + std::strerror(errno)};
    }
  }
}

class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const noexcept { return fd_; }
  int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

Status Unreachable(const std::string& server, int error) {
  if (error == EMFILE || error == ENFILE) {
    return {StatusCode::kResourceExhausted,
            "connect to " + server + ": the process may open no more files (ulimit -n)",
            SubCode::kDescriptors};
  }
  const StatusCode code =
      error == EACCES || error == EPERM ? StatusCode::kPermissionDenied : StatusCode::kUnavailable;
  return {code, "connect to " + server + ": " + std::strerror(error)};
}

Result<int> ConnectTo(const sockaddr* address, socklen_t size, Deadline deadline,
                      const std::string& server) {
  Descriptor fd(::socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return Unreachable(server, errno);
  if (::connect(fd.get(), address, size) != 0) {
    if (errno != EINPROGRESS && errno != EINTR) return Unreachable(server, errno);
    BASALT_RETURN_IF_ERROR(WaitFor(fd.get(), Readiness::kToWrite, deadline, server));
    int failed = 0;
    socklen_t failed_size = sizeof failed;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &failed, &failed_size);
    if (failed != 0) return Unreachable(server, failed);
  }
  if (address->sa_family != AF_UNIX) {
    const int on = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(fd.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  }
  return fd.release();
}

Result<int> ConnectToUnix(const Address& address, Deadline deadline, const std::string& server) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (address.unix_socket.size() >= sizeof name.sun_path) {
    return Status(StatusCode::kInvalidArgument, "the path of the socket is too long: " + server);
  }
  address.unix_socket.copy(name.sun_path, sizeof name.sun_path - 1);
  return ConnectTo(reinterpret_cast<const sockaddr*>(&name), sizeof name, deadline, server);
}

Result<int> ConnectToHost(const Address& address, Deadline deadline, const std::string& server) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed =
      ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &wanted, &found);
  if (failed != 0) {
    return Status(failed == EAI_AGAIN ? StatusCode::kUnavailable : StatusCode::kInvalidArgument,
                  "find the host of " + server + ": " + ::gai_strerror(failed));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, ::freeaddrinfo);
  Status last(StatusCode::kUnavailable, "connect to " + server + ": the host has no address");
  for (const addrinfo* at = all.get(); at != nullptr; at = at->ai_next) {
    Result<int> fd = ConnectTo(at->ai_addr, at->ai_addrlen, deadline, server);
    if (fd) return fd;
    last = fd.error();
  }
  return last;
}

}  // namespace

Connection::Connection(int fd, std::string server)
    : fd_(fd), server_(std::move(server)), parser_(kAnswerBytesMax) {}

Connection::~Connection() { ::close(fd_); }

Result<std::unique_ptr<Connection>> Connection::Connect(const Address& address, Deadline deadline) {
  std::string server = address.ToString();
  BASALT_ASSIGN_OR_RETURN(const int fd, address.unix_socket.empty()
                                            ? ConnectToHost(address, deadline, server)
                                            : ConnectToUnix(address, deadline, server));
  Descriptor owned(fd);
  std::unique_ptr<Connection> connection(new Connection(fd, std::move(server)));
  owned.release();
  return connection;
}

Status Connection::Broken(int error) const {
  return {StatusCode::kUnavailable, server_ + (error == 0 ? " has closed the connection"
                                                          : ": the connection is broken: " +
                                                                std::string(std::strerror(error)))};
}

Status Connection::Wait(Readiness awaited, Deadline deadline) const {
  return WaitFor(fd_, awaited, deadline, server_);
}

Status Connection::Send(std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      BASALT_RETURN_IF_ERROR(Wait(Readiness::kToWrite, deadline));
    } else if (errno != EINTR) {
      return Broken(errno);
    }
  }
  return {};
}

Status Connection::Receive(Deadline deadline) {
  begin_ += std::exchange(answer_bytes_, 0);
  if (begin_ == end_) {
    begin_ = end_ = 0;
    if (in_.size() > kKeptBytes) in_ = std::string();
  }
  while (true) {
    const std::string_view received = std::string_view(in_).substr(begin_, end_ - begin_);
    switch (parser_.Next(received)) {
      case AnswerParser::Outcome::kAnswer:
        answer_bytes_ = parser_.consumed();
        return {};
      case AnswerParser::Outcome::kError:
        return {StatusCode::kIoError, server_ + ": " + parser_.error()};
      case AnswerParser::Outcome::kMore:
        break;
    }
    size_t room = kReadBytes;
    if (parser_.wanted_bytes() > received.size()) {
      room = std::clamp(parser_.wanted_bytes() - received.size(), kReadBytes, kReadBytesMax);
    }
    if (in_.size() - end_ < room) {
      std::memmove(in_.data(), in_.data() + begin_, received.size());
      end_ -= std::exchange(begin_, 0);
      if (in_.size() - end_ < room) in_.resize(std::max(end_ + room, in_.size() * 2));
    }
    const ssize_t got = ::recv(fd_, in_.data() + end_, in_.size() - end_, 0);
    if (got > 0) {
      end_ += static_cast<size_t>(got);
    } else if (got == 0) {
      return Broken(0);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      BASALT_RETURN_IF_ERROR(Wait(Readiness::kToRead, deadline));
    } else if (errno != EINTR) {
      return Broken(errno);
    }
  }
}

AnswerReader Connection::answer() const noexcept {
  return {parser_.tokens(), std::string_view(in_).substr(begin_, answer_bytes_)};
}

bool Connection::IsIdle() const noexcept {
  if (begin_ + answer_bytes_ != end_) return false;
  char byte;
  const ssize_t got = ::recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

}  // namespace basalt::net
