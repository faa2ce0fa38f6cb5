#include <string>

#include "basalt/vector.h"
#include "tools/basalt/vector.h"
#include "tools/basalt/verb.h"

namespace basalt::tools {
namespace {

template <class Options>
void AddIndex(const Verb<Options>& verb) {
  AddPathOrUrl(verb);
  verb.app->add_option("NAME", verb.options->name, "The index's name")->required()->type_name("");
}

template <class Options>
void AddSearchSize(const Verb<Options>& verb) {
  verb.app->add_option("-k", verb.options->k, "How many to find")
      ->check(WholeNumber(1, 1'000'000))
      ->capture_default_str()
      ->type_name("N");
  verb.app
      ->add_option("--recall", verb.options->recall,
                   "The share of the true nearest that should be found, up to 1")
      ->capture_default_str()
      ->type_name("SHARE");
}

void AddVectorCreate(const VerbList& verbs) {
  const auto create = verbs.Add<VectorCreateOptions>(
      "create", "Make an index", VectorCreate,
      R"(  basalt vector create ./db docs --dimension 384 --model all-MiniLM-L6-v2
  basalt vector create ./db images --dimension 512 --metric l2
)");
  AddIndex(create);
  create.app->add_option("--dimension", create.options->dimension, "Elements of a vector")
      ->required()
      ->check(WholeNumber(1, kVectorDimensionMax))
      ->type_name("N");
  create.app
      ->add_option_function<std::string>(
          "--metric",
          [options = create.options](const std::string& name) {
            options->metric = name == "l2"   ? VectorMetric::kL2
                              : name == "ip" ? VectorMetric::kInnerProduct
                                             : VectorMetric::kCosine;
          },
          "cosine (the default), l2 or ip (inner product)")
      ->check(CLI::IsMember({"cosine", "l2", "ip"}).description(""))
      ->type_name("METRIC");
  create.app->add_option("--model", create.options->model, "A label of what makes the vectors")
      ->type_name("LABEL");
}

void AddVectorImport(const VerbList& verbs) {
  const auto import =
      verbs.Add<VectorImportOptions>("import", "Add the vectors of a file", VectorImport,
                                     R"(  basalt vector import ./db docs vectors.npy
  basalt vector import ./db docs base.fvecs --id-prefix base/
  basalt vector import ./db docs < documents.ndjson

A line of NDJSON is {"id":"...","vector":[...],"attributes":{...}}. Rows of .npy
(float32 or float64) and .fvecs get their number as id, from 0. A vector with an
existing id is replaced. The vectors before a fault have been imported.
)");
  AddIndex(import);
  import.app->add_option("INPUT", import.options->input, "A file; - is standard input (NDJSON)")
      ->capture_default_str()
      ->type_name("");
  import.app
      ->add_option_function<std::string>(
          "--format",
          [options = import.options](const std::string& name) {
            options->format = name == "npy"     ? VectorFileFormat::kNpy
                              : name == "fvecs" ? VectorFileFormat::kFvecs
                                                : VectorFileFormat::kNdjson;
          },
          "npy, fvecs or ndjson; default: by the name of INPUT")
      ->check(CLI::IsMember({"npy", "fvecs", "ndjson"}).description(""))
      ->type_name("FORMAT");
  import.app->add_option("--id-prefix", import.options->id_prefix, "Added before each id")
      ->type_name("TEXT");
  AddProgress(import);
}

void AddVectorSearch(const VerbList& verbs) {
  const auto search =
      verbs.Add<VectorSearchVerbOptions>("search", "Print the nearest vectors", VectorSearchVerb,
                                         R"(  basalt vector search ./db docs --id 17
  basalt vector search ./db docs --vector '[0.1, 0.2, 0.7]' -k 5
  basalt vector search ./db docs --id 17 --filter "lang == 'en' and year >= 2020"
  basalt vector search ./db docs --id 17 --exact --explain --output json
A line is distance, id and attributes.
)");
  AddIndex(search);
  CLI::Option* vector =
      AddBound(search, "--vector", &VectorSearchVerbOptions::vector, "What to look for, in JSON")
          ->type_name("ARRAY");
  AddBound(search, "--id", &VectorSearchVerbOptions::id, "Look for this vector")
      ->excludes(vector)
      ->type_name("ID");
  AddSearchSize(search);
  search.app->add_option("--max-distance", search.options->max_distance, "Nothing farther")
      ->type_name("DISTANCE");
  search.app->add_option("--filter", search.options->filter, "Only what passes it")
      ->type_name("EXPRESSION");
  search.app->add_flag("--exact", search.options->exact, "Compare all vectors");
  search.app->add_flag("--explain", search.options->explain, "Say on stderr how it was searched");
  AddOutput(search, {"table", "json"});
  AddReadAccess(search);
}

}  // namespace

void AddVectorVerb(const VerbList& verbs) {
  CLI::App* vector = verbs.app->add_subcommand("vector", "Find vectors by nearness");
  vector->group("Verbs");
  vector->require_subcommand(1);
  vector->footer(R"(Examples:
  basalt vector create ./db docs --dimension 384
  basalt vector import ./db docs vectors.npy --progress
  basalt vector search ./db docs --id 17
  basalt vector recall ./db docs

An index is a keyspace of a database: vectors with ids and attributes.
)");
  const VerbList below{vector, verbs.action};
  AddVectorCreate(below);
  AddVectorImport(below);
  AddVectorSearch(below);
  const auto recall = below.Add<VectorRecallOptions>(
      "recall", "Measure recall on the index's own data", VectorRecall,
      R"(  basalt vector recall ./db docs
  basalt vector recall ./db docs --queries 1000 -k 100 --recall 0.99
Looks for vectors of the index, drawn at random, and compares what is found with
exact search.
)");
  AddIndex(recall);
  AddSearchSize(recall);
  recall.app->add_option("--queries", recall.options->queries, "How many vectors to look for")
      ->check(WholeNumber(1, 1'000'000))
      ->capture_default_str()
      ->type_name("N");
  AddFiguresOutput(recall);
  AddProgress(recall);
  AddReadAccess(recall);
  const auto stat = below.Add<VectorStatOptions>("stat", "Print an index's figures", VectorStat,
                                                 "  basalt vector stat ./db docs\n");
  AddIndex(stat);
  AddFiguresOutput(stat);
  AddReadAccess(stat);
}

}  // namespace basalt::tools
