#include "tools/basalt/demo.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "tools/basalt/demo_graph.h"
#include "tools/basalt/demo_input.h"
#include "tools/basalt/demo_writer.h"
#include "tools/basalt/figures.h"
#include "tools/basalt/progress.h"
#include "tools/basalt/text_format.h"

namespace basalt::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kMarkerKey = "demo/marker";
constexpr size_t kBatchRecords = 500;
constexpr size_t kTimedGets = 100'000;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// `argument` as a shell reads it back.
std::string ShellQuote(const std::string& argument) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./+:,=@%";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) return argument;
  std::string quoted = "'";
  for (const char c : argument) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

/// Bytes that a directory's files take on disk.
uint64_t DiskBytes(const std::string& directory) {
  uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory, error)) {
    struct stat about{};
    if (::stat(entry.path().c_str(), &about) == 0 && S_ISREG(about.st_mode)) {
      bytes += static_cast<uint64_t>(about.st_blocks) * 512;
    }
  }
  return bytes;
}

/// Ok when nothing is at `path`, or an empty directory, or an older demo. AlreadyExists: anything
/// else.
Status CheckRoom(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  if (std::filesystem::is_directory(path, error) && std::filesystem::is_empty(path, error)) {
    return {};
  }
  const std::string advice = ": name another directory, or remove it yourself";
  const Result<std::unique_ptr<DB>> db = DB::Open(path, {.create_if_missing = false});
  if (!db && db.error().code() == StatusCode::kBusy) return db.error();
  if (!db) {
    return {StatusCode::kAlreadyExists,
            path + " exists and is not a demo database (" + db.error().ToString() + ")" + advice};
  }
  const Result<MaybeValue> marker = (*db)->Get(kMarkerKey);
  if (!marker) return marker.error();
  if (!marker->has_value()) {
    return {StatusCode::kAlreadyExists, path + " holds a database that no demo has made" + advice};
  }
  return (*db)->Close();
}

/// Removes what CheckRoom has found to be an older demo; the directory stays.
Status MakeRoom(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  for (std::filesystem::directory_iterator it(path, error), end; !error && it != end;
       it.increment(error)) {
    std::filesystem::remove_all(it->path(), error);
    if (error) break;
  }
  if (!error) return {};
  return {StatusCode::kIoError, "cannot remove the older demo " + path + ": " + error.message()};
}

struct LoadFigures {
  uint64_t items = 0;
  uint64_t records = 0;
  uint64_t record_bytes = 0;
  double seconds = 0;
};

/// The demo's course. Each step prints what it does and returns the first error.
class Tour {
 public:
  Tour(const DemoOptions& options, Output& out)
      : options_(options),
        out_(out),
        in_colour_(IsTerminal(STDOUT_FILENO) && std::getenv("NO_COLOR") == nullptr),
        program_(ShellQuote(options.program)),
        path_(ShellQuote(options.path)) {}

  Status Run() {
    Status status = CheckRoom(options_.path);
    if (status.ok()) status = LoadInput();
    if (status.ok()) status = ShowReads();
    if (status.ok()) status = ShowGraph();
    if (status.ok()) status = ShowSnapshot();
    if (status.ok()) status = ShowBatch();
    if (status.ok()) status = ShowCrash();
    if (status.ok()) status = ShowFigures();
    if (status.ok()) status = db_->Close();
    if (status.ok()) ShowWhatNext();
    return status;
  }

 private:
  // --- Printing

  void Say(std::string_view text) { out_.Write(std::string(text) + "\n"); }
  std::string Bold(std::string text) const {
    return in_colour_ ? "\x1b[1m" + std::move(text) + "\x1b[0m" : text;
  }
  std::string Green(std::string text) const {
    return in_colour_ ? "\x1b[32m" + std::move(text) + "\x1b[0m" : text;
  }
  void Step(std::string_view title) {
    Say("");
    Say(Bold(std::to_string(++step_) + ". " + std::string(title)));
    (void)out_.Flush();
  }
  /// Commands name verb and arguments; program and path are put in.
  std::string CommandLine(std::string_view verb, std::string_view arguments) const {
    return program_ + " " + std::string(verb) + " " + path_ +
           (arguments.empty() ? "" : " " + std::string(arguments));
  }
  void ShowCommand(std::string_view verb, std::string_view arguments) {
    Say("   $ " + Bold(CommandLine(verb, arguments)));
  }
  void ShowCode(std::string_view code) { Say("   C++> " + Bold(std::string(code))); }
  void Proved(std::string_view text) { Say("   " + Green("ok") + "  " + std::string(text)); }

