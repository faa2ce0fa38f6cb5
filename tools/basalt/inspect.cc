#include "tools/basalt/inspect.h"

#include <optional>
#include <string_view>
#include <utility>

#include "tools/basalt/inspection.h"

namespace basalt::tools {
namespace {

constexpr uint64_t kFileBytesMax = uint64_t{64} << 30;
constexpr size_t kMagicBytes = 8;
constexpr size_t kKeyBytesShown = 256;

enum class FileKind : uint8_t { kManifest, kLog, kTable };

struct Magic {
  std::string_view bytes;
  FileKind kind;
  std::string_view name;
  std::string_view extension;  ///< Or the whole name.
};
constexpr Magic kMagics[] = {{"BSLTMAN1", FileKind::kManifest, "manifest", "MANIFEST"},
                             {"BSLTLOG1", FileKind::kLog, "log", ".log"},
                             {"BasaltTb", FileKind::kTable, "table", ".tbl"}};

/// By its first bytes; where these are damaged, by its name.
const Magic* FindMagic(std::string_view bytes, std::string_view path) {
  for (const Magic& magic : kMagics) {
    if (bytes.substr(0, kMagicBytes) == magic.bytes) return &magic;
  }
  for (const Magic& magic : kMagics) {
    if (path.ends_with(magic.extension)) return &magic;
  }
  return nullptr;
}

Status NoFileOfOurs(const std::string& path, std::string_view bytes) {
  std::string what =
      path + " is not a manifest, log or table: it does not begin with the magic of one";
  if (bytes.starts_with("BSALTPH") || bytes.starts_with("BSALTFP"))
    what += "; `basalt phash stat` shows perfect hash files";
  return {StatusCode::kCorruption, std::move(what)};
}

void InspectAs(FileKind kind, std::unique_ptr<io::File> file, std::string_view bytes,
               Inspection& inspection) {
  switch (kind) {
    case FileKind::kManifest:
      return InspectManifest(bytes, inspection);
    case FileKind::kLog:
      return InspectLog(bytes, inspection);
    case FileKind::kTable:
      return InspectTable(std::move(file), bytes, inspection);
  }
}

struct OpenedFile {
  std::unique_ptr<io::File> file;
  std::string bytes;
};

Result<OpenedFile> OpenWhole(const std::string& path) {
  io::FileSystem* const fs = io::FileSystem::Posix();
  if (Result<bool> is_directory = fs->IsDirectory(path); is_directory && *is_directory) {
    return Status(
        StatusCode::kFailedPrecondition,
        path + " is a directory: name a file in it, such as " + io::JoinPath(path, "MANIFEST"));
  }
  OpenedFile opened;
  Result<std::string> bytes = io::ReadWholeFile(fs, path, kFileBytesMax);
  if (!bytes) return bytes.error();
  opened.bytes = std::move(*bytes);
  Result<std::unique_ptr<io::File>> file = fs->Open(path, io::OpenMode::kRead);
  if (!file) return file.error();
  opened.file = std::move(*file);
  return opened;
}

}  // namespace

void Inspection::Find(uint64_t offset, const Status& fault) {
  findings_.push_back(Document{{"offset", offset}, {"status", BytesValue(fault.ToString())}});
  if (first_fault_.ok()) first_fault_ = fault;
}

Document Inspection::Take() && {
  document_["findings"] = std::move(findings_);
  return std::move(document_);
}

void ShowKey(std::string_view name, std::string_view key, Document& document) {
  if (key.size() <= kKeyBytesShown) {
    document[name] = BytesValue(key);
  } else {
    document[std::string(name) + "_begins"] = BytesValue(key.substr(0, kKeyBytesShown));
  }
}

ExitCode Inspect(const InspectOptions& options, Output& out) {
  Result<OpenedFile> opened = OpenWhole(options.file);
  if (!opened) return ReportPlainly(opened.error());
  const Magic* const magic = FindMagic(opened->bytes, options.file);
  if (magic == nullptr) return ReportPlainly(NoFileOfOurs(options.file, opened->bytes));

  Inspection inspection(options.file, options.limit);
  inspection.Show("file", BytesValue(options.file));
  inspection.Show("kind", BytesValue(magic->name));
  inspection.Show("bytes", opened->bytes.size());
  InspectAs(magic->kind, std::move(opened->file), opened->bytes, inspection);
  const Status first_fault = inspection.first_fault();
  const Document document = std::move(inspection).Take();
  out.Write(options.output == OutputFormat::kJson ? IndentedJson(document)
                                                  : Rendered(options.output, document));
  return ReportPlainly(first_fault);
}

}  // namespace basalt::tools
