#include <boost/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/base64.h"
#include "server/command_table.h"
#include "server/executor.h"
#include "server/http_json.h"
#include "server/http_route.h"
#include "server/numbers.h"
#include "server/session.h"

namespace basalt::server {
namespace {

namespace json = boost::json;

using Words = std::vector<std::string>;

/// Reads replies in wire form (RESP2) as JSON.
class ReplyJson {
 public:
  ReplyJson(std::string_view wire, bool is_base64) : rest_(wire), is_base64_(is_base64) {}
  /// {"result": ...} or {"error": ...}.
  json::object TakeAnswer();
  /// The answers in the reply of EXEC; nothing: it is an error.
  std::optional<json::array> TakeAnswers();

 private:
  std::string_view TakeLine();
  json::value Text(std::string_view bytes);
  json::value TakeValue();

  std::string_view rest_;
  bool is_base64_;
  bool is_readable_ = true;  // All texts were UTF-8.
};

std::string_view ReplyJson::TakeLine() {
  const size_t end = std::min(rest_.find("\r\n"), rest_.size());
  const std::string_view line = rest_.substr(0, end);
  rest_.remove_prefix(std::min(end + 2, rest_.size()));
  return line;
}

json::value ReplyJson::Text(std::string_view bytes) {
  if (is_base64_) {
    std::string text;
    base::AppendBase64(bytes, text);
    return json::string(text);
  }
  if (!IsUtf8(bytes)) is_readable_ = false;
  return json::string(bytes);
}

json::value ReplyJson::TakeValue() {
  std::string_view line = TakeLine();
  if (line.empty()) return nullptr;
  const char kind = line.front();
  line.remove_prefix(1);
  const int64_t number = ParseInteger(line).value_or(-1);
  if (kind == ':') return number;
  if (kind == '+') return line == "OK" ? json::value("OK") : Text(line);
  if (kind == '-') return json::object{{"error", ReadableText(line)}};
  if (number < 0) return nullptr;
  if (kind == '$') {
    const std::string_view bytes = rest_.substr(0, static_cast<size_t>(number));
    rest_.remove_prefix(std::min(bytes.size() + 2, rest_.size()));
    return Text(bytes);
  }
  json::array values;
  for (int64_t i = 0; i < number && !rest_.empty(); ++i) values.push_back(TakeValue());
  return values;
}

json::object ReplyJson::TakeAnswer() {
  if (rest_.starts_with('-')) return {{"error", ReadableText(TakeLine().substr(1))}};
  is_readable_ = true;
  json::value value = TakeValue();
  if (is_readable_) return {{"result", std::move(value)}};
  return {{"error", "ERR the result is not UTF-8: send the header 'Upstash-Encoding: base64'"}};
}

std::optional<json::array> ReplyJson::TakeAnswers() {
  if (!rest_.starts_with('*')) return std::nullopt;
  const int64_t count = ParseInteger(TakeLine().substr(1)).value_or(0);
  json::array answers;
  for (int64_t i = 0; i < count && !rest_.empty(); ++i) answers.emplace_back(TakeAnswer());
  return answers;
}

/// A command's words: texts, numbers, true and false. Nothing: the value is none.
std::optional<Words> WordsOf(const json::value& value, const RequestLimits& limits) {
  if (!value.is_array() || value.get_array().empty()) return std::nullopt;
  if (value.get_array().size() > limits.arguments) return std::nullopt;
  Words words;
  for (const json::value& word : value.get_array()) {
    if (word.is_string()) {
      words.emplace_back(word.get_string());
    } else if (word.is_double()) {
      words.push_back(FormatDouble(word.get_double()));
    } else if (word.is_number() || word.is_bool()) {
      words.push_back(json::serialize(word));
    } else {
      return std::nullopt;
    }
  }
  return words;
}

/// Runs commands for one request, as a client that sends nothing else.
class Runner {
 public:
  Runner(Hub& hub, const User& user) : hub_(hub), session_(nullptr, 0, "http", &user) {}

  /// The reply in wire form.
  std::string Run(const Words& words);

 private:
  Hub& hub_;
  Session session_;
};

std::string Runner::Run(const Words& words) {
  std::string wire;
  Reply reply(&wire, hub_.settings().output_bytes);
  const Command* command = FindCommand(words.front());
  const bool is_transaction = words.front() == "multi" || words.front() == "exec";
  if (command != nullptr && (command->flags & kNoScript) != 0 && (command->flags & kScript) == 0 &&
      !is_transaction) {
    return "-ERR the command '" + std::string(command->name) + "' needs a connection\r\n";
  }
  const std::vector<std::string_view> args(words.begin(), words.end());
  const Execution execution = Execute(hub_, session_, args, reply, Mode::kPool);
  if (execution.outcome == Execution::Outcome::kWait) reply.Null();
  if (reply.is_over_limit()) return "-ERR the reply is too large\r\n";
  return wire;
}

/// "/multi-exec".
HttpResponse RunTransaction(Runner& runner, const std::vector<Words>& commands, bool is_base64) {
  runner.Run({"multi"});
  for (const Words& words : commands) runner.Run(words);
  const std::string wire = runner.Run({"exec"});
  if (auto answers = ReplyJson(wire, is_base64).TakeAnswers()) {
    return JsonResponse(200, *std::move(answers));
  }
  return JsonResponse(400, ReplyJson(wire, is_base64).TakeAnswer());
}

}  // namespace

std::optional<HttpResponse> RunHttpCommands(const HttpCall& call) {
  if (call.mode == Mode::kLoop) return std::nullopt;
  Hub& hub = call.hub;
  const HttpRequest& request = call.request;
  const auto refuse = [](int status, const char* text) {
    return JsonResponse(status, json::object{{"error", text}});
  };
  if (request.body.size() > kJsonBytesMax) return refuse(413, "ERR the body is above 8 MiB");
  boost::system::error_code failed;
  const json::value body = json::parse(request.body, failed);
  if (failed) return refuse(400, "ERR the body is not JSON");
  const bool is_base64 = EqualsIgnoreCase(request.upstash_encoding, "base64");
  const RequestLimits& limits = hub.settings().request;
  Runner runner(hub, *call.user);
  if (call.target.path == "/") {
    const std::optional<Words> words = WordsOf(body, limits);
    if (!words) return refuse(400, "ERR the body must be an array of texts and numbers");
    const json::object answer = ReplyJson(runner.Run(*words), is_base64).TakeAnswer();
    return JsonResponse(answer.contains("error") ? 400 : 200, answer);
  }
  std::vector<Words> commands;
  for (const json::value& command : body.is_array() ? body.get_array() : json::array()) {
    std::optional<Words> words = WordsOf(command, limits);
    if (!words) return refuse(400, "ERR each command must be an array of texts and numbers");
    commands.push_back(*std::move(words));
  }
  if (commands.empty()) return refuse(400, "ERR the body must be an array of commands");
  if (call.target.path == "/multi-exec") return RunTransaction(runner, commands, is_base64);
  json::array answers;
  size_t bytes = 0;
  for (const Words& words : commands) {
    const std::string wire = runner.Run(words);
    bytes += wire.size();
    if (bytes > hub.settings().output_bytes) return refuse(413, "ERR the replies are too large");
    answers.emplace_back(ReplyJson(wire, is_base64).TakeAnswer());
  }
  return JsonResponse(200, answers);
}

}  // namespace basalt::server
