#include "tools/basalt/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "basalt/perfect_hash.h"
#include "tools/basalt/care.h"
#include "tools/basalt/demo.h"
#include "tools/basalt/demo_writer.h"
#include "tools/basalt/keys.h"
#include "tools/basalt/phash.h"
#include "tools/basalt/transfer.h"

namespace basalt::tools {
namespace {

constexpr std::string_view kFooter =
    R"(PATH is a database's directory. `put`, `load` and `demo` make one that is not
there; no other verb does. After -- everything is an argument, so that a key may
begin with a dash: `basalt get ./db -- -key`.

Exit codes: 0 ok, 1 absent, 2 usage, 3 cannot open or I/O, 4 corruption,
5 locked or full.

`basalt VERB --help` shows examples. `basalt demo` is a good start.)";

/// A verb being described: its part of the command line, and the options that it fills.
template <class Options>
struct Verb {
  CLI::App* app;
  std::shared_ptr<Options> options;
};

/// The keys among arguments that CLI11 has left over. Throws when one looks like
/// an option and does not stand after "--".
std::vector<std::string> KeysAmong(const std::vector<std::string>& arguments) {
  std::vector<std::string> keys;
  bool options_ended = false;
  for (const std::string& argument : arguments) {
    if (argument == "--" && !options_ended) {
      options_ended = true;
    } else if (argument.starts_with('-') && !options_ended) {
      throw CLI::ExtrasError({argument +
                              " (options stand before the keys, and keys that begin with "
                              "a dash after --)"});
    } else {
      keys.push_back(argument);
    }
  }
  return keys;
}

/// Accepts whole numbers from `least` to `most`.
CLI::Validator WholeNumber(uint64_t least, uint64_t most = UINT64_MAX) {
  return CLI::Validator(
      [least, most](const std::string& text) {
        uint64_t number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        const bool good = error == std::errc() && end == text.data() + text.size() &&
                          number >= least && number <= most;
        return good ? ""
                    : "'" + text + "' is no whole number from " + std::to_string(least) +
                          (most == UINT64_MAX ? "" : " to " + std::to_string(most));
      },
      "");
}

/// Describes the verbs to CLI11. The chosen one's action is in `action` once the line is parsed.
class CommandLine {
 public:
  CommandLine() : app_("Basalt: an ordered, durable key-value store in a directory.", "basalt") {
    app_.require_subcommand(1);
    app_.set_version_flag("--version", std::string("basalt ") + BASALT_VERSION);
    app_.get_formatter()->label("SUBCOMMAND", "VERB");
    app_.get_formatter()->label("REQUIRED", "");
    app_.get_formatter()->column_width(34);
    app_.footer(std::string(kFooter));
    AddKeyVerbs();
    AddTransferVerbs();
    AddCareVerbs();
    AddPhashVerbs();
    AddDemoVerbs();
  }

  CLI::App& app() { return app_; }
  Action action() const { return action_; }
  void set_program(std::string program) { demo_->program = std::move(program); }

 private:
  template <class Options>
  Verb<Options> AddVerb(const std::string& name, const std::string& description,
                        ExitCode (*run)(const Options&, Output&), const std::string& examples,
                        CLI::App* above = nullptr) {
    if (above == nullptr) above = &app_;
    Verb<Options> verb{above->add_subcommand(name, description), std::make_shared<Options>()};
    if (!examples.empty()) verb.app->footer("Examples:\n" + examples);
    verb.app->group("Verbs");
    verb.app->callback([this, run, options = verb.options] {
      action_ = [run, options](Output& out) { return run(*options, out); };
    });
    return verb;
  }

  template <class Options>
  static void AddPath(const Verb<Options>& verb) {
    verb.app->add_option("PATH", verb.options->path, "The database's directory")
        ->required()
        ->type_name("");
  }

  template <class Options>
  static void AddBase64(const Verb<Options>& verb, const std::string& what) {
    verb.app->add_flag("--base64", verb.options->base64, what + " given in base64");
  }

