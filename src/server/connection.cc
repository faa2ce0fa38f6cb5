#include "server/connection.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <cstring>
#include <utility>

#include "server/access.h"
#include "server/command_table.h"
#include "server/get_run.h"
#include "server/pipeline.h"

namespace basalt::server {
namespace {

constexpr size_t kReadBytes = 16 * 1024;
constexpr size_t kReadBytesMax = 1024 * 1024;
constexpr size_t kInputPause = 1024 * 1024;
constexpr size_t kOutputPause = 1024 * 1024;
/// A first line that is longer than this is taken for one of HTTP if it begins like one.
constexpr size_t kFirstLineBytesMax = 16 * 1024;
/// Buffers above this are given back when they are empty.
constexpr size_t kKeptBytes = 64 * 1024;
/// What a client that has not authenticated may send.
constexpr RequestLimits kStrangerLimits{
    .argument_bytes = 16 * 1024, .arguments = 10, .command_bytes = 64 * 1024};

std::vector<std::string_view> ViewsOf(const std::vector<std::string>& args) {
  return {args.begin(), args.end()};
}

}  // namespace

Connection::Connection(Socket socket, Hub* hub, base::ThreadPool* pool, std::string address)
    : socket_(std::move(socket)),
      hub_(hub),
      pool_(pool),
      session_(this, hub->NewClientId(), std::move(address), hub->settings().users.Initial()),
      reply_(&out_, hub->settings().output_bytes),
      timer_(socket_.get_executor()) {}

Connection::~Connection() { hub_->RemoveClient(session_.id()); }

void Connection::Start() {
  boost::system::error_code failed;
  socket_.non_blocking(true, failed);
  if (failed) return Close();
  Read();
}

void Connection::Stop() {
  boost::asio::post(socket_.get_executor(), [self = Self()] {
    self->closes_when_sent_ = true;
    self->is_stopped_ = true;
    if (self->waiting_ && !self->is_busy_) self->EndWait();
    if (!self->is_busy_) self->Flush();
  });
}

void Connection::Close() {
  if (is_closed_) return;
  is_closed_ = true;
  if (waiting_) EndWait();
  if (!is_busy_) stream_.reset();
  timer_.cancel();
  Disconnect(*hub_, session_);
  hub_->RemoveClient(session_.id());
  boost::system::error_code ignored;
  socket_.shutdown(Socket::shutdown_both, ignored);
  socket_.close(ignored);
}

void Connection::Consume(size_t bytes) noexcept {
  in_begin_ += bytes;
  if (in_begin_ < in_end_ || is_reading_) return;  // A read that is under way goes to in_end_.
  in_begin_ = in_end_ = 0;
  if (in_.size() > kKeptBytes) {
    in_.clear();
    in_.shrink_to_fit();
  }
}

void Connection::ConsumeParsed(size_t bytes, size_t parsed) noexcept {
  Consume(bytes);
  // The parser stands behind commands that are to be read again.
  if (bytes < parsed) parser_ = RespParser(hub_->settings().request);
}

void Connection::Read() {
  if (is_reading_ || is_closed_ || is_busy_ || closes_when_sent_) return;
  if (waiting_ && in_end_ - in_begin_ >= kInputPause) return;
  if (out_.size() + sending_.size() > kOutputPause) return;
  const size_t present = in_end_ - in_begin_;
  size_t room = kReadBytes;
  if (parser_.wanted_bytes() > present) {
    room = std::clamp(parser_.wanted_bytes() - present, kReadBytes, kReadBytesMax);
  }
  if (in_.size() - in_end_ < room) {
    std::memmove(in_.data(), in_.data() + in_begin_, present);
    in_begin_ = 0;
    in_end_ = present;
    if (in_.size() - in_end_ < room) in_.resize(std::max(in_end_ + room, in_.size() * 3 / 2));
  }
  is_reading_ = true;
  socket_.async_read_some(boost::asio::buffer(in_.data() + in_end_, in_.size() - in_end_),
                          [self = Self()](const boost::system::error_code& failed, size_t bytes) {
                            self->OnRead(static_cast<bool>(failed), bytes);
                          });
}

void Connection::OnRead(bool failed, size_t bytes) {
  is_reading_ = false;
  if (is_closed_) return;
  if (failed) return Close();
  in_end_ += bytes;
  if (waiting_ || is_busy_) return Read();
  Process();
}

void Connection::Process() {
  while (!is_closed_ && !is_busy_ && !waiting_ && (!closes_when_sent_ || stream_)) {
    if (out_.size() >= kOutputPause) {
      Flush();
      // OnWritten goes on. If all of it was sent at once, nobody else would.
      if (is_closed_ || out_.size() >= kOutputPause) break;
    }
    if (!Step()) break;
  }
  if (is_closed_) return;
  Flush();
  Read();
}

bool Connection::Step() {
  if (stream_) return StepStream();
  if (in_begin_ == in_end_) return false;
  if (protocol_ == Protocol::kUnknown) DetectProtocol();
  if (protocol_ == Protocol::kHttp) return StepHttp();
  return protocol_ == Protocol::kRedis && StepRedis();
}

void Connection::DetectProtocol() {
  const std::string_view input = Input();
  const size_t end = input.find('\n');
  const bool may_be_http = input.front() >= 'A' && input.front() <= 'Z';
  if (may_be_http && end == std::string_view::npos && input.size() < kFirstLineBytesMax) return;
  const bool is_http = end == std::string_view::npos ? BeginsLikeHttp(input)
                                                     : IsHttpRequestLine(input.substr(0, end));
  if (may_be_http && is_http) {
    protocol_ = Protocol::kHttp;
    http_ = std::make_unique<HttpParser>(hub_->settings().users,
                                         hub_->settings().request.argument_bytes);
  } else {
    protocol_ = Protocol::kRedis;
  }
}

bool Connection::StepRedis() {
  parser_.set_limits(session_.is_authenticated() ? hub_->settings().request : kStrangerLimits);
  switch (parser_.Next(Input())) {
    case RespParser::Outcome::kMore:
      return false;
    case RespParser::Outcome::kError:
      reply_.Error("ERR " + parser_.error());
      closes_when_sent_ = true;
      return false;
    case RespParser::Outcome::kCommand:
      break;
  }
  const Args args = parser_.args();
  if (!args.empty() && IsWordOfHttp(args.front())) {
    reply_.Error("ERR this connection speaks the Redis protocol, and got a line of HTTP");
    closes_when_sent_ = true;
    return false;
  }
  if (in_end_ - in_begin_ > parser_.consumed() && !args.empty()) {
    const Command* command = FindCommand(args.front());
    if (Pipeline::BeginsWith(session_, command, args)) {
      RunPipeline(command);
      return true;
    }
    if (GetRun::Admits(session_, command, args)) {
      RunGets(command);
      return true;
    }
  }
  if (!args.empty()) Run(args);
  Consume(parser_.consumed());
  return true;
}

void Connection::RunPipeline(const Command* command) {
  const std::string_view input = Input();
  size_t bytes = 0;  // Of the commands that were added.
  reply_.set_version(session_.resp_version());
  Pipeline pipeline(*hub_, session_, reply_, Mode::kLoop);
  do {
    pipeline.Add(*command, parser_.args());
    bytes += parser_.consumed();
    if (pipeline.IsFull() || parser_.Next(input.substr(bytes)) != RespParser::Outcome::kCommand ||
        parser_.args().empty()) {
      break;
    }
    command = FindCommand(parser_.args().front());
  } while (Pipeline::Admits(session_, command, parser_.args()));
  const Status status = pipeline.Finish();
  if (status.code() == StatusCode::kAborted) {
    hub_->counters().conflicts.fetch_add(1, std::memory_order_relaxed);
  }
  if (!status.ok()) return RunPipelineOnPool(bytes);
  hub_->counters().commands.fetch_add(pipeline.count(), std::memory_order_relaxed);
  hub_->counters().pipelines.fetch_add(1, std::memory_order_relaxed);
  Consume(bytes);
  if (reply_.is_over_limit()) Close();
}

void Connection::RunGets(const Command* command) {
  const std::string_view input = Input();
  GetRun gets(session_.db());
  session_.set_last_command(command);
  do {
    gets.Add(parser_.args()[1], parser_.consumed());
  } while (!gets.IsFull() &&
           parser_.Next(input.substr(gets.command_bytes())) == RespParser::Outcome::kCommand &&
           !parser_.args().empty() &&
           GetRun::Admits(session_, FindCommand(parser_.args().front()), parser_.args()));
  reply_.set_version(session_.resp_version());
  const Result<GetRun::Answered> answered = gets.Answer(*hub_, reply_);
  if (!answered) return RunPipelineOnPool(gets.command_bytes());
  hub_->counters().commands.fetch_add(answered->count, std::memory_order_relaxed);
  ConsumeParsed(answered->command_bytes, gets.command_bytes());
  if (reply_.is_over_limit()) Close();
}

void Connection::Run(Args args) {
  hub_->counters().commands.fetch_add(1, std::memory_order_relaxed);
  Execution execution = Execute(*hub_, session_, args, reply_, Mode::kLoop);
  if (execution.outcome == Execution::Outcome::kToPool) {
    RunOnPool({args.begin(), args.end()});
  } else if (execution.outcome == Execution::Outcome::kWait) {
    BeginWait({args.begin(), args.end()}, *std::move(execution.wait));
  }
  if (session_.is_closing()) closes_when_sent_ = true;
  if (reply_.is_over_limit()) Close();
}

void Connection::RunOnPool(std::vector<std::string> args) {
  is_busy_ = true;
  hub_->counters().pool_commands.fetch_add(1, std::memory_order_relaxed);
  pool_->Schedule([self = Self(), args = std::move(args)]() mutable {
    std::string out;
    Reply reply(&out, self->hub_->settings().output_bytes);
    const std::vector<std::string_view> views = ViewsOf(args);
    Execution execution = Execute(*self->hub_, self->session_, views, reply, Mode::kPool);
    boost::asio::post(self->socket_.get_executor(),
                      [self, out = std::move(out), over = reply.is_over_limit(),
                       execution = std::move(execution), args = std::move(args)]() mutable {
                        self->OnPoolDone(std::move(out), over, std::move(execution),
                                         std::move(args));
                      });
  });
}

void Connection::RunPipelineOnPool(size_t bytes) {
  is_busy_ = true;
  pool_->Schedule([self = Self(), commands = std::string(Input().substr(0, bytes))] {
    std::string out;
    Reply reply(&out, self->hub_->settings().output_bytes);
    const size_t done = ExecutePipeline(*self->hub_, self->session_, commands, reply);
    boost::asio::post(self->socket_.get_executor(),
                      [self, out = std::move(out), done, parsed = commands.size(),
                       over = reply.is_over_limit()]() mutable {
                        self->ConsumeParsed(done, parsed);
                        self->OnPoolDone(std::move(out), over, {}, {});
                      });
  });
}

void Connection::OnPoolDone(std::string out, bool is_over_limit, Execution execution,
                            std::vector<std::string> args) {
  is_busy_ = false;
  if (is_closed_) return stream_.reset();
  if (is_over_limit || out_.size() + out.size() > hub_->settings().output_bytes) return Close();
  out_ += out;
  if (execution.outcome != Execution::Outcome::kWait) {
    if (waiting_) EndWait();
  } else if (!waiting_) {
    BeginWait(std::move(args), *std::move(execution.wait));
  } else if (timed_out_) {
    TimeOut();
  } else if (std::exchange(woken_, false)) {
    TryWaiting();
  } else {
    hub_->waiting().PassOn(this, waiting_->db, waiting_->wait.keys);
  }
  if (session_.is_closing()) closes_when_sent_ = true;
  Process();
}

bool Connection::StepHttp() {
  size_t consumed = 0;
  const HttpParser::Outcome outcome = http_->Next(Input(), &consumed);
  Consume(consumed);
  switch (outcome) {
    case HttpParser::Outcome::kMore:
      return false;
    case HttpParser::Outcome::kContinue:
      out_ += "HTTP/1.1 100 Continue\r\n\r\n";
      return true;
    case HttpParser::Outcome::kError:
      out_ += http_->error();
      closes_when_sent_ = true;
      return false;
    case HttpParser::Outcome::kRequest:
      break;
  }
  hub_->counters().http_requests.fetch_add(1, std::memory_order_relaxed);
  HttpRequest request = std::move(http_->request());
  if (auto reply = HandleHttp(*hub_, request, Mode::kLoop)) {
    BeginReply(*std::move(reply));
  } else {
    RunHttpOnPool(std::move(request));
  }
  return true;
}

void Connection::BeginReply(HttpReply reply) {
  out_ += reply.bytes;
  stream_ = std::move(reply.stream);
  if (reply.closes) closes_when_sent_ = true;
}

void Connection::RunHttpOnPool(HttpRequest request) {
  is_busy_ = true;
  hub_->counters().pool_commands.fetch_add(1, std::memory_order_relaxed);
  pool_->Schedule([self = Self(), request = std::move(request)] {
    HttpReply reply = HandleHttp(*self->hub_, request, Mode::kPool).value_or(HttpReply());
    boost::asio::post(self->socket_.get_executor(), [self, reply = std::move(reply)]() mutable {
      if (!self->is_closed_) self->BeginReply(std::move(reply));
      self->OnPoolDone({}, self->IsOutputTooLarge(), {}, {});
    });
  });
}

bool Connection::StepStream() {
  if (is_stopped_) {
    stream_.reset();
    return false;
  }
  is_busy_ = true;
  timer_.expires_after(hub_->settings().stream_patience);
  timer_.async_wait([self = Self()](const boost::system::error_code& cancelled) {
    if (!cancelled) self->OnStreamTimeout();
  });
  pool_->Schedule([self = Self()] {
    std::string piece;
    const bool has_more = self->stream_->Next(&piece);
    boost::asio::post(self->socket_.get_executor(),
                      [self, has_more, piece = std::move(piece)]() mutable {
                        if (!has_more) {
                          self->stream_.reset();
                          self->timer_.cancel();
                        }
                        self->OnPoolDone(std::move(piece), false, {}, {});
                      });
  });
  return true;
}

void Connection::OnStreamTimeout() {
  // A timer that has fired may stand in the queue when the next piece is made already.
  if (is_busy_ || !stream_ || timer_.expiry() > std::chrono::steady_clock::now()) return;
  Close();
}

void Connection::BeginWait(std::vector<std::string> args, Wait wait) {
  if (!wait.args.empty()) args = std::move(wait.args);
  waiting_ = {std::move(args), std::move(wait), session_.db()};
  woken_ = timed_out_ = false;
  hub_->waiting().Enter(this, waiting_->db, waiting_->wait.keys);
  if (waiting_->wait.timeout) {
    timer_.expires_after(*waiting_->wait.timeout);
    timer_.async_wait([self = Self()](const boost::system::error_code& cancelled) {
      if (!cancelled) self->OnTimeout();
    });
  }
  TryWaiting();
}

void Connection::TryWaiting() {
  const std::vector<std::string_view> args = ViewsOf(waiting_->args);
  Execution execution = Execute(*hub_, session_, args, reply_, Mode::kLoop);
  if (execution.outcome == Execution::Outcome::kDone) return EndWait();
  if (execution.outcome == Execution::Outcome::kToPool) return RunOnPool(waiting_->args);
  hub_->waiting().PassOn(this, waiting_->db, waiting_->wait.keys);
}

void Connection::EndWait() {
  timer_.cancel();
  const Waiting ended = *std::exchange(waiting_, std::nullopt);
  hub_->waiting().Leave(this, ended.db, ended.wait.keys);
}

void Connection::OnTimeout() {
  if (!waiting_ || is_closed_) return;
  // A timer that has fired may stand in the queue when the next command waits already.
  if (timer_.expiry() > std::chrono::steady_clock::now()) return;
  if (is_busy_) {
    timed_out_ = true;
    return;
  }
  TimeOut();
  Process();
}

void Connection::TimeOut() {
  reply_.set_version(session_.resp_version());
  waiting_->wait.null_is_array ? reply_.NullArray() : reply_.Null();
  EndWait();
}

void Connection::Wake() {
  boost::asio::post(socket_.get_executor(), [self = Self()] {
    if (!self->waiting_ || self->is_closed_) return;
    if (self->is_busy_) {
      self->woken_ = true;
      return;
    }
    self->TryWaiting();
    if (!self->waiting_) self->Process();
  });
}

void Connection::Deliver(std::shared_ptr<const Message> message) {
  const size_t bytes = message->channel.size() + message->text.size() + message->pattern.size();
  const size_t before = undelivered_bytes_.fetch_add(bytes);
  if (before > hub_->settings().output_bytes) {
    undelivered_bytes_.fetch_sub(bytes);
    return;  // The message below, which exceeded the limit, closes the connection.
  }
  boost::asio::post(socket_.get_executor(), [self = Self(), message = std::move(message), bytes] {
    const size_t undelivered = self->undelivered_bytes_.fetch_sub(bytes);
    if (self->is_closed_) return;
    self->AppendMessage(*message);
    if (undelivered > self->hub_->settings().output_bytes || self->IsOutputTooLarge()) {
      return self->Close();
    }
    self->Flush();
  });
}

void Connection::AppendMessage(const Message& message) {
  if (message.has_pattern ? !session_.patterns.contains(message.pattern)
                          : !session_.channels.contains(message.channel)) {
    return;  // It has unsubscribed meanwhile.
  }
  if (session_.user() == nullptr ||
      !MaySeeMessage(*session_.user(), message.channel, message.text)) {
    return;
  }
  reply_.set_version(session_.resp_version());
  reply_.Push(message.has_pattern ? 4 : 3);
  reply_.Bulk(message.has_pattern ? "pmessage" : "message");
  if (message.has_pattern) reply_.Bulk(message.pattern);
  reply_.Bulk(message.channel);
  reply_.Bulk(message.text);
}

bool Connection::IsOutputTooLarge() const noexcept {
  return reply_.is_over_limit() ||
         out_.size() + sending_.size() - sent_ > hub_->settings().output_bytes;
}

void Connection::Flush() {
  if (is_sending_ || is_closed_) return;
  size_t sent = 0;
  boost::system::error_code failed;
  while (sent < out_.size() && !failed) {
    sent += socket_.write_some(boost::asio::buffer(out_.data() + sent, out_.size() - sent), failed);
  }
  if (sent == out_.size()) {
    out_.clear();
    if (out_.capacity() > kKeptBytes) out_.shrink_to_fit();
    if (closes_when_sent_ && !is_busy_ && !stream_) Close();
    return;
  }
  if (failed != boost::asio::error::would_block && failed != boost::asio::error::try_again) {
    return Close();
  }
  sending_ = std::move(out_);
  out_.clear();
  sent_ = sent;
  is_sending_ = true;
  OnWritten(false);
}

void Connection::OnWritten(bool failed) {
  if (is_closed_) return;
  if (failed) return Close();
  if (sent_ < sending_.size()) {
    socket_.async_write_some(boost::asio::buffer(sending_.data() + sent_, sending_.size() - sent_),
                             [self = Self()](const boost::system::error_code& error, size_t bytes) {
                               self->sent_ += bytes;
                               self->OnWritten(static_cast<bool>(error));
                             });
    return;
  }
  is_sending_ = false;
  sending_ = {};
  sent_ = 0;
  if (waiting_ || is_busy_) return Flush();
  Process();
}

}  // namespace basalt::server