  // --- Steps

  Status LoadInput();
  Result<LoadFigures> LoadItems(const DemoInput& input);
  Status ChooseKeys();
  Status ShowReads();
  Status ShowGet(const std::string& key);
  Status ShowScan(const std::string& arguments, const ReadOptions& range, uint64_t limit,
                  bool reverse);
  Status ShowGraph();
  Status ShowSnapshot();
  Status ShowBatch();
  Status ShowCrash();
  Status ShowFigures();
  Status ShowGetLatency();
  void ShowWhatNext();

  /// The first key at or after `from` that begins with `prefix`; empty when there is none.
  Result<std::string> FirstKey(std::string_view prefix, std::string_view from) const;
  Result<uint64_t> CountKeys(std::string_view prefix) const;

  const DemoOptions& options_;
  Output& out_;
  const bool in_colour_;
  const std::string program_;
  const std::string path_;
  std::unique_ptr<DB> db_;
  int step_ = 0;
  DemoInput input_;  // Until ShowGraph has loaded it a second time.
  uint64_t input_bytes_ = 0;
  bool holds_packages_ = false;
  LoadFigures load_;
  std::string get_key_;  // Chosen from what was loaded.
  std::string scan_prefix_;
  std::string count_prefix_;
  std::string range_from_;
  std::string range_to_;
};

Status Tour::LoadInput() {
  Step("Load real input");
  const Clock::time_point start = Clock::now();
  Result<DemoInput> input = ReadDemoInput(options_.input);
  if (!input) return input.error();
  input_ = *std::move(input);
  input_bytes_ = input_.bytes.size();
  holds_packages_ = input_.holds_packages;
  Say("   " + FormatBytes(input_bytes_) + " from " + input_.source + ", read in " +
      FormatSeconds(SecondsSince(start)));
  (void)out_.Flush();

  if (Status room = MakeRoom(options_.path); !room.ok()) return room;
  Result<std::unique_ptr<DB>> db = DB::Open(options_.path);
  if (!db) return db.error();
  db_ = std::move(*db);
  if (Status marked = db_->Put(kMarkerKey, "made by basalt demo"); !marked.ok()) return marked;
  const Result<LoadFigures> load = LoadItems(input_);
  if (!load) return load.error();
  load_ = *load;
  Say("   " + FormatCount(load_.items) + (holds_packages_ ? " packages" : " lines") + " became " +
      FormatCount(load_.records) + " records with " + FormatBytes(load_.record_bytes) +
      " of keys and values, in " + FormatSeconds(load_.seconds) + ":");
  Say("   " + FormatCount(PerSecond(load_.records, load_.seconds)) + " records/s, " +
      FormatBytes(PerSecond(load_.record_bytes, load_.seconds)) +
      "/s, each acknowledged against the death of the process");
  return ChooseKeys();
}

Result<LoadFigures> Tour::LoadItems(const DemoInput& input) {
  LoadFigures figures;
  Progress progress(ProgressStyleForStderr(/*asked_for=*/true), "loading", input.bytes.size());
  WriteBatch batch;
  size_t offset = 0;
  size_t line_number = 0;
  bool more = true;
  while (more) {
    more = AddNextItem(input, offset, line_number, batch);
    if (more) ++figures.items;
    if (more && batch.count() < kBatchRecords) continue;
    if (Status written = db_->Write(batch); !written.ok()) return written;
    figures.records += batch.count();
    const Status summed = batch.ForEach([&figures](const WriteBatch::Record& record) {
      figures.record_bytes += record.key.size() + record.value.size();
      return Status();
    });
    if (!summed.ok()) return summed;
    batch.Clear();
    progress.Update(offset, figures.records);
  }
  figures.seconds = progress.seconds();
  return figures;
}

Result<std::string> Tour::FirstKey(std::string_view prefix, std::string_view from) const {
  const std::unique_ptr<Iterator> it = db_->NewIterator({.prefix = prefix, .keys_only = true});
  it->Seek(from);
  if (!it->status().ok()) return it->status();
  return it->Valid() ? std::string(it->key()) : std::string();
}

