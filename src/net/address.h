#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "basalt/status.h"

namespace basalt::net {

/// Where a server listens, and who asks.
struct Address {
  std::string host{};  ///< Of TCP: a name or an IP address.
  uint16_t port = 6379;
  std::string unix_socket{};  ///< A path; not empty: instead of TCP.
  std::string user{};         ///< Empty: the default one.
  std::string password{};     ///< Empty: none is given.

  /// For messages: without the password.
  std::string ToString() const;
};

/// Whether `text` has the form of a URL of a server, good or bad.
bool IsServerUrl(std::string_view text) noexcept;

/// Parses "redis://[[user]:password@]host[:port][/]" or "unix://[[user]:password@]/path". User and
/// password are percent-encoded. InvalidArgument: it is neither.
Result<Address> ParseServerUrl(std::string_view url);

}  // namespace basalt::net
