#include "tools/basalt/inspect.h"
#include "tools/basalt/verb.h"

namespace basalt::tools {

void AddInspectVerb(const VerbList& verbs) {
  const auto inspect =
      verbs.Add<InspectOptions>("inspect", "Show what a manifest, a log or a table holds", Inspect,
                                R"(  basalt inspect ./db/MANIFEST
  basalt inspect ./db/000001.log --limit 10
  basalt inspect ./db/000002.tbl
  basalt inspect ./db/000002.tbl --output raw | grep '^properties'
If the file is damaged, it shows what can be read, lists the faults in `findings`,
and the exit code is 4. It takes no lock: a file that is being written may be caught half-way.
)");
  inspect.app
      ->add_option("FILE", inspect.options->file, "Its type is recognised by its first bytes")
      ->required()
      ->type_name("");
  inspect.app
      ->add_option("--limit", inspect.options->limit,
                   "Records, operations in each, and blocks, that are shown")
      ->check(WholeNumber(0))
      ->capture_default_str()
      ->type_name("N");
  AddOutput(inspect, {"json", "csv", "raw"});
}

}  // namespace basalt::tools