Result<uint64_t> Tour::CountKeys(std::string_view prefix) const {
  uint64_t count = 0;
  const std::unique_ptr<Iterator> it = db_->NewIterator({.prefix = prefix, .keys_only = true});
  for (it->SeekToFirst(); it->Valid(); it->Next()) ++count;
  if (!it->status().ok()) return it->status();
  return count;
}

Status Tour::ChooseKeys() {
  if (!holds_packages_) {
    get_key_ = "line/00000001";
    scan_prefix_ = "line/0000000";
    count_prefix_ = "line/";
    range_from_ = "line/00000010";
    range_to_ = "line/00000020";
    return {};
  }
  Result<std::string> package = FirstKey("package/", "package/bash");
  if (package && package->empty()) package = FirstKey("package/", "package/");
  if (!package) return package.error();
  Result<std::string> section = FirstKey("section/", "section/shells/");
  if (section && section->empty()) section = FirstKey("section/", "section/");
  if (!section) return section.error();
  get_key_ = *package;
  scan_prefix_ = "depends/" + package->substr(package->find('/') + 1) + "/";
  count_prefix_ = section->substr(0, section->rfind('/') + 1);
  range_from_ = *package;
  range_to_ = "package/c";
  return {};
}

Status Tour::ShowGet(const std::string& key) {
  constexpr size_t kLinesMax = 6;
  ShowCommand("get", ShellQuote(key));
  const Result<MaybeValue> value = db_->Get(key);
  if (!value) return value.error();
  if (!value->has_value()) {
    Say("   (nothing: exit code 1)");
    return {};
  }
  std::string_view rest = (*value)->view();
  size_t lines = 0;
  for (; !rest.empty() || lines == 0; ++lines) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    if (lines < kLinesMax) Say("   " + ToText(line));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  if (lines > kLinesMax) Say("   (and " + FormatCount(lines - kLinesMax) + " lines more)");
  return {};
}

Status Tour::ShowScan(const std::string& arguments, const ReadOptions& range, uint64_t limit,
                      bool reverse) {
  ShowCommand("scan", arguments);
  const std::unique_ptr<Iterator> it = db_->NewIterator(range);
  std::string line;
  reverse ? it->SeekToLast() : it->SeekToFirst();
  for (uint64_t i = 0; i < limit && it->Valid(); ++i) {
    line = "   ";
    AppendRecord(RecordFormat::kText, it->key(),
                 range.keys_only ? std::nullopt : std::optional(it->value()), line);
    out_.Write(line);
    reverse ? it->Prev() : it->Next();
  }
  return it->status();
}

Status Tour::ShowReads() {
  Step("Read it: one key, a prefix, a range, backwards");
  Status status = ShowGet(get_key_);
  if (status.ok()) status = ShowGet("no-such-key");
  const std::string prefix = ShellQuote(scan_prefix_);
  if (status.ok()) {
    status = ShowScan("--prefix " + prefix + " --limit 5", {.prefix = scan_prefix_}, 5, false);
  }
  if (status.ok()) {
    status = ShowScan("--from " + ShellQuote(range_from_) + " --to " + ShellQuote(range_to_) +
                          " --keys-only --limit 4",
                      {.lower = range_from_, .upper = range_to_, .keys_only = true}, 4, false);
  }
  if (status.ok()) {
    status = ShowScan("--prefix " + ShellQuote(count_prefix_) + " --reverse --limit 3",
                      {.prefix = count_prefix_}, 3, true);
  }
  return status;
}

