#include "net/error_line.h"

#include <algorithm>
#include <charconv>

namespace basalt::net {
namespace {

constexpr std::string_view kPrefix = "BASALT ";
constexpr uint8_t kCodeMax = static_cast<uint8_t>(StatusCode::kOutOfRange);

/// A number and the space behind it, taken off the front of `text`; nothing: 255.
uint8_t TakeNumber(std::string_view* text) noexcept {
  uint8_t number = 0;
  const auto [end, failed] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (failed != std::errc()) return UINT8_MAX;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  if (!text->starts_with(' ')) return UINT8_MAX;
  text->remove_prefix(1);
  return number;
}

Status OtherError(std::string_view line, std::string_view server) {
  const auto with = [&](StatusCode code) {
    return Status(code, std::string(server) + " answers: " + std::string(line));
  };
  for (const std::string_view denied : {"NOAUTH", "WRONGPASS", "NOPERM"}) {
    if (line.starts_with(denied)) return with(StatusCode::kPermissionDenied);
  }
  if (line.starts_with("ERR unknown command")) {
    return {StatusCode::kUnsupported,
            std::string(server) +
                " does not have the commands of Basalt's client: it is another "
                "server, or an older one"};
  }
  if (line.starts_with("ERR max number of clients")) return with(StatusCode::kUnavailable);
  return with(StatusCode::kIoError);
}

}  // namespace

std::string ErrorLineOf(const Status& status) {
  std::string line(kPrefix);
  line += std::to_string(static_cast<int>(status.code())) + " " +
          std::to_string(static_cast<int>(status.sub_code())) + " ";
  line += status.message();
  std::ranges::replace_if(line, [](char c) { return c == '\r' || c == '\n'; }, ' ');
  return line;
}

Status StatusOf(std::string_view error_line, std::string_view server) {
  if (!error_line.starts_with(kPrefix)) return OtherError(error_line, server);
  std::string_view rest = error_line.substr(kPrefix.size());
  const uint8_t code = TakeNumber(&rest);
  const uint8_t sub_code = TakeNumber(&rest);
  if (code == 0 || code > kCodeMax || sub_code == UINT8_MAX) {
    return {StatusCode::kUnsupported,
            std::string(server) + " answers with an error that this version does not know: " +
                std::string(error_line)};
  }
  return {static_cast<StatusCode>(code), rest, static_cast<SubCode>(sub_code)};
}

}  // namespace basalt::net
