#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

// The options that several benchmark programs have, each spelt and explained once.

namespace basalt::bench {

inline void AddOutput(CLI::App* app, std::string* path) {
  app->add_option("--output", *path, "Where the figures go, as JSON")->capture_default_str();
}

/// A choice among `names`, all of which are taken where nothing is said.
inline void AddChoice(CLI::App* app, const std::string& option, const std::string& what,
                      std::vector<std::string>* names) {
  app->add_option(option, *names, "Which " + what + ", separated by commas")
      ->delimiter(',')
      ->check(CLI::IsMember(*names));
}

inline void AddThreads(CLI::App* app, std::vector<int>* threads) {
  app->add_option("--threads", *threads, "Numbers of threads, separated by commas")
      ->delimiter(',')
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
}

inline CLI::Option* AddRuns(CLI::App* app, int* runs) {
  return app->add_option("--runs", *runs, "Rounds; figures are medians over them")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000));
}

}  // namespace basalt::bench
