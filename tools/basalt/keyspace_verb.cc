#include "tools/basalt/keyspaces.h"
#include "tools/basalt/verb.h"

namespace basalt::tools {

void AddKeyspaceVerb(const VerbList& verbs) {
  CLI::App* keyspace = verbs.app->add_subcommand("keyspace", "List and drop keyspaces");
  keyspace->group("Verbs");
  keyspace->require_subcommand(1);
  keyspace->footer(R"(Examples:
  basalt keyspace list ./db
  basalt keyspace drop ./db users

`put --keyspace` and `load --keyspace` make a keyspace that is not there.
)");
  const VerbList below{keyspace, verbs.action};
  const auto list =
      below.Add<KeyspaceListOptions>("list", "Print the names of keyspaces", KeyspaceList,
                                     R"(  basalt keyspace list ./db
  basalt keyspace list ./db --output json     {"name":"users"}
A line each. The default keyspace has no name and is not listed.
)");
  AddPath(list);
  AddOutputFlag(list, AddOutput(list, {"table", "csv", "json", "raw"}), "--json",
                OutputFormat::kJson, "Lines of JSON: the same as --output json");
  AddReadAccess(list);

  const auto drop =
      below.Add<KeyspaceDropOptions>("drop", "Remove a keyspace with all it holds", KeyspaceDrop,
                                     R"(  basalt keyspace drop ./db users
)");
  AddPath(drop);
  drop.app->add_option("NAME", drop.options->name, "Of the keyspace")->required()->type_name("");
}

}  // namespace basalt::tools
