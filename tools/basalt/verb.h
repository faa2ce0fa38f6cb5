#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "basalt/options.h"
#include "tools/basalt/command_line.h"
#include "tools/basalt/output_format.h"

namespace basalt::tools {

/// A verb being described: its part of the command line, and the options that it fills.
template <class Options>
struct Verb {
  CLI::App* app;
  std::shared_ptr<Options> options;
};

/// Where verbs are described to CLI11. The chosen one's action is in `action` once the line is
/// parsed; both outlive the parsing.
struct VerbList {
  CLI::App* app;
  Action* action;

  template <class Options>
  Verb<Options> Add(const std::string& name, const std::string& description,
                    ExitCode (*run)(const Options&, Output&), const std::string& examples) const {
    Verb<Options> verb{app->add_subcommand(name, description), std::make_shared<Options>()};
    if (!examples.empty()) verb.app->footer("Examples:\n" + examples);
    verb.app->group("Verbs");
    verb.app->callback([chosen = action, run, options = verb.options] {
      *chosen = [run, options](Output& out) { return run(*options, out); };
    });
    return verb;
  }
};

/// Accepts whole numbers from `least` to `most`.
CLI::Validator WholeNumber(uint64_t least, uint64_t most = UINT64_MAX);
/// Refuses the URL of a server.
CLI::Validator NoServerUrl();

// Parts that verbs share.

template <class Options>
void AddPath(const Verb<Options>& verb) {
  verb.app->add_option("PATH", verb.options->path, "The database's directory")
      ->required()
      ->check(NoServerUrl())
      ->type_name("");
}
/// The same, or the URL of a server.
template <class Options>
void AddPathOrUrl(const Verb<Options>& verb) {
  verb.app
      ->add_option("PATH", verb.options->path,
                   "The database's directory, or a server's URL such as redis://127.0.0.1:6379")
      ->required()
      ->type_name("");
}

template <class Options>
void AddBase64(const Verb<Options>& verb, const std::string& what) {
  verb.app->add_flag("--base64", verb.options->base64, what + " given in base64");
}

/// Calls `take` with what the level is, if one is given.
template <class Options, class Take>
void AddDurabilityAs(const Verb<Options>& verb, const std::string& description, Take take) {
  verb.app
      ->template add_option_function<std::string>(
          "--durability",
          [options = verb.options, take](const std::string& level) {
            take(*options, level == "power" ? Durability::kPower : Durability::kProcess);
          },
          description)
      ->check(CLI::IsMember({"process", "power"}))
      ->type_name("LEVEL");
}
template <class Options>
void AddDurability(const Verb<Options>& verb) {
  AddDurabilityAs(verb, "The write survives a killed process, or also a power cut",
                  [](Options& options, Durability level) { options.write.durability = level; });
}

/// Fills `budget`, DBOptions::memory_budget.
void AddMemoryBudgetAs(CLI::App* app, uint64_t* budget);
template <class Options>
void AddMemoryBudget(const Verb<Options>& verb) {
  AddMemoryBudgetAs(verb.app, &verb.options->memory_budget);
}

/// How a verb that only reads opens the database. Fills Options::access.
template <class Options>
void AddReadAccess(const Verb<Options>& verb) {
  verb.app->add_flag("--read-only", verb.options->access.read_only,
                     "Take no lock and write nothing, as where another process has it open");
  AddMemoryBudgetAs(verb.app, &verb.options->access.memory_budget);
}

template <class Options>
void AddProgress(const Verb<Options>& verb) {
  verb.app->add_flag("--progress", verb.options->progress,
                     "Print progress lines on stderr even if it is not a terminal");
}

/// An option whose presence counts, also when its text is empty.
template <class Options>
CLI::Option* AddBound(const Verb<Options>& verb, const std::string& name,
                      std::optional<std::string> Options::* member,
                      const std::string& description) {
  return verb.app
      ->template add_option_function<std::string>(
          name,
          [options = verb.options, member](const std::string& text) { (*options).*member = text; },
          description)
      ->type_name("KEY");
}

template <class Options>
void AddKeyspace(const Verb<Options>& verb, const std::string& description) {
  AddBound(verb, "--keyspace", &Options::keyspace, description)->type_name("NAME");
}

/// --output with the formats that the verb has, the default one first. Fills Options::output.
template <class Options>
CLI::Option* AddOutput(const Verb<Options>& verb, const std::vector<std::string>& formats) {
  std::string names;
  for (const std::string& format : formats) names += (names.empty() ? "" : ", ") + format;
  return verb.app
      ->template add_option_function<std::string>(
          "--output",
          [options = verb.options](const std::string& format) {
            options->output = ParseOutputFormat(format).value();
          },
          "One of " + names)
      ->check(CLI::IsMember(formats).description(""))
      ->type_name("FORMAT");
}

/// A flag that means `format`, and stands in place of `output`.
template <class Options>
void AddOutputFlag(const Verb<Options>& verb, CLI::Option* output, const std::string& flag,
                   OutputFormat format, const std::string& description) {
  verb.app
      ->add_flag_callback(
          flag, [options = verb.options, format] { options->output = format; }, description)
      ->excludes(output);
}

/// --output with all formats, and --json, for a verb that prints figures.
template <class Options>
void AddFiguresOutput(const Verb<Options>& verb) {
  AddOutputFlag(verb, AddOutput(verb, {"table", "csv", "json", "raw"}), "--json",
                OutputFormat::kJson, "The same as --output json");
}

// The verbs that are described in files of their own.

void AddPhashVerb(const VerbList& verbs);
void AddMapVerb(const VerbList& verbs);
void AddVectorVerb(const VerbList& verbs);
void AddGraphVerb(const VerbList& verbs);
void AddKeyspaceVerb(const VerbList& verbs);
void AddCompactVerb(const VerbList& verbs);
void AddInspectVerb(const VerbList& verbs);
void AddBenchVerb(const VerbList& verbs);
/// ingest, forget, retrieve.
void AddRetrievalVerbs(const VerbList& verbs);

/// The keys among arguments that CLI11 has left over. Throws when one looks like
/// an option and does not stand after "--".
std::vector<std::string> KeysAmong(const std::vector<std::string>& arguments);

}  // namespace basalt::tools
