#include "tools/basalt/demo_input.h"

#include <cstdio>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "tools/basalt/line_reader.h"

namespace basalt::tools {
namespace {

constexpr std::string_view kPackageField = "Package: ";
constexpr const char* kInstalledPackages = "/var/lib/dpkg/status";
constexpr size_t kReadBytes = 256 * 1024;

/// All that `command` prints; empty when it cannot be run.
std::string OutputOf(const char* command) {
  struct PipeCloser {
    void operator()(std::FILE* pipe) const { ::pclose(pipe); }
  };
  const std::unique_ptr<std::FILE, PipeCloser> pipe(::popen(command, "r"));
  std::string bytes;
  while (pipe != nullptr && bytes.size() < kInputBytesMax) {
    const size_t had = bytes.size();
    bytes.resize(had + kReadBytes);
    const size_t got = std::fread(bytes.data() + had, 1, kReadBytes, pipe.get());
    bytes.resize(had + got);
    if (got == 0) break;
  }
  return bytes;
}

Result<std::string> ContentsOf(const std::string& file) {
  Result<LineReader> reader = LineReader::Open(file);
  if (!reader) return reader.error();
  std::string bytes;
  std::string_view line;
  while (bytes.size() < kInputBytesMax) {
    const Result<bool> more = reader->Next(line);
    if (!more) return more.error();
    if (!*more) break;
    bytes.append(line).append(1, '\n');
  }
  return bytes;
}

bool HoldsPackages(std::string_view bytes) {
  return bytes.starts_with(kPackageField) ||
         bytes.find(std::string("\n").append(kPackageField)) != std::string_view::npos;
}

/// The first line of a field's value; empty when the paragraph does not have the field. `name`
/// comes with its colon.
std::string_view Field(std::string_view paragraph, std::string_view name) {
  while (!paragraph.empty()) {
    const std::string_view line = paragraph.substr(0, paragraph.find('\n'));
    if (line.starts_with(name)) {
      std::string_view value = line.substr(name.size());
      while (value.starts_with(' ')) value.remove_prefix(1);
      return value;
    }
    paragraph.remove_prefix(std::min(paragraph.size(), line.size() + 1));
  }
  return {};
}

/// Calls `visit(name, versions)` for each "name (versions)" in a list split by commas and bars.
template <class Visit>
void ForEachDependency(std::string_view list, const Visit& visit) {
  while (!list.empty()) {
    std::string_view item = list.substr(0, list.find_first_of(",|"));
    list.remove_prefix(std::min(list.size(), item.size() + 1));
    while (item.starts_with(' ')) item.remove_prefix(1);
    const std::string_view name = item.substr(0, item.find(' '));
    std::string_view versions;
    if (const size_t open = item.find('('); open != std::string_view::npos) {
      versions = item.substr(open + 1, item.find(')', open) - open - 1);
    }
    if (!name.empty()) visit(name, versions);
  }
}

void AddPackage(std::string_view paragraph, WriteBatch& batch) {
  const std::string name(Field(paragraph, "Package:"));
  if (name.empty()) return;
  batch.Put("package/" + name, paragraph);
  std::string section(Field(paragraph, "Section:"));
  if (section.empty()) section = "none";
  batch.Put("section/" + section + "/" + name, Field(paragraph, "Description:"));

  std::map<std::string, std::string, std::less<>> versions_of;  // One dependency may stand twice.
  for (const std::string_view field : {"Pre-Depends:", "Depends:"}) {
    ForEachDependency(Field(paragraph, field), [&](std::string_view on, std::string_view versions) {
      std::string& all = versions_of[std::string(on)];
      if (!all.empty() && !versions.empty()) all += ", ";
      all += versions;
    });
  }
  for (const auto& [on, versions] : versions_of) {
    batch.Put("depends/" + name + "/" + on, versions);
  }
}

std::string LineKey(size_t number) {
  const std::string digits = std::to_string(number);
  return "line/" + std::string(digits.size() < 8 ? 8 - digits.size() : 0, '0') + digits;
}

/// The paragraph or line at `offset`, which moves behind it.
std::string_view NextItem(const DemoInput& input, size_t& offset) {
  const std::string_view rest = std::string_view(input.bytes).substr(offset);
  const std::string_view separator = input.holds_packages ? "\n\n" : "\n";
  const std::string_view item = rest.substr(0, rest.find(separator));
  offset += std::min(rest.size(), item.size() + separator.size());
  return item;
}

}  // namespace

Result<DemoInput> ReadDemoInput(const std::string& file) {
  DemoInput input;
  if (!file.empty()) {
    input.source = file;
    Result<std::string> bytes = ContentsOf(file);
    if (!bytes) return bytes.error();
    input.bytes = std::move(*bytes);
    if (input.bytes.empty()) {
      return Status(StatusCode::kInvalidArgument, file + " is empty: give a file with some text");
    }
  } else {
    input.source = "apt-cache dumpavail";
    input.bytes = OutputOf("apt-cache dumpavail 2>/dev/null");
    if (!HoldsPackages(input.bytes)) {
      input.source = kInstalledPackages;
      Result<std::string> installed = ContentsOf(kInstalledPackages);
      if (!installed || !HoldsPackages(*installed)) {
        return Status(StatusCode::kNotFound, "`apt-cache dumpavail` prints no packages here and " +
                                                 std::string(kInstalledPackages) +
                                                 " has none: give any text file with --input FILE");
      }
      input.bytes = std::move(*installed);
    }
  }
  input.holds_packages = HoldsPackages(input.bytes);
  return input;
}

std::optional<DemoPackage> NextPackage(const DemoInput& input, size_t& offset) {
  while (input.holds_packages && offset < input.bytes.size()) {
    const std::string_view paragraph = NextItem(input, offset);
    DemoPackage package{.name = Field(paragraph, "Package:"),
                        .section = Field(paragraph, "Section:"),
                        .description = Field(paragraph, "Description:")};
    if (package.name.empty()) continue;
    for (const std::string_view field : {"Pre-Depends:", "Depends:", "Recommends:", "Suggests:"}) {
      ForEachDependency(
          Field(paragraph, field), [&](std::string_view on, std::string_view versions) {
            package.dependencies.push_back({field.substr(0, field.size() - 1), on, versions});
          });
    }
    return package;
  }
  return std::nullopt;
}

bool AddNextItem(const DemoInput& input, size_t& offset, size_t& line_number, WriteBatch& batch) {
  if (offset >= input.bytes.size()) return false;
  const std::string_view item = NextItem(input, offset);
  if (input.holds_packages) {
    AddPackage(item, batch);
  } else {
    batch.Put(LineKey(++line_number), item);
  }
  return true;
}

}  // namespace basalt::tools
