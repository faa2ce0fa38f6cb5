#include "basalt/perfect_hash.h"
#include "tools/basalt/phash.h"
#include "tools/basalt/verb.h"

namespace basalt::tools {
namespace {

template <class Options>
void AddKeyForms(const Verb<Options>& verb) {
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
void AddPerfectHashFile(const Verb<Options>& verb, const std::string& what) {
  verb.app->add_option("FILE", verb.options->file, what)->required()->type_name("");
}

void AddPhashBuild(const VerbList& verbs) {
  const auto build =
      verbs.Add<PhashBuildOptions>("build", "Build a perfect hash file from lines of keys",
                                   PhashBuild, R"(  basalt phash build words.phf words.txt
  sort -u *.txt | basalt phash build words.phf
  basalt phash build words.set words.txt --fingerprint 8
  basalt phash build ages.map ages.tsv --fingerprint 12 --payload 7
  basalt phash build ids.phf ids.txt --hashes --dense

A line is a key, with \t \n \r \\ for tab, newline, carriage return and backslash,
and \xNN for any other byte; an empty line is the empty key. With --payload a line
is key, tab, number. If a key is given twice, the message names both lines and no file is written.
)");
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
  AddProgress(build);
}

void AddPhashQuery(const VerbList& verbs) {
  const auto query = verbs.Add<PhashQueryOptions>("query", "Print the numbers of keys", PhashQuery,
                                                  R"(  basalt phash query words.phf grape
  basalt phash query words.phf < words.txt    a number a line
  basalt phash query words.set grape qwzx     perhaps, absent
  basalt phash query ids.phf --hashes 17 0x2A
  basalt phash query words.phf -- -a -b       keys that begin with a dash

A function does not store its keys, so it gives other strings a number too. A set
prints `perhaps` for every key and for one of 2^BITS others; a map prints a payload
for them. For the rest both print `absent`. The exit code is 1 if a key is absent.
Give --hashes if the file was built with it.
)");
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

}  // namespace

void AddPhashVerb(const VerbList& verbs) {
  CLI::App* phash =
      verbs.app->add_subcommand("phash", "Number a fixed set of keys in 2 bits a key");
  phash->group("Verbs");
  phash->require_subcommand(1);
  phash->footer(R"(Examples:
  basalt phash build words.phf words.txt      a line is a key
  basalt phash query words.phf grape          its number, below the number of keys
  basalt phash stat words.phf

A perfect hash function gives each of n keys its own number from 0 to n - 1. It does
not store the keys, so it gives other strings a number too. A fingerprint set
(`build --fingerprint BITS`) prints `absent` for most other strings. A fingerprint
map (`--payload BITS` too) gives each key a number of your choice.
)");
  const VerbList below{phash, verbs.action};
  AddPhashBuild(below);
  AddPhashQuery(below);
  const auto stat =
      below.Add<PhashStatOptions>("stat", "Print a perfect hash file's figures", PhashStat,
                                  R"(  basalt phash stat words.phf
  basalt phash stat words.phf --output json
The keys of a level that it does not place come to the next one.
)");
  AddPerfectHashFile(stat, "What `build` made");
  AddFiguresOutput(stat);
}

}  // namespace basalt::tools