  template <class Options>
  static void AddDurability(const Verb<Options>& verb) {
    verb.app
        ->template add_option_function<std::string>(
            "--durability",
            [options = verb.options](const std::string& level) {
              options->write.durability =
                  level == "power" ? Durability::kPower : Durability::kProcess;
            },
            "What the write must survive: the death of the process, or a power cut")
        ->check(CLI::IsMember({"process", "power"}))
        ->type_name("LEVEL");
  }

  /// An option whose presence counts, also when its text is empty.
  template <class Options>
  static CLI::Option* AddBound(const Verb<Options>& verb, const std::string& name,
                               std::optional<std::string> Options::* member,
                               const std::string& description) {
    return verb.app
        ->template add_option_function<std::string>(
            name,
            [options = verb.options, member](const std::string& text) {
              (*options).*member = text;
            },
            description)
        ->type_name("KEY");
  }

  template <class Options>
  static void AddKeyForms(const Verb<Options>& verb) {
    CLI::Option* base64 = verb.app->add_flag_callback(
        "--base64", [options = verb.options] { options->form = KeyForm::kBase64; },
        "The keys are given in base64");
    verb.app
        ->add_flag_callback(
            "--hashes", [options = verb.options] { options->form = KeyForm::kNumber; },
            "The keys are 64-bit numbers, decimal or 0x and hexadecimal")
        ->excludes(base64);
  }
  template <class Options>
  static void AddPerfectHashFile(const Verb<Options>& verb, const std::string& what) {
    verb.app->add_option("FILE", verb.options->file, what)->required()->type_name("");
  }

  void AddKeyVerbs();
  void AddTransferVerbs();
  void AddCareVerbs();
  void AddPhashVerbs();
  void AddPhashBuild(CLI::App* phash);
  void AddPhashQuery(CLI::App* phash);
  void AddDemoVerbs();

