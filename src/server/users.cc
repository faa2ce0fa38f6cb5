#include "server/users.h"

#include <algorithm>
#include <utility>

#include "base/base64.h"
#include "server/numbers.h"

namespace basalt::server {
namespace {

constexpr size_t kLineBytesMax = 64 * 1024;

struct NamedRight {
  std::string_view name;
  uint32_t rights;
};
constexpr NamedRight kNamedRights[] = {{"read", kRightRead},
                                       {"write", kRightWrite},
                                       {"admin", kRightAdmin},
                                       {"scripts", kRightScripts},
                                       {"all", kAllRights}};

bool EqualInConstantTime(std::string_view given, std::string_view wanted) noexcept {
  unsigned difference = given.size() == wanted.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    const char expected = wanted.empty() ? '\0' : wanted[i % wanted.size()];
    difference |= static_cast<unsigned char>(given[i] ^ expected);
  }
  return difference == 0;
}

std::string_view TakeWord(std::string_view* line) {
  const size_t begin = std::min(line->find_first_not_of(" \t\r"), line->size());
  const size_t end = std::min(line->find_first_of(" \t\r", begin), line->size());
  const std::string_view word = line->substr(begin, end - begin);
  line->remove_prefix(end);
  return word;
}

/// False: it is no rule.
bool ApplyRule(std::string_view rule, User* user) {
  if (rule == "on" || rule == "off") {
    user->is_on = rule == "on";
  } else if (rule == "nopass") {
    user->needs_password = false;
  } else if (rule.starts_with('>') && rule.size() > 1) {
    user->password = rule.substr(1);
    user->needs_password = true;
  } else if (rule == "~*") {
    user->has_all_keys = true;
  } else if (rule.starts_with('~') && rule.ends_with('*') && rule.size() > 2) {
    const std::string_view prefix = rule.substr(1, rule.size() - 2);
    if (prefix.find_first_of("*?[\\") != std::string_view::npos) return false;
    user->prefixes.emplace_back(prefix);
  } else if (rule.starts_with("+@")) {
    const auto* const found =
        std::find_if(std::begin(kNamedRights), std::end(kNamedRights),
                     [&](const NamedRight& right) { return right.name == rule.substr(2); });
    if (found == std::end(kNamedRights)) return false;
    user->rights |= found->rights;
  } else {
    return false;
  }
  return true;
}

Status LineError(size_t number, const std::string& what) {
  return {StatusCode::kInvalidArgument,
          "line " + std::to_string(number) + " of the users' file: " + what};
}

Result<User> ParseLine(std::string_view line, size_t number) {
  if (line.size() > kLineBytesMax) return LineError(number, "it is too long");
  if (TakeWord(&line) != "user") return LineError(number, "it must begin with 'user NAME'");
  User user{.name = std::string(TakeWord(&line)), .is_on = false};
  if (user.name.empty()) return LineError(number, "the name of the user is missing");
  for (std::string_view rule = TakeWord(&line); !rule.empty(); rule = TakeWord(&line)) {
    if (!ApplyRule(rule, &user)) {
      const bool is_secret = rule.starts_with('>');
      return LineError(number, "there is no rule '" + std::string(is_secret ? ">..." : rule) +
                                   "': give on, off, >PASSWORD, nopass, +@read, +@write, +@admin, "
                                   "+@scripts, +@all, ~PREFIX* or ~*");
    }
  }
  if (user.needs_password && user.password.empty()) {
    return LineError(number, "the user '" + user.name + "' needs >PASSWORD or nopass");
  }
  std::sort(user.prefixes.begin(), user.prefixes.end());
  return user;
}

}  // namespace

bool User::MayReach(std::string_view key) const noexcept {
  return has_all_keys ||
         std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const std::string& prefix) { return key.starts_with(prefix); });
}

std::optional<std::string> User::NextReachable(std::string_view key) const {
  if (MayReach(key)) return std::string(key);
  const auto next = std::upper_bound(prefixes.begin(), prefixes.end(), key);
  return next == prefixes.end() ? std::nullopt : std::optional(*next);
}

std::string User::Describe() const {
  std::string line = "user " + name + (is_on ? " on" : " off");
  if (!needs_password) line += " nopass";
  for (const NamedRight& right : kNamedRights) {
    const bool is_all = right.rights == kAllRights;
    if (is_all == (rights == kAllRights) && (rights & right.rights) == right.rights) {
      line += " +@" + std::string(right.name);
    }
  }
  if (has_all_keys) line += " ~*";
  for (const std::string& prefix : prefixes) line += " ~" + prefix + "*";
  return line;
}

Users Users::WithPassword(std::string password) {
  Users users;
  const bool needs_password = !password.empty();
  users.users_.push_back({.name = "default",
                          .password = std::move(password),
                          .needs_password = needs_password,
                          .rights = kAllRights,
                          .has_all_keys = true});
  return users;
}

Result<Users> Users::Parse(std::string_view text) {
  Users users;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::string_view rest = line;
    if (const std::string_view first = TakeWord(&rest); first.empty() || first.front() == '#') {
      continue;
    }
    Result<User> user = ParseLine(line, number);
    if (!user) return user.error();
    for (const User& other : users.users_) {
      if (other.name == user->name) return LineError(number, "the file has this user already");
      if (other.needs_password && user->needs_password && other.password == user->password) {
        return LineError(number, "another user has the same password");
      }
    }
    users.users_.push_back(*std::move(user));
  }
  return users;
}

const User* Users::Find(std::string_view name, std::string_view password) const noexcept {
  for (const User& user : users_) {
    if (user.name != name) continue;
    const bool is_good = !user.needs_password || EqualInConstantTime(password, user.password);
    return is_good && user.is_on ? &user : nullptr;
  }
  return nullptr;
}

const User* Users::FindByPassword(std::string_view password) const noexcept {
  const User* found = nullptr;
  for (const User& user : users_) {
    const bool is_equal = EqualInConstantTime(password, user.password);
    if (is_equal && user.needs_password && user.is_on) found = &user;
  }
  return found;
}

const User* Users::OfAuthorization(std::string_view field) const {
  const bool asks_nobody = users_.size() == 1 && Initial() != nullptr;
  if (field.empty() || asks_nobody) return Initial();
  const size_t space = field.find(' ');
  if (space == std::string_view::npos) return nullptr;
  const std::string_view scheme = field.substr(0, space);
  const std::string_view token = field.substr(space + 1);
  if (EqualsIgnoreCase(scheme, "bearer")) return FindByPassword(token);
  if (!EqualsIgnoreCase(scheme, "basic")) return nullptr;
  const Result<std::string> pair = base::DecodeBase64(token);
  const size_t colon = pair ? pair->find(':') : std::string::npos;
  if (colon == std::string::npos) return nullptr;
  const std::string_view both = *pair;
  return Find(both.substr(0, colon), both.substr(colon + 1));
}

const User* Users::Initial() const noexcept { return Find("default", {}); }

}  // namespace basalt::server
