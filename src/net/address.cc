#include "net/address.h"

#include <charconv>

#include "base/check.h"

namespace basalt::net {
namespace {

constexpr std::string_view kTcp = "redis://";
constexpr std::string_view kUnix = "unix://";

/// Without the password, which messages must not show.
std::string Shown(std::string_view url) {
  const size_t scheme = url.find("//") + 2;
  const size_t at = url.rfind('@');
  if (at == std::string_view::npos || at < scheme) return std::string(url);
  return std::string(url.substr(0, scheme)) + "***" + std::string(url.substr(at));
}

Status BadUrl(std::string_view url, std::string_view what) {
  return {StatusCode::kInvalidArgument,
          "'" + Shown(url) + "': " + std::string(what) +
              "; a server's address is redis://[[user]:password@]host[:port] or unix:///path"};
}

int DigitOf(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/// False: a '%' without two hexadecimal digits.
bool Unescape(std::string_view text, std::string* out) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out->push_back(text[i]);
      continue;
    }
    const int high = i + 2 < text.size() ? DigitOf(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? DigitOf(text[i + 2]) : -1;
    if (high < 0 || low < 0) return false;
    out->push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return true;
}

/// What stands behind the host.
Status ParsePort(std::string_view url, std::string_view text, uint16_t* port) {
  if (text.empty()) return {};
  const char* const end = text.data() + text.size();
  const auto [stopped, failed] = std::from_chars(text.data() + 1, end, *port);
  if (text.front() == ':' && failed == std::errc() && stopped == end && *port != 0) return {};
  return BadUrl(url, "the port is not a number from 1 to 65535");
}

Status ParseHost(std::string_view url, std::string_view text, Address* address) {
  if (text.ends_with('/')) text.remove_suffix(1);
  if (text.contains('/')) return BadUrl(url, "there is a path after the host");
  size_t end = text.find(':');
  if (text.starts_with('[')) {  // An IPv6 address.
    end = text.find(']');
    if (end == std::string_view::npos) return BadUrl(url, "']' is missing");
    address->host = text.substr(1, end - 1);
    ++end;
  } else {
    end = std::min(end, text.size());
    address->host = text.substr(0, end);
  }
  if (address->host.empty()) return BadUrl(url, "there is no host");
  return ParsePort(url, text.substr(end), &address->port);
}

}  // namespace

std::string Address::ToString() const {
  if (!unix_socket.empty()) return std::string(kUnix) + unix_socket;
  const bool is_ipv6 = host.contains(':');
  return std::string(kTcp) + (is_ipv6 ? "[" : "") + host + (is_ipv6 ? "]:" : ":") +
         std::to_string(port);
}

bool IsServerUrl(std::string_view text) noexcept {
  return text.starts_with(kTcp) || text.starts_with(kUnix);
}

Result<Address> ParseServerUrl(std::string_view url) {
  if (!IsServerUrl(url)) return BadUrl(url, "it begins with neither redis:// nor unix://");
  const bool is_unix = url.starts_with(kUnix);
  std::string_view rest = url.substr(is_unix ? kUnix.size() : kTcp.size());
  Address address;
  const size_t at = is_unix ? rest.substr(0, rest.find('/')).rfind('@') : rest.rfind('@');
  if (at != std::string_view::npos) {
    const std::string_view who = rest.substr(0, at);
    const size_t colon = who.find(':');
    if (colon == std::string_view::npos) return BadUrl(url, "the user has no password");
    if (!Unescape(who.substr(0, colon), &address.user) ||
        !Unescape(who.substr(colon + 1), &address.password)) {
      return BadUrl(url, "a '%' is not followed by two hexadecimal digits");
    }
    rest.remove_prefix(at + 1);
  }
  if (!is_unix) {
    BASALT_RETURN_IF_ERROR(ParseHost(url, rest, &address));
    return address;
  }
  if (!rest.starts_with('/')) return BadUrl(url, "the path of the socket is not absolute");
  address.unix_socket = rest;
  return address;
}

}  // namespace basalt::net
