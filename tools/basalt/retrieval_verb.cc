#include "tools/basalt/retrieval.h"
#include "tools/basalt/verb.h"

namespace basalt::tools {
namespace {

template <class Options>
void AddCorpus(const Verb<Options>& verb) {
  verb.app->add_option("--corpus", verb.options->corpus.name, "Which corpus of the database")
      ->capture_default_str()
      ->type_name("NAME");
  verb.app
      ->add_option("--embed", verb.options->corpus.embed,
                   "Also use vectors, by a model in a folder: local:FOLDER")
      ->type_name("MODEL");
}

}  // namespace

void AddRetrievalVerbs(const VerbList& verbs) {
  const auto ingest = verbs.Add<IngestOptions>("ingest", "Add texts that `retrieve` finds", Ingest,
                                               R"(  basalt ingest ./db notes/*.md
  basalt ingest ./db articles.ndjson --stemmer english
  zcat articles.json.gz | basalt ingest ./db - --json
  basalt ingest ./db notes/*.md --embed local:./all-MiniLM-L6-v2
A file is a document: its source is its path as given, its title the heading `# ...`
that it begins with, else its name. A line of a file .ndjson or .jsonl, or of any file
with --json, is a document {"source":"...","title":"...","text":"..."}; the title may be
missing, other members are ignored. A document of a known source replaces that one.
A corpus that was made with --embed needs the same model again.
)");
  AddPathOrUrl(ingest);
  ingest.app->add_option("FILE", ingest.options->files, "- is standard input")
      ->required()
      ->type_name("...");
  ingest.app->add_flag("--json", ingest.options->json, "All files are lines of JSON");
  AddBound(ingest, "--stemmer", &IngestOptions::stemmer,
           "Of a new corpus: the language of its texts, such as english; default: none")
      ->type_name("LANGUAGE");
  AddCorpus(ingest);
  AddProgress(ingest);
  AddMemoryBudget(ingest);

  const auto forget = verbs.Add<ForgetOptions>("forget", "Remove texts that were ingested", Forget,
                                               R"(  basalt forget ./db notes/ada.md
Removes the documents and what only they brought: passages, postings, vectors,
links, entities. The exit code is 1 when a source is absent.
)");
  AddPathOrUrl(forget);
  forget.app->add_option("SOURCE", forget.options->sources, "One or more")
      ->required()
      ->type_name("...");
  AddCorpus(forget);

  const auto retrieve =
      verbs.Add<RetrieveVerbOptions>("retrieve", "Print the passages that fit a question", Retrieve,
                                     R"(  basalt retrieve ./db 'who wrote about the engine'
  basalt retrieve ./db '"analytical engine" babb*' -k 3
  basalt retrieve ./db 'who wrote about the engine' --max-tokens 2000 --json
  basalt retrieve ./db 'who wrote about the engine' --explain
Ranks passages by words, by vectors with --embed, and by links between passages.
The exit code is 1 when nothing is found.
)");
  AddPathOrUrl(retrieve);
  retrieve.app->add_option("QUERY", retrieve.options->query, "Words, \"phrases\" and prefix*")
      ->required()
      ->type_name("");
  retrieve.app->add_option("-k", retrieve.options->k, "At most so many passages")
      ->check(WholeNumber(1))
      ->capture_default_str()
      ->type_name("N");
  retrieve.app
      ->add_option("--max-tokens", retrieve.options->max_tokens,
                   "At most so many tokens in all; a token is taken to be 4 bytes")
      ->check(WholeNumber(1))
      ->type_name("N");
  retrieve.app->add_flag("--explain", retrieve.options->explain,
                         "The parts of each score, and the links that led to a passage");
  AddOutputFlag(retrieve, AddOutput(retrieve, {"table", "json"}), "--json", OutputFormat::kJson,
                "The same as --output json");
  AddCorpus(retrieve);
  AddReadAccess(retrieve);
}

}  // namespace basalt::tools