Status Tour::ShowGraph() {
  if (!holds_packages_) return {};
  Step("The packages as a graph: what needs what, and why");
  const Result<DemoGraph> graph = DemoGraph::Load(db_.get(), input_);
  input_ = DemoInput();
  if (!graph) return graph.error();
  const DemoGraph::Figures& figures = graph->figures();
  Say("   " + FormatCount(figures.packages) + " packages and " + FormatCount(figures.dependencies) +
      " dependencies, loaded in " + FormatSeconds(figures.seconds));
  const Result<std::string> library =
      graph->FirstOf({"libssl3", "libssl3t64", "libssl1.1", "libc6"});
  if (!library) return library.error();
  const Result<std::string> program =
      graph->FirstOf({"git", "openssh-client", "curl", "apt", "bash"});
  if (!program) return program.error();
  if (library->empty() || program->empty()) return {};

  const Result<DemoGraph::Needing> needing = graph->WhatNeeds(*library);
  if (!needing) return needing.error();
  const std::string name(DemoGraph::kName);
  const std::string hard = " --type Depends --type Pre-Depends --graph " + name;
  ShowCommand("graph neighbors", ShellQuote(*library) + " --direction in" + hard + " --limit 5");
  for (const std::string& each : needing->direct) Say("   " + each);
  ShowCode("view.KHop(" + *library +
           ", 2, {.direction = EdgeDirection::kIn, .types = {\"Depends\", \"Pre-Depends\"}})");
  Say("   " + FormatCount(needing->count) + " packages need " + *library +
      " within two hops, found in " + FormatDecimal(needing->microseconds, 1) + " us");

  const Result<std::string> why = graph->WhyNeeds(*program, *library);
  if (!why) return why.error();
  ShowCommand("graph path", ShellQuote(*program) + " " + ShellQuote(*library) + hard);
  Say("   " + (why->empty() ? *program + " does not need " + *library : *why));
  return {};
}

Status Tour::ShowSnapshot() {
  Step("A snapshot keeps a moment");
  constexpr std::string_view kKey = "demo/greeting";
  if (Status put = db_->Put(kKey, "good morning"); !put.ok()) return put;
  const Result<Snapshot> snapshot = db_->GetSnapshot();
  if (!snapshot) return snapshot.error();
  if (Status put = db_->Put(kKey, "good evening"); !put.ok()) return put;
  ShowCode(R"(db->Put("demo/greeting", "good morning");)");
  ShowCode("auto snapshot = db->GetSnapshot();");
  ShowCode(R"(db->Put("demo/greeting", "good evening");)");

  const Result<MaybeValue> then = db_->Get(kKey, {.snapshot = &*snapshot});
  if (!then) return then.error();
  const Result<MaybeValue> now = db_->Get(kKey);
  if (!now) return now.error();
  const bool holds =
      then->has_value() && **then == "good morning" && now->has_value() && **now == "good evening";
  if (!holds) return {StatusCode::kCorruption, "the snapshot does not show its moment"};
  ShowCode(R"(db->Get("demo/greeting", {.snapshot = &*snapshot}))");
  Say("   good morning");
  ShowCommand("get", "demo/greeting");
  Say("   good evening");
  return {};
}

Status Tour::ShowBatch() {
  Step("A batch is all or nothing");
  ShowCode(
      "batch.Put(\"batch/1\", ...); batch.Put(\"batch/2\", ...); batch.Put(<a key that is too "
      "long>, ...);");
  WriteBatch bad;
  bad.Put("batch/1", "one");
  bad.Put("batch/2", "two");
  bad.Put("batch/" + std::string(kMaxKeyBytes, 'x'), "three");
  const Status refused = db_->Write(bad);
  if (refused.ok()) return {StatusCode::kCorruption, "a batch with a bad record was not refused"};
  Say("   " + refused.ToString());
  Result<uint64_t> count = CountKeys("batch/");
  if (!count) return count.error();
  if (*count != 0) return {StatusCode::kCorruption, "a refused batch left records"};
  Proved("the batch was refused, and nothing of it is there");

  WriteBatch good;
  good.Put("batch/1", "one");
  good.Put("batch/2", "two");
  good.Put("batch/3", "three");
  if (Status written = db_->Write(good); !written.ok()) return written;
  count = CountKeys("batch/");
  if (!count) return count.error();
  if (*count != 3) return {StatusCode::kCorruption, "a batch is not there as a whole"};
  Proved("without the bad record all three are there at once");
  return ShowScan("--prefix batch/", {.prefix = "batch/"}, 3, false);
}

