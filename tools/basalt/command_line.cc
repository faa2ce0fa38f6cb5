#include "tools/basalt/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/version.h"
#include "tools/basalt/check_repair.h"
#include "tools/basalt/demo.h"
#include "tools/basalt/demo_writer.h"
#include "tools/basalt/keys.h"
#include "tools/basalt/serve.h"
#include "tools/basalt/stat.h"
#include "tools/basalt/transfer.h"
#include "tools/basalt/verb.h"

namespace basalt::tools {
namespace {

constexpr std::string_view kFooter =
    R"(PATH is a database's directory. `put`, `load`, `ingest`, `serve` and `demo` make
one that is not there; no other verb does. After -- everything is an argument, so
that a key may begin with a dash: `basalt get ./db -- -key`.

Exit codes: 0 ok, 1 absent, 2 usage, 3 cannot open or I/O, 4 corruption,
5 locked, or out of space, memory or descriptors.

`basalt help VERB` shows examples. `basalt demo` is a good start.)";

constexpr const char* kKeyspaceToRead = "Default: the database's own";
constexpr const char* kKeyspaceToMake = "Made when it is not there; default: the database's own";

/// A number with a unit, or of seconds. Fills Options::ttl.
void AddTtl(const Verb<PutOptions>& verb) {
  const std::map<std::string, uint64_t> units = {
      {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};
  const auto in_ms = [units](std::string& text) -> std::string {
    uint64_t number = 0;
    const auto [unit, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string name = text.substr(static_cast<size_t>(unit - text.data()));
    const auto found = units.find(name.empty() ? "s" : name);
    if (error != std::errc() || found == units.end() || number == 0 ||
        number > static_cast<uint64_t>(INT64_MAX) / found->second) {
      return "'" + text + "' is not a time such as 500ms, 90s, 15m, 12h or 30d";
    }
    text = std::to_string(number * found->second);
    return {};
  };
  verb.app
      ->add_option_function<int64_t>(
          "--ttl",
          [options = verb.options](int64_t ms) { options->ttl = std::chrono::milliseconds(ms); },
          "How long the record lives, such as 500ms, 90s, 15m, 12h or 30d")
      ->transform(CLI::Validator(in_ms, ""))
      ->type_name("TIME");
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
    AddKeyspaceVerb(verbs_);
    AddCareVerbs();
    AddCompactVerb(verbs_);
    AddInspectVerb(verbs_);
    AddBenchVerb(verbs_);
    AddServeVerb(verbs_);
    AddPhashVerb(verbs_);
    AddMapVerb(verbs_);
    AddRetrievalVerbs(verbs_);
    AddVectorVerb(verbs_);
    AddGraphVerb(verbs_);
    AddDemoVerbs();
  }

  CLI::App& app() { return app_; }
  Action action() const { return action_; }
  void set_program(std::string program) { demo_->program = std::move(program); }

 private:
  void AddKeyVerbs();
  void AddTransferVerbs();
  void AddCareVerbs();
  void AddDemoVerbs();

  CLI::App app_;
  Action action_;
  VerbList verbs_{&app_, &action_};
  std::shared_ptr<DemoOptions> demo_;
};

void CommandLine::AddKeyVerbs() {
  const auto get = verbs_.Add<GetOptions>("get", "Print the value of a key", Get,
                                          R"(  basalt get ./db user/42
  basalt get --raw ./db photo/7 > photo.jpg
  basalt get --base64 ./db AP8=              the key of the two bytes 00 FF
  basalt get --output json ./db user/42      {"key":"user/42","value":"Ada"}
  basalt get --keyspace users ./db 42
The exit code is 1 when the key is absent.
)");
  AddPathOrUrl(get);
  get.app->add_option("KEY", get.options->key, "The bytes of the key")->required()->type_name("");
  AddOutputFlag(get, AddOutput(get, {"table", "csv", "json", "raw"}), "--raw", OutputFormat::kRaw,
                "Print the value without a newline, as --output raw");
  AddBase64(get, "KEY is");
  AddKeyspace(get, kKeyspaceToRead);
  AddReadAccess(get);

  const auto put = verbs_.Add<PutOptions>("put", "Set a key to a value", Put,
                                          R"(  basalt put ./db user/42 Ada
  basalt put ./db photo/7 - < photo.jpg       the value is all of standard input
  basalt put --durability power ./db account/1 100
  basalt put --keyspace users ./db 42 Ada
  basalt put --ttl 30m ./db session/7 open    expires in half an hour
)");
  AddPathOrUrl(put);
  put.app->add_option("KEY", put.options->key, "The bytes of the key")->required()->type_name("");
  put.app->add_option("VALUE", put.options->value, "The bytes of the value; - reads standard input")
      ->required()
      ->type_name("");
  AddBase64(put, "KEY and VALUE are");
  AddKeyspace(put, kKeyspaceToMake);
  AddTtl(put);
  AddDurability(put);
  AddMemoryBudget(put);

  const auto del = verbs_.Add<DeleteOptions>("del", "Remove keys in one step", Delete,
                                             R"(  basalt del ./db user/42
  basalt del ./db user/1 user/2 user/3
  basalt del --keyspace users ./db 42
  basalt del ./db -- -a -b                    keys that begin with a dash
  basalt del --prefix ./db user/              all keys that begin with user/
  basalt del --range ./db 2024-01 2024-07     from 2024-01 up to 2024-07, which stays
It is not an error if a key is absent.
)");
  AddPathOrUrl(del);
  // Not a list for CLI11, which takes "[a,b]" in a list apart: what follows the first key is left
  // over.
  del.app->add_option("KEY", del.options->first_key, "One or more")->required()->type_name("...");
  del.app->prefix_command();
  del.app->parse_complete_callback(
      [app = del.app, options = del.options] { options->more_keys = KeysAmong(app->remaining()); });
  CLI::Option* prefix_of_keys = del.app->add_flag_callback(
      "--prefix", [options = del.options] { options->form = DeleteForm::kPrefix; },
      "KEY is a prefix: remove all keys that begin with it");
  del.app
      ->add_flag_callback(
          "--range", [options = del.options] { options->form = DeleteForm::kRange; },
          "Two KEYs: remove all keys from the first one up to the second, which stays")
      ->excludes(prefix_of_keys);
  AddBase64(del, "The keys are");
  AddKeyspace(del, kKeyspaceToRead);
  AddDurability(del);

  const auto scan = verbs_.Add<ScanVerbOptions>("scan", "Print records in key order", Scan,
                                                R"(  basalt scan ./db --prefix user/
  basalt scan ./db --from 2024-01 --to 2024-07 --keys-only
  basalt scan ./db --reverse --limit 1        the last record
  basalt scan ./db --prefix user/ --json
  basalt scan ./db --keyspace users
  basalt scan ./db --output csv > records.csv
A line is key, tab, value, or with csv key, comma, value; bytes that are not text
are printed as \xNN (see `basalt load --help`). With raw they are printed unchanged.
)");
  AddPathOrUrl(scan);
  CLI::Option* prefix =
      AddBound(scan, "--prefix", &ScanVerbOptions::prefix, "Only keys that begin with it");
  AddBound(scan, "--from", &ScanVerbOptions::from, "The first key of the range")->excludes(prefix);
  AddBound(scan, "--to", &ScanVerbOptions::to, "The end of the range, exclusive")->excludes(prefix);
  scan.app->add_option("--limit", scan.options->limit, "The most records to print")
      ->check(WholeNumber(0))
      ->type_name("N");
  scan.app->add_flag("--reverse", scan.options->reverse, "From the last key to the first");
  scan.app->add_flag("--keys-only", scan.options->keys_only, "Without values");
  AddOutputFlag(scan, AddOutput(scan, {"table", "csv", "json", "raw"}), "--json",
                OutputFormat::kJson, "Print lines of JSON, as --output json");
  AddBase64(scan, "Prefix and bounds are");
  AddKeyspace(scan, kKeyspaceToRead);
  AddReadAccess(scan);
}

void CommandLine::AddTransferVerbs() {
  const auto load = verbs_.Add<LoadOptions>("load", "Write a file's records", Load,
                                            R"(  basalt load ./db records.tsv
  basalt dump ./old --json | basalt load ./new - --json
  basalt load ./db records.json --json --batch 100 --durability power
  basalt load ./db users.tsv --keyspace users

A line is key, tab, value, with \t \n \r \\ for tab, newline, carriage return and
backslash, and \xNN for any other byte. With --json a line is
{"key":"...","value":"..."}. A string may be replaced by {"base64":"..."}.
A record that expires has a third part, expiry_ms=N, or a third member,
"expiry_ms":N: milliseconds since 1970 UTC. Records that have expired are left out
and counted. A part keyspace=NAME, or a member "keyspace":NAME, names the record's
keyspace. Empty lines are skipped. A malformed line ends the load with its number.
The lines before it are loaded and counted, the lines after it are not.
)");
  AddPathOrUrl(load);
  load.app->add_option("FILE", load.options->file, "- is standard input")
      ->required()
      ->type_name("");
  load.app->add_flag("--json", load.options->json, "Lines of JSON");
  load.app
      ->add_option("--batch", load.options->batch_records,
                   "Records of one batch, written all or none (1 MiB also ends a batch)")
      ->check(WholeNumber(1))
      ->capture_default_str()
      ->type_name("N");
  AddKeyspace(load, "Made when it is not there; default: that of each line, or the database's own");
  AddProgress(load);
  AddDurability(load);
  AddMemoryBudget(load);

  const auto dump = verbs_.Add<DumpOptions>("dump", "Print records as load reads them", Dump,
                                            R"(  basalt dump ./db > records.tsv
  basalt dump ./db --json | gzip > records.json.gz
  basalt dump ./db --keyspace users > users.tsv
  basalt dump ./db --all-keyspaces --json > everything.json
  basalt dump ./db --skip-bad > what-can-be-read.tsv
Without --keyspace and --all-keyspaces a dump is of the database's own keyspace, and
stderr says which others there are.
It says when records expire: loaded from it, they do so at the same moment.
)");
  AddPathOrUrl(dump);
  AddKeyspace(dump, kKeyspaceToRead);
  dump.app
      ->add_flag("--all-keyspaces", dump.options->all_keyspaces,
                 "All keyspaces; each record of another than the database's own names it")
      ->excludes("--keyspace");
  AddReadAccess(dump);
  dump.app->add_flag("--json", dump.options->json, "Lines of JSON");
  dump.app->add_flag("--skip-bad", dump.options->skip_bad,
                     "Skip records whose merges cannot be applied");
}

void CommandLine::AddCareVerbs() {
  const auto check = verbs_.Add<CheckOptions>("check", "Read every byte and report damage", Check,
                                              R"(  basalt check ./db
  basalt check ./db --progress
  basalt check ./db --output json
Changes nothing. The exit code is 4 when something is wrong.
)");
  AddPath(check);
  AddFiguresOutput(check);
  AddProgress(check);

  const auto repair =
      verbs_.Add<RepairOptions>("repair", "Make a database with a broken log openable", Repair,
                                R"(  basalt repair ./db
Keeps the log up to the gap, moves the rest to ./db/lost, and says what that was.
Changes nothing when the database can be opened as it is.
)");
  AddPath(repair);
  AddFiguresOutput(repair);

  const auto stat = verbs_.Add<StatOptions>("stat", "Print a database's statistics", Stat,
                                            R"(  basalt stat ./db
  basalt stat ./db --output json
  basalt stat ./db --output raw | grep write_waits
Debt is what compactions have yet to rewrite. Counters run from this opening on.
)");
  AddPathOrUrl(stat);
  AddFiguresOutput(stat);
  AddReadAccess(stat);
}

void CommandLine::AddDemoVerbs() {
  const auto demo = verbs_.Add<DemoOptions>(
      "demo", "Load real input, show the operations, and recover from a crash", Demo,
      R"(  basalt demo
  basalt demo ./demo --input /usr/share/dict/words
Loads what `apt-cache dumpavail` prints, or a file: package paragraphs, or the
lines of any text. An older demo in DIRECTORY is replaced; anything else there is
left alone and refused.
)");
  demo.app->add_option("DIRECTORY", demo.options->path, "Where the database is made")
      ->capture_default_str()
      ->type_name("");
  demo.app->add_option("--input", demo.options->input, "A file to load instead")->type_name("FILE");
  demo_ = demo.options;

  const auto writer = verbs_.Add<DemoWriterOptions>(kDemoWriterVerb, "", DemoWriter, "");
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
  constexpr std::array<std::pair<std::string_view, std::string_view>, 27> kForeign = {{
      {"set", "put"},         {"write", "put"},      {"read", "get"},     {"delete", "del"},
      {"remove", "del"},      {"rm", "del"},         {"list", "scan"},    {"ls", "scan"},
      {"keys", "scan"},       {"import", "load"},    {"export", "dump"},  {"verify", "check"},
      {"stats", "stat"},      {"info", "stat"},      {"make", "build"},   {"create", "build"},
      {"get", "query"},       {"lookup", "query"},   {"mphf", "phash"},   {"perfect-hash", "phash"},
      {"benchmark", "bench"}, {"db_bench", "bench"}, {"show", "inspect"}, {"dump", "export"},
      {"scan", "export"},     {"load", "build"},     {"import", "build"},
  }};
  for (const auto& [foreign, ours] : kForeign) {
    if (word == foreign && IsVerb(ours, app)) return std::string(ours);
  }
  std::string nearest;
  size_t least = word.size() <= 4 ? 2 : 3;
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
  if (argc > 1 && std::string_view(argv[1]) == "help") {  // As of the verb's own --help.
    std::vector<const char*> words(argv, argv + argc);
    words.erase(words.begin() + 1);
    words.push_back("--help");
    return ParseCommandLine(static_cast<int>(words.size()), words.data());
  }
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
