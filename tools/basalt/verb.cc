#include "tools/basalt/verb.h"

#include <charconv>
#include <system_error>

#include "net/address.h"

namespace basalt::tools {

CLI::Validator WholeNumber(uint64_t least, uint64_t most) {
  return CLI::Validator(
      [least, most](const std::string& text) {
        uint64_t number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        const bool good = error == std::errc() && end == text.data() + text.size() &&
                          number >= least && number <= most;
        return good ? ""
                    : "'" + text + "' is not a whole number from " + std::to_string(least) +
                          (most == UINT64_MAX ? "" : " to " + std::to_string(most));
      },
      "");
}

CLI::Validator NoServerUrl() {
  return CLI::Validator(
      [](const std::string& path) {
        return net::IsServerUrl(path)
                   ? "this verb needs the directory of a database, not the URL of a server"
                   : std::string();
      },
      "");
}

std::vector<std::string> KeysAmong(const std::vector<std::string>& arguments) {
  std::vector<std::string> keys;
  bool options_ended = false;
  for (const std::string& argument : arguments) {
    if (argument == "--" && !options_ended) {
      options_ended = true;
    } else if (argument.starts_with('-') && !options_ended) {
      throw CLI::ExtrasError({argument + " (options come before the keys; keys that begin with "
                                         "a dash come after --)"});
    } else {
      keys.push_back(argument);
    }
  }
  return keys;
}

void AddMemoryBudgetAs(CLI::App* app, uint64_t* budget) {
  app->add_option("--memory-budget", *budget,
                  "For memtables and cache, such as 64M; default: a quarter of the memory")
      ->transform(CLI::AsSizeValue(false).description(""))
      ->type_name("BYTES");
}

}  // namespace basalt::tools
