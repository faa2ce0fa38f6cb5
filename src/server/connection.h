#pragma once

#include <atomic>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "server/executor.h"
#include "server/http.h"
#include "server/hub.h"
#include "server/peer.h"
#include "server/reply.h"
#include "server/resp_parser.h"
#include "server/session.h"

namespace basalt::server {

// A client's connection. It belongs to one event loop for life; all functions run there, except
// those of Peer.
//
// What a read brings is taken apart into commands, which run one after another on the loop and
// append their replies to `out_`; one send follows. Consecutive commands that may share a
// transaction do (pipeline.h). A command that must not run on a loop goes to
// the pool with a copy of its arguments. Until it comes back no further command runs, and nothing
// more is read. A command that waits for keys keeps a copy of its arguments, too; meanwhile the
// connection goes on reading, up to a bound, so that it notices when the client goes away.
//
// Bounds: unparsed input by the request limits, or kInputPause while a command runs elsewhere; the
// output by Settings::output_bytes, beyond which the connection is closed. When more than
// kOutputPause waits to be sent, no further command runs.
//
// A response of HTTP whose body is a stream is made piece by piece on the pool, each when less than
// kOutputPause waits to be sent. If the client has not read that much for
// Settings::stream_patience, the connection is closed, since the stream holds a snapshot.
class Connection final : public Peer {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;

  Connection(Socket socket, Hub* hub, base::ThreadPool* pool, std::string address);
  ~Connection() override;

  uint64_t id() const noexcept { return session_.id(); }
  Socket::executor_type executor() { return socket_.get_executor(); }

  /// Begins to read.
  void Start();
  /// Closes once the command that runs has been answered. Any thread.
  void Stop();

  void Deliver(std::shared_ptr<const Message> message) override;
  void Wake() override;
  std::string Describe() const override { return session_.Describe(); }

 private:
  enum class Protocol : uint8_t { kUnknown, kRedis, kHttp };
  /// A blocking command that waits.
  struct Waiting {
    std::vector<std::string> args;
    Wait wait;
    uint8_t db;
  };

  std::shared_ptr<Connection> Self() {
    return std::static_pointer_cast<Connection>(shared_from_this());
  }
  std::string_view Input() const noexcept {
    return std::string_view(in_).substr(in_begin_, in_end_ - in_begin_);
  }
  void Consume(size_t bytes) noexcept;
  /// Consumes the first of `parsed` bytes, which the parser has gone through.
  void ConsumeParsed(size_t bytes, size_t parsed) noexcept;
  void Read();
  void OnRead(bool failed, size_t bytes);
  /// Runs what the input has, sends the replies, and reads on.
  void Process();
  /// One command or request. False: there is none, or it is not finished.
  bool Step();
  bool StepRedis();
  bool StepHttp();
  void DetectProtocol();
  void Run(Args args);
  /// Runs the command that the parser has, and those that follow it and have arrived, as one
  /// transaction.
  void RunPipeline(const Command* command);
  /// Answers the GET that the parser has, and those that follow it and have arrived, together.
  void RunGets(const Command* command);
  void RunOnPool(std::vector<std::string> args);
  /// Runs the commands in the first bytes of the input, which stay there until it is known how many
  /// of them ran.
  void RunPipelineOnPool(size_t bytes);
  void OnPoolDone(std::string out, bool is_over_limit, Execution execution,
                  std::vector<std::string> args);
  void RunHttpOnPool(HttpRequest request);
  void BeginReply(HttpReply reply);
  /// Has the next piece of stream_ made on the pool.
  bool StepStream();
  void OnStreamTimeout();
  void BeginWait(std::vector<std::string> args, Wait wait);
  void TryWaiting();
  void EndWait();
  void OnTimeout();
  void TimeOut();
  void AppendMessage(const Message& message);
  void Flush();
  void OnWritten(bool failed);
  bool IsOutputTooLarge() const noexcept;
  void Close();

  Socket socket_;
  Hub* hub_;
  base::ThreadPool* pool_;
  Session session_;
  Protocol protocol_ = Protocol::kUnknown;
  RespParser parser_;
  std::unique_ptr<HttpParser> http_;
  std::unique_ptr<HttpStream> stream_;  // The rest of a response. While busy, the pool's.

  std::string in_;  // [in_begin_, in_end_) was received and is not parsed yet.
  size_t in_begin_ = 0;
  size_t in_end_ = 0;
  std::string out_;
  std::string sending_;  // What an asynchronous send is about.
  size_t sent_ = 0;
  Reply reply_;

  bool is_reading_ = false;
  bool is_sending_ = false;
  bool is_busy_ = false;  // A command runs on the pool.
  bool closes_when_sent_ = false;
  bool is_stopped_ = false;
  bool is_closed_ = false;
  std::optional<Waiting> waiting_;
  bool woken_ = false;               // While a waiting command ran on the pool.
  bool timed_out_ = false;           // The same.
  boost::asio::steady_timer timer_;  // Of waiting_, or of stream_.
  std::atomic<size_t> undelivered_bytes_{0};
};

}  // namespace basalt::server
