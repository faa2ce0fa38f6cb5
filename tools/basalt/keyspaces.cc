#include "tools/basalt/keyspaces.h"

#include <memory>
#include <string_view>
#include <vector>

#include "basalt/db.h"
#include "tools/basalt/document.h"
#include "tools/basalt/text_format.h"

namespace basalt::tools {
namespace {

std::string NameLine(OutputFormat format, const std::string& name) {
  std::string line;
  switch (format) {
    case OutputFormat::kTable:
      AppendText(name, line);
      break;
    case OutputFormat::kCsv:
      AppendCsvCell(name, line);
      break;
    case OutputFormat::kJson:
      return JsonLine(Document{{"name", BytesValue(name)}});
    case OutputFormat::kRaw:
      line = name;
      break;
  }
  return line + "\n";
}

}  // namespace

ExitCode KeyspaceList(const KeyspaceListOptions& options, Output& out) {
  const Result<std::unique_ptr<DB>> db = OpenToRead(options.path, options.access);
  if (!db) return Report(db.error());
  const Result<std::vector<KeyspaceInfo>> keyspaces = (*db)->ListKeyspaces();
  if (!keyspaces) return Report(keyspaces.error());
  if (options.output == OutputFormat::kCsv) out.Write("name\n");
  for (const KeyspaceInfo& keyspace : *keyspaces) {
    if (keyspace.id == KeyspaceId::kDefault) continue;
    if (!out.Write(NameLine(options.output, keyspace.name))) break;
  }
  return ExitCode::kOk;
}

ExitCode KeyspaceDrop(const KeyspaceDropOptions& options, Output& /*out*/) {
  const Result<std::unique_ptr<DB>> db = OpenToWrite(options.path, {.create_if_missing = false});
  if (!db) return Report(db.error());
  const Result<KeyspaceId> keyspace = (*db)->OpenKeyspace(options.name);
  if (!keyspace) return Report(keyspace.error());
  if (Status dropped = (*db)->DropKeyspace(*keyspace); !dropped.ok()) return Report(dropped);
  return Report((*db)->Close());
}

}  // namespace basalt::tools
