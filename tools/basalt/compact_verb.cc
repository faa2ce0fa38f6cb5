#include "tools/basalt/compact.h"
#include "tools/basalt/verb.h"

namespace basalt::tools {

void AddCompactVerb(const VerbList& verbs) {
  const auto compact =
      verbs.Add<CompactOptions>("compact", "Merge tables, to drop what is deleted or overwritten",
                                Compact, R"(  basalt compact ./db
  basalt compact ./db --from user/ --to user0
  basalt compact ./db --progress
The database does this by itself in time; after a large load or many deletes it
makes the files small and reads fast at once. It may be interrupted at any time.
)");
  AddPath(compact);
  AddBound(compact, "--from", &CompactOptions::from, "The first key of the range");
  AddBound(compact, "--to", &CompactOptions::to, "The end of the range, not in it");
  AddBase64(compact, "The bounds are");
  AddMemoryBudget(compact);
  AddProgress(compact);
}

}  // namespace basalt::tools