  CLI::App app_;
  Action action_;
  std::shared_ptr<DemoOptions> demo_;
};

void CommandLine::AddKeyVerbs() {
  const auto get = AddVerb<GetOptions>("get", "Print the value of a key", Get,
                                       R"(  basalt get ./db user/42
  basalt get --raw ./db photo/7 > photo.jpg
  basalt get --base64 ./db AP8=              the key of the two bytes 00 FF
The exit code is 1 when the key is absent.
)");
  AddPath(get);
  get.app->add_option("KEY", get.options->key, "Its bytes as they are")->required()->type_name("");
  get.app->add_flag("--raw", get.options->raw, "No newline after the value");
  AddBase64(get, "KEY is");

  const auto put = AddVerb<PutOptions>("put", "Set a key to a value", Put,
                                       R"(  basalt put ./db user/42 Ada
  basalt put ./db photo/7 - < photo.jpg       the value is all of standard input
  basalt put --durability power ./db account/1 100
)");
  AddPath(put);
  put.app->add_option("KEY", put.options->key, "Its bytes as they are")->required()->type_name("");
  put.app->add_option("VALUE", put.options->value, "- reads it from standard input, as it is")
      ->required()
      ->type_name("");
  AddBase64(put, "KEY and VALUE are");
  AddDurability(put);

  const auto del = AddVerb<DeleteOptions>("del", "Remove keys, all of them at once", Delete,
                                          R"(  basalt del ./db user/42
  basalt del ./db user/1 user/2 user/3
  basalt del ./db -- -a -b                    keys that begin with a dash
A key that is absent is no error.
)");
  AddPath(del);
  // Not a list for CLI11, which takes "[a,b]" in a list apart: what follows the first key is left
  // over.
  del.app->add_option("KEY", del.options->first_key, "One or more")->required()->type_name("...");
  del.app->prefix_command();
  del.app->parse_complete_callback(
      [app = del.app, options = del.options] { options->more_keys = KeysAmong(app->remaining()); });
  AddBase64(del, "The keys are");
  AddDurability(del);

  const auto scan = AddVerb<ScanVerbOptions>("scan", "Print records in key order", Scan,
                                             R"(  basalt scan ./db --prefix user/
  basalt scan ./db --from 2024-01 --to 2024-07 --keys-only
  basalt scan ./db --reverse --limit 1        the last record
  basalt scan ./db --prefix user/ --json
A line is key, tab, value; bytes that are not text stand as \xNN (see `basalt load --help`).
)");
  AddPath(scan);
  CLI::Option* prefix =
      AddBound(scan, "--prefix", &ScanVerbOptions::prefix, "Only keys that begin with it");
  AddBound(scan, "--from", &ScanVerbOptions::from, "The first key of the range")->excludes(prefix);
  AddBound(scan, "--to", &ScanVerbOptions::to, "The end of the range, not in it")->excludes(prefix);
  scan.app->add_option("--limit", scan.options->limit, "At most so many records")
      ->check(WholeNumber(0))
      ->type_name("N");
  scan.app->add_flag("--reverse", scan.options->reverse, "From the last key to the first");
  scan.app->add_flag("--keys-only", scan.options->keys_only, "Without values");
  scan.app->add_flag("--json", scan.options->json, "Lines of JSON");
  AddBase64(scan, "Prefix and bounds are");
}

void CommandLine::AddTransferVerbs() {
  const auto load = AddVerb<LoadOptions>("load", "Write a file's records", Load,
                                         R"(  basalt load ./db records.tsv
  basalt dump ./old --json | basalt load ./new - --json
  basalt load ./db records.json --json --batch 100 --durability power

A line is key, tab, value, with \t \n \r \\ for tab, newline, carriage return and
backslash, and \xNN for any other byte. With --json a line is
{"key":"...","value":"..."}, where {"base64":"..."} may stand in place of a
string. Empty lines are skipped. A line that cannot be meant ends the load with
its number; what came before it is loaded and counted, what follows is not.
)");
  AddPath(load);
  load.app->add_option("FILE", load.options->file, "- is standard input")
      ->required()
      ->type_name("");
  load.app->add_flag("--json", load.options->json, "Lines of JSON");
  load.app
      ->add_option("--batch", load.options->batch_records,
                   "Records that are written together, all or none (1 MiB closes a batch too)")
      ->check(WholeNumber(1))
      ->capture_default_str()
      ->type_name("N");
  load.app->add_flag("--progress", load.options->progress,
                     "Lines of progress on stderr also when it is no terminal");
  AddDurability(load);

  const auto dump = AddVerb<DumpOptions>("dump", "Print all records, as load reads them", Dump,
                                         R"(  basalt dump ./db > records.tsv
  basalt dump ./db --json | gzip > records.json.gz
)");
  AddPath(dump);
  dump.app->add_flag("--json", dump.options->json, "Lines of JSON");
}

void CommandLine::AddCareVerbs() {
  const auto check = AddVerb<CheckOptions>("check", "Read every byte and say what is wrong", Check,
                                           R"(  basalt check ./db
  basalt check ./db --progress
Changes nothing. The exit code is 4 when something is wrong.
)");
  AddPath(check);
  check.app->add_flag("--progress", check.options->progress,
                      "Lines of progress on stderr also when it is no terminal");

  const auto repair =
      AddVerb<RepairOptions>("repair", "Make a database with a broken log openable", Repair,
                             R"(  basalt repair ./db
Keeps the log up to the gap, moves the rest to ./db/lost, and says what that was.
Changes nothing when the database can be opened as it is.
)");
  AddPath(repair);

  const auto stat = AddVerb<StatOptions>("stat", "Print a database's figures", Stat,
                                         R"(  basalt stat ./db
  basalt stat ./db --json
)");
  AddPath(stat);
  stat.app->add_flag("--json", stat.options->json, "One JSON object");
}

void CommandLine::AddPhashVerbs() {
  CLI::App* phash = app_.add_subcommand("phash", "Number a fixed set of keys in 2 bits a key");
  phash->group("Verbs");
  phash->require_subcommand(1);
  phash->footer(R"(Examples:
  basalt phash build words.phf words.txt      a line is a key
  basalt phash query words.phf grape          its number, below the number of keys
  basalt phash stat words.phf

A perfect hash function gives each of n keys its own number from 0 to n - 1, and
forgets the keys: what is no key gets some number too. A fingerprint set
(`build --fingerprint BITS`) says `absent` to most of what is no key, and a
fingerprint map (`--payload BITS` too) gives each key a number of your choice.
)");
  AddPhashBuild(phash);
  AddPhashQuery(phash);
  const auto stat =
      AddVerb<PhashStatOptions>("stat", "Print a perfect hash file's figures", PhashStat,
                                R"(  basalt phash stat words.phf
  basalt phash stat words.phf --json
The keys of a level that it does not place come to the next one.
)",
                                phash);
  AddPerfectHashFile(stat, "What `build` made");
  stat.app->add_flag("--json", stat.options->json, "One JSON object");
}

