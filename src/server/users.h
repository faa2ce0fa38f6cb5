#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/status.h"

namespace basalt::server {

/// What a user may do.
enum Right : uint32_t {
  kRightRead = 1 << 0,
  kRightWrite = 1 << 1,
  kRightAdmin = 1 << 2,
  kRightScripts = 1 << 3,
  kAllRights = kRightRead | kRightWrite | kRightAdmin | kRightScripts,
};

struct User {
  std::string name;
  std::string password{};
  bool needs_password = true;
  bool is_on = true;
  uint32_t rights = 0;
  bool has_all_keys = false;
  std::vector<std::string> prefixes{};  ///< In order. Of the keys that it may reach.

  bool MayReach(std::string_view key) const noexcept;
  /// The first name from `key` on that may be one of its keys. Nothing: there is none.
  std::optional<std::string> NextReachable(std::string_view key) const;
  /// As a line of the users' file; the password is left out.
  std::string Describe() const;
};

// The users of a server. They do not change while it runs.
//
// A file has one user a line, as an ACL file of Redis has: "user NAME RULE...". Rules: on, off,
// >PASSWORD, nopass, +@read, +@write, +@admin, +@scripts, +@all, ~PREFIX*, ~*. A new user is off
// and may do nothing. Empty lines and lines that begin with '#' are skipped. Without a line for
// "default", clients must authenticate.
class Users {
 public:
  /// One user, "default", that may do everything. An empty password: none is asked for.
  static Users WithPassword(std::string password);
  /// InvalidArgument: a line is malformed, or two users have one password.
  static Result<Users> Parse(std::string_view text);

  /// The user with this name and password; null: they are wrong. The time does not depend on where
  /// a password differs.
  const User* Find(std::string_view name, std::string_view password) const noexcept;
  /// The user with this password, as HTTP's bearer tokens give it.
  const User* FindByPassword(std::string_view password) const noexcept;
  /// The user that HTTP's field Authorization names: by the password as a bearer token, or by name
  /// and password as Basic has them. An empty field, or no password to ask for: Initial.
  const User* OfAuthorization(std::string_view field) const;
  /// The user "default" if it needs no password: clients begin as it.
  const User* Initial() const noexcept;
  const std::vector<User>& all() const noexcept { return users_; }

 private:
  Users() = default;
  std::vector<User> users_;
};

}  // namespace basalt::server
