#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "basalt/status.h"
#include "net/address.h"
#include "net/answer_parser.h"

namespace basalt::net {

using Deadline = std::chrono::steady_clock::time_point;

/// What a connection is waited for.
enum class Readiness : uint8_t { kToRead, kToWrite };

/// One connection to a server: sends commands and receives their answers in order. One thread at a
/// time. After an error it must be thrown away.
class Connection {
 public:
  /// Tries each address of the host in turn. Unavailable: nobody answers there. DeadlineExceeded.
  /// InvalidArgument: the name of the host is not known.
  static Result<std::unique_ptr<Connection>> Connect(const Address& address, Deadline deadline);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Hands all bytes to the system. An error: the last of them were not handed over.
  Status Send(std::string_view bytes, Deadline deadline);
  /// Waits for the next answer. Unavailable: the connection is broken. DeadlineExceeded. IoError:
  /// the answer is malformed.
  Status Receive(Deadline deadline);
  /// The answer, until the next call of Receive.
  AnswerReader answer() const noexcept;

  /// Whether it is open and the server has sent nothing that was not asked for.
  bool IsIdle() const noexcept;

 private:
  Connection(int fd, std::string server);
  Status Wait(Readiness awaited, Deadline deadline) const;
  Status Broken(int error) const;

  const int fd_;
  const std::string server_;  // For messages.
  AnswerParser parser_;
  std::string in_;  // [begin_, end_) was received.
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t answer_bytes_ = 0;
};

}  // namespace basalt::net