void CommandLine::AddPhashBuild(CLI::App* phash) {
  const auto build =
      AddVerb<PhashBuildOptions>("build", "Build a perfect hash file from lines of keys",
                                 PhashBuild, R"(  basalt phash build words.phf words.txt
  sort -u *.txt | basalt phash build words.phf
  basalt phash build words.set words.txt --fingerprint 8
  basalt phash build ages.map ages.tsv --fingerprint 12 --payload 7
  basalt phash build ids.phf ids.txt --hashes --dense

A line is a key, with \t \n \r \\ for tab, newline, carriage return and backslash,
and \xNN for any other byte; an empty line is the empty key. With --payload a line
is key, tab, number. A key that is there twice is refused with both its lines.
FILE is made when all of it is there, or not at all.
)",
                                 phash);
  AddPerfectHashFile(build, "What is made");
  build.app
      ->add_option("KEYS", build.options->keys, "A file with a key a line; - is standard input")
      ->capture_default_str()
      ->type_name("");
  AddKeyForms(build);
  CLI::Option* fingerprint =
      build.app
          ->add_option("--fingerprint", build.options->fingerprint_bits,
                       "A set: one of 2^BITS other keys is taken for one of its own (4 to 16)")
          ->check(WholeNumber(FingerprintSet::kBitsMin, FingerprintSet::kBitsMax))
          ->type_name("BITS");
  build.app
      ->add_option("--payload", build.options->payload_bits,
                   "A map to numbers of so many bits (1 to 48)")
      ->check(WholeNumber(1, FingerprintMap::kPayloadBitsMax))
      ->needs(fingerprint)
      ->type_name("BITS");
  build.app->add_flag("--dense", build.options->dense,
                      "Smaller; slower to build where there is no AVX-512");
  build.app->add_option("--threads", build.options->threads, "Default: one a processor")
      ->check(WholeNumber(1, 256U))
      ->type_name("N");
  build.app
      ->add_option("--memory", build.options->memory,
                   "Walk over KEYS more often rather than take more, such as 512M")
      ->transform(CLI::AsSizeValue(false).description(""))
      ->type_name("BYTES");
  build.app->add_flag("--force", build.options->force, "Replace FILE when it is there");
  build.app->add_flag("--progress", build.options->progress,
                      "Lines of progress on stderr also when it is no terminal");
}

void CommandLine::AddPhashQuery(CLI::App* phash) {
  const auto query = AddVerb<PhashQueryOptions>("query", "Print the numbers of keys", PhashQuery,
                                                R"(  basalt phash query words.phf grape
  basalt phash query words.phf < words.txt    a number a line
  basalt phash query words.set grape qwzx     perhaps, absent
  basalt phash query ids.phf --hashes 17 0x2A
  basalt phash query words.phf -- -a -b       keys that begin with a dash

A function has forgotten its keys: what is no key gets some number too, and
nothing tells. A set answers `perhaps` for every key and for one of 2^BITS others,
a map gives these a payload; to the rest both say `absent`. The exit code is 1 when
a key is absent. Say --hashes when the file was built with it.
)",
                                                phash);
  AddPerfectHashFile(query, "What `build` made");
  // As for `del`: what follows the first key is left over.
  AddBound(query, "KEY", &PhashQueryOptions::first_key, "None: a key a line of standard input")
      ->type_name("...");
  query.app->prefix_command();
  query.app->parse_complete_callback([app = query.app, options = query.options] {
    options->more_keys = KeysAmong(app->remaining());
  });
  AddKeyForms(query);
}

