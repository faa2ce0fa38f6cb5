#include "server/scan.h"

#include <charconv>
#include <system_error>

#include "server/glob.h"
#include "server/numbers.h"

namespace basalt::server {

bool Scan::Parse(Call& call, size_t index, bool has_type) {
  const std::string_view text = call.arg(index);
  uint64_t cursor = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cursor);
  if (error != std::errc() || end != text.data() + text.size()) {
    call.reply.Error("ERR invalid cursor");
    return false;
  }
  for (size_t i = index + 1; i < call.count(); i += 2) {
    const bool has_value = i + 1 < call.count();
    if (call.Is(i, "match") && has_value) {
      match = call.arg(i + 1);
    } else if (call.Is(i, "type") && has_value && has_type) {
      type = ToLower(call.arg(i + 1));
    } else if (call.Is(i, "count") && has_value) {
      const std::optional<int64_t> number = call.Integer(i + 1);
      if (!number) return false;
      if (*number < 1) {
        call.SyntaxError();
        return false;
      }
      count = static_cast<uint64_t>(*number);
    } else {
      call.SyntaxError();
      return false;
    }
  }
  if (cursor == 0) return true;
  std::optional<std::string> found = call.view.dataset().cursors().Find(cursor);
  if (!found) {
    call.reply.Error("ERR invalid cursor");
    return false;
  }
  place = *std::move(found);
  return true;
}

bool Scan::Matches(std::string_view name) const { return !match || GlobMatches(*match, name); }

void Scan::ReplyCursor(Call& call, const Walk& walk) {
  call.reply.Array(2);
  if (!walk.Valid()) return call.reply.Bulk("0");
  call.reply.Bulk(std::to_string(call.view.dataset().cursors().Add(std::string(walk.key()))));
}

}  // namespace basalt::server
