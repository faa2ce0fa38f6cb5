#include <memory>
#include <string>
#include <vector>

#include "basalt/shared_map.h"
#include "tools/basalt/map_bench.h"
#include "tools/basalt/map_build.h"
#include "tools/basalt/map_check.h"
#include "tools/basalt/map_keys.h"
#include "tools/basalt/verb.h"

namespace basalt::tools {
namespace {

template <class Options>
void AddMap(const Verb<Options>& verb, const std::string& what = "The map's directory") {
  verb.app->add_option("MAP", verb.options->map, what)->required()->type_name("");
}

/// --layout; calls `take` with what is given.
template <class Options, class Take>
void AddLayout(const Verb<Options>& verb, Take take) {
  verb.app
      ->template add_option_function<std::string>(
          "--layout",
          [options = verb.options, take](const std::string& name) {
            take(*options, name == "fixed"      ? SharedMapLayout::kFixed
                           : name == "variable" ? SharedMapLayout::kVariable
                                                : SharedMapLayout::kDerived);
          },
          "derived (the default), fixed (one cache miss a lookup) or variable (two)")
      ->check(CLI::IsMember({"derived", "fixed", "variable"}).description(""))
      ->type_name("LAYOUT");
}

/// One or more keys, the last arguments.
template <class Options>
void AddKeys(const Verb<Options>& verb) {
  // As for `del`: what follows the first key is left over.
  verb.app->add_option("KEY", verb.options->first_key, "One or more")->required()->type_name("...");
  verb.app->prefix_command();
  verb.app->parse_complete_callback([app = verb.app, options = verb.options] {
    options->more_keys = KeysAmong(app->remaining());
  });
}

void AddCsvOptions(const Verb<MapBuildOptions>& build) {
  CLI::Option* csv =
      build.app->add_flag("--csv", build.options->csv, "INPUT is comma-separated values");
  build.app
      ->add_flag("--header", build.options->columns.header,
                 "The first row of a CSV has the columns' names")
      ->needs(csv);
  build.app
      ->add_option("--key-column", build.options->columns.key_column,
                   "Its number, from 1, or with --header its name")
      ->needs(csv)
      ->capture_default_str()
      ->type_name("COLUMN");
  build.app->add_option("--value-column", build.options->columns.value_column, "The same")
      ->needs(csv)
      ->capture_default_str()
      ->type_name("COLUMN");
}

/// An option that only a database as source has.
template <class Member>
CLI::Option* AddRangeOption(const Verb<MapBuildOptions>& build, CLI::Option* database,
                            const std::string& name, const std::string& type, Member member,
                            const std::string& description) {
  return build.app
      ->add_option_function<std::string>(
          name,
          [options = build.options, member](const std::string& text) {
            options->range.*member = text;
          },
          description)
      ->needs(database)
      ->type_name(type);
}

void AddRangeOptions(const Verb<MapBuildOptions>& build, CLI::Option* input) {
  CLI::Option* database =
      build.app
          ->add_option("--db", build.options->range.path,
                       "The source is a database, which another process may have open")
          ->check(CLI::Validator(
              [](const std::string& path) { return path.empty() ? "an empty path" : ""; }, ""))
          ->excludes(input)
          ->excludes("--csv")
          ->excludes("--skip-bad-lines")
          ->type_name("PATH");
  CLI::Option* prefix = AddRangeOption(build, database, "--prefix", "KEY", &DatabaseRange::prefix,
                                       "Only keys that begin with it");
  AddRangeOption(build, database, "--from", "KEY", &DatabaseRange::from,
                 "The first key of the range")
      ->excludes(prefix);
  AddRangeOption(build, database, "--to", "KEY", &DatabaseRange::to,
                 "The end of the range, not in it")
      ->excludes(prefix);
  AddRangeOption(build, database, "--keyspace", "NAME", &DatabaseRange::keyspace,
                 "Default: the database's own");
  AddBase64(build, "Prefix and bounds are");
}

void AddMapBuild(const VerbList& verbs) {
  const auto build = verbs.Add<MapBuildOptions>("build", "Build a map from records", MapBuild,
                                                R"(  basalt map build ./map records.json
  basalt dump ./db --json | basalt map build ./map
  basalt map build ./map users.csv --csv --header --key-column id --value-column name
  basalt map build ./map --db ./db --prefix user/
  basalt map build ./map documents.json --json --overwrite --duplicates last

A line is {"key":"...","value":"..."}. A string may be replaced by
{"base64":"..."}. With --csv it is a row of cells, quoted where they hold a comma, a
quote or a line's end. Empty lines are skipped. A malformed line ends
the build with its number, and no map is made. --skip-bad-lines continues.
)");
  AddMap(build, "The directory that is made");
  CLI::Option* input =
      build.app->add_option("INPUT", build.options->input, "A file; - is standard input")
          ->capture_default_str()
          ->type_name("");
  AddCsvOptions(build);
  build.app->add_flag("--skip-bad-lines", build.options->skip_bad_lines,
                      "Say what is wrong with the first few, and count them");
  AddRangeOptions(build, input);
  build.app->add_flag("--json", build.options->json,
                      "Values must be JSON, and are kept without white space between its parts");
  build.app->add_flag("--overwrite", build.options->open.overwrite,
                      "Replace an existing map when the new one is complete");
  build.app
      ->add_option_function<std::string>(
          "--duplicates",
          [options = build.options](const std::string& what) {
            options->duplicates = what == "last" ? Duplicates::kKeepLast : Duplicates::kRefuse;
          },
          "A key that occurs twice: refuse (the default), or keep its last value")
      ->check(CLI::IsMember({"refuse", "last"}).description(""))
      ->type_name("WHAT");
  AddLayout(build,
            [](MapBuildOptions& options, SharedMapLayout layout) { options.open.layout = layout; });
  build.app
      ->add_option("--memory", build.options->open.build_memory,
                   "Further records are kept in a temporary file, such as 512M; at least 1M; "
                   "default: 256M")
      ->transform(CLI::AsSizeValue(false).description(""))
      ->check(WholeNumber(uint64_t{1} << 20))
      ->type_name("BYTES");
  build.app->add_option("--threads", build.options->open.threads, "Default: one a processor")
      ->check(WholeNumber(1, 256U))
      ->type_name("N");
  AddProgress(build);
}

void AddMapKeyVerbs(const VerbList& verbs) {
  const auto get = verbs.Add<MapGetOptions>("get", "Print the values of keys", MapGet,
                                            R"(  basalt map get ./map user/42
  basalt map get --raw ./map photo/7 > photo.jpg
  basalt map get ./map user/1 user/2 user/3   a line each: key, tab, value
  basalt map get --output json ./map user/42  {"key":"user/42","value":"Ada"}
  basalt map get ./map -- -key                a key that begins with a dash
The exit code is 1 when a key is absent. The map may have a writer.
)");
  AddMap(get);
  AddKeys(get);
  AddOutputFlag(get, AddOutput(get, {"table", "csv", "json", "raw"}), "--raw", OutputFormat::kRaw,
                "Bytes as they are, one value without a newline: the same as --output raw");
  AddBase64(get, "The keys are");

  const auto put = verbs.Add<MapPutOptions>("put", "Set a key to a value", MapPut,
                                            R"(  basalt map put ./map user/42 Ada
  basalt map put ./map photo/7 - < photo.jpg  the value is all of standard input
  basalt map put --json ./map user/42 '{ "name": "Ada" }'
Makes the map when it is not there. One process at a time writes to a map.
)");
  AddMap(put);
  put.app->add_option("KEY", put.options->key, "Its bytes as they are")->required()->type_name("");
  put.app->add_option("VALUE", put.options->value, "- reads it from standard input, as it is")
      ->required()
      ->type_name("");
  AddBase64(put, "KEY and VALUE are");
  put.app->add_flag("--json", put.options->json,
                    "VALUE must be JSON, and is kept without white space between its parts");
  AddDurability(put);

  const auto del = verbs.Add<MapDeleteOptions>("del", "Remove keys in one step", MapDelete,
                                               R"(  basalt map del ./map user/42
  basalt map del ./map user/1 user/2 user/3
  basalt map del ./map -- -a -b               keys that begin with a dash
It is not an error if a key is absent.
)");
  AddMap(del);
  AddKeys(del);
  AddBase64(del, "The keys are");
  AddDurability(del);
}

void AddMapCareVerbs(const VerbList& verbs) {
  const auto stat = verbs.Add<MapStatOptions>("stat", "Print a map's figures", MapStat,
                                              R"(  basalt map stat ./map
  basalt map stat ./map --output json
  basalt map stat ./map --output raw | grep log_bytes
The base is what was built. Changes are in a log until they are compacted into it.
)");
  AddMap(stat);
  AddFiguresOutput(stat);

  const auto check =
      verbs.Add<MapCheckOptions>("check", "Read every byte and say what is wrong", MapCheck,
                                 R"(  basalt map check ./map
  basalt map check ./map --progress
  basalt map check ./map --output json
Changes nothing. The exit code is 4 when something is wrong.
)");
  AddMap(check);
  AddFiguresOutput(check);
  AddProgress(check);

  const auto exported =
      verbs.Add<MapExportOptions>("export", "Print all records, as build reads them", MapExport,
                                  R"(  basalt map export ./map > records.json
  basalt map export ./map | basalt load ./db - --json
  basalt map export ./map --csv | basalt map build ./copy --csv --header
All records are of one moment, in no order. The map may have a writer, which
may continue to write.
)");
  AddMap(exported);
  exported.app->add_flag("--csv", exported.options->csv,
                         "Comma-separated values under a header, and no lines of JSON");
}

void AddMapBench(const VerbList& verbs) {
  const auto bench = verbs.Add<MapBenchOptions>("bench", "Measure a build and lookups", MapBench,
                                                R"(  basalt map bench :memory:
  basalt map bench /dev/shm/bench --num 10000000 --threads 2 --layout variable
  basalt map bench ./bench --num 100000 --value-size 1000 --output csv > figures.csv

Builds a map. Looks up random present keys (get), absent keys (getmissing), and
batches of 64 (multiget64). ns/op is from a loop without a clock. p50 to max are
from the same calls, each timed; the clock adds about 20 ns.
)");
  AddMap(bench, "A directory of its own, or :memory:; an older bench in it is replaced");
  MapBenchOptions& options = *bench.options;
  constexpr uint64_t kMost = 1'000'000'000;
  bench.app->add_option("--num", options.num, "Records")
      ->check(WholeNumber(1, kMost))
      ->capture_default_str()
      ->type_name("N");
  bench.app->add_option("--reads", options.reads, "Lookups of each kind; default: --num")
      ->check(WholeNumber(1, kMost))
      ->type_name("N");
  bench.app->add_option("--value-size", options.value_bytes, "Bytes of a value")
      ->check(WholeNumber(0, uint64_t{1} << 30))
      ->capture_default_str()
      ->type_name("N");
  bench.app->add_option("--threads", options.threads, "They share the lookups")
      ->check(WholeNumber(1, 256))
      ->capture_default_str()
      ->type_name("N");
  bench.app->add_option("--seed", options.seed, "The same seed gives the same keys and values")
      ->check(WholeNumber(0))
      ->capture_default_str()
      ->type_name("N");
  AddLayout(bench,
            [](MapBenchOptions& options, SharedMapLayout layout) { options.layout = layout; });
  AddOutput(bench, {"table", "csv", "json", "raw"});
  AddProgress(bench);
}

}  // namespace

void AddMapVerb(const VerbList& verbs) {
  CLI::App* map = verbs.app->add_subcommand("map", "Share a map among processes: one writes");
  map->group("Verbs");
  map->require_subcommand(1);
  map->footer(R"(Examples:
  basalt map build ./map records.json         or CSV, or from a database
  basalt map get ./map user/42
  basalt map put ./map user/42 Ada
  basalt map stat ./map

MAP is the directory of a shared map. It is not a database: it has no order and no
transactions. One process writes to it, and any number read. A lookup takes one or
two memory accesses. In /dev/shm it never touches a disk.
)");
  const VerbList below{map, verbs.action};
  AddMapBuild(below);
  AddMapKeyVerbs(below);
  AddMapCareVerbs(below);
  AddMapBench(below);
}

}  // namespace basalt::tools