void CommandLine::AddDemoVerbs() {
  const auto demo =
      AddVerb<DemoOptions>("demo", "Load real input, show what a store can do, crash it", Demo,
                           R"(  basalt demo
  basalt demo /var/tmp/demo --input /usr/share/dict/words
Loads what `apt-cache dumpavail` prints, or a file: package paragraphs, or the
lines of any text. An older demo in DIRECTORY is replaced; anything else there is
left alone and refused.
)");
  demo.app->add_option("DIRECTORY", demo.options->path, "Where the database is made")
      ->capture_default_str()
      ->type_name("");
  demo.app->add_option("--input", demo.options->input, "A file to load instead")->type_name("FILE");
  demo_ = demo.options;

  const auto writer = AddVerb<DemoWriterOptions>(kDemoWriterVerb, "", DemoWriter, "");
  AddPath(writer);
  writer.app->group("");
}

bool IsVerb(std::string_view word, CLI::App& app) {
  const std::vector<CLI::App*> verbs = app.get_subcommands([](CLI::App*) { return true; });
  return std::any_of(verbs.begin(), verbs.end(),
                     [word](const CLI::App* verb) { return verb->get_name() == word; });
}

bool HasVerbs(CLI::App& app) {
  return !app.get_subcommands([](CLI::App*) { return true; }).empty();
}

/// Insertions, removals, replacements and swaps of neighbours that turn `a` into `b`.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      const size_t replaced = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

/// The verb that a mistyped or foreign word most likely means; empty when none is near.
std::string NearestVerb(std::string_view word, CLI::App& app) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 20> kForeign = {{
      {"set", "put"},    {"write", "put"},    {"read", "get"},    {"delete", "del"},
      {"remove", "del"}, {"rm", "del"},       {"list", "scan"},   {"ls", "scan"},
      {"keys", "scan"},  {"import", "load"},  {"export", "dump"}, {"verify", "check"},
      {"stats", "stat"}, {"info", "stat"},    {"make", "build"},  {"create", "build"},
      {"get", "query"},  {"lookup", "query"}, {"mphf", "phash"},  {"perfect-hash", "phash"},
  }};
  for (const auto& [foreign, ours] : kForeign) {
    if (word == foreign && IsVerb(ours, app)) return std::string(ours);
  }
  std::string nearest;
  size_t least = 3;
  for (const CLI::App* verb : app.get_subcommands([](CLI::App*) { return true; })) {
    const size_t distance = EditDistance(word, verb->get_name());
    if (!verb->get_group().empty() && distance < least) {
      least = distance;
      nearest = verb->get_name();
    }
  }
  return nearest;
}

Action Print(std::string text) {
  return [text = std::move(text)](Output& out) {
    out.Write(text);
    return ExitCode::kOk;
  };
}

Action Refuse(std::string complaint) {
  return [complaint = std::move(complaint)](Output&) {
    Complain(complaint);
    return ExitCode::kUsage;
  };
}

}  // namespace

Action ParseCommandLine(int argc, const char* const* argv) {
  CommandLine line;
  line.set_program(argc > 0 ? argv[0] : "basalt");
  // The words that name the verb, as far as they are known.
  CLI::App* app = &line.app();
  std::string named = "basalt";
  int next = 1;
  for (; next < argc && argv[next][0] != '-' && HasVerbs(*app); ++next) {
    const std::string word = argv[next];
    if (!IsVerb(word, *app)) {
      const std::string nearest = NearestVerb(word, *app);
      return Refuse("no verb '" + word + "'" +
                    (nearest.empty() ? "" : "; did you mean `" + named + " " + nearest + "`?") +
                    "\nbasalt: `" + named + " --help` lists the verbs");
    }
    app = app->get_subcommand(word);
    named += " " + word;
  }
  try {
    line.app().parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream help;
    std::ostringstream complaint;
    if (line.app().exit(error, help, complaint) == 0) return Print(help.str());
    if (next >= argc && HasVerbs(*app)) {
      return Refuse("a verb is missing\n\n" + line.app().help());
    }
    return Refuse(std::string(error.what()) + "\nbasalt: `" + named +
                  " --help` shows how it is called");
  }
  return line.action();
}

}  // namespace basalt::tools