Status Tour::ShowCrash() {
  Step("Kill a writer with SIGKILL, and look for every write that it was told is safe");
  if (Status closed = db_->Close(); !closed.ok()) return closed;
  db_.reset();
  Say("   a second process writes crash/000000001, crash/000000002, ... and says which are "
      "acknowledged");
  (void)out_.Flush();
  const Result<uint64_t> acknowledged = KillWriter(options_.path);
  if (!acknowledged) return acknowledged.error();
  Say("   killed after one second; the last one acknowledged was " + CrashKey(*acknowledged));

  const Clock::time_point start = Clock::now();
  Result<std::unique_ptr<DB>> db = DB::Open(options_.path, {.create_if_missing = false});
  if (!db) return db.error();
  db_ = std::move(*db);
  Say("   opened again in " + FormatSeconds(SecondsSince(start)) + ", " +
      FormatCount(db_->GetStats().recovered_records) + " log records replayed");
  const Result<uint64_t> found = CountCrashKeys(*db_);
  if (!found) return found.error();
  if (*found < *acknowledged) {
    return {StatusCode::kCorruption, FormatCount(*acknowledged) +
                                         " writes were acknowledged, but " + FormatCount(*found) +
                                         " are there"};
  }
  Proved(FormatCount(*acknowledged) + " writes were acknowledged, and " + FormatCount(*found) +
         " are there, from " + CrashKey(1) + " to " + CrashKey(*found) + " without a hole");
  if (*found > *acknowledged) {
    Say("       (" + FormatCount(*found - *acknowledged) +
        " more than acknowledged: written, but killed before it could say so)");
  }
  return {};
}

Status Tour::ShowFigures() {
  Step("Sizes and rates");
  const Clock::time_point start = Clock::now();
  if (Status compacted = db_->CompactRange(); !compacted.ok()) return compacted;
  const double seconds = SecondsSince(start);
  uint64_t table_bytes = 0;
  for (const LevelStats& level : db_->GetStats().levels) table_bytes += level.bytes;
  const double ratio =
      static_cast<double>(table_bytes) / static_cast<double>(std::max<uint64_t>(1, input_bytes_));
  Say("   input        " + FormatBytes(input_bytes_));
  Say("   records      " + FormatCount(load_.records) + " with " + FormatBytes(load_.record_bytes) +
      " of keys and values");
  Say("   load         " + FormatCount(PerSecond(load_.records, load_.seconds)) + " records/s, " +
      FormatBytes(PerSecond(load_.record_bytes, load_.seconds)) + "/s");
  Say("   compaction   all of it in " + FormatSeconds(seconds));
  Say("   tables       " + FormatBytes(table_bytes) + ", " + FormatDecimal(ratio, 2) +
      " of the input");
  Say("   on disk      " + FormatBytes(DiskBytes(options_.path)) + " with the log");
  return ShowGetLatency();
}

Status Tour::ShowGetLatency() {
  std::vector<std::string> keys;
  const std::unique_ptr<Iterator> it = db_->NewIterator({.keys_only = true});
  for (it->SeekToFirst(); it->Valid(); it->Next()) keys.emplace_back(it->key());
  if (!it->status().ok()) return it->status();

  std::mt19937_64 random(1);
  std::vector<double> microseconds;
  microseconds.reserve(kTimedGets);
  for (size_t i = 0; i < kTimedGets; ++i) {
    const std::string& key = keys[random() % keys.size()];
    const Clock::time_point start = Clock::now();
    const Result<MaybeValue> value = db_->Get(key);
    microseconds.push_back(SecondsSince(start) * 1e6);
    if (!value) return value.error();
    if (!value->has_value()) {
      return {StatusCode::kCorruption,
              "the key '" + ToText(key) + "' is in a scan but not in a get"};
    }
  }
  std::sort(microseconds.begin(), microseconds.end());
  Say("   get          " + FormatDecimal(microseconds[kTimedGets / 2], 2) + " us median, " +
      FormatDecimal(microseconds[kTimedGets / 100 * 99], 2) + " us for 99 of 100 (" +
      FormatCount(kTimedGets) + " random keys)");
  return {};
}

void Tour::ShowWhatNext() {
  Say("");
  Say(Bold("The database stays in " + options_.path + ". Continue with:"));
  Say("  " + CommandLine("get", ShellQuote(get_key_)));
  Say("  " + CommandLine("scan", "--prefix " + ShellQuote(count_prefix_) + " --limit 5"));
  Say("  " + CommandLine("scan", "--prefix " + ShellQuote(scan_prefix_) + " --json"));
  if (holds_packages_) {
    Say("  " + CommandLine("graph rank", "ffmpeg --graph " + std::string(DemoGraph::kName)));
  }
  Say("  " + CommandLine("put", "demo/greeting 'good night'"));
  Say("  " + CommandLine("dump", "--json | head -n 3"));
  Say("  " + CommandLine("stat", ""));
  Say("  " + CommandLine("check", ""));
}

}  // namespace

ExitCode Demo(const DemoOptions& options, Output& out) { return Report(Tour(options, out).Run()); }

}  // namespace basalt::tools
